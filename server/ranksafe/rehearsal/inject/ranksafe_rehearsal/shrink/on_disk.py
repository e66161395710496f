"""What of a model repository is on disk: in a folder, or in the Hugging Face cache. Reads files, loads no weights.

Where the rehearsal may read from the network, small files that are missing are fetched first, weights never.
"""

from __future__ import annotations

import json
import os
import struct
from typing import Any

from .. import settings

CONFIG = "config.json"
TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "vocab.txt",
    "tokenizer.model",
    "spiece.model",
    "sentencepiece.bpe.model",
    "chat_template.jinja",
)
OTHER_FILES = (
    "preprocessor_config.json",
    "processor_config.json",
    "generation_config.json",
    "chat_template.json",
)
_TOKENIZERS = (
    "tokenizer.json",
    "vocab.json",
    "vocab.txt",
    "tokenizer.model",
    "spiece.model",
    "sentencepiece.bpe.model",
)
_WEIGHTS = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
_BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2, "float8_e4m3fn": 1}
_SHORTEST_HEADER = 8


def find(
    name: str, file: str, cache_directory: str | None = None, revision: str | None = None
) -> str | None:
    """Path of a repository's file, or None. ``name``: a folder or an id on the Hub."""
    if os.path.isdir(name):
        path = os.path.join(name, file)
        return path if os.path.isfile(path) else None
    if name.count("/") > 1 or not name.strip() or name.startswith((".", "/", "~")):
        return None
    try:
        from huggingface_hub import try_to_load_from_cache  # type: ignore[import-not-found]

        path = try_to_load_from_cache(name, file, cache_dir=cache_directory, revision=revision)
        if path is None and _may_be_fetched(file):
            from huggingface_hub import hf_hub_download

            path = hf_hub_download(name, file, cache_dir=cache_directory, revision=revision)
    except Exception:  # an invalid id, no such file or network, or a version without the function
        return None
    return path if isinstance(path, str) else None


def _may_be_fetched(file: str) -> bool:
    chosen = settings.current()
    small = (CONFIG, *TOKENIZER_FILES, *OTHER_FILES)
    return chosen is not None and chosen.reads_network and os.path.basename(file) in small


class Repository:
    """One repository as far as it is on disk."""

    def __init__(
        self,
        name: str,
        cache_directory: str | None = None,
        revision: str | None = None,
        subfolder: str = "",
    ) -> None:
        self.name = f"{name}/{subfolder}" if subfolder else name
        self.is_local = os.path.isdir(name)
        self._root = name
        self._prefix = f"{subfolder}/" if subfolder else ""
        self._where = (cache_directory, revision)

    def find(self, file: str) -> str | None:
        """Path of one of its files, or None."""
        return find(self._root, self._prefix + file, *self._where)

    def config(self) -> dict[str, Any] | None:
        """Its configuration, None where there is none or it cannot be read."""
        path = self.find(CONFIG)
        return None if path is None else _read(path)

    def has_tokenizer(self) -> bool:
        """Whether a tokenizer's vocabulary is there."""
        return any(self.find(file) for file in _TOKENIZERS)

    def parameters(self) -> int | None:
        """How many parameters its weights have, read from headers and sizes; None when they are not complete."""
        for file in _WEIGHTS:
            path = self.find(file)
            if path is None:
                continue
            if not file.endswith(".index.json"):
                return _parameters_in(path, self._bytes_per_parameter())
            count = self._parameters_of_shards(_read(path) or {})
            if count is not None:
                return count
        return None

    def _parameters_of_shards(self, index: dict[str, Any]) -> int | None:
        total = 0
        for shard in sorted(set(index.get("weight_map", {}).values())):
            path = self.find(shard)
            if path is None:
                return None
            total += _parameters_in(path, self._bytes_per_parameter())
        return total or None

    def _bytes_per_parameter(self) -> int:
        config = self.config() or {}
        return _BYTES.get(str(config.get("dtype") or config.get("torch_dtype") or "float32"), 4)


def _read(path: str) -> dict[str, Any] | None:
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) else None


def _parameters_in(path: str, bytes_per_parameter: int) -> int:
    if path.endswith(".safetensors"):
        count = _parameters_in_safetensors(path)
        if count is not None:
            return count
    return os.path.getsize(path) // bytes_per_parameter


def _parameters_in_safetensors(path: str) -> int | None:
    """The format's header gives every tensor's shape; the data are not touched."""
    try:
        with open(path, "rb") as file:
            start = file.read(_SHORTEST_HEADER)
            header = json.loads(file.read(struct.unpack("<Q", start)[0]))
    except (OSError, ValueError, struct.error):
        return None
    total = 0
    for name, tensor in header.items():
        if name == "__metadata__":
            continue
        count = 1
        for dimension in tensor["shape"]:
            count *= dimension
        total += count
    return total
