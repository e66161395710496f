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
