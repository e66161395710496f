"""The models that DistributedDataParallel manages, and what their weights are after each of the first steps.

Ranks must hold the same weights after every step: DDP averages gradients to the same bits everywhere, and optimizers
compute the same from them. Every rank writes digests down; the comparison comes after the run.
"""

from __future__ import annotations

import functools
import sys
import threading
import weakref
from typing import Any, Callable

from .. import waiting
from . import digests
from .changes import builds_on_itself
from .watch import Watch, is_user_file, stack

WATCHED_STEPS = 3
_MOST_PARAMETERS = 400
_DIVERGE_ON_PURPOSE = (
    "accelerate.local_sgd",
    "torch.distributed.algorithms.model_averaging.averagers",
)
_OTHER_ENGINES = ("deepspeed", "megatron", "apex", "horovod")


class Wrapper:
    """One DistributedDataParallel instance of this process."""

    def __init__(self, index: int, module: Any) -> None:
        self.index = index
        self.ranks = _ranks_of(module.process_group)
        named = [
            (name, parameter)
            for name, parameter in module.module.named_parameters()
            if name not in module.parameters_to_ignore and parameter.requires_grad
        ]
        self.names = [name for name, _ in named]
        self.parameters = [parameter for _, parameter in named]
        self.buffers = _own_buffers(module) if module.broadcast_buffers else []
        self.forwards = 0
        self.forwards_since_step = 0
        self.steps = 0
        self.bypass: list[dict[str, Any]] | None = None
        """Where the module inside was called past DDP since the last step."""


class Wrappers:
    """What is known of the models of this process."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.all: weakref.WeakKeyDictionary[Any, Wrapper] = weakref.WeakKeyDictionary()
        self.made = 0
        self.sharded = False
        self.inner: dict[int, weakref.ref[Any]] = {}
        self.inside: Any = threading.local()
        self.on_forward: list[Callable[[Wrapper, Any], None]] = []
        self.alone: dict[int, int] = {}
        """Steps seen of optimizers without any wrapper, by optimizer."""
        self.order: dict[int, int] = {}

    def add(self, module: Any) -> None:
        """Note a new DDP instance."""
        wrapper = Wrapper(self.made, module)
        self.made += 1
        self.all[module] = wrapper
        self.inner[id(module.module)] = weakref.ref(module)

    def forward(self, module: Any, inputs: Any) -> None:
        """Called before a DDP forward."""
        wrapper = self.all.get(module)
        if wrapper is None or not module.training or not _torch().is_grad_enabled():
            return
        wrapper.forwards += 1
        wrapper.forwards_since_step += 1
        for action in self.on_forward:
            action(wrapper, inputs)

    def called(self, module: Any) -> None:
        """Called before any module's forward: the module inside a DDP instance may be called past it."""
        reference = self.inner.get(id(module))
        if reference is None or _depth(self.inside):
            return
        outer: Any = reference()
        wrapper = None if outer is None else self.all.get(outer)
        if wrapper is None or outer is None or outer.module is not module:
            return
        if module.training and _torch().is_grad_enabled() and wrapper.bypass is None:
            wrapper.bypass = stack()

    def before_step(self, optimizer: Any, *_: Any) -> None:
        """The weights that ranks without DDP begin with."""
        if self._is_alone() and id(optimizer) not in self.alone and len(self.alone) < 4:
            self.alone[id(optimizer)] = 0
            self.order[id(optimizer)] = len(self.order)
            self._write_alone(optimizer)

    def after_step(self, optimizer: Any, *_: Any) -> None:
        """The weights after one of the first steps."""
        for wrapper in list(self.all.values()):
            if waiting.here.joins:
                wrapper.steps = (
                    WATCHED_STEPS  # ranks make different numbers of steps, and agree in the end
                )
            if wrapper.steps >= WATCHED_STEPS:
                continue
            if not wrapper.forwards_since_step and wrapper.bypass is None:
                continue
            wrapper.steps += 1
            bypass, wrapper.bypass, wrapper.forwards_since_step = wrapper.bypass, None, 0
            self._write(wrapper, bypass)
        count = self.alone.get(id(optimizer))
        if count is not None and count < WATCHED_STEPS and self._is_alone():
            self.alone[id(optimizer)] = count + 1
            self._write_alone(optimizer)

    def _write(self, wrapper: Wrapper, bypass: list[dict[str, Any]] | None) -> None:
        if any(name in sys.modules for name in _DIVERGE_ON_PURPOSE):
            return
        frames = [frame for frame in bypass or stack() if is_user_file(frame["file"])]
        pairs = [
            (name, digests.digest(parameter))
            for name, parameter in zip(wrapper.names, wrapper.parameters)
            if digests.is_plain(parameter)
        ][:_MOST_PARAMETERS]
        self.watch.journal.write(
            "weights",
            model=f"ddp {wrapper.index}",
            wrapped=True,
            bypassed=bypass is not None,
            ranks=wrapper.ranks,
            step=wrapper.steps,
            parameters=pairs,
            frames=frames,
        )
        kept = [
            (name, digests.digest(getattr(owner, part)), place)
            for name, owner, part, place in wrapper.buffers
        ]
        if kept:
            self.watch.journal.write(
                "buffers",
                model=f"ddp {wrapper.index}",
                ranks=wrapper.ranks,
                step=wrapper.steps,
                buffers=kept,
            )

    def _is_alone(self) -> bool:
        """Whether a process group connects ranks whose models nothing wraps."""
        if self.made or self.sharded:
            return False
        if any(name in sys.modules for name in (*_OTHER_ENGINES, *_DIVERGE_ON_PURPOSE)):
            return False
        distributed = sys.modules.get("torch.distributed")
        if distributed is None or not distributed.is_available():
            return False
        return bool(distributed.is_initialized() and distributed.get_world_size() > 1)

    def _write_alone(self, optimizer: Any) -> None:
        parameters = [each for group in optimizer.param_groups for each in group["params"]]
        if not all(digests.is_plain(parameter) for parameter in parameters):
            self.alone[id(optimizer)] = WATCHED_STEPS
            return
        world = sys.modules["torch.distributed"].get_world_size()
        pairs = [
            (str(index), digests.digest(parameter))
            for index, parameter in enumerate(parameters[:_MOST_PARAMETERS])
        ]
        self.watch.journal.write(
            "weights",
            model=f"optimizer {self.order[id(optimizer)]}",
            wrapped=False,
            bypassed=False,
            ranks=list(range(world)),
            step=self.alone[id(optimizer)],
            parameters=pairs,
            frames=[frame for frame in stack() if is_user_file(frame["file"])],
        )


