"""Columns of the stand-in datasets: what a value looks like, and the features that ``datasets`` gives it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import text


@dataclass(frozen=True)
class Column:
    """``value(source, row)`` makes one; ``feature(datasets)`` gives its type, None lets ``datasets`` infer it."""

    value: Callable[[random.Random, int], Any]
    feature: Callable[[Any], Any] | None = None


def _plain(dtype: str) -> Callable[[Any], Any]:
    return lambda datasets: datasets.Value(dtype)


def words(sentences: int = 1, count: int = 12) -> Column:
    """Text of some sentences."""
    return Column(lambda source, row: text.paragraph(source, sentences, count), _plain("string"))


def empty_or_words() -> Column:
    """Text in every second row, an empty string in the others."""
    return Column(lambda source, row: text.sentence(source, 8) if row % 2 else "", _plain("string"))


def name(prefix: str) -> Column:
    """An identifier that is different in every row."""
    return Column(lambda source, row: f"{prefix}{row}", _plain("string"))


def one_of(*choices: str) -> Column:
    """One of some strings."""
    return Column(lambda source, row: choices[row % len(choices)], _plain("string"))


def number(low: int = 0, high: int = 100, dtype: str = "int64") -> Column:
    """A whole number."""
    return Column(lambda source, row: source.randint(low, high), _plain(dtype))


def index() -> Column:
    """The number of the row."""
    return Column(lambda source, row: row, _plain("int32"))


def real(low: float = 0.0, high: float = 1.0, dtype: str = "float32") -> Column:
    """A number with fractions."""
    return Column(lambda source, row: round(source.uniform(low, high), 3), _plain(dtype))


def truth() -> Column:
    """True in every second row."""
    return Column(lambda source, row: row % 2 == 0, _plain("bool"))


def label(*names: str) -> Column:
    """A class, all equally often."""
    return Column(
        lambda source, row: (row * 7 + source.randint(0, 1)) % len(names),
        lambda datasets: datasets.ClassLabel(names=list(names)),
    )


def classes(count: int) -> Column:
    """One of many classes whose names do not matter."""
    return label(*(f"class {number}" for number in range(count)))


def dialogue(turns: int = 1, system: bool = False) -> Column:
    """A conversation of user and assistant."""

    def value(source: random.Random, row: int) -> list[dict[str, str]]:
        messages = [{"role": "system", "content": "You are a helpful assistant."}] if system else []
        for _ in range(turns):
            messages.append({"role": "user", "content": text.sentence(source, 10)})
            messages.append({"role": "assistant", "content": text.paragraph(source, 2, 10)})
        return messages

    return Column(value)


def answered(first_words: int) -> Column:
    """A question, the same one in every such column of a row, and an answer: what preference pairs are made of."""

    def value(source: random.Random, row: int) -> list[dict[str, str]]:
        question = text.sentence(text.generator("question", row), first_words)
        answer = text.paragraph(source, 2, 10)
        return [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]

    return Column(value)


def written_dialogue() -> Column:
    """The same as one string, in the notation of HH-RLHF."""

    def value(source: random.Random, row: int) -> str:
        question = text.sentence(text.generator("question", row), 10)
        return f"\n\nHuman: {question}\n\nAssistant: {text.paragraph(source, 2, 10)}"

    return Column(value, _plain("string"))


def said(role: str, sentences: int = 1) -> Column:
    """A list with one message."""
    return Column(
        lambda source, row: [{"role": role, "content": text.paragraph(source, sentences, 10)}]
    )


def answered_sum() -> Column:
    """A solution that ends like those of GSM8K."""
    return Column(
        lambda source, row: f"{text.sentence(source, 12)}\n#### {source.randint(1, 99)}",
        _plain("string"),
    )


def answers() -> Column:
    """Where SQuAD finds the answer: the start of the context."""
    return Column(
        lambda source, row: {"text": ["The"], "answer_start": [0]},
        lambda datasets: {
            "text": _list(datasets, datasets.Value("string")),
            "answer_start": _list(datasets, datasets.Value("int32")),
        },
    )


def tokens(count: int = 9) -> Column:
    """Words as a list."""
    return Column(
        lambda source, row: (
            text.sentence(source, count).rstrip(".?!").split()[: max(2, count // 2)]
        ),
        lambda datasets: _list(datasets, datasets.Value("string")),
    )


def tags(count: int, *names: str) -> Column:
    """One class for each word of ``tokens(count)``."""
    return Column(
        lambda source, row: [source.randrange(len(names)) for _ in range(max(2, count // 2))],
        lambda datasets: _list(datasets, datasets.ClassLabel(names=list(names))),
    )


def translation(*languages: str) -> Column:
    """The same number of words in each language."""
    return Column(
        lambda source, row: {language: text.sentence(source, 10) for language in languages},
        lambda datasets: {language: datasets.Value("string") for language in languages},
    )


def choices(count: int) -> Column:
    """Possible answers."""
    return Column(
        lambda source, row: [text.sentence(source, 5) for _ in range(count)],
        lambda datasets: _list(datasets, datasets.Value("string")),
    )


def choices_with_letters(count: int) -> Column:
    """Possible answers with their letters."""
    letters = [chr(ord("A") + position) for position in range(count)]
    return Column(
        lambda source, row: {"text": [text.sentence(source, 5) for _ in letters], "label": letters},
    )


def image(width: int = 224, height: int = 224, mode: str = "RGB") -> Column:
    """A picture of noise; needs PIL."""

    def value(source: random.Random, row: int) -> Any:
        from PIL import Image  # type: ignore[import-not-found]

        small = Image.new(mode, (4, 4))
        colours = 1 if mode == "L" else 3
        for position in range(16):
            colour = tuple(source.randrange(256) for _ in range(colours))
            small.putpixel((position % 4, position // 4), colour if colours > 1 else colour[0])
        return small.resize((width, height))

    return Column(value, lambda datasets: datasets.Image())


def sound(seconds: float = 1.0, rate: int = 16_000) -> Column:
    """A second of noise."""

    def value(source: random.Random, row: int) -> Any:
        import numpy as np  # type: ignore[import-not-found]

        noise = np.random.default_rng(row).uniform(-0.1, 0.1, int(seconds * rate))
        return {"array": noise.astype("float32"), "path": None, "sampling_rate": rate}

    return Column(value, lambda datasets: datasets.Audio(sampling_rate=rate))


def _list(datasets: Any, feature: Any) -> Any:
    """A list of ``feature``: ``List`` since datasets 4.0, ``Sequence`` before."""
    kind = getattr(datasets, "List", None) or datasets.Sequence
    return kind(feature)
