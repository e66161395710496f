"""Makes a folder that stands in for a model repository: small weights, a tokenizer that fits, processors.

The folder is made once per run, under a lock, and every rank loads it with the library's own ``from_pretrained``: so
all ranks get the same weights, and ``device_map``, ``dtype``, tensor parallelism and the rest do what they always do.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

from . import narrow, small_model, tiny_tokenizer
from .families import Family, family_of, tokenizer_of_type
from .on_disk import OTHER_FILES, TOKENIZER_FILES, Repository

FACTS = "ranksafe-stand-in.json"
"""In the folder: what was made, for the journals of the other ranks."""
_POOLING = (
    "modules.json",
    "1_Pooling/config.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
)
_PLACEHOLDERS = {
    "image_token_id": ("<|image_pad|>", "<image_soft_token>", "<image>"),
    "image_token_index": ("<image_soft_token>", "<|image_pad|>", "<image>"),
    "video_token_id": ("<|video_pad|>", "<video>"),
    "vision_start_token_id": ("<|vision_start|>",),
    "vision_end_token_id": ("<|vision_end|>",),
    "boi_token_index": ("<start_of_image>",),
    "eoi_token_index": ("<end_of_image>",),
}


def folder(
    root: str, name: str, build: Callable[[str], dict[str, Any]]
) -> tuple[str, dict[str, Any]]:
    """The stand-in's folder and its facts; made by ``build(directory)`` unless another process made it already."""
    os.makedirs(root, exist_ok=True)
    path = os.path.join(root, _file_name(name))
    with _locked(path + ".lock"):
        if not os.path.isdir(path):
            unfinished = tempfile.mkdtemp(dir=root)
            try:
                facts = build(unfinished)
                with open(os.path.join(unfinished, FACTS), "w", encoding="utf-8") as file:
                    json.dump(facts, file)
                os.rename(unfinished, path)
            except BaseException:
                shutil.rmtree(unfinished, ignore_errors=True)
                raise
    with open(os.path.join(path, FACTS), encoding="utf-8") as file:
        return path, json.load(file)


def build(
    directory: str, repository: Repository, family: Family, least_vocabulary: int
) -> dict[str, Any]:
    """Fill ``directory``; what is on disk of the repository is used, the rest comes from the family.

    ``least_vocabulary``: the model takes at least so many token ids, because scripts pair one repository's tokenizer
    with another's model. Raises CannotShrink, and ImportError where a package for it is missing.
    """
    values = repository.config()
    source = "configuration" if values else "name"
    if values is None:
        values = small_model.default_values(family.model_type, family.values)
    precision = str(values.get("dtype") or values.get("torch_dtype") or family.precision).split(
        "."
    )[-1]
    tokenizer = _provide_tokenizer(directory, repository, family, values)
    if tokenizer == "made":
        values = _with_tokenizer(values, directory, least_vocabulary, source == "configuration")
    for file in OTHER_FILES:
        _copy(repository, file, directory)
    written = small_model.write(directory, values, family.architecture, precision)
    _provide_processor(directory, values)
    if family.sentence_embeddings or repository.find("modules.json"):
        _provide_pooling(directory, repository, written)
    layers, hidden = narrow.description(written)
    return {
        "layers": layers,
        "hidden": hidden,
        "model_type": written.get("model_type"),
        "source": source,
        "tokenizer": tokenizer,
        "processor": "original" if repository.find("preprocessor_config.json") else "default",
    }


def family_for(repository: Repository, loader: type | None) -> Family | None:
    """What is known of a repository: from its own configuration, its name, or the class that loads it."""
    known = family_of(repository.name)
    values = repository.config()
    if values is None:
        own_type = getattr(getattr(loader, "config_class", loader), "model_type", None)
        if (
            not isinstance(own_type, str)
            or not own_type
            # sentence-transformers' classes have a model_type, too, which is no architecture.
            or not small_model.is_known({"model_type": own_type})
            or (known is not None and known.model_type == own_type)
        ):
            return known
        # A class of one architecture says more than a name. A head for a task is not what is published.
        name = loader.__name__ if loader is not None else ""
        architecture = None if "For" in name or name.endswith("Config") else name
        return Family(own_type, tokenizer_of_type(own_type), architecture)
    architecture = (values.get("architectures") or [None])[0]
    same = known is not None and known.model_type == values.get("model_type")
    tokenizer = known.tokenizer if known is not None and same else _tokenizer_kind(values)
    return Family(
        str(values.get("model_type")),
        tokenizer,
        architecture,
        chat=known.chat if known is not None else True,
        sentence_embeddings=bool(repository.find("modules.json")),
    )


