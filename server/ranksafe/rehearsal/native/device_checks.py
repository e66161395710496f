"""Which check that tensors are on one device each CUDA kernel of torch makes, read from torch's own tables.

torchgen (part of every torch wheel) writes CUDA's wrappers from ``native_functions.yaml``. A wrapper checks the devices
of its tensors unless the entry says ``device_check: NoCheck``, and its name appears in the error. This module repeats
the naming of torchgen 2.8 to 2.15 (`torchgen/dest/register_dispatch_key.py`) and writes a small table, so that a
process that simulates devices need not read 600 kB of YAML.

The table is text, one operator a line, words separated by one space:

    checked aten::addmm wrapper_CUDA_addmm
    unchecked aten::add.Tensor
    absent aten::_histogramdd_bin_edges CUDA
    absent aten::_sparse_mm_reduce_impl SparseCsrCUDA
    only aten::cudnn_convolution CUDA

``absent``: the operator has a kernel for the CPU and none for CUDA, so it fails on a real GPU as well. ``only``:
the other way round. The last word is the dispatch key, which tells strided tensors from sparse and nested ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

TABLE_FILE = "device-checks.txt"
"""Beside the compiled devices library."""
_YAML = Path("torchgen/packaged/ATen/native/native_functions.yaml")
_OPERATOR = re.compile(r"^([A-Za-z0-9_]+)(?:\.([A-Za-z0-9_]+))?\(")
_OUT_ARGUMENT = re.compile(r"\*,[^*\n]*Tensor\([a-z]!\)")


@dataclass
class _Operator:
    """One entry of ``native_functions.yaml``."""

    schema: str
    fields: dict[str, str] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)
    """Dispatch keys with a kernel of their own."""

    @property
    def name(self) -> str:
        """``add.Tensor``: with the overload, without the namespace."""
        match = _OPERATOR.match(self.schema)
        return match.group(0)[:-1] if match else ""


def write_table(site_packages: Path, destination: Path) -> bool:
    """Write the table of the torch in ``site_packages``; False when that torch has no torchgen. Raises OSError."""
    yaml = site_packages / _YAML
    if not yaml.is_file():
        return False
    lines = table_lines(yaml.read_text(encoding="utf-8"))
    destination.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return True


def table_lines(native_functions: str) -> list[str]:
    """The lines of the table for the text of a ``native_functions.yaml``."""
    operators = {operator.name: operator for operator in _operators(native_functions)}
    return [line for operator in operators.values() for line in _lines(operator, operators)]


def _lines(operator: _Operator, operators: dict[str, _Operator]) -> Iterator[str]:
    """What is known about one operator."""
    delegate = operators.get(operator.fields.get("structured_delegate", ""))
    # A functional operator without kernels of its own takes its delegate's, key by key.
    keys = operator.keys | delegate.keys if delegate else operator.keys
    if not any(key.startswith("Composite") for key in keys):
        for kind in ("", "Sparse", "SparseCsr", "NestedTensor"):
            on_host, on_device = f"{kind}CPU" in keys, f"{kind}CUDA" in keys
            if on_host != on_device:
                yield f"{'absent' if on_host else 'only'} aten::{operator.name} {kind}CUDA"
    if "CUDA" not in keys:
        return
    if operator.fields.get("device_check") == "NoCheck":
        yield f"unchecked aten::{operator.name}"
        return
    structured = delegate is not None or operator.fields.get("structured") == "True"
    yield f"checked aten::{operator.name} {_wrapper(operator, structured)}"


def _wrapper(operator: _Operator, structured: bool) -> str:
    """The name that torchgen gives the CUDA wrapper."""
    base, _, overload = operator.name.partition(".")
    if _OUT_ARGUMENT.search(operator.schema.split("->")[0]):
        base += "_out"
    if structured:
        return f"wrapper_CUDA_{base}" + (f"_{overload}" if overload else "")
    return f"wrapper_CUDA_{overload}_{base}"


def _operators(text: str) -> Iterator[_Operator]:
    """The entries of the file, read line by line: it is generated, and a YAML reader may not be installed."""
    current: _Operator | None = None
    in_dispatch = False
    for raw in text.splitlines():
        line = raw.split(" #")[0].rstrip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("- func:"):
            if current:
                yield current
            current, in_dispatch = _Operator(line[len("- func:") :].strip()), False
            continue
        if current is None:
            continue
        key, _, value = line.strip().partition(":")
        indentation = len(line) - len(line.lstrip())
        if indentation <= 2:
            in_dispatch = key == "dispatch"
            current.fields[key] = value.strip()
            if key == "ufunc_inner_loop":
                # torchgen makes both kernels from the loop; they are not listed under "dispatch".
                current.keys.update(("CPU", "CUDA"))
        elif in_dispatch and value:
            current.keys.update(part.strip() for part in key.split(","))
    if current:
        yield current
