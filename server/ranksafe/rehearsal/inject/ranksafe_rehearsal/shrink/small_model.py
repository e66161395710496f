"""Writes a small model with random weights: the same classes as the real one's, loaded by the library's own code."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from typing import Any

from . import narrow

_SEED = 20_251
LARGEST = 100_000_000
"""Parameters up to which a model is rehearsed as it is."""


class CannotShrink(Exception):
    """No small version could be built; the text says why."""


def default_values(model_type: str, values: dict[str, Any]) -> dict[str, Any]:
    """The dictionary of transformers' default configuration of an architecture, with ``values`` set.

    Raises CannotShrink for an architecture that the installed transformers does not have.
    """
    mapping = _configurations()
    if model_type not in mapping:
        raise CannotShrink(f"the installed transformers has no architecture {model_type!r}")
    result: dict[str, Any] = mapping[model_type](**values).to_dict()
    return result


def is_known(values: dict[str, Any]) -> bool:
    """Whether the installed transformers has the configuration's architecture itself, without remote code."""
    return values.get("model_type") in _configurations()


def write(
    directory: str, values: dict[str, Any], architecture: str | None, precision: str
) -> dict[str, Any]:
    """Build the narrowed model of a configuration, save it, and return its configuration's dictionary.

    ``values`` has its vocabulary and token ids already. Raises CannotShrink.
    """
    import torch

    problem: Exception | None = None
    for candidate in _candidates(values):
        try:
            with _apart(torch):
                model = _built(candidate, architecture)
                model.to(getattr(torch, precision, torch.float32))
                _save(model, directory)
        except Exception as error:  # the architecture refuses these sizes: try the next
            problem = problem or error
            continue
        with open(os.path.join(directory, "config.json"), encoding="utf-8") as file:
            written: dict[str, Any] = json.load(file)
        return written
    raise CannotShrink(f"{values.get('model_type')}: {problem!r}")


def _candidates(values: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for sizes in narrow.LADDER:
        yield narrow.narrowed(values, sizes)
    yield narrow.fewer_layers(values)


@contextlib.contextmanager
def _apart(torch: Any) -> Iterator[None]:
    """Leave the script's random numbers, default device and default type as they were."""
    default_type = torch.get_default_dtype()
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        torch.set_default_dtype(torch.float32)
        torch.random.default_generator.manual_seed(_SEED)
        try:
            yield
        finally:
            torch.set_default_dtype(default_type)


def _built(values: dict[str, Any], architecture: str | None) -> Any:
    configuration_class = _configurations()[values["model_type"]]
    configuration = configuration_class.from_dict(values)
    model_class = _model_class(configuration, architecture or _first(values.get("architectures")))
    count = _count_on_meta(model_class, configuration)
    if count > 2 * LARGEST:
        raise CannotShrink(f"still {count:,} parameters")
    configuration = configuration_class.from_dict(values)
    return model_class(configuration)


def _count_on_meta(model_class: Any, configuration: Any) -> int:
    import torch

    with torch.device("meta"):
        model = model_class(configuration)
    return sum(parameter.numel() for parameter in model.parameters())


def _model_class(configuration: Any, architecture: str | None) -> Any:
    """The class whose weights are published, else the one the architecture is pretrained with, else its base."""
    import transformers
    from transformers.models.auto import modeling_auto

    named = getattr(transformers, architecture, None) if architecture else None
    if named is not None:
        return named
    for mapping in (
        "CAUSAL_LM",
        "SEQ_TO_SEQ_CAUSAL_LM",
        "SPEECH_SEQ_2_SEQ",
        "PRETRAINING",
        "MASKED_LM",
    ):
        found = getattr(modeling_auto, f"MODEL_FOR_{mapping}_MAPPING", {})
        if type(configuration) in found and not (
            mapping == "CAUSAL_LM" and _is_encoder(configuration)
        ):
            return _first(found[type(configuration)])
    return _first(modeling_auto.MODEL_MAPPING[type(configuration)])


def _is_encoder(configuration: Any) -> bool:
    """Encoders have a decoder form too, which is not what is published."""
    from transformers.models.auto import modeling_auto

    masked = type(configuration) in modeling_auto.MODEL_FOR_MASKED_LM_MAPPING
    return masked or bool(getattr(configuration, "is_encoder_decoder", False))


def _save(model: Any, directory: str) -> None:
    """Save without progress bars, which the script did not ask for."""
    from transformers.utils import logging

    active = getattr(logging, "_tqdm_active", True)
    if hasattr(model, "should_save_on_this_rank"):
        # Since transformers 5 only the first rank writes; here the rank writes that came first.
        model.should_save_on_this_rank = lambda *_arguments, **_keywords: True
    logging.disable_progress_bar()
    try:
        model.save_pretrained(directory)
    finally:
        if active:
            logging.enable_progress_bar()
    _drop_unset_loss(os.path.join(directory, "config.json"))


def _drop_unset_loss(path: str) -> None:
    """transformers writes ``loss_type: null`` for some models, and warns about it when it reads it (5.23.0)."""
    with open(path, encoding="utf-8") as file:
        values = json.load(file)
    if values.get("loss_type", 0) is None:
        del values["loss_type"]
        with open(path, "w", encoding="utf-8") as file:
            json.dump(values, file, indent=2)


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, (list, tuple)) and value else value


def _configurations() -> Any:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    return CONFIG_MAPPING
