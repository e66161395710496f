"""Which memory the operators of a thread read and write, as long as somebody wants to know.

A ``TorchDispatchMode`` sees every operator below autograd. It is entered where no other is, and left where no other
has been entered since, so that the script's own modes are nested as they would be without it; meanwhile it lets
everything through.

Not seen: operators of other threads (the backward pass of a CUDA device has its own), and memory that is looked at
without an operator (``Tensor.numpy``).
"""

from __future__ import annotations

import sys
from _thread import get_ident
from importlib import import_module
from typing import Any, Callable, Iterator

from .watch import Watch, is_ours

_OTHER_NAMESPACES = frozenset({"c10d", "_c10d_functional", "profiler"})
"""Collectives have detectors of their own."""
_NO_VALUES = frozenset({"record_stream", "resize_", "set_", "is_same_size", "is_pinned"})
_FRAMES_OF_THE_MODE = 3

Found = Callable[["list[Any]", "list[Any]"], None]
"""Called with the tensors whose values an operator reads, and those it writes."""


class Memory:
    """The bytes of a tensor, while somebody has its storage."""

    def __init__(self, storage: Any, start: int, end: int) -> None:
        reductions = import_module("torch.multiprocessing.reductions")
        self.storage = reductions.StorageWeakRef(storage)
        self.start = start
        self.end = end

    def is_gone(self) -> bool:
        """Whether nobody has it any more, so that other tensors may get its addresses."""
        return bool(self.storage.expired())


def memory(tensor: Any) -> Memory | None:
    """Where the tensor's elements are; None if they have gaps between them, or are somewhere else."""
    span = _span(tensor)
    if span is None or not tensor.is_contiguous() or span[0] == span[1]:
        return None
    return Memory(tensor.untyped_storage(), *span)


def meet(known: list[Memory], tensors: list[Any]) -> bool:
    """Whether an element of the tensors is certain to lie in the memory."""
    spans = [(each, _span(each)) for each in tensors]
    for tensor, span in spans:
        if span is None:
            continue
        start, end = span
        for each in known:
            is_within = each.start <= start < end <= each.end
            is_near = start < each.end and each.start < end and start < end
            if (is_within or (is_near and tensor.is_contiguous())) and not each.is_gone():
                return True
    return False


def _span(tensor: Any) -> tuple[int, int] | None:
    """The first byte and the one behind the last; None of a tensor whose values are elsewhere."""
    torch = sys.modules["torch"]
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.layout != torch.strided:
        return None
    if tensor.device.type not in ("cpu", "cuda"):
        return None
    start = tensor.data_ptr()
    if not tensor.numel():
        return start, start
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    return start, start + (last + 1) * tensor.element_size()


class Observer:
    """Of all threads that ask for it, each for itself."""

    def __init__(self, watch: Watch, found: Found) -> None:
        self.watch = watch
        self.found = found
        self.is_on = False
        self.modes: dict[int, Any] = {}
        """By thread, where it is entered."""
        self.uses: dict[Any, tuple[frozenset[int], frozenset[str]] | None] = {}
        self.class_of_mode: Any = None

    def start(self) -> None:
        """Look at this thread's operators from now on."""
        self.is_on = True
        if get_ident() in self.modes or _depth():
            return
        mode = self.modes[get_ident()] = self._mode()
        mode.__enter__()

    def stop(self) -> None:
        """Look no further; a mode that another was entered on top of stays, and sees nothing."""
        self.is_on = False
        mode = self.modes.get(get_ident())
        if mode is not None and _depth() == 1:
            del self.modes[get_ident()]
            mode.__exit__(None, None, None)

    def _mode(self) -> Any:
        if self.class_of_mode is None:
            base: Any = import_module("torch.utils._python_dispatch").TorchDispatchMode
            observer = self

            class Accesses(base):  # type: ignore[misc]
                supports_higher_order_operators = True

                @classmethod
                def _should_skip_dynamo(cls) -> bool:
                    return False  # True would import the compiler, which takes seconds

                def __torch_dispatch__(
                    self, function: Any, types: Any, args: Any = (), kwargs: Any = None
                ) -> Any:
                    if observer.is_on and not observer.watch.is_busy:
                        observer.watch.attempt(observer.saw, function, args, kwargs or {})
                    return function(*args, **(kwargs or {}))

            self.class_of_mode = Accesses
        return self.class_of_mode()

    def saw(self, function: Any, arguments: Any, keywords: Any) -> None:
        """An operator is about to run."""
        if function not in self.uses:
            self.uses[function] = _written(function)
        uses = self.uses[function]
        if uses is None or is_ours(sys._getframe(_FRAMES_OF_THE_MODE).f_code.co_filename):
            return
        read: list[Any] = []
        written: list[Any] = []
        for place, value in enumerate(arguments):
            (written if place in uses[0] else read).extend(_tensors(value))
        for name, value in keywords.items():
            (written if name in uses[1] else read).extend(_tensors(value))
        self.found(read, written)


def _depth() -> int:
    count: int = sys.modules["torch"]._C._len_torch_dispatch_stack()
    return count


def _tensors(value: Any) -> Iterator[Any]:
    for each in value if isinstance(value, (list, tuple)) else (value,):
        if hasattr(each, "untyped_storage"):
            yield each


def _written(function: Any) -> tuple[frozenset[int], frozenset[str]] | None:
    """Which arguments the operator writes, by place and by name; None if it looks at no values."""
    schema = getattr(function, "_schema", None)
    if schema is None or getattr(function, "namespace", "") in _OTHER_NAMESPACES:
        return None
    name = schema.name.split("::")[-1]
    if name in _NO_VALUES or name.endswith("_like") or name.startswith(("new_", "sym_")):
        return None
    aliased = [each for each in schema.arguments if each.alias_info is not None]
    if any(not each.alias_info.is_write for each in aliased):
        return None  # a view
    names = frozenset(each.name for each in aliased)
    places = (place for place, each in enumerate(schema.arguments) if each.name in names)
    return frozenset(places), names
