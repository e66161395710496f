"""nn.DataParallel: replicas that get no rows, and what forward writes to a replica and loses.

Read in torch 2.13.0, ``nn/parallel/scatter_gather.py``: ``scatter_map`` zips the pieces of all arguments, so the
argument with the fewest pieces decides how many replicas run.
"""

from __future__ import annotations

import atexit
import functools
import numbers
import sys
from typing import Any, Callable, Iterator

from .changes import builds_on_itself
from .watch import Watch, is_user_file, stack

_ENOUGH_FORWARDS = 2


def hooks(watch: Watch) -> dict[str, Callable[[Any], None]]:
    """What to do after which import."""
    return {"torch.nn.parallel.data_parallel": functools.partial(_hook, _Replicas(watch))}


def _hook(replicas: _Replicas, module: Any) -> None:
    data_parallel = module.DataParallel
    scatter, parallel_apply = data_parallel.scatter, data_parallel.parallel_apply

    @functools.wraps(scatter)
    def watched_scatter(self: Any, inputs: Any, kwargs: Any, device_ids: Any) -> Any:
        scattered = scatter(self, inputs, kwargs, device_ids)
        replicas.watch.attempt(replicas.scattered, self, inputs, kwargs, len(device_ids), scattered)
        return scattered

    @functools.wraps(parallel_apply)
    def watched_apply(self: Any, copies: Any, inputs: Any, kwargs: Any) -> Any:
        before = replicas.watch.attempt(_numbers, copies)
        outputs = parallel_apply(self, copies, inputs, kwargs)
        if before:
            replicas.watch.attempt(replicas.applied, copies, before)
        return outputs

    data_parallel.scatter = watched_scatter
    data_parallel.parallel_apply = watched_apply
    atexit.register(replicas.watch.attempt, replicas.ended)


