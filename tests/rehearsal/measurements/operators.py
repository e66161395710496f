"""Every operator of torch's own test database on simulated devices against the CPU: results and gradients.

    PYTHONPATH=server:tests/rehearsal python tests/rehearsal/measurements/operators.py PYTHON [--dtypes float32 float16]

PYTHON is an interpreter with torch; torch's database needs the package expecttest (0.3.0 was used), which may lie in a
folder of its own (``--packages FOLDER``). Prints markdown; ``--json FILE`` keeps every entry. An entry is one operator of
``torch.testing._internal.common_methods_invocations.op_db`` with one dtype, run with up to four of its sample inputs.
It is *equal* when results and gradients are within the tolerance, *explained* when it is in a table below, and
*different* otherwise. It is *not applicable* when the CPU cannot run it or CUDA does not support the dtype.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SAMPLES = 4
TOLERANCE = {"float32": 1e-4, "float16": 2e-2, "bfloat16": 1e-1, "int64": 0.0}
LONGEST_SECONDS = 3000.0

NO_CUDA_KERNEL = "has no CUDA kernel: refused with torch's own text, as on a GPU"
EXPLAINED = {
    "sparse.mm.reduce": NO_CUDA_KERNEL,
    "torch.ops.aten._scaled_dot_product_flash_attention_for_cpu": NO_CUDA_KERNEL,
    "tensor_split": "takes its sections from a tensor on the CPU only: refused with torch's own text",
}
"""Entries that may differ, by the operator's full name."""
RANDOM_OPERATORS = {
    "bernoulli", "cauchy", "exponential", "geometric", "log_normal", "multinomial", "normal",
    "normal.in_place", "normal.number_mean", "rand_like", "randint", "randint_like", "randn",
    "randn_like", "randperm", "uniform", "pca_lowrank", "svd_lowrank",
    "nn.functional.alpha_dropout", "nn.functional.dropout", "nn.functional.dropout2d",
    "nn.functional.dropout3d", "nn.functional.feature_alpha_dropout.with_train",
    "nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d",
    "nn.functional.multi_head_attention_forward", "nn.functional.rrelu",
    "nn.functional.scaled_dot_product_attention", "nn.functional.gumbel_softmax",
}  # fmt: skip
"""Draw from the device's own generator: compared by dtype, shape and device."""
UNINITIALISED_OPERATORS = {
    "empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided",
    "resize_", "resize_as_",
}  # fmt: skip
"""Return memory that nobody has written: compared by dtype, shape and device."""


def inside(arguments: argparse.Namespace) -> None:
    """The half that runs with simulated devices: print one JSON line per entry."""
    warnings.simplefilter("ignore")
    sys.path.extend(arguments.packages)
    import torch
    from torch.testing._internal.common_methods_invocations import op_db

    torch.set_num_threads(1)
    for position, op in enumerate(op_db):
        if position % arguments.stride != arguments.offset:
            continue
        for name in arguments.dtypes:
            dtype = getattr(torch, name)
            full_name = op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")
            if arguments.only and full_name not in arguments.only:
                continue
            state, why = _entry(op, full_name, dtype)
            print(
                json.dumps({"op": full_name, "dtype": name, "state": state, "why": why}), flush=True
            )
    print(json.dumps({"cost": _microseconds_per_call()}), flush=True)


def _entry(op: Any, full_name: str, dtype: Any) -> tuple[str, str]:
    """How one entry compares: the state and, unless it is equal, why."""
    import torch

    if dtype not in op.supported_dtypes("cuda"):
        return "not applicable", "CUDA does not support the dtype"
    with_gradient = bool(op.supports_autograd and dtype.is_floating_point)
    ran = 0
    try:
        samples = _samples(op, dtype, with_gradient)
    except Exception as error:
        return "not applicable", f"no sample inputs: {_first_line(error)}"
    for sample in samples:
        torch.manual_seed(0)
        try:
            expected = _result(op, _placed(sample, "cpu"), with_gradient)
        except Exception:
            continue
        ran += 1
        torch.manual_seed(0)
        try:
            actual = _result(op, _placed(sample, "cuda:1"), with_gradient)
            problem = _difference(full_name, expected, actual, dtype)
        except Exception as error:
            problem = f"{type(error).__name__}: {_first_line(error)}"
        if problem is not None:
            explanation = EXPLAINED.get(full_name)
            return ("explained", explanation) if explanation else ("different", problem)
    return ("equal", "") if ran else ("not applicable", "the CPU cannot run it")


