"""Large pictures become small ones where a model of torchvision or timm takes them, if its answer has the same shape.

The script's own tensors keep their size, and so does what the model returns: before the first picture both sizes are
tried on the meta device, where nothing is computed. A model that wants its size (most vision transformers), answers in
the size of its picture (segmentation, detection), or has parts or hooks of somebody else's gets what it was given.
"""

from __future__ import annotations

import weakref
from collections.abc import MutableMapping
from itertools import chain
from typing import Any

from .. import journal
from ..importing import after_import

_MODELS = ("torchvision.", "timm.")
_PARTS = ("torch.nn.modules.", *_MODELS)
_WRAPPERS = ("torch.nn.parallel.",)
_MOST_CHANNELS = 4
_SIDES = (64, 128)
"""Of convolutions that halve a picture five times, 64 leaves more than one value, which batch normalization needs."""
_sides: MutableMapping[Any, dict[tuple[Any, ...], int | None]] = weakref.WeakKeyDictionary()
"""What was found out about each model."""


def install() -> None:
    """Look at what modules are called with, once torch has any."""
    after_import("torch.nn.modules.module", _hook)


def _hook(module: Any) -> None:
    module.register_module_forward_pre_hook(_small)


def _small(module: Any, given: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The arguments with a small picture; None where they stay."""
    if not type(module).__module__.startswith((*_MODELS, *_WRAPPERS)) or len(given) != 1:
        return None
    (pictures,) = given
    shape: Any = getattr(pictures, "shape", ())
    if len(shape) != 4 or shape[1] > _MOST_CHANNELS or min(shape[2:]) <= _SIDES[0]:
        return None
    try:
        side = _side(module, pictures)
    except Exception as problem:
        journal.problem("shrink.images", problem)
        return None
    return None if side is None else (pictures[..., :side, :side],)


def _side(module: Any, pictures: Any) -> int | None:
    """The side that pictures of this size are cut to; found out once for each model and size."""
    if type(module).__module__.startswith(_WRAPPERS):
        module = module.module
    is_known = type(module).__module__.startswith(_MODELS) and not hasattr(module, "_is_replica")
    if not is_known or pictures.device.type == "meta":
        return None
    known = _sides.setdefault(module, {})
    key = (*pictures.shape[1:], pictures.dtype, module.training)
    if key not in known:
        known[key] = _tried(module, pictures)
    return known[key]


def _tried(module: Any, pictures: Any) -> int | None:
    if not all(map(_is_plain, module.modules())):
        return None
    whole = tuple(pictures.shape[2:])
    answer = _answer(module, pictures, whole)
    for side in _SIDES if answer is not None else ():
        if side < min(whole) and _answer(module, pictures, (side, side)) == answer:
            name = type(module).__name__
            height, width = whole
            journal.modified(
                f"pictures of {height} × {width} are cut to {side} × {side} for {name}",
                f"{name} 的 {height} × {width} 图片缩减为 {side} × {side}",
                kind="image",
            )
            return side
    return None


def _is_plain(module: Any) -> bool:
    """Whether it is a library's, and calling it once more is seen by nobody."""
    hooks = (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks)
    return (
        type(module).__module__.startswith(_PARTS)
        and not any(hooks)
        and "forward" not in vars(module)
    )


def _answer(module: Any, pictures: Any, size: tuple[int, ...]) -> list[Any] | None:
    """The shapes that the model answers to one picture of this size with; None where it refuses."""
    import torch
    from torch.func import functional_call
    from torch.utils import _pytree

    meta: dict[str, Any] = {"device": "meta"}
    try:
        state = {
            name: torch.empty_like(tensor, **meta)
            for name, tensor in chain(module.named_parameters(), module.named_buffers())
        }
        one = torch.empty((1, pictures.shape[1], *size), dtype=pictures.dtype, **meta)
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            answer = functional_call(module, state, (one,))
    except Exception:  # whatever a model says of a size that it does not take
        return None
    leaves, structure = _pytree.tree_flatten(answer)
    return [structure, *(getattr(leaf, "shape", None) for leaf in leaves)]