class _Replicas:
    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.forwards = 0
        self.idle_forwards = 0
        self.idle: tuple[int, int, list[dict[str, Any]]] | None = None
        self.lost: dict[tuple[type, str, str], int] = {}

    def scattered(
        self, wrapper: Any, inputs: Any, kwargs: Any, devices: int, scattered: Any
    ) -> None:
        """Compare the pieces that were made with those the largest argument gives."""
        if devices < 2:
            return
        pieces = {
            name: (_pieces(rows, devices), rows)
            for name, rows in _rows(inputs, kwargs, getattr(wrapper, "dim", 0))
        }
        if not pieces:
            return
        used = len(scattered[0])
        most = max(count for count, _ in pieces.values())
        if used < most:
            short = [name for name, (count, _) in pieces.items() if count <= used]
            rows = max(rows for _, rows in pieces.values())
            kept = min(rows, used * -(-rows // devices))
            self._dropped(short, (used, most), (rows - kept, rows))
            return
        self._whole_count(kwargs, used)
        if sys.modules["torch"].is_grad_enabled() and wrapper.training:
            self.forwards += 1
            if most < devices:
                self.idle_forwards += 1
                rows = max(rows for _, rows in pieces.values())
                if self.idle is None:
                    self.idle = (rows, devices, stack())

    def _dropped(self, short: list[str], pieces: tuple[int, int], lost: tuple[int, int]) -> None:
        frames = stack()
        names = ", ".join(short) or "?"
        (used, most), (left, rows) = pieces, lost
        counted = any("num_items_in_batch" in name for name in short)
        code = _code_of_count(frames) if counted else "RS505"
        self.watch.silent_failure(
            "dropped-replicas",
            code,
            (
                f"nn.DataParallel cuts {names} into {used} piece(s) and the batch into {most}, and runs as many "
                f"replicas as the shortest has pieces: {left} of {rows} rows are dropped",
                f"nn.DataParallel 把 {names} 切成 {used} 份，把批次切成 {most} 份，并按最短者的份数运行副本："
                f"{rows} 行中有 {left} 行被丢弃",
            ),
            frames,
        )

    def _whole_count(self, kwargs: Any, used: int) -> None:
        """A Python int goes to every replica as it is, and each divides its own share of the loss by all items."""
        count = (kwargs or {}).get("num_items_in_batch")
        if used < 2 or not isinstance(count, int) or isinstance(count, bool):
            return
        if not _divides_by_whole_count():
            return
        frames = stack()
        self.watch.silent_failure(
            "scaled-gradients",
            _code_of_count(frames),
            (
                f"each of {used} replicas divides its share of the loss by the items of the whole batch ({count}), and "
                f"the Trainer averages the replicas: loss and gradients are 1/{used} of the right value",
                f"{used} 个副本各自用整个批次的项数（{count}）去除自己那部分损失，Trainer 再对副本取平均："
                f"损失和梯度只有正确值的 1/{used}",
            ),
            frames,
        )

    def applied(self, copies: Any, before: dict[tuple[str, str], Any]) -> None:
        """A number of the user's module that forward changed on a replica: the module itself keeps the old one."""
        for path, part in copies[0].named_modules():
            kind: Any = type(part)
            for name, value in list(part.__dict__.items()):
                if (path, name) not in before or not _differs(before[path, name], value):
                    continue
                if not builds_on_itself(kind, name):
                    continue
                key = (kind, path, name)
                self.lost[key] = self.lost.get(key, 0) + 1
                if self.lost[key] == _ENOUGH_FORWARDS:
                    self._lost(kind, name)

    def _lost(self, kind: type, name: str) -> None:
        code = kind.forward.__code__  # type: ignore[attr-defined]
        place = {
            "file": code.co_filename,
            "line": code.co_firstlineno,
            "function": code.co_name,
            "source": "",
        }
        self.watch.silent_failure(
            "lost-writes",
            "RS515",
            (
                f"forward of {kind.__qualname__} changes self.{name} on a replica that nn.DataParallel throws away: "
                "the module never sees the new value, each call starts from the old one",
                f"{kind.__qualname__} 的 forward 修改了副本上的 self.{name}，而 nn.DataParallel 会丢弃该副本："
                "模块看不到新值，每次调用都从旧值开始",
            ),
            [*stack(), place],
        )

    def ended(self) -> None:
        """Batches that were always too small; a last incomplete one is no failure."""
        if self.idle is None or self.forwards < _ENOUGH_FORWARDS:
            return
        if self.idle_forwards < self.forwards:
            return
        rows, devices, frames = self.idle
        used = _pieces(rows, devices)
        self.watch.silent_failure(
            "idle-replicas",
            "RS305",
            (
                f"a batch of {rows} gives {used} piece(s) for {devices} GPUs: {devices - used} of them computed "
                "nothing in every step",
                f"大小为 {rows} 的批次只能分成 {used} 份，而有 {devices} 个 GPU：每一步都有 {devices - used} 个 GPU "
                "没有参与计算",
            ),
            frames,
        )


def _pieces(rows: int, devices: int) -> int:
    """How many pieces ``Tensor.chunk`` makes: all as large as the first, which is rounded up."""
    size = max(1, -(-rows // devices))
    return max(1, -(-rows // size))


def _rows(inputs: Any, kwargs: Any, dim: int) -> Iterator[tuple[str, int]]:
    """Every tensor that will be cut, by the name the reader knows it by, with its length."""
    for index, value in enumerate(inputs or ()):
        yield from _rows_in(f"argument {index}", value, dim)
    for name, value in (kwargs or {}).items():
        yield from _rows_in(name, value, dim)


def _rows_in(name: str, value: Any, dim: int) -> Iterator[tuple[str, int]]:
    tensor = sys.modules["torch"].Tensor
    if isinstance(value, tensor):
        if value.dim() > dim:
            yield name, int(value.size(dim))
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from _rows_in(f"{name}[{key!r}]", part, dim)
    elif isinstance(value, (list, tuple)):
        for index, part in enumerate(value):
            yield from _rows_in(f"{name}[{index}]", part, dim)


def _numbers(copies: Any) -> dict[tuple[str, str], Any]:
    """The numbers that modules of the user's own classes carry as plain attributes."""
    found: dict[tuple[str, str], Any] = {}
    if len(copies) < 2 or not sys.modules["torch"].is_grad_enabled():
        return found
    for path, part in copies[0].named_modules():
        code = getattr(getattr(type(part), "forward", None), "__code__", None)
        if code is None or not is_user_file(code.co_filename):
            continue
        for name, value in part.__dict__.items():
            if not name.startswith("_") and name != "training" and _is_number(value):
                found[path, name] = value
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Number) and not isinstance(value, bool)


def _differs(before: Any, after: Any) -> bool:
    return _is_number(after) and bool(before != after) and after == after


def _code_of_count(frames: list[dict[str, Any]]) -> str:
    """RS501 speaks of the user's own compute_loss, RS101 of a Trainer that is merely started."""
    theirs = [frame for frame in frames if is_user_file(frame["file"])]
    return "RS501" if theirs and theirs[-1]["function"] == "compute_loss" else "RS101"


def _divides_by_whole_count() -> bool:
    """transformers 4.46.0, 4.46.1 and 4.47.1 to 4.49.0 hand over a Python int (read in the wheels)."""
    version = getattr(sys.modules.get("transformers"), "__version__", "")
    return version in ("4.46.0", "4.46.1", "4.47.1") or version.startswith(("4.48.", "4.49."))
