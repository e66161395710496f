"""What ``device_map="auto"`` would do with the real model: layers balanced over all devices.

With two small layers beside the vocabulary the library's own arithmetic puts everything on one device, and whatever
goes wrong between devices would not be seen.
"""

from __future__ import annotations

import os
from typing import Any

BALANCED = ("auto", "balanced", "balanced_low_0")


def device_map(model_class: Any, configuration: Any, devices: int) -> dict[str, int] | None:
    """A device for each part of the model; None where it has fewer than two layers that can be told apart."""
    import torch

    with torch.device("meta"):
        model = model_class(configuration)
    kinds = set(getattr(model, "_no_split_modules", None) or ())
    layers = [name for name, module in model.named_modules() if type(module).__name__ in kinds]
    layers = [name for name in layers if not any(name.startswith(other + ".") for other in layers)]
    if len(layers) < 2:
        return None
    result: dict[str, int] = {}
    here = 0
    for name, module in model.named_modules():
        if name in layers:
            here = layers.index(name) * devices // len(layers)
            result[name] = here
        elif not any(name.startswith(layer + ".") for layer in layers) and _has_own(module):
            result[name] = here
    if "" in result:  # parameters of the model itself cannot be named in a map
        return None
    _keep_tied_together(model, result)
    return result


def is_tensor_parallel_instead(version: str) -> bool:
    """transformers 4.50 to 4.53 takes "auto" for tensor parallelism under a launcher (``modeling_utils.py``)."""
    numbers = version.split(".")
    minor = int(numbers[1]) if len(numbers) > 1 and numbers[1].isdigit() else 0
    return numbers[0] == "4" and 50 <= minor <= 53 and bool(int(os.environ.get("WORLD_SIZE", "0")))


def _has_own(module: Any) -> bool:
    own = list(module.parameters(recurse=False)) or list(module.buffers(recurse=False))
    return bool(own)


def _keep_tied_together(model: Any, result: dict[str, int]) -> None:
    inputs, outputs = model.get_input_embeddings(), model.get_output_embeddings()
    if inputs is None or outputs is None or not getattr(model.config, "tie_word_embeddings", False):
        return
    names = {id(module): name for name, module in model.named_modules()}
    first, last = names.get(id(inputs)), names.get(id(outputs))
    if first in result and last in result:
        result[str(last)] = result[str(first)]
