"""torch's own database of operators on ``cuda:0``: what each answers or refuses. Prints one JSON line per answer.

``operators.py [--from N]`` begins at the N-th operator: after an error of the device itself a process is of no more use.
Needs the package expecttest, as torch's database does. For each operator and dtype: its first sample, as it is and, in
float32, with its first tensor or its other tensors left on the CPU.
"""

import json
import sys
import warnings
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

DTYPES = (
    torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.bool, torch.complex64,
)  # fmt: skip


def main() -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    first = int(sys.argv[2]) if sys.argv[1:2] == ["--from"] else 0
    for position, op in enumerate(op_db):
        if position < first:
            continue
        name = op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")
        for dtype in DTYPES:
            for placement in ("all", "first", "others") if dtype is torch.float32 else ("all",):
                answer = _answer(op, dtype, placement)
                if answer is None:
                    continue
                case = f"{name} {str(dtype).removeprefix('torch.')} {placement}"
                print(
                    json.dumps({"case": case, "answer": answer, "position": position}), flush=True
                )
                if isinstance(answer, str) and ("CUDA error" in answer or "cudaError" in answer):
                    print(json.dumps({"case": "broken", "answer": position}), flush=True)
                    return
    print(json.dumps({"case": "complete", "answer": len(op_db)}), flush=True)


def _answer(op: Any, dtype: torch.dtype, placement: str) -> Any:
    """Dtype, shape and device of each result, or the error; None where there is nothing to ask."""
    torch.manual_seed(0)
    try:
        sample = next(iter(op.sample_inputs("cpu", dtype)))
    except Exception:
        return None
    leaves, shape = tree_flatten((sample.input, sample.args, sample.kwargs))
    tensors = [index for index, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    if not tensors or (placement != "all" and len(tensors) < 2):
        return None
    moved = {"all": tensors, "first": tensors[:1], "others": tensors[1:]}[placement]
    for index in moved:
        leaves[index] = leaves[index].cuda()
    for index, leaf in enumerate(leaves):
        if isinstance(leaf, torch.device) or leaf == "cpu":
            leaves[index] = "cuda:0"
    value, arguments, keywords = tree_unflatten(leaves, shape)
    try:
        result = op(value, *arguments, **keywords)
        torch.cuda.synchronize()
    except Exception as error:
        return f"{type(error).__name__}: {(str(error).strip() or '-').splitlines()[0][:300]}"
    found = [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]
    return [[str(each.dtype), list(each.shape), each.device.type] for each in found]


if __name__ == "__main__":
    main()
