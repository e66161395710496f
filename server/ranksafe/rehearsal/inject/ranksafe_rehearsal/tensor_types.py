"""``torch.cuda.FloatTensor`` and its kin: a CPU build has the names, but refuses to make such tensors."""

from __future__ import annotations

from typing import Any

_ELEMENTS = {
    "FloatTensor": "float32",
    "DoubleTensor": "float64",
    "HalfTensor": "float16",
    "BFloat16Tensor": "bfloat16",
    "ByteTensor": "uint8",
    "CharTensor": "int8",
    "ShortTensor": "int16",
    "IntTensor": "int32",
    "LongTensor": "int64",
    "BoolTensor": "bool",
}


class _TensorType(type):
    """Looks like torch's own type objects: for ``isinstance``, for its attributes and for its text."""

    dtype: Any
    is_cuda = True
    is_sparse = False

    def __instancecheck__(cls, instance: Any) -> bool:
        return type.__instancecheck__(_torch_tensor(), instance) and (
            instance.is_cuda and instance.dtype == cls.dtype
        )

    def __repr__(cls) -> str:
        return f"<class 'torch.cuda.{cls.__name__}'>"


def _torch_tensor() -> Any:
    import torch

    return torch.Tensor


def _make(torch: Any, name: str, dtype: Any) -> Any:
    def new(cls: Any, *arguments: Any, **keywords: Any) -> Any:
        """A tensor of the given sizes, or with the given content, on the current device."""
        device = keywords.pop("device", "cuda")
        first = arguments[0] if arguments else None
        sizes = all(isinstance(argument, int) for argument in arguments)
        if sizes or isinstance(first, torch.Size):
            shape = first if isinstance(first, torch.Size) else arguments
            return torch.empty(shape or 0, dtype=dtype, device=device, **keywords)
        return torch.as_tensor(first, **keywords).to(device=device, dtype=dtype)

    body = {"__new__": new, "dtype": dtype, "__module__": "torch.cuda"}
    return _TensorType(name, (), body)


def install(torch: Any) -> None:
    """Replace the types of a CPU build; a build with CUDA makes such tensors through its dispatcher."""
    if _works(torch):
        return
    for name, element in _ELEMENTS.items():
        setattr(torch.cuda, name, _make(torch, name, getattr(torch, element)))


def _works(torch: Any) -> bool:
    """Whether torch was compiled to make tensors of these types."""
    return hasattr(torch._C, "_CUDAPluggableAllocator")
