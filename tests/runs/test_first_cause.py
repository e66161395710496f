"""What a log may take for its first cause and is not, and errors that are no one's signature: small logs of each kind.

``logs/first_cause/labels.jsonl`` says of each log what failed and where it is from. The logs are written after the
real form, or shortened from public ones, with home folders replaced. ``says``: words that the explanation must have;
``never``: words of what only looks like the cause; ``plain`` as in ``test_complete_logs.py``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ranksafe.runs.diagnosis.diagnose import diagnose
from ranksafe.runs.explain.signatures import match
from ranksafe.runs.explain.unlisted import UNKNOWN

_LOGS = Path(__file__).parent / "logs" / "first_cause"
_LABELS = [
    json.loads(line) for line in (_LOGS / "labels.jsonl").read_text(encoding="utf-8").splitlines()
]
_ADVICE = (
    *(
        "set_device",
        "find_unused",
        "same collectives",
        "NCCL_",
        "Every rank must",
        "sharded strategy",
    ),
    *("start one process per GPU", "device_map", "replica"),
)
_WITHOUT_REASON = ("exit-status", "launcher")


@pytest.mark.parametrize("label", _LABELS, ids=lambda label: label["log"])
def test_the_first_cause_is_named(label: dict[str, Any]) -> None:
    failures = diagnose((_LOGS / f"{label['log']}.log").read_text(encoding="utf-8"))
    if label["kind"] is None:
        assert failures == []
        return
    first, *others = failures
    name = Path(first.filename).name if first.filename else None
    assert (first.kind, first.rank, name, first.line) == (
        label["kind"],
        label["rank"],
        label["file"],
        label["line"],
    )
    assert first.root_cause
    assert not any(other.root_cause for other in others)
    for told in (first.explanation.en, first.explanation.zh_cn):
        assert told
        assert "{" not in told
        assert "[[" not in told
    assert first.explanation.en != UNKNOWN.en
    told = f"{first.message}\n{first.explanation.en}"
    assert [words for words in label["says"] if words not in told] == []
    assert [words for words in label["never"] if words in told] == []
    if label["plain"]:
        assert [words for words in _ADVICE if words in told] == []
    if first.kind in _WITHOUT_REASON:
        assert first.excerpt


def test_every_log_is_labelled_once() -> None:
    names = sorted(path.stem for path in _LOGS.glob("*.log"))
    assert names == sorted(label["log"] for label in _LABELS)


_MESSAGES = [
    (
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (16x96 and 64x10)",
        "shape-mismatch",
        ["64", "96"],
    ),
    (
        "RuntimeError: size mismatch, m1: [16 x 96], m2: [64 x 10]",
        "shape-mismatch",
        ["16 x 96", "64 x 10"],
    ),
    (
        "RuntimeError: Sizes of tensors must match except in dimension 1. Expected size 4 but got size 3 for tensor "
        "number 1 in the list.",
        "shape-mismatch",
        ["4", "3"],
    ),
    (
        "RuntimeError: stack expects each tensor to be equal size, but got [3, 5] at entry 0 and [3, 6] at entry 1",
        "shape-mismatch",
        ["[3, 5]", "[3, 6]"],
    ),
    (
        "ValueError: Expected input batch_size (8) to match target batch_size (4).",
        "shape-mismatch",
        ["8", "4"],
    ),
    (
        "ValueError: Target size (torch.Size([4])) must be the same as input size (torch.Size([4, 1]))",
        "shape-mismatch",
        ["torch.Size([4, 1])"],
    ),
    (
        "RuntimeError: Given groups=1, weight of size [8, 3, 3, 3], expected input[2, 1, 9, 9] to have 3 channels, "
        "but got 1 channels instead",
        "shape-mismatch",
        ["[8, 3, 3, 3]", "[2, 1, 9, 9]"],
    ),
    (
        "RuntimeError: shape '[4, -1]' is invalid for input of size 7",
        "shape-mismatch",
        ["[4, -1]", "7"],
    ),
    (
        "ValueError: operands could not be broadcast together with shapes (65,) (64,) ",
        "shape-mismatch",
        ["(65,) (64,)"],
    ),
    (
        "RuntimeError: The expanded size of the tensor (4) must match the existing size (5) at non-singleton "
        "dimension 0.  Target sizes: [4].  Tensor sizes: [5]",
        "shape-mismatch",
        ["4", "5"],
    ),
    (
        "RuntimeError: Input type (torch.cuda.HalfTensor) and weight type (torch.FloatTensor) should be the same",
        "dtype-mismatch",
        ["torch.cuda.HalfTensor"],
    ),
    (
        "RuntimeError: \"addmm_impl_cpu_\" not implemented for 'Half'",
        "dtype-mismatch",
        ["addmm_impl_cpu_", "Half"],
    ),
    ("IndexError: index out of range in self", "index-out-of-range", ["embedding"]),
    ("IndexError: Target 10 is out of bounds.", "index-out-of-range", ["10"]),
    (
        "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn",
        "no-gradient",
        ["backward"],
    ),
    (
        "RuntimeError: Trying to backward through the graph a second time (or directly access saved tensors after "
        "they have already been freed).",
        "backward-twice",
        ["backward"],
    ),
    (
        "TypeError: can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
        "memory first.",
        "numpy-of-a-tensor",
        ["cuda:0"],
    ),
    ("NotImplementedError: Cannot copy out of meta tensor; no data!", "meta-tensor", ["to_empty"]),
    ("ValueError: Attempting to unscale FP16 gradients.", "mixed-precision", ["autocast"]),
    (
        "RuntimeError: Function 'MulBackward0' returned nan values in its 0th output.",
        "not-finite",
        ["MulBackward0"],
    ),
    (
        "ValueError: num_samples should be a positive integer value, but got num_samples=0",
        "empty-data",
        [],
    ),
    (
        'RuntimeError: Error(s) in loading state_dict for Net:\n\tMissing key(s) in state_dict: "fc.weight". ',
        "checkpoint-mismatch",
        ["Net", '"fc.weight"'],
    ),
    (
        "ValueError: loaded state dict contains a parameter group that doesn't match the size of optimizer's group",
        "checkpoint-mismatch",
        [],
    ),
    (
        "safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge",
        "unreadable-file",
        ["HeaderTooLarge"],
    ),
    ("_pickle.UnpicklingError: invalid load key, 'v'.", "unreadable-file", ["Git LFS"]),
    (
        "_pickle.UnpicklingError: Weights only load failed. In PyTorch 2.6, we changed",
        "unreadable-file",
        ["2.6"],
    ),
    (
        "PIL.UnidentifiedImageError: cannot identify image file '/d/a.jpg'",
        "unreadable-file",
        ["/d/a.jpg"],
    ),
    (
        "OSError: ./out/last is not a local folder and is not a valid model identifier listed on "
        "'https://huggingface.co/models'",
        "model-not-found",
        ["./out/last"],
    ),
    (
        "OSError: ./out does not appear to have a file named config.json. Checkout",
        "model-not-found",
        ["config.json"],
    ),
    (
        "datasets.exceptions.DatasetNotFoundError: Dataset 'a/b' doesn't exist on the Hub or cannot be accessed.",
        "data-not-found",
        [],
    ),
    (
        "ValueError: Asking to pad but the tokenizer does not have a padding token. Please select a token",
        "tokenizer",
        ["pad_token"],
    ),
    (
        "ValueError: Unable to create tensor, you should probably activate truncation and/or padding with",
        "tokenizer",
        [],
    ),
    (
        "AssertionError: Check batch related parameters. train_batch_size is not equal to micro_batch_per_gpu * "
        "gradient_acc_step * world_size 256 != 4 * 8 * 1",
        "deepspeed-settings",
        ["256", "4", "8"],
    ),
    (
        "deepspeed.ops.op_builder.builder.CUDAMismatchException: >- DeepSpeed Op Builder: Installed CUDA version 11.6 "
        "does not match the version torch was compiled with 11.7, unable to compile cuda/cpp extensions",
        "cuda-build-mismatch",
        ["11.6", "11.7"],
    ),
    (
        "RuntimeError: The detected CUDA version (12.4) mismatches the version that was used to compile\nPyTorch "
        "(11.8). Please make sure to use the same CUDA versions.",
        "cuda-build-mismatch",
        ["12.4", "11.8"],
    ),
    (
        "OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install root.",
        "missing-cuda-toolkit",
        ["CUDA_HOME"],
    ),
    ("RuntimeError: Error building extension 'cpu_adam'", "extension-not-built", ["cpu_adam"]),
    (
        "ValueError: Some specified arguments are not used by the HfArgumentParser: ['--lr', '3']",
        "trainer-settings",
        ["--lr"],
    ),
    (
        "ImportError: FlashAttention2 has been toggled on, but it cannot be used due to the following error: the "
        "package flash_attn seems to be not installed.",
        "attention-not-available",
        ["flash_attn"],
    ),
    ("RuntimeError: Tensors must be CUDA and dense", "no-backend-for-device", ["CPU"]),
    (
        "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace "
        "operation: [torch.FloatTensor [4]] is at version 2; expected version 1 instead.",
        "modified-in-place",
        ["broadcast_buffers=False"],
    ),
    ("RuntimeError: CUDA error: no CUDA-capable device is detected", "no-cuda", []),
    ("RuntimeError: can't start new thread", "too-many-processes", ["ulimit -u"]),
    (
        "RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED",
        "cuda-library-error",
        ["CUDNN_STATUS_EXECUTION_FAILED", "CUDA_LAUNCH_BLOCKING=1"],
    ),
    ("omegaconf.errors.ConfigAttributeError: Key 'lr' is not in struct", "configuration", ["lr"]),
    (
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for Settings\nlr\n  Field required",
        "configuration",
        ["Settings", "lr"],
    ),
]


@pytest.mark.parametrize(("text", "kind", "facts"), _MESSAGES, ids=lambda each: str(each)[:40])
def test_an_ordinary_message_is_explained_with_its_facts(
    text: str, kind: str, facts: list[str]
) -> None:
    known = match(text)
    assert known is not None
    assert known[0].kind == kind
    assert [fact for fact in facts if fact not in known[1].en] == []
    assert [fact for fact in facts if fact not in known[1].zh_cn] == []


_OWN_WORDS = (
    "KeyError: 'label'",
    "AttributeError: 'NoneType' object has no attribute 'shape'",
    "AttributeError: 'Config' object has no attribute 'width'",
    "TypeError: 'NoneType' object is not iterable",
    "TypeError: Net.__init__() missing 1 required positional argument: 'width'",
    "TypeError: step() takes 1 positional argument but 2 were given",
    "TypeError: unsupported operand type(s) for +: 'int' and 'str'",
    "TypeError: Object of type Tensor is not JSON serializable",
    "ValueError: not enough values to unpack (expected 3, got 2)",
    "ValueError: could not convert string to float: 'n/a'",
    "IndexError: list index out of range",
    "IndexError: index 5 is out of bounds for axis 0 with size 5",
    "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
    "UnicodeDecodeError: 'utf-8' codec can't decode byte 0x89 in position 0",
)


@pytest.mark.parametrize("last", _OWN_WORDS, ids=lambda each: each[:40])
def test_pythons_own_errors_are_told_in_their_own_words(last: str) -> None:
    log = (
        'Traceback (most recent call last):\n  File "/w/train.py", line 9, in <module>\n    step(batch)\n'
        f"{last}\n"
    )
    failure = diagnose(log)[0]
    assert failure.kind == "exception"
    assert failure.line == 9
    assert failure.message == last.removeprefix("json.decoder.")
    assert failure.explanation.en != UNKNOWN.en
    assert [words for words in _ADVICE if words in failure.explanation.en] == []


def test_the_package_that_raised_is_named() -> None:
    log = (
        'Traceback (most recent call last):\n  File "/w/train.py", line 9, in <module>\n    fit(model)\n'
        '  File "/opt/lib/python3.11/site-packages/some_package/fit.py", line 3, in fit\n    raise OddError(why)\n'
        "some_package.OddError: three is no even number\n"
    )
    failure = diagnose(log)[0]
    assert (failure.filename, failure.line) == ("/w/train.py", 9)
    assert "inside some_package (fit.py:3 in fit), called from this line" in failure.explanation.en
