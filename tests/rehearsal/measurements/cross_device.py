"""Every operator that takes two tensors, with one of them on another simulated device: it must refuse.

    PYTHONPATH=server:tests/rehearsal python tests/rehearsal/measurements/cross_device.py PYTHON

PYTHON is an interpreter with torch; torch's own database of operators needs the package expecttest, which may lie in a
folder of its own (``--packages FOLDER``). For each operator of ``op_db``, the first sample input with two tensors that
have elements and dimensions is run with the first on ``cuda:0`` and the others on ``cuda:1``. Prints markdown.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LONGEST_SECONDS = 1800.0
SAMPLES = 8
DEVICE_ERROR = re.compile(
    r"same device|different device|two devices|on the same|to be on .*device|should be either on cpu"
    r"|to have cuda:\d Device, but got|expected .* to be on cpu, but it's on|devices must match"
    r"|should be the same|all tensors must be on"
)

_SIZES = "takes only the other tensor's sizes"
_EACH = "treats each tensor by itself"
_COPIES = "copies one tensor into the other, which works between devices"
AGNOSTIC = {
    "expand_as": _SIZES,
    "view_as": _SIZES,
    "reshape_as": _SIZES,
    "resize_as_": _SIZES,
    "broadcast_tensors": _EACH,
    "atleast_1d": _EACH,
    "atleast_2d": _EACH,
    "atleast_3d": _EACH,
    "as_strided_scatter": _COPIES,
    "diagonal_scatter": _COPIES,
    "select_scatter": _COPIES,
    "slice_scatter": _COPIES,
    "nn.functional.ctc_loss": "moves the targets to the device of the probabilities itself",
    "sparse.mm.reduce": "has no CUDA kernel and says so first",
}
"""Operators that raise no device error, and why that is right."""


def inside(arguments: argparse.Namespace) -> None:
    """The half that runs with simulated devices: print one JSON line per operator."""
    warnings.simplefilter("ignore")
    sys.path.extend(arguments.packages)
    import torch
    from torch.testing._internal.common_methods_invocations import op_db

    torch.set_num_threads(1)
    for op in op_db:
        name = op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")
        if torch.float32 not in op.supported_dtypes("cuda"):
            continue
        outcome = _outcome(op)
        if outcome is not None:
            print(json.dumps({"op": name, "state": outcome[0], "why": outcome[1]}), flush=True)


def _outcome(op: Any) -> tuple[str, str] | None:
    """What the operator says to two devices; None where it takes only one tensor or the CPU cannot run it."""
    sample = _sample(op)
    if sample is None:
        return None
    try:
        op(sample.input, *sample.args, **sample.kwargs)
    except Exception:
        return None
    try:
        arguments, keywords = _spread(sample)
        op(*arguments, **keywords)
    except Exception as error:
        message = str(error)
        state = "refused" if DEVICE_ERROR.search(message) else "other error"
        return state, f"{type(error).__name__}: {(message or repr(error)).splitlines()[0][:200]}"
    return "ran", ""


def _sample(op: Any) -> Any:
    """The first sample input with two tensors that have elements and dimensions."""
    import torch
    from torch.utils._pytree import tree_leaves

    try:
        generator = op.sample_inputs("cpu", torch.float32)
        samples = [sample for _, sample in zip(range(SAMPLES), generator, strict=False)]
    except Exception:
        return None
    for sample in samples:
        leaves = tree_leaves((sample.input, sample.args, sample.kwargs))
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        if sum(bool(tensor.dim() and tensor.numel()) for tensor in tensors) > 1:
            return sample
    return None


def _spread(sample: Any) -> tuple[Any, Any]:
    """The sample's arguments: the first tensor on cuda:0, the others on cuda:1."""
    import torch
    from torch.utils._pytree import tree_map

    seen = []

    def move(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        seen.append(value)
        return value.detach().to("cuda:0" if len(seen) == 1 else "cuda:1")

    return tree_map(move, (sample.input, *sample.args)), tree_map(move, sample.kwargs)


def outside(arguments: argparse.Namespace) -> int:
    """Start the other half in a rehearsal and print what came out."""
    from conftest import compiled_for, run_rehearsal

    with tempfile.TemporaryDirectory() as folder:
        done = run_rehearsal(
            compiled_for(Path(arguments.python)),
            Path(folder),
            Path(__file__),
            "inside",
            "--inside",
            "--packages",
            *arguments.packages,
            timeout=LONGEST_SECONDS,
        )
    for line in report([json.loads(line) for line in done.lines if line.startswith("{")]):
        print(line)
    if done.returncode:
        print(done.stderr[-2000:], file=sys.stderr)
    return done.returncode


def report(entries: list[dict[str, Any]]) -> Iterator[str]:
    """The lines of the table."""
    states = Counter(entry["state"] for entry in entries)
    others = [entry for entry in entries if entry["state"] != "refused"]
    explained = [entry for entry in others if entry["op"] in AGNOSTIC]
    unexplained = Counter(entry["state"] for entry in others if entry not in explained)
    yield "| operators with two tensors | refused | explained below | other error | ran |"
    yield "| --- | --- | --- | --- | --- |"
    yield (
        f"| {len(entries)} | {states['refused']} | {len(explained)} | "
        f"{unexplained['other error']} | {unexplained['ran']} |"
    )
    for entry in entries:
        if entry in explained:
            yield f"- {entry['op']}: {AGNOSTIC[entry['op']]}"
        elif entry in others:
            yield f"- {entry['op']}: {entry['state']}: {entry['why']}"


def main() -> int:
    """Both halves: ``inside`` is started by the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("python", help="an interpreter with torch")
    parser.add_argument("--packages", nargs="*", default=[], help="folders with expecttest")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        inside(arguments)
        return 0
    return outside(arguments)


if __name__ == "__main__":
    sys.exit(main())
