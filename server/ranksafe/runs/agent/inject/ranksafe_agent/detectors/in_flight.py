"""Tensors that were given to an asynchronous transfer or collective and changed before it was waited for.

torch counts the changes of a tensor (``Tensor._version``); what gloo writes itself is not counted, on the CPU. A view
shares its count with the whole it is a part of, and is left out: the change may be next to it. After a call that waits
for other ranks nobody can tell any more whether the work was over; then the tensor is forgotten.
"""

from __future__ import annotations

import weakref
from typing import Any

from .watch import Watch, stack

KIND = "changed-in-flight"
_SENDS = frozenset({"isend"})
_IN_PLACE = frozenset({"all_reduce", "broadcast", "irecv", "reduce"})
"""What writes into the very tensor; others go through copies, which count."""
_MOST = 200


class InFlight:
    """Of one rank, by the id of the handle."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.tensors: dict[int, tuple[Any, int, str, list[dict[str, Any]]]] = {}

    def begin(self, work: Any, name: str, tensor: Any) -> None:
        """An asynchronous call has returned a handle."""
        if len(self.tensors) >= _MOST or not _is_watched(name, tensor):
            return
        self.tensors[id(work)] = (weakref.ref(tensor), tensor._version, name, stack())

    def wait(self, work: Any) -> None:
        """The handle is waited for."""
        self._check(id(work))

    def met_others(self) -> None:
        """A call that waits for other ranks begins."""
        for number in list(self.tensors):
            self._check(number)

    def _check(self, number: int) -> None:
        reference, version, name, frames = self.tensors.pop(number, (_gone, 0, "", []))
        tensor: Any = reference()
        if tensor is not None and tensor._version != version:
            self.watch.silent_failure(
                KIND,
                "RS413",
                (
                    f"the tensor given to {name} here was changed before the work was waited for: what the other rank "
                    "gets, or what is in it afterwards, depends on who is faster. Call work.wait() first",
                    f"此处传给 {name} 的张量在等待 work 之前就被修改：其他 rank 收到的内容或张量最终的值取决于谁更快。"
                    "请先调用 work.wait()",
                ),
                frames,
            )


def _is_watched(name: str, tensor: Any) -> bool:
    if not hasattr(tensor, "_version") or tensor._is_view() or tensor.is_inference():
        return False
    return name in _SENDS or (name in _IN_PLACE and tensor.device.type == "cpu")


def _gone() -> None:
    return None
