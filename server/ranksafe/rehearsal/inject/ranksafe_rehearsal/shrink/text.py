"""Deterministic English-like text: the corpus of the tiny tokenizers and the rows of the stand-in datasets."""

from __future__ import annotations

import random

_WORDS = """the a of and to in is that it was for on are with as his they at be this from have or by one had not but
what all were when we there can an your which their said if do will each about how up out them then she many some so
these would other into has more her two like him see time could no make than first been its who now people my made
over did down only way find use may water long little very after words called just where most know get through back
much before go good new write our used me man too any day same right look think also around another came come work
three word must because does part even place well such here take why things help put years different away again off
went old number great tell men say small every found still between name should home big give air line set own under
read last never us left end along while might next sound below saw something thought both few those always looked
show large often together asked house world going want school important until form food keep children feet land side
without boy once animals life enough took sometimes four head above kind began almost live page got earth need far
hand high year mother light parts country father let night following picture being study second eyes soon times story
boys since white days ever paper hard near sentence better best across during today others however sure means knew
model data train loss step batch device rank tensor layer weight gradient token film actor scene music""".split()
_ENDS = (".", ".", ".", "?", "!")


def generator(*names: object) -> random.Random:
    """A source of numbers that is the same in every process for the same names."""
    return random.Random("/".join(map(str, names)))


def sentence(source: random.Random, words: int) -> str:
    """One sentence of about ``words`` words."""
    count = max(2, words + source.randint(-words // 4, words // 4))
    text = " ".join(source.choice(_WORDS) for _ in range(count))
    return text[0].upper() + text[1:] + source.choice(_ENDS)


def paragraph(source: random.Random, sentences: int = 4, words: int = 12) -> str:
    """Several sentences."""
    return " ".join(sentence(source, words) for _ in range(sentences))


def corpus(lines: int = 400) -> list[str]:
    """What the tiny tokenizers are trained on: every word occurs, with and without a capital letter."""
    source = generator("corpus")
    return [*_WORDS, *(paragraph(source, 2) for _ in range(lines))]
