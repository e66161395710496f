"""``torch.nn.DataParallel`` over N replicas on the CPU, for proofs on machines without GPUs.

Runs inside the program that is proved (standard library and torch only). `install` is called as soon as torch has been
imported, before the program goes on.

What stays torch's own code (written for and checked with torch 2.13.0): ``DataParallel.__init__`` and ``forward``,
``scatter_kwargs`` with its ``zip`` over tensors, dictionaries and other objects, ``replicate`` with
``Module._replicate_for_data_parallel``, ``parallel_apply`` with its threads and its ``ExceptionWrapper`` ("Caught
ValueError in replica 1 on device 1."), and the walk of ``gather`` over outputs. Replaced are only the pieces that need
CUDA: the copies (scatter -> ``Tensor.chunk``, as in torch/csrc/cuda/comm.cpp; broadcast -> views for the first device,
clones for the others; gather -> ``torch.cat``), the streams, and the number of devices.

``torch.cuda.device_count()`` is N for every caller outside torch while ``torch.cuda.is_available()`` stays False, so a
program that picks its device the usual way stays on the CPU and ``transformers.TrainingArguments`` finds n_gpu == N.
``.cuda()`` and ``.to("cuda")`` copy nothing. That tensors of different replicas do not mix is checked in
`replica_placement`, with a message of ours in torch's words.

Not emulated: memory, speed, streams, per-device random generators, ``torch.cuda`` beyond the above, factories with
``device="cuda"`` outside a replica. A tensor's ``device`` is always ``cpu``.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import types
import warnings
from collections.abc import Sequence
from typing import Any

import replica_placement  # type: ignore[import-not-found]  # found beside this file
import torch
from torch.nn.parallel import _functions, comm

# ``torch.nn.parallel.replicate`` and its neighbours are functions that hide the modules of those names.
_data_parallel: Any = sys.modules["torch.nn.parallel.data_parallel"]
_replicate: Any = sys.modules["torch.nn.parallel.replicate"]
_parallel_apply: Any = sys.modules["torch.nn.parallel.parallel_apply"]
_scatter_gather: Any = sys.modules["torch.nn.parallel.scatter_gather"]


def install(replicas: int) -> None:
    """Make this process believe in ``replicas`` devices for DataParallel."""
    _count_devices(replicas)
    replica_placement.emulate_moves()
    _replace_copies()
    _replace_device_calls()


def _count_devices(replicas: int) -> None:
    real_device_count = torch.cuda.device_count

    def device_count() -> int:
        # torch itself would go on to ask these devices for their state (torch.random.fork_rng does).
        caller = sys._getframe(1).f_globals.get("__name__", "")
        return real_device_count() if caller.split(".")[0] == "torch" else replicas

    torch.cuda.device_count = device_count
    torch.cuda.is_available = lambda: False
    torch.cuda.set_device = lambda device: None
    torch.cuda.current_device = replica_placement.current_device
    _data_parallel._get_available_device_type = lambda: "cpu"
    _data_parallel._get_all_device_indices = lambda: list(range(replicas))

    real_init = _data_parallel.DataParallel.__init__

    @functools.wraps(real_init)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        real_init(self, *args, **kwargs)
        # torch compares this with the parameters' device, and those say "cpu" without an index.
        self.src_device_obj = torch.device("cpu")

    _data_parallel.DataParallel.__init__ = init


def _replace_copies() -> None:
    torch._C._scatter = _scatter
    _scatter_gather.Gather = _functions.Gather = _Gather
    _replicate._broadcast_coalesced_reshape = _broadcast
    comm.broadcast_coalesced = lambda tensors, devices, buffer_size=0: _broadcast(
        tensors, devices, detach=True
    )


def _scatter(
    tensor: torch.Tensor,
    devices: Sequence[int],
    chunk_sizes: Sequence[int] | None,
    dim: int,
    streams: object,
) -> list[torch.Tensor]:
    """``scatter`` of torch/csrc/cuda/comm.cpp; a chunk for the tensor's own device is not copied there either."""
    if chunk_sizes is None:
        chunks = tensor.chunk(len(devices), dim)
    else:
        chunks = tensor.split_with_sizes(list(chunk_sizes), dim)
    return [
        replica_placement.placed(chunk if device == 0 else chunk.clone(), device)
        for device, chunk in zip(devices, chunks)
    ]


def _broadcast(
    tensors: Sequence[torch.Tensor], devices: Sequence[int], detach: bool = False
) -> list[list[torch.Tensor]]:
    """One list of copies per device; the first shares storage with the original, as DataParallel promises."""

    def copy(tensor: torch.Tensor, device: int) -> torch.Tensor:
        if detach:
            tensor = tensor.detach()
        shared = device == 0
        return replica_placement.placed(
            tensor.view_as(tensor) if shared else tensor.clone(), device
        )

    return [[copy(tensor, device) for tensor in tensors] for device in devices]


class _Gather:
    """Stands for ``torch.nn.parallel._functions.Gather``: its treatment of scalars, the shape check of comm.cpp."""

    @staticmethod
    def apply(target_device: object, dim: int, *inputs: torch.Tensor) -> torch.Tensor:
        if all(tensor.dim() == 0 for tensor in inputs) and dim == 0:
            inputs = tuple(tensor.view(1) for tensor in inputs)
            warnings.warn(
                "Was asked to gather along dimension 0, but all "
                "input tensors were scalars; will instead unsqueeze "
                "and return a vector.",
                stacklevel=2,
            )
        expected = list(inputs[0].shape)
        for index, tensor in enumerate(inputs):
            if tensor.dim() != len(expected):
                raise RuntimeError(
                    "Expected all input tensors to have the same number of dimensions, but "
                    f"tensor at index {index} has {tensor.dim()} dimensions, (expected {len(expected)})"
                )
            expected[dim] = tensor.size(dim)
            if list(tensor.shape) != expected:
                raise RuntimeError(
                    "Gather got an input of invalid size: "
                    f"got {list(tensor.shape)}, but expected {expected}"
                )
        return torch.cat(inputs, dim)


def _replace_device_calls() -> None:
    """Give ``parallel_apply`` a torch without streams; its threads and its error wrapping are untouched."""
    accelerator = types.SimpleNamespace(
        current_stream=lambda device=None: contextlib.nullcontext(),
        is_available=lambda: True,
        current_accelerator=lambda: torch.device("cpu"),
        device_index=replica_placement.on_device,
    )
    overrides = {
        "accelerator": accelerator,
        "is_autocast_enabled": lambda: torch.is_autocast_enabled("cpu"),
    }

    class TorchWithoutStreams(types.ModuleType):
        def __getattr__(self, name: str) -> object:
            return overrides[name] if name in overrides else getattr(torch, name)

    _parallel_apply.torch = TorchWithoutStreams("torch")
