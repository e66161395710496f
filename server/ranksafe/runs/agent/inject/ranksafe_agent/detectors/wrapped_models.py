"""The collectives of DistributedDataParallel: its making, the broadcast of buffers, the reduction of gradients.

They are made in C++ and take their numbers in the order of the group's collectives, like all others. The reduction
begins with the first gradient of a parameter after a forward that prepared for it, and is waited for until the backward
pass is over: ``Reducer::autograd_hook`` and ``Reducer::finalize_backward`` in torch/csrc/distributed/c10d/reducer.cpp
(torch 2.0 to 2.13).
"""

from __future__ import annotations

import functools
import sys
import weakref
from _thread import get_ident
from typing import Any, Callable

from .. import waiting
from .collectives import Calls

MAKING = "DistributedDataParallel"
BUFFERS = "DistributedDataParallel.buffers"
GRADIENTS = "DistributedDataParallel.gradients"


def hooks(calls: Calls) -> dict[str, Callable[[Any], None]]:
    """What to do after which import. It costs a call for each gradient, and is for rehearsals."""
    return {"torch.nn.parallel.distributed": functools.partial(_hook, calls)}


def _hook(calls: Calls, module: Any) -> None:
    """Watch every instance of ``torch.nn.parallel.distributed.DistributedDataParallel``."""
    reductions = _Reductions(calls)
    kind = module.DistributedDataParallel
    kind.__init__ = _making(calls, reductions, kind.__init__)
    kind._distributed_broadcast_coalesced = _broadcast(calls, kind._distributed_broadcast_coalesced)
    kind.forward = reductions.prepared(kind.forward)
    autograd = sys.modules["torch.autograd"]
    setattr(autograd, "backward", reductions.ended(autograd.backward))  # noqa: B010


def _making(calls: Calls, reductions: _Reductions, original: Callable[..., Any]) -> Any:
    @functools.wraps(original)
    def make(self: Any, *arguments: Any, **keywords: Any) -> None:
        group = keywords.get("process_group")
        if group is None and keywords.get("device_mesh") is None and calls.module.is_initialized():
            group = calls.module.group.WORLD
        with _Inside(calls, MAKING, group):
            original(self, *arguments, **keywords)
        calls.watch.attempt(reductions.add, self)

    return make


def _broadcast(calls: Calls, original: Callable[..., Any]) -> Any:
    @functools.wraps(original)
    def broadcast(self: Any, *arguments: Any, **keywords: Any) -> Any:
        with _Inside(calls, BUFFERS, self.process_group):
            return original(self, *arguments, **keywords)

    return broadcast


class _Inside:
    """While this thread is in a collective of ours; nothing where it is in one already or there is no group."""

    def __init__(self, calls: Calls, name: str, group: Any) -> None:
        self.calls, self.name, self.group = calls, name, group
        self.entered = False

    def __enter__(self) -> None:
        here, thread = waiting.here, get_ident()
        if self.group is None or here.is_inside:
            return
        self.entered = True
        here.enter(self.name)
        self.calls.watch.attempt(
            self.calls.note_of_group, self.group, self.name, sys._getframe(2), thread
        )

    def __exit__(self, *_: Any) -> None:
        if self.entered:
            waiting.here.leave()


class _Reductions:
    """Which models expect a reduction, and which thread is in a backward pass."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls
        self.expecting: weakref.WeakSet[Any] = weakref.WeakSet()
        self.backward: list[int] = []
        """The threads in backward passes, one in another where activations are computed again."""

    def add(self, model: Any) -> None:
        """Hear of the first gradient of ``model``."""
        reference = weakref.ref(model)

        def arrived(_gradient: Any) -> None:
            found: Any = reference()
            if found is not None and found in self.expecting:
                self.expecting.discard(found)
                self.calls.watch.attempt(self.begin, found)

        # Python's copies and torch's pickles of a parameter leave hooks out, and warn of those without this mark.
        arrived.__torch_unserializable__ = True  # type: ignore[attr-defined]
        for parameter in model.module.parameters():
            if parameter.requires_grad:
                parameter.register_hook(arrived)

    def begin(self, model: Any) -> None:
        """The reduction of a model's gradients begins; autograd may compute in a thread of its own."""
        thread = self.backward[0] if self.backward else get_ident()
        frame = sys._current_frames().get(thread) or sys._getframe(1)
        here = waiting.here
        if here.is_rank and not here.joins:
            here.enter(GRADIENTS, thread=thread)
            self.calls.note_of_group(model.process_group, GRADIENTS, frame, thread)

    def prepared(self, original: Callable[..., Any]) -> Any:
        """``forward``, after which gradients are reduced, if it says so (not under ``no_sync``)."""
        torch: Any = sys.modules["torch"]

        @functools.wraps(original)
        def forward(model: Any, *inputs: Any, **keywords: Any) -> Any:
            result = original(model, *inputs, **keywords)
            if torch.is_grad_enabled() and model.require_backward_grad_sync:
                self.expecting.add(model)
            return result

        return forward

    def ended(self, original: Callable[..., Any]) -> Any:
        """``torch.autograd.backward``, at whose end every reduction is over."""

        @functools.wraps(original)
        def backward(*arguments: Any, **keywords: Any) -> Any:
            thread = get_ident()
            is_inside = waiting.here.is_inside
            self.backward.append(thread)
            try:
                return original(*arguments, **keywords)
            finally:
                self.backward.remove(thread)
                if not is_inside and thread not in self.backward:
                    waiting.here.leave()

        return backward