def hooks(known: Wrappers) -> dict[str, Callable[[Any], None]]:
    """What to do after which import."""
    return {
        "torch.nn.parallel.distributed": functools.partial(_hook_ddp, known),
        "torch.distributed.fsdp.fully_sharded_data_parallel": functools.partial(_hook_fsdp, known),
        "torch.optim.optimizer": functools.partial(_hook_optimizer, known),
    }


def _hook_ddp(known: Wrappers, module: Any) -> None:
    kind = module.DistributedDataParallel
    initialise, forward = kind.__init__, kind.forward

    @functools.wraps(initialise)
    def watched_init(self: Any, *arguments: Any, **keywords: Any) -> None:
        initialise(self, *arguments, **keywords)
        known.watch.attempt(known.add, self)

    @functools.wraps(forward)
    def watched_forward(self: Any, *inputs: Any, **keywords: Any) -> Any:
        known.watch.attempt(known.forward, self, (inputs, keywords))
        known.inside.depth = _depth(known.inside) + 1
        try:
            return forward(self, *inputs, **keywords)
        finally:
            known.inside.depth -= 1

    kind.__init__, kind.forward = watched_init, watched_forward


def _hook_fsdp(known: Wrappers, module: Any) -> None:
    kind = module.FullyShardedDataParallel
    initialise = kind.__init__

    @functools.wraps(initialise)
    def watched_init(self: Any, *arguments: Any, **keywords: Any) -> None:
        known.sharded = True
        initialise(self, *arguments, **keywords)

    kind.__init__ = watched_init


def _hook_optimizer(known: Wrappers, module: Any) -> None:
    """torch >= 2.0 has the global hooks."""

    def before(optimizer: Any, *_: Any) -> None:
        known.watch.attempt(known.before_step, optimizer)

    def after(optimizer: Any, *_: Any) -> None:
        known.watch.attempt(known.after_step, optimizer)

    module.register_optimizer_step_pre_hook(before)
    module.register_optimizer_step_post_hook(after)


def _own_buffers(module: Any) -> list[tuple[str, Any, str, dict[str, Any]]]:
    """Buffers that the user's own classes accumulate: name, owner, attribute, the class's forward.

    Running statistics of normalisation layers are each rank's own by design and left out.
    """
    found = []
    for path, part in module.module.named_modules():
        kind: Any = type(part)
        code = getattr(getattr(kind, "forward", None), "__code__", None)
        if code is None or not is_user_file(code.co_filename) or "norm" in kind.__name__.lower():
            continue
        for name, buffer in part.named_buffers(recurse=False):
            whole = f"{path}.{name}".lstrip(".")
            if whole in module.parameters_to_ignore or not digests.is_plain(buffer):
                continue
            if builds_on_itself(kind, name):
                place = {
                    "file": code.co_filename,
                    "line": code.co_firstlineno,
                    "function": "forward",
                }
                found.append((whole, part, name, place))
    return found[:_MOST_PARAMETERS]


def _ranks_of(group: Any) -> list[int]:
    module = sys.modules["torch.distributed"]
    return [int(rank) for rank in module.get_process_group_ranks(group)]


def _depth(inside: Any) -> int:
    """How many DDP forwards this thread is in."""
    return int(inside.__dict__.get("depth", 0))


def _torch() -> Any:
    return sys.modules["torch"]