def _tokenizer_kind(values: dict[str, Any]) -> str | None:
    if not _has_vocabulary(values):
        return None
    return tokenizer_of_type(str(values.get("model_type")))


def _has_vocabulary(values: dict[str, Any]) -> bool:
    parts = [part for part in values.values() if isinstance(part, dict)]
    return "vocab_size" in values or any("vocab_size" in part for part in parts)


def _provide_tokenizer(
    directory: str, repository: Repository, family: Family, values: dict[str, Any]
) -> str:
    if repository.has_tokenizer():
        for file in TOKENIZER_FILES:
            _copy(repository, file, directory)
        return "original"
    if family.tokenizer is None:
        return "none"
    tiny_tokenizer.write(directory, family.tokenizer, family.chat)
    return "made"


def _with_tokenizer(
    values: dict[str, Any], directory: str, least_vocabulary: int, keep_larger: bool
) -> dict[str, Any]:
    """The configuration with the made tokenizer's size and ids; what it does not know keeps out of the text's way."""
    tokens = tuple(token for names in _PLACEHOLDERS.values() for token in names)
    by_text = tiny_tokenizer.token_ids(directory, tokens)
    ids = dict(tiny_tokenizer.special_token_ids(directory))
    for name, candidates in _PLACEHOLDERS.items():
        found = [by_text[token] for token in candidates if token in by_text]
        if found:
            ids[name] = found[0]
    size = len(tiny_tokenizer.entries(directory))
    if not tiny_tokenizer.is_letters(directory):
        size = max(size, least_vocabulary)
    if values.get("is_encoder_decoder") and values.get("decoder_start_token_id") is None:
        values = {**values, "decoder_start_token_id": ids["decoder_start_token_id"]}
    return narrow.with_vocabulary(values, size, ids, keep_larger)


def _provide_processor(directory: str, values: dict[str, Any]) -> None:
    """Image processors and feature extractors with their default settings, where the architecture has them."""
    if os.path.isfile(os.path.join(directory, "preprocessor_config.json")):
        return
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING
    from transformers.models.auto.feature_extraction_auto import FEATURE_EXTRACTOR_MAPPING
    from transformers.models.auto.image_processing_auto import IMAGE_PROCESSOR_MAPPING

    key = CONFIG_MAPPING[values["model_type"]]
    for mapping in (FEATURE_EXTRACTOR_MAPPING, IMAGE_PROCESSOR_MAPPING):
        # Which packages the classes need differs: an image processor without PIL cannot be made, and is not needed.
        with contextlib.suppress(Exception):
            classes = mapping[key]
            if isinstance(classes, dict):
                classes = tuple(classes.values())
            for processor_class in classes if isinstance(classes, tuple) else (classes,):
                with contextlib.suppress(Exception):
                    processor_class().save_pretrained(directory)
                    return


def _provide_pooling(directory: str, repository: Repository, written: dict[str, Any]) -> None:
    """The module list of sentence-transformers: the encoder, the mean of its outputs, unit length."""
    for file in _POOLING:
        _copy(repository, file, directory)
    os.makedirs(os.path.join(directory, "1_Pooling"), exist_ok=True)
    os.makedirs(os.path.join(directory, "2_Normalize"), exist_ok=True)
    pooling = {
        "word_embedding_dimension": written.get("hidden_size", written.get("dim")),
        "pooling_mode_mean_tokens": True,
        "pooling_mode_cls_token": False,
        "pooling_mode_max_tokens": False,
    }
    _write_json(os.path.join(directory, "1_Pooling", "config.json"), pooling)
    if not os.path.isfile(os.path.join(directory, "modules.json")):
        names = ("Transformer", "Pooling", "Normalize")
        modules = [
            {
                "idx": index,
                "name": str(index),
                "path": f"{index}_{kind}" if index else "",
                "type": f"sentence_transformers.models.{kind}",
            }
            for index, kind in enumerate(names)
        ]
        _write_json(os.path.join(directory, "modules.json"), modules)
    settings = {"max_seq_length": 256, "do_lower_case": False}
    _write_json(os.path.join(directory, "sentence_bert_config.json"), settings)


def _write_json(path: str, data: Any) -> None:
    with open(path, "w", encoding="utf-8") as file:
        json.dump(data, file)


def _copy(repository: Repository, file: str, directory: str) -> None:
    path = repository.find(file)
    if path is not None:
        target = os.path.join(directory, file)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copyfile(path, target)


def _file_name(name: str) -> str:
    safe = "".join(letter if letter.isalnum() or letter in "-_." else "--" for letter in name)
    return safe[-150:]


@contextlib.contextmanager
def _locked(path: str) -> Iterator[None]:
    import fcntl

    with open(path, "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
