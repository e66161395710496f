"""Tensors that were given to an asynchronous transfer or collective and used before it was waited for.

Two things show it. torch counts the changes of a tensor (``Tensor._version``); what gloo writes itself is not counted,
on the CPU. A view shares its count with the whole it is a part of, and is left out there: the change may be next to it.
And while something is in flight, the operators of the thread that started it are looked at (`accesses`), for reads of
what the others send and for changes of a part.

After a call that waits for other ranks nobody can tell any more whether the work was over; then the tensor is
forgotten.
"""

from __future__ import annotations

import os
import sys
import weakref
from typing import Any, Callable, Iterator

from .. import waiting
from . import accesses
from .watch import Watch, is_ours, is_user_file, stack, user_frame

KIND = "changed-in-flight"
KIND_READ = "read-in-flight"
_SENDS = frozenset({"isend"})
_IN_PLACE = frozenset({"all_reduce", "broadcast", "irecv", "reduce"})
"""What writes into the very tensor; others go through copies, which count."""
_RESULTS = frozenset(
    {
        "all_gather",
        "all_gather_coalesced",
        "all_gather_into_tensor",
        "all_gather_single",
        "all_reduce",
        "all_reduce_coalesced",
        "all_to_all",
        "all_to_all_single",
        "irecv",
        "reduce_scatter",
        "reduce_scatter_single",
        "reduce_scatter_tensor",
    }
)
"""What puts its result into the first argument, on every rank."""
_RESULTS_OF_ROOT = {"reduce": True, "broadcast": False}
"""What does so on the root alone, or on all but the root; for the others it is a send."""
_MOST = 200


class _Transfer:
    def __init__(self, name: str, tensor: Any) -> None:
        self.name = name
        self.frames = stack()
        self.tensor: Callable[[], Any] = weakref.ref(tensor) if _counts(name, tensor) else _gone
        self.version = tensor._version if _counts(name, tensor) else 0
        self.memory: list[accesses.Memory] = []
        self.is_result = False


class InFlight:
    """Of one rank."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.transfers: dict[int, _Transfer] = {}
        self.handles: dict[int, int] = {}
        """Which transfer a handle is of, by the handle's id; of a handle that is gone, the id may be another's."""
        self.begun = 0
        self.observer = accesses.Observer(watch, self._accessed)
        self._hears_synchronize = False

    def begin(self, work: Any, name: str, tensor: Any, root: int | None = None) -> None:
        """An asynchronous call has returned a handle; ``root``: the global rank it sends from or to, if one."""
        tensors = list(_tensors(tensor))
        # recv returns a number: it is over.
        if not hasattr(work, "wait") or len(self.transfers) >= _MOST or not tensors:
            return
        transfer = _Transfer(name, tensors[0])
        if _is_called_by_user():
            transfer.is_result = name in _RESULTS or _is_result_of_root(name, root)
            transfer.memory = [each for each in map(accesses.memory, tensors) if each is not None]
        if transfer.tensor is _gone and not transfer.memory:
            return
        self.begun += 1
        self.transfers[self.begun] = transfer
        self.handles[id(work)] = self.begun
        if transfer.memory:
            self.observer.start()
            if tensors[0].device.type == "cuda":
                self._hear_synchronize()

    def wait(self, work: Any) -> None:
        """The handle is waited for, or known to be finished."""
        number = self.handles.pop(id(work), None)
        if number is not None:
            self._check(number)

    def met_others(self) -> None:
        """A call that waits for other ranks begins."""
        self.handles.clear()
        for number in list(self.transfers):
            self._check(number)

    def _check(self, number: int) -> None:
        transfer = self.transfers.pop(number, None)
        if not self.transfers:
            self.observer.stop()
        tensor: Any = None if transfer is None else transfer.tensor()
        if transfer is not None and tensor is not None and tensor._version != transfer.version:
            self._tell_change(transfer)

    def _accessed(self, read: list[Any], written: list[Any]) -> None:
        """An operator of the script reads and writes these tensors."""
        if waiting.here.is_inside:
            return
        for number, transfer in list(self.transfers.items()):
            if transfer.memory and all(each.is_gone() for each in transfer.memory):
                self.transfers.pop(number)
            elif accesses.meet(transfer.memory, written):
                self.transfers.pop(number)
                self._tell_change(transfer)
            elif transfer.is_result and accesses.meet(transfer.memory, read):
                self.transfers.pop(number)
                self._tell_read(transfer)

    def _tell_change(self, transfer: _Transfer) -> None:
        name = transfer.name
        self.watch.silent_failure(
            KIND,
            "RS413",
            (
                f"the tensor given to {name} here was changed before the work was waited for: what the other rank "
                "gets, or what is in it afterwards, depends on who is faster. Call work.wait() first",
                f"此处传给 {name} 的张量在等待 work 之前就被修改：其他 rank 收到的内容或张量最终的值取决于谁更快。"
                "请先调用 work.wait()",
            ),
            transfer.frames,
        )

    def _tell_read(self, transfer: _Transfer) -> None:
        name, frame = transfer.name, user_frame()
        if frame is None:
            return
        place = f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
        self.watch.silent_failure(
            KIND_READ,
            "RS413",
            (
                f"the tensor that {name} fills here is read at {place} before the work was waited for: whether it "
                "holds the result by then depends on who is faster. Call work.wait() first",
                f"此处由 {name} 填充的张量在等待 work 之前就于 {place} 被读取：届时其中是否已有结果取决于谁更快。"
                "请先调用 work.wait()",
            ),
            transfer.frames,
        )

    def _hear_synchronize(self) -> None:
        """``torch.cuda.synchronize()`` waits for everything that was given to the device, NCCL's work too."""
        if self._hears_synchronize:
            return
        self._hears_synchronize = True
        cuda = sys.modules["torch"].cuda
        original = cuda.synchronize

        def synchronize(*arguments: Any, **keywords: Any) -> Any:
            self.watch.attempt(self.met_others)
            return original(*arguments, **keywords)

        cuda.synchronize = synchronize


def _tensors(given: Any) -> Iterator[Any]:
    for each in given if isinstance(given, (list, tuple)) else (given,):
        if hasattr(each, "_version") and not each.is_inference():
            yield each


def _counts(name: str, tensor: Any) -> bool:
    """Whether the count of the tensor's changes tells of the script's changes alone."""
    if tensor._is_view():
        return False
    return name in _SENDS or (name in _IN_PLACE and tensor.device.type == "cpu")


def _is_result_of_root(name: str, root: int | None) -> bool:
    of_root = _RESULTS_OF_ROOT.get(name)
    if of_root is None or root is None:
        return False
    is_root: bool = root == sys.modules["torch.distributed"].get_rank()
    return is_root == of_root


def _is_called_by_user() -> bool:
    """A library that starts a transfer for itself knows when it is over, by events of streams for example."""
    frame: Any = sys._getframe(1)
    while frame is not None and is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    return frame is not None and is_user_file(frame.f_code.co_filename)


def _gone() -> None:
    return None
