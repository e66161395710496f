"""Copies between the devices of one process: what DataParallel and ``torch.cuda.comm`` do in C++.

The checks and their texts are those of torch/csrc/cuda/comm.cpp of torch 2.13. The functions are put into ``torch._C``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

_INPUT_NOT_CUDA = (
    "Expected all input tensors to be CUDA tensors, but tensor at index {} has device '{}'"
)
_OUTPUT_NOT_CUDA = (
    "Expected all output tensors to be CUDA tensors, but output tensor at index {} has device '{}'"
)


def _on(device: int) -> Any:
    if device < 0:
        raise RuntimeError(f"Expected non-negative device index, but got {device}")
    return torch.device("cuda", device)


def _is_on(tensor: Any, device: int) -> bool:
    return bool(tensor.is_cuda) and tensor.get_device() == device


def broadcast(tensor: Any, devices: Sequence[int]) -> tuple[Any, ...]:
    """A tensor on each device; the one that is there already is passed on."""
    return tuple(
        tensor if _is_on(tensor, device) else tensor.to(_on(device), non_blocking=True)
        for device in devices
    )


def broadcast_out(tensor: Any, out: Sequence[Any]) -> Sequence[Any]:
    """A tensor into each of ``out``."""
    for index, output in enumerate(out):
        if not output.is_cuda:
            raise RuntimeError(_OUTPUT_NOT_CUDA.format(index, output.device))
        if output.shape != tensor.shape:
            raise RuntimeError(
                f"Expected all output tensors to have same shape as the source tensor "
                f"{list(tensor.shape)}, but output tensor at index {index} has shape "
                f"{list(output.shape)}"
            )
    for output in out:
        output.copy_(tensor, non_blocking=True)
    return out


def broadcast_coalesced(
    tensors: Sequence[Any], devices: Sequence[int], buffer_size: int
) -> list[list[Any]]:
    """Tensors of ``devices[0]`` on every device; the copies do not require gradients."""
    if not all(_is_on(tensor, devices[0]) for tensor in tensors):
        raise RuntimeError(f"All tensors must be on devices[0]: {devices[0]}")
    with torch.no_grad():
        copies = [
            [tensor.detach().to(_on(device), non_blocking=True) for tensor in tensors]
            for device in devices[1:]
        ]
    return [list(tensors), *copies]


def scatter(
    tensor: Any,
    devices: Sequence[int],
    chunk_sizes: Sequence[int] | None = None,
    dim: int = 0,
    streams: Sequence[Any] | None = None,
) -> tuple[Any, ...]:
    """Chunks of a tensor, one on each device; there may be fewer chunks than devices."""
    if not devices:
        raise RuntimeError("Expected at least one device to scatter to")
    if chunk_sizes is None:
        # Raises "chunk expects at least a 1-dimensional tensor" by itself.
        chunks = tensor.chunk(len(devices), dim)
    else:
        if len(chunk_sizes) != len(devices):
            raise RuntimeError(
                "Expected devices and chunk_sizes to be of same length, but got "
                f"len(devices) = {len(devices)} and len(chunk_sizes) = {len(chunk_sizes)}"
            )
        chunks = tensor.split_with_sizes(list(chunk_sizes), dim)
    return tuple(
        chunk
        if _is_on(chunk, _checked_device(index, devices[index], streams))
        else chunk.to(_on(devices[index]), non_blocking=True)
        for index, chunk in enumerate(chunks)
    )


def _checked_device(index: int, device: int, streams: Sequence[Any] | None) -> int:
    stream = None if streams is None else streams[index]
    if stream is not None and stream.device_index != device:
        raise RuntimeError(
            f"Expected the device associated with the stream at index {index} (was "
            f"{stream.device_index}) to match the device supplied at that index (expected {device})"
        )
    return device


def scatter_out(
    tensor: Any, out: Sequence[Any], dim: int = 0, streams: Sequence[Any] | None = None
) -> Sequence[Any]:
    """Chunks of a tensor into ``out``, of their sizes."""
    if not out:
        raise RuntimeError("Expected at least one output tensor to scatter to")
    along = dim + tensor.dim() if dim < 0 else dim
    sizes = []
    for index, output in enumerate(out):
        if not output.is_cuda:
            raise RuntimeError(_OUTPUT_NOT_CUDA.format(index, output.device))
        expected = list(tensor.shape)
        if output.dim() == tensor.dim():
            expected[along] = output.size(along)
        if list(output.shape) != expected:
            raise RuntimeError(
                f"Output tensor at index {index} has incorrect shape: {list(output.shape)}. Expected "
                f"same shape except for scatter dim {along} as the source tensor: "
                f"{list(tensor.shape)}"
            )
        sizes.append(output.size(along))
    if sum(sizes) != tensor.size(along):
        raise RuntimeError(
            f"Total size for output tensors along scatter dim {along} does not match the source "
            f"tensor size at dim {along}. Expected {tensor.size(along)}, but got total size {sum(sizes)}"
        )
    for chunk, output in zip(tensor.split_with_sizes(sizes, along), out):
        output.copy_(chunk, non_blocking=True)
    return out


def _gathered_shape(tensors: Sequence[Any], dim: int) -> tuple[int, list[int]]:
    """The dimension from 0, and the shape of the whole; checks the parts."""
    if not tensors:
        raise RuntimeError("Expected at least one tensor to gather from")
    first = tensors[0]
    along = dim + first.dim() if dim < 0 else dim
    shape = list(first.shape)
    total = 0
    for index, tensor in enumerate(tensors):
        if not tensor.is_cuda:
            raise RuntimeError(_INPUT_NOT_CUDA.format(index, tensor.device))
        if tensor.dim() != len(shape):
            # The missing space is torch's.
            raise RuntimeError(
                "Expected all input tensors to have the same number of dimensions, but tensor at "
                f"index {index}has {tensor.dim()} dimensions, (expected {len(shape)})"
            )
        shape[along] = tensor.size(along)
        if list(tensor.shape) != shape:
            raise RuntimeError(
                f"Input tensor at index {index} has invalid shape {list(tensor.shape)}, "
                f"but expected {shape}"
            )
        total += tensor.size(along)
    shape[along] = total
    return along, shape


def gather(tensors: Sequence[Any], dim: int, destination: int | None) -> Any:
    """Tensors of several devices as one, on the device ``destination``; -1 is the CPU, None the current device."""
    along, _ = _gathered_shape(tensors, dim)
    if destination == -1:
        target = torch.device("cpu")
    else:
        target = _on(torch.cuda.current_device() if destination is None else destination)
    return torch.cat([tensor.to(target, non_blocking=True) for tensor in tensors], along)


def gather_out(tensors: Sequence[Any], out: Any, dim: int) -> Any:
    """Tensors of several devices into ``out``."""
    along, shape = _gathered_shape(tensors, dim)
    if list(out.shape) != shape:
        raise RuntimeError(f"Expected out tensor to have shape {shape}, but got {list(out.shape)}")
    start = 0
    for tensor in tensors:
        out.narrow(along, start, tensor.size(along)).copy_(tensor, non_blocking=True)
        start += tensor.size(along)
    return out


def _reduced(inputs: Sequence[Any], operation: int, device: Any) -> Any:
    """All inputs as one on ``device``; ``operation`` counts as in ncclRedOp_t: sum, product, maximum, minimum."""
    functions = (torch.add, torch.mul, torch.maximum, torch.minimum)
    result = inputs[0].to(device)
    for tensor in inputs[1:]:
        result = functions[operation](result, tensor.to(device))
    return result


def nccl_reduce(
    inputs: Sequence[Any], output: Any, root: int, operation: int, streams: Any, groups: Any
) -> None:
    """``torch._C._nccl_reduce``: one process, several devices."""
    output.copy_(_reduced(inputs, operation, output.device))


def nccl_all_reduce(
    inputs: Sequence[Any], outputs: Sequence[Any], operation: int, streams: Any, groups: Any
) -> None:
    """``torch._C._nccl_all_reduce``."""
    result = _reduced(inputs, operation, inputs[0].device)
    for output in outputs:
        output.copy_(result)


def nccl_broadcast(inputs: Sequence[Any], root: int, streams: Any, groups: Any) -> None:
    """``torch._C._nccl_broadcast``."""
    for tensor in inputs:
        tensor.copy_(inputs[root])


def nccl_all_gather(
    inputs: Sequence[Any], outputs: Sequence[Any], streams: Any, groups: Any
) -> None:
    """``torch._C._nccl_all_gather``."""
    for output in outputs:
        output.view(-1).copy_(torch.cat([one.reshape(-1).to(output.device) for one in inputs]))


def nccl_reduce_scatter(
    inputs: Sequence[Any], outputs: Sequence[Any], operation: int, streams: Any, groups: Any
) -> None:
    """``torch._C._nccl_reduce_scatter``."""
    parts = _reduced(inputs, operation, inputs[0].device).reshape(-1).chunk(len(outputs))
    for output, part in zip(outputs, parts):
        output.view(-1).copy_(part)


def install(torch_c: Any) -> None:
    """Put the functions into ``torch._C``."""
    table = {
        "_broadcast": broadcast,
        "_broadcast_out": broadcast_out,
        "_broadcast_coalesced": broadcast_coalesced,
        "_scatter": scatter,
        "_scatter_out": scatter_out,
        "_gather": gather,
        "_gather_out": gather_out,
        "_nccl_reduce": nccl_reduce,
        "_nccl_all_reduce": nccl_all_reduce,
        "_nccl_broadcast": nccl_broadcast,
        "_nccl_all_gather": nccl_all_gather,
        "_nccl_reduce_scatter": nccl_reduce_scatter,
    }
    for name, function in table.items():
        setattr(torch_c, name, function)
