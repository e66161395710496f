"""What the scripts of fit.toml load besides themselves: configurations without weights, tokenizers, texts, pictures."""

from __future__ import annotations

import importlib
import json
import random
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

MODELS: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent / "fit_models.json").read_text("utf-8")
)
_HASH = "0" * 40
_SPECIAL = ("<unk>", "<s>", "</s>")
_CHAT = (
    "{% for message in messages %}{{ message['role'] + ' ' + message['content'] + ' </s> ' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'assistant ' }}{% endif %}"
)
Row = dict[str, Any]


def words(number: int, seed: int) -> str:
    """That many words; each is one token of every tokenizer here."""
    chosen = random.Random(seed)
    return " ".join(f"w{chosen.randrange(20000)}" for _ in range(number))


def _turns(number: int, seed: int, half: int = 600) -> list[Row]:
    roles = ("user", "assistant")[:number]
    return [{"role": role, "content": words(half, 2 * seed + at)} for at, role in enumerate(roles)]


_LOCAL: dict[str, Callable[[int], Row]] = {
    "conversations": lambda at: {"messages": _turns(2, at)},
    "preferences": lambda at: {
        "chosen": _turns(2, at),
        "rejected": [_turns(1, at)[0], _turns(2, at + 1000)[1]],
    },
    "prompts": lambda at: {"prompt": _turns(1, at, 200), "solution": words(9, at)},
}
_TEXT = {"dtype": "string", "_type": "Value"}
_NUMBER = {"dtype": "int64", "_type": "Value"}
_PICTURE = {"_type": "Image"}
_HUB: dict[str, tuple[str, str, Row, Callable[[int], Row]]] = {
    "timdettmers/openassistant-guanaco": (
        *("default", "test", {"text": _TEXT}),
        lambda at: {"text": words(600, at)},
    ),
    "smangrul/ultrachat-10k-chatml": (
        *("default", "test"),
        {"messages": [{"role": _TEXT, "content": _TEXT}]},
        lambda at: {"messages": _turns(2, at)},
    ),
    "roneneldan/TinyStories": (
        *("default", "validation", {"text": _TEXT}),
        lambda at: {"text": words(900, at)},
    ),
    "nyu-mll/glue": (
        *("mrpc", "validation"),
        {"sentence1": _TEXT, "sentence2": _TEXT, "label": _NUMBER, "idx": _NUMBER},
        lambda at: {
            "sentence1": words(62, at),
            "sentence2": words(62, at + 1000),
            "label": at % 2,
            "idx": at,
        },
    ),
    "wikitext": (
        *("wikitext-2-raw-v1", "validation", {"text": _TEXT}),
        lambda at: {"text": words(600, at)},
    ),
    "lambdalabs/naruto-blip-captions": (
        *("default", "test", {"image": _PICTURE, "text": _TEXT}),
        lambda at: {"image": {"bytes": _picture(1024), "path": ""}, "text": words(20, at)},
    ),
    "huggan/flowers-102-categories": (
        *("default", "test", {"image": _PICTURE}),
        lambda at: {"image": {"bytes": _picture(128), "path": ""}},
    ),
}


def make(folder: Path) -> None:
    """Fill ``folder``: ``hub`` and ``datasets`` as in HF_HOME, ``data`` for what is given by its path."""
    for name, files in MODELS.items():
        top = folder / "hub" / f"models--{name.replace('/', '--')}"
        _write(top / "refs" / "main", _HASH)
        for file, content in files.items():
            at = top / "snapshots" / _HASH / file
            if file.endswith("/"):
                _tokenizer(at, int(content), "CLIPTokenizer")
            else:
                _write(at, json.dumps(content))
            vocabulary = file == "config.json" and content.get("vocab_size")
            if vocabulary:
                _tokenizer(at.parent, int(vocabulary), "PreTrainedTokenizerFast")
    for name, of_row in _LOCAL.items():
        for split, first in (("train", 0), ("test", 64)):
            rows = [json.dumps(of_row(first + at)) for at in range(64)]
            _write(folder / "data" / name / f"{split}.jsonl", "\n".join(rows))
    for name in _HUB:
        _dataset(folder / "datasets", name)
    _by_path(folder / "data")


