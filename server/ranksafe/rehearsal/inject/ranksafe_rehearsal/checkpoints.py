"""Checkpoints of a forecast: files have their true length and content, and zeros in them take no room.

Tensors without values read as zeros, 16 GB of them and more in one checkpoint. Where much of them is written at the
end of an ordinary file, it becomes longer instead: a hole, which reads as zeros again.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import json
import math
import os
import stat
import sys
from collections.abc import Iterator
from typing import Any

from . import importing
from .settings import COMPUTED_BYTES, Settings

_PIECE = COMPUTED_BYTES
_ZEROS = bytes(_PIECE)


def install(settings: Settings) -> None:
    """Wait for what writes checkpoints, in a forecast."""
    if settings.forecast:
        importing.after_import("torch.serialization", _hook_torch)
        importing.after_import("torch.distributed.checkpoint.filesystem", _hook_distributed)
        importing.after_import("safetensors.torch", _hook_safetensors)


def copied(storage: Any, device: Any) -> Any:
    """A storage's copy on another device: what is zero stays untouched there."""
    size = storage.nbytes()
    made = sys.modules["torch"].UntypedStorage(size, device=device)
    view = _memory(storage.data_ptr(), size)
    for start in range(0, size, _PIECE):
        _put(made, start, bytes(view[start : start + _PIECE]))
    return made


def _put(storage: Any, start: int, piece: bytes) -> None:
    if not _is_zero(piece):
        ctypes.memmove(storage.data_ptr() + start, piece, len(piece))


def _memory(address: int, size: int) -> memoryview:
    return memoryview((ctypes.c_ubyte * size).from_address(address) if size else b"")


def _is_zero(piece: bytes) -> bool:
    return piece == (_ZEROS if len(piece) == _PIECE else bytes(len(piece)))


class _Sparse:
    """A file that is being written."""

    def __init__(self, file: Any) -> None:
        self._file = file
        try:
            self._has_holes = stat.S_ISREG(os.fstat(file.fileno()).st_mode) and file.seekable()
        except (AttributeError, OSError):
            self._has_holes = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, content: Any) -> int:
        """As a file's own."""
        view = memoryview(content)
        if not self._has_holes or view.nbytes < _PIECE or view.itemsize != 1 or view.ndim != 1:
            self._file.write(content)
            return view.nbytes
        for start in range(0, len(view), _PIECE):
            piece = bytes(view[start : start + _PIECE])
            if not (_is_zero(piece) and self._leave_hole(len(piece))):
                self._file.write(piece)
        return len(view)

    def _leave_hole(self, size: int) -> bool:
        """False where there is something already."""
        self._file.flush()
        here = self._file.tell()
        if here < os.fstat(self._file.fileno()).st_size:
            return False
        os.ftruncate(self._file.fileno(), here + size)
        self._file.seek(here + size)
        return True


def _hook_torch(_: Any) -> None:
    bindings: Any = sys.modules["torch._C"]
    original: Any = bindings.PyTorchFileWriter

    class PyTorchFileWriter(original):  # type: ignore[misc]
        """Writes through Python, and no checksums, which would read everything (torch.load asks for none)."""

        def __init__(self, target: Any, *given: Any) -> None:
            self._opened = None
            if isinstance(target, str):
                with contextlib.suppress(OSError):  # torch has its own words
                    self._opened = target = open(target, "wb")
            given = (False, *given[1:]) if given else ()
            super().__init__(_Sparse(target) if hasattr(target, "write") else target, *given)

        def write_end_of_file(self) -> None:
            super().write_end_of_file()
            if self._opened is not None:
                self._opened.close()

    bindings.PyTorchFileWriter = PyTorchFileWriter
    reads: Any = bindings.PyTorchFileReader

    class PyTorchFileReader(reads):  # type: ignore[misc]
        """What is a hole stays untouched memory."""

        def __init__(self, target: Any) -> None:
            self._target = target
            super().__init__(target)

        def get_storage_from_record(self, name: str, size: int, kind: Any) -> Any:
            torch: Any = sys.modules["torch"]
            if size >= _PIECE and kind is torch.UntypedStorage:
                with contextlib.suppress(AttributeError, OSError):  # not a file
                    storage = _read(self._target, self.get_record_offset(name), size)
                    return torch.empty(0, dtype=torch.uint8).set_(storage)
            return super().get_storage_from_record(name, size, kind)

    bindings.PyTorchFileReader = PyTorchFileReader


