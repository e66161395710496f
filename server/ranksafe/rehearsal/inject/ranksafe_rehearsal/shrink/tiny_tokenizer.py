"""Writes a tokenizer with about a thousand entries that behaves like a published one of the same kind."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from typing import Any

from . import text
from .special_tokens import KINDS, Kind, chat_template

_ENTRIES = 900
"""Learnt pieces at most; the special tokens come on top."""
_LONGEST = 2048
_ROLES = ("bos", "eos", "pad", "unk", "cls", "sep", "mask")


def write(
    directory: str, kind_name: str, with_chat_template: bool, more_tokens: tuple[str, ...] = ()
) -> int:
    """Write the tokenizer's files into ``directory`` and return the number of its entries.

    ``more_tokens`` get entries of their own (the placeholders of images and sounds). Raises ImportError where the
    tokenizers package is missing.
    """
    kind = KINDS[kind_name]
    if kind.algorithm == "characters":
        return _write_characters(directory, kind)
    tokenizer = _trained(kind, more_tokens)
    tokenizer.save(os.path.join(directory, "tokenizer.json"))
    settings = _settings(kind, with_chat_template, more_tokens)
    _write(directory, "tokenizer_config.json", settings)
    names = {key: value for key, value in settings.items() if key.endswith("_token")}
    _write(directory, "special_tokens_map.json", names)
    return int(tokenizer.get_vocab_size())


def is_letters(directory: str) -> bool:
    """Whether the written tokenizer is one for CTC, whose model predicts exactly its letters."""
    return not os.path.isfile(os.path.join(directory, "tokenizer.json"))


def special_token_ids(directory: str) -> dict[str, int]:
    """Ids that configurations name (``pad_token_id`` …), read from the files of ``write``."""
    with open(os.path.join(directory, "tokenizer_config.json"), encoding="utf-8") as file:
        settings = json.load(file)
    known = entries(directory)
    result = {
        key + "_id": known[value]
        for key, value in settings.items()
        if key.endswith("_token") and isinstance(value, str) and value in known
    }
    start = "<|startoftranscript|>"
    result["decoder_start_token_id"] = known.get(
        start, result.get("pad_token_id", result.get("eos_token_id", 0))
    )
    result["forced_eos_token_id"] = result.get("eos_token_id", 0)
    return result


def token_ids(directory: str, tokens: tuple[str, ...]) -> dict[str, int]:
    """Ids of tokens by their text, where they exist."""
    known = entries(directory)
    return {token: known[token] for token in tokens if token in known}


def entries(directory: str) -> dict[str, int]:
    """All entries of the written tokenizer with their ids."""
    path = os.path.join(directory, "tokenizer.json")
    if is_letters(directory):
        with open(os.path.join(directory, "vocab.json"), encoding="utf-8") as file:
            return dict(json.load(file))
    with open(path, encoding="utf-8") as file:
        data = json.load(file)
    result = dict(data["model"]["vocab"])
    result.update({token["content"]: token["id"] for token in data["added_tokens"]})
    return result


def _special(kind: Kind, more_tokens: tuple[str, ...]) -> list[str]:
    named = [getattr(kind, role) for role in _ROLES]
    return list(dict.fromkeys([token for token in named if token] + [*kind.extra, *more_tokens]))


def _trained(kind: Kind, more_tokens: tuple[str, ...]) -> Any:
    from tokenizers import (  # type: ignore[import-not-found]
        Tokenizer,
        decoders,
        models,
        normalizers,
        pre_tokenizers,
        processors,
        trainers,
    )

    special = _special(kind, more_tokens)
    size = _ENTRIES + len(special)
    if kind.algorithm == "pieces":
        tokenizer = Tokenizer(models.WordPiece(unk_token=kind.unk))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.decoder = decoders.WordPiece(prefix="##")
        trainer: Any = trainers.WordPieceTrainer(
            vocab_size=size,
            special_tokens=special,
            show_progress=False,
            initial_alphabet=[chr(code) for code in range(33, 127)],
        )
    else:
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=size,
            special_tokens=special,
            show_progress=False,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        )
    with _one_thread():
        tokenizer.train_from_iterator(text.corpus(), trainer)
    if kind.single is not None:
        used = [token for token in special if f"{token}:" in f"{kind.single} {kind.pair or ''}"]
        tokenizer.post_processor = processors.TemplateProcessing(
            single=kind.single,
            pair=kind.pair or kind.single + " " + kind.single.replace("$A", "$B"),
            special_tokens=[(token, tokenizer.token_to_id(token)) for token in used],
        )
    return tokenizer


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Threads of the tokenizers package, once used, make every later fork of the script warn."""
    before = os.environ.get("TOKENIZERS_PARALLELISM")
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    try:
        yield
    finally:
        if before is None:
            del os.environ["TOKENIZERS_PARALLELISM"]
        else:
            os.environ["TOKENIZERS_PARALLELISM"] = before


def _settings(kind: Kind, with_chat_template: bool, more_tokens: tuple[str, ...]) -> dict[str, Any]:
    inputs = ["input_ids", "token_type_ids", "attention_mask"]
    settings: dict[str, Any] = {
        "tokenizer_class": kind.class_name,
        "model_max_length": 512 if kind.token_type_ids or kind.cls else _LONGEST,
        "padding_side": kind.padding_side,
        "clean_up_tokenization_spaces": False,
        "model_input_names": inputs if kind.token_type_ids else [inputs[0], inputs[2]],
    }
    for role in _ROLES:
        settings[role + "_token"] = getattr(kind, role)
    extra = [*kind.extra, *more_tokens]
    if extra:
        settings["additional_special_tokens"] = extra
    if kind.class_name.startswith("GPT2"):
        settings["add_prefix_space"] = False
    if with_chat_template:
        settings["chat_template"] = chat_template(kind)
    return settings


def _write_characters(directory: str, kind: Kind) -> int:
    """A tokenizer for CTC: letters, and a bar between words."""
    tokens = [str(kind.pad), str(kind.bos), str(kind.eos), str(kind.unk), *kind.extra]
    tokens += [chr(code) for code in range(ord("A"), ord("Z") + 1)] + ["'"]
    _write(directory, "vocab.json", {token: index for index, token in enumerate(tokens)})
    settings = _settings(kind, False, ())
    settings.update(
        word_delimiter_token="|",
        do_lower_case=False,
        model_input_names=["input_ids", "attention_mask"],
    )
    settings.pop("additional_special_tokens", None)
    for role in ("cls", "sep", "mask"):
        settings.pop(role + "_token")
    _write(directory, "tokenizer_config.json", settings)
    return len(tokens)


def _write(directory: str, file: str, data: Any) -> None:
    with open(os.path.join(directory, file), "w", encoding="utf-8") as output:
        json.dump(data, output, ensure_ascii=False, indent=1)