def _by_path(data: Path) -> None:
    alpaca = [
        {"instruction": words(200, at), "input": "", "output": words(400, at + 1)}
        for at in range(256)
    ]
    _write(data / "alpaca.json", json.dumps(alpaca))
    for at in range(300):
        for split in ("", "train", "val", "validation"):
            file = data / "pictures" / split / f"class{at % 2}" / f"{at}.jpg"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(_picture(256))
    sentences = [json.dumps({"sentence": words(60, at), "label": "w1 w2"}) for at in range(64)]
    for split in ("train", "val"):
        _write(data / "phrases" / f"financial_phrase_bank_{split}.jsonl", "\n".join(sentences))
    texts = [json.dumps({"text": words(2000, at)}) for at in range(64)]
    _write(data / "c4_test" / "data.json", "\n".join(texts))
    tokens = random.Random(0)
    numbers = b"".join(tokens.randrange(50000).to_bytes(2, "little") for _ in range(200_000))
    for name in ("openwebtext", "shakespeare"):
        for split in ("train", "val"):
            file = data / "tokens" / name / f"{split}.bin"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(numbers)


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")


def _tokenizer(folder: Path, size: int, kind: str) -> None:
    known = [*_SPECIAL, "user", "assistant"]
    vocabulary = known + [f"w{number}" for number in range(size - len(known))]
    added = [
        {"id": at, "content": token, "special": True}
        | dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        for at, token in enumerate(_SPECIAL)
    ]
    model: Row = {"type": "WordLevel", "unk_token": "<unk>"}
    if kind == "CLIPTokenizer":
        model = {"type": "BPE", "unk_token": "<unk>", "merges": []}
        _write(folder / "merges.txt", "#version: 0.2\n")
        _write(folder / "vocab.json", json.dumps({w: at for at, w in enumerate(vocabulary)}))
    model["vocab"] = {word: at for at, word in enumerate(vocabulary)}
    whole: Row = {"version": "1.0", "added_tokens": added, "model": model}
    whole |= dict.fromkeys(("truncation", "padding", "normalizer", "post_processor", "decoder"))
    whole["pre_tokenizer"] = {"type": "WhitespaceSplit"}
    _write(folder / "tokenizer.json", json.dumps(whole))
    named = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>", "pad_token": "</s>"}
    longest = 77 if kind == "CLIPTokenizer" else 131072
    settings = {"tokenizer_class": kind, "chat_template": _CHAT, "model_max_length": longest}
    _write(folder / "tokenizer_config.json", json.dumps(named | settings))


def _picture(size: int) -> bytes:
    written = BytesIO()
    importlib.import_module("PIL.Image").new("RGB", (size, size), (200, 90, 30)).save(
        written, "JPEG"
    )
    return written.getvalue()


def _dataset(cache: Path, name: str) -> None:
    """As `datasets` keeps what it has prepared, which it takes where the hub is out of reach."""
    pa = importlib.import_module("pyarrow")

    config, other, features, of_row = _HUB[name]
    space, _, last = name.rpartition("/")
    kept = "".join(
        f"_{c.lower()}" if c.isupper() and at else c.lower() for at, c in enumerate(last)
    )
    folder = cache / (f"{space}___{kept}" if space else kept) / config / "0.0.0" / _HASH
    folder.mkdir(parents=True, exist_ok=True)
    rows = 512 if name.endswith("TinyStories") else 64
    table = pa.Table.from_pylist([of_row(at) for at in range(rows)])
    splits = {}
    for split in ("train", other):
        with pa.ipc.new_stream(str(folder / f"{kept}-{split}.arrow"), table.schema) as file:
            file.write_table(table)
        splits[split] = {"name": split, "num_bytes": 1, "num_examples": rows, "dataset_name": kept}
    version = {"version_str": "0.0.0", "major": 0, "minor": 0, "patch": 0}
    told: Row = {"builder_name": "parquet", "dataset_name": kept, "config_name": config}
    told |= {"version": version, "splits": splits, "features": features}
    _write(folder / "dataset_info.json", json.dumps(told))