def _read(target: Any, offset: int, size: int) -> Any:
    """A storage of a file's part; raises OSError, or AttributeError where it is none."""
    made = sys.modules["torch"].UntypedStorage(size)
    # Opened anew: the program's own file stays where it is.
    path = target if isinstance(target, str) else f"/proc/self/fd/{target.fileno()}"
    with open(path, "rb", buffering=0) as file:
        start = 0
        while start < size:
            try:
                start = os.lseek(file.fileno(), offset + start, os.SEEK_DATA) - offset
            except OSError as error:
                if error.errno == errno.ENXIO:  # nothing but a hole
                    break
                raise
            piece = os.pread(file.fileno(), max(0, min(_PIECE, size - start)), offset + start)
            if not piece:
                break
            _put(made, start, piece)
            start += len(piece)
    return made


def _hook_distributed(module: Any) -> None:
    original = module.FileSystem.create_stream

    @contextlib.contextmanager
    def create_stream(self: Any, path: Any, mode: str) -> Iterator[Any]:
        with original(self, path, mode) as stream:
            yield _Sparse(stream) if mode == "wb" else stream

    module.FileSystem.create_stream = create_stream


def _hook_safetensors(module: Any) -> None:
    """From 0.8 on it passes addresses, before that copies of all tensors (read in 0.5, 0.7 and 0.8)."""
    codes = {str(kind).split(".")[-1]: code for code, kind in module._TYPES.items()}
    error: Any = sys.modules["safetensors"].SafetensorError

    def serialize_file(tensors: Any, filename: Any, metadata: Any = None) -> None:
        parts: list[tuple[int, str, str, list[int], memoryview]] = []
        for name, each in tensors.items():
            if isinstance(each, dict):
                content, code = memoryview(each["data"]), codes[each["dtype"]]
                shape = list(each["shape"])
            else:
                content, code = _memory(each.data_ptr, each.data_len), each.dtype
                shape = list(each.shape)
            parts.append((-content.nbytes // max(1, math.prod(shape)), name, code, shape, content))
        parts.sort(key=lambda part: part[:2])  # so that each is aligned
        header: dict[str, Any] = {} if metadata is None else {"__metadata__": metadata}
        end = 0
        for _, name, code, shape, content in parts:
            offsets = [end, end + content.nbytes]
            header[name] = {"dtype": code, "shape": shape, "data_offsets": offsets}
            end += content.nbytes
        text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
        text += b" " * (-len(text) % 8)
        try:
            with open(filename, "wb") as file:
                file.write(len(text).to_bytes(8, "little") + text)
                for part in parts:
                    _Sparse(file).write(part[-1])
        except OSError as failure:
            raise error(f"Error while serializing: I/O error: {failure}") from None

    module.serialize_file = serialize_file
    if not hasattr(module, "_tobytes"):
        return
    to_bytes, serialize = module._tobytes, module.serialize

    @functools.wraps(to_bytes)
    def in_place(tensor: Any, name: str) -> Any:
        if tensor.nbytes < _PIECE or not tensor.is_contiguous():
            return to_bytes(tensor, name)
        tensor = tensor.cpu()
        array = (ctypes.c_ubyte * tensor.nbytes).from_address(tensor.data_ptr())
        array.lives_in = tensor  # type: ignore[attr-defined]
        return memoryview(array)

    def serialize_copies(tensors: Any, metadata: Any = None) -> Any:
        copies = {name: {**each, "data": bytes(each["data"])} for name, each in tensors.items()}
        return serialize(copies, metadata)

    module._tobytes, module.serialize = in_place, serialize_copies