def _samples(op: Any, dtype: Any, with_gradient: bool) -> list[Any]:
    """Up to four sample inputs; of a larger precision, cast down, where the CPU has no kernel that makes them."""
    generator = op.sample_inputs("cpu", dtype, requires_grad=with_gradient)
    return [sample for _, sample in zip(range(SAMPLES), generator, strict=False)]


def _placed(sample: Any, device: str) -> tuple[Any, ...]:
    """The sample's arguments on ``device``, as new leaves; tensors of the arguments that mean a device too."""
    import torch
    from torch.utils._pytree import tree_map

    def move(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.detach().to(device, copy=True).requires_grad_(value.requires_grad)
        if isinstance(value, torch.device):
            return torch.device(device)
        return value

    keywords = {
        key: device if key == "device" and value == "cpu" else move_all(value, move, tree_map)
        for key, value in sample.kwargs.items()
    }
    return move_all(sample.input, move, tree_map), move_all(sample.args, move, tree_map), keywords


def move_all(value: Any, move: Any, tree_map: Any) -> Any:
    """``value`` with every leaf moved."""
    return tree_map(move, value)


def _result(op: Any, placed: tuple[Any, ...], with_gradient: bool) -> tuple[list[Any], list[Any]]:
    """Tensors of the result, and the gradients of what requires one."""
    import torch
    from torch.utils._pytree import tree_leaves

    value, arguments, keywords = placed
    leaves = [
        leaf
        for leaf in tree_leaves((value, arguments, keywords))
        if isinstance(leaf, torch.Tensor) and leaf.requires_grad
    ]
    out = op(value, *arguments, **keywords)
    tensors = [leaf for leaf in tree_leaves(out) if isinstance(leaf, torch.Tensor)]
    targets = [
        tensor
        for tensor in tensors
        if tensor.requires_grad and (tensor.is_floating_point() or tensor.is_complex())
    ]
    if not (with_gradient and targets and leaves):
        return tensors, []
    weights = [_weights(tensor) for tensor in targets]
    gradients = torch.autograd.grad(targets, leaves, weights, allow_unused=True)
    return tensors, [gradient for gradient in gradients if gradient is not None]


def _weights(tensor: Any) -> Any:
    """Different numbers for different elements, the same on every device."""
    import torch

    weights = torch.linspace(0.5, 1.5, max(tensor.numel(), 1))[: tensor.numel()].view(tensor.shape)
    return weights.to(device=tensor.device, dtype=tensor.dtype)


def _difference(full_name: str, expected: Any, actual: Any, dtype: Any) -> str | None:
    """What differs between two `_result`s; None where nothing does."""
    import torch

    shape_only = full_name in RANDOM_OPERATORS | UNINITIALISED_OPERATORS
    tolerance = TOLERANCE[str(dtype).removeprefix("torch.")]
    for kind, left, right in (
        ("result", *_pair(expected, actual, 0)),
        ("gradient", *_pair(expected, actual, 1)),
    ):
        if len(left) != len(right):
            return f"{len(left)} {kind}s on the CPU, {len(right)} on the device"
        for one, other in zip(left, right, strict=True):
            if one.dtype != other.dtype or one.shape != other.shape or one.layout != other.layout:
                return f"{kind} of {other.dtype} {tuple(other.shape)} for {one.dtype} {tuple(one.shape)}"
            if not shape_only:
                try:
                    torch.testing.assert_close(
                        other.detach().cpu(),
                        one.detach(),
                        rtol=tolerance,
                        atol=tolerance,
                        equal_nan=True,
                    )
                except AssertionError as error:
                    return f"{kind}: {' '.join(str(error).split())[:160]}"
    if expected[0] and all(tensor.is_cpu for tensor in actual[0]):
        return "the result is on the CPU"
    return None


def _pair(expected: Any, actual: Any, index: int) -> tuple[Any, Any]:
    return expected[index], actual[index]


def _first_line(error: Exception) -> str:
    return (str(error).strip() or repr(error)).splitlines()[0][:200]


def _microseconds_per_call() -> dict[str, float]:
    """Processor time of small operators, on a device and on the CPU."""
    import torch

    def cost(device: str, work: Any) -> float:
        value = torch.ones(8, 8, device=device)
        for _ in range(500):
            work(value)
        start = time.process_time()
        for _ in range(20_000):
            work(value)
        return round((time.process_time() - start) / 20_000 * 1e6, 2)

    works = {
        "add": lambda x: x + x,
        "mm": lambda x: x @ x,
        "add_": lambda x: x.add_(0.0),
        "view": lambda x: x.view(-1),
    }
    return {
        f"{name} {device}": cost(device, work)
        for name, work in works.items()
        for device in ("cpu", "cuda")
    }


def outside(arguments: argparse.Namespace) -> int:
    """Start the other half in a rehearsal and print what came out."""
    from conftest import compiled_for, run_rehearsal

    options = ["--inside", "--dtypes", *arguments.dtypes]
    options += ["--packages", *arguments.packages]
    options += ["--stride", str(arguments.stride), "--offset", str(arguments.offset)]
    if arguments.only:
        options += ["--only", *arguments.only]
    with tempfile.TemporaryDirectory() as folder:
        done = run_rehearsal(
            compiled_for(Path(arguments.python)),
            Path(folder),
            Path(__file__),
            "inside",
            *options,
            timeout=LONGEST_SECONDS,
        )
    entries = [json.loads(line) for line in done.lines if line.startswith("{")]
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(entries, indent=1), encoding="utf-8")
    for line in report(entries):
        print(line)
    if done.returncode:
        print(done.stderr[-2000:], file=sys.stderr)
    return done.returncode


def report(entries: list[dict[str, Any]]) -> Iterator[str]:
    """The lines of the table."""
    results = [entry for entry in entries if "state" in entry]
    yield "| dtype | applicable | equal | explained | different |"
    yield "| --- | --- | --- | --- | --- |"
    for dtype in dict.fromkeys(entry["dtype"] for entry in results):
        states = Counter(entry["state"] for entry in results if entry["dtype"] == dtype)
        applicable = states["equal"] + states["explained"] + states["different"]
        share = f" ({states['equal'] / applicable:.1%})" if applicable else ""
        yield (
            f"| {dtype} | {applicable} | {states['equal']}{share} | {states['explained']} | "
            f"{states['different']} |"
        )
    for entry in results:
        if entry["state"] in ("explained", "different"):
            yield f"- {entry['op']} {entry['dtype']}: {entry['state']}: {entry['why']}"
    for entry in entries:
        if "cost" in entry:
            yield f"Microseconds of processor time per call: {entry['cost']}"


def main() -> int:
    """Both halves: ``inside`` is started by the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("python", help="an interpreter with torch")
    parser.add_argument("--dtypes", nargs="+", default=["float32"], choices=list(TOLERANCE))
    parser.add_argument("--only", nargs="+", help="full names of operators")
    parser.add_argument("--stride", type=int, default=1, help="every n-th operator")
    parser.add_argument("--offset", type=int, default=0)
    parser.add_argument("--packages", nargs="*", default=[], help="folders with expecttest")
    parser.add_argument("--json", help="keep every entry here")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        inside(arguments)
        return 0
    return outside(arguments)


if __name__ == "__main__":
    sys.exit(main())
