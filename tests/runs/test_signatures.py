"""The table of known failures: right kind, right rule, complete sentences."""

from __future__ import annotations

import re

import pytest
from ranksafe.runs.explain.signatures import SIGNATURES, match
from ranksafe.runs.explain.signatures.signature import Signature
from ranksafe.runs.model import Frame

_USER = "/home/user/train.py"


def _frames(*places: str) -> tuple[Frame, ...]:
    return tuple(
        Frame(name, 1, function) for name, function in (place.rsplit(":", 1) for place in places)
    )


def _user(function: str, source: str = "") -> Frame:
    return Frame(_USER, 1, function, source, in_user_code=True)


_ZERO_DIM = "RuntimeError: chunk expects at least a 1-dimensional tensor"
_SIZES = "RuntimeError: The size of tensor a (2) must match the size of tensor b (4) at non-singleton dimension 0"
_DTENSOR = "RuntimeError: aten.cat.default got mixed torch.Tensor and DTensor, need to convert"
_BATCH_NORM = (
    "ValueError: Expected more than 1 value per channel when training, got input size [1, 16]"
)
_CASES = [
    (
        _ZERO_DIM,
        _frames("transformers/trainer.py:training_step", "nn/parallel/scatter_gather.py:scatter"),
        None,
        "RS101",
    ),
    (
        _ZERO_DIM,
        _frames("transformers/trainer.py:training_step"),
        _user("compute_loss", "model(**x)"),
        "RS501",
    ),
    (_ZERO_DIM, _frames("nn/parallel/scatter_gather.py:scatter"), _user("<module>"), "RS505"),
    (_SIZES, _frames("trl/trainer/sft_trainer.py:compute_loss"), _user("<module>"), "RS101"),
    (_SIZES, _frames("transformers/trainer.py:training_step"), _user("compute_loss"), "RS506"),
    ("ValueError: SFTTrainer does not support `nn.DataParallel`.", (), None, "RS101"),
    (_DTENSOR, _frames("torch/distributed/utils.py:_sync_params_and_buffers"), None, "RS201"),
    (_DTENSOR, _frames("torch/distributed/fsdp/x.py:f"), None, None),
    ("RuntimeError: found no DeviceMesh from dtensor args", (), None, "RS201"),
    (
        "NotImplementedError: c10d.broadcast_.default does not have a sharding strategy",
        (),
        None,
        "RS201",
    ),
    (
        "ValueError: Model contains `DTensor` parameters, which is incompatible with DDP",
        (),
        None,
        "RS201",
    ),
    (
        "ValueError: You can't train a model that has been loaded with `device_map='auto'` in any distributed mode.",
        (),
        None,
        "RS201",
    ),
    ("ValueError: Model Foo does not have a tensor parallel plan.", (), None, "RS201"),
    (
        "ValueError: You can't train a model that has been loaded in 8-bit or 4-bit precision on a different device",
        (),
        None,
        "RS202",
    ),
    (
        "ValueError: One of pjit arguments: the global size of its dimension 0 should be divisible by 2, but it is "
        "equal to 5",
        (),
        None,
        "RS301",
    ),
    ("ValueError: Batch size 5 must be divisible by the number of devices 2", (), None, "RS301"),
    (
        f"ValueError: Caught ValueError in replica 1 on device 1.\nOriginal …\n{_BATCH_NORM}",
        (),
        None,
        "RS302",
    ),
    (_BATCH_NORM, (), None, "RS303"),
    (
        "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:1 and "
        "cuda:0!",
        _frames("nn/parallel/parallel_apply.py:_worker"),
        _user("forward", "mask = mask.cuda(0)"),
        "RS210",
    ),
    (
        "RuntimeError: a Tensor with 2 elements cannot be converted to Scalar",
        (),
        _user("compute_loss", "num_items_in_batch.item()"),
        "RS502",
    ),
    (
        "TypeError: get_batch_samples() takes 3 positional arguments but 4 were given",
        (),
        None,
        "RS503",
    ),
    (
        "TypeError: MyTrainer.compute_loss() got an unexpected keyword argument 'num_items_in_batch'",
        (),
        None,
        "RS504",
    ),
    ("StopIteration: Caught StopIteration in replica 0 on device 0.", (), None, "RS514"),
]
_KINDS = [
    (
        "RuntimeError: Expected to have finished reduction in the prior iteration before",
        "unused-parameters",
    ),
    (
        "RuntimeError: Expected to mark a variable ready only once. This error",
        "parameter-ready-twice",
    ),
    (
        "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE",
        "collective-timeout",
    ),
    (
        "RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running collective: "
        "CollectiveFingerPrint(SequenceNumber=1, OpType=ALLREDUCE), but Rank 1 is running collective: "
        "CollectiveFingerPrint(SequenceNumber=1, OpType=BARRIER).",
        "collective-mismatch",
    ),
    ("Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 10", "duplicate-gpu"),
    ("train.py: error: unrecognized arguments: --local-rank=0", "local-rank-argument"),
    (
        "ValueError: Default process group has not been initialized, please make",
        "process-group-not-initialized",
    ),
    ("ValueError: environment variable RANK expected, but not set", "started-without-launcher"),
    ("KeyError: 'LOCAL_RANK'", "started-without-launcher"),
    ("RuntimeError: Cannot re-initialize CUDA in forked subprocess.", "fork-after-cuda"),
    (
        "CUDA has been initialized before the `notebook_launcher` could create a forked subprocess",
        "fork-after-cuda",
    ),
    ("DistNetworkError: port: 29500, code: -98, name: EADDRINUSE", "port-in-use"),
    ("RuntimeError: process has finished its bootstrapping phase.", "spawn-without-main-guard"),
    (
        "RuntimeError: params[3] in this process with sizes [2, 4] appears not to match sizes of the same param in "
        "process 0.",
        "models-differ-between-ranks",
    ),
    (
        "AttributeError: 'DistributedDataParallel' object has no attribute 'generate'",
        "attribute-of-wrapped-model",
    ),
    (
        'RuntimeError: Unexpected key(s) in state_dict: "module.a.weight"',
        "wrapper-prefix-in-state-dict",
    ),
    (
        "RuntimeError: Gather got an input of invalid size: got [2], but expected [3]",
        "data-parallel-gather",
    ),
    (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.26 GiB",
        "cuda-out-of-memory",
    ),
    ("SyntaxError: invalid syntax", "user-error"),
    ("ModuleNotFoundError: No module named 'wandb'", "missing-module"),
    ("FileNotFoundError: [Errno 2] No such file or directory: 'data.json'", "user-error"),
]


@pytest.mark.parametrize(("text", "frames", "user_frame", "code"), _CASES)
def test_a_failure_carries_the_rule_that_predicts_it(
    text: str, frames: tuple[Frame, ...], user_frame: Frame | None, code: str | None
) -> None:
    known = match(text, frames, user_frame)
    assert known is not None
    assert known[0].code == code


@pytest.mark.parametrize(("text", "kind"), _KINDS)
def test_a_failure_has_its_kind(text: str, kind: str) -> None:
    known = match(text)
    assert known is not None
    assert known[0].kind == kind


def test_details_of_the_message_reach_the_explanation() -> None:
    known = match("Duplicate GPU detected : rank 3 and rank 5 both on CUDA device 10")
    assert known is not None
    assert known[1].en.startswith("Ranks 3 and 5 ")
    assert "3" in known[1].zh_cn


@pytest.mark.parametrize(
    "text", ["ValueError: x must be positive", "KeyError: 'label'", "epoch 3, loss 0.2"]
)
def test_what_is_not_known_stays_unknown(text: str) -> None:
    assert match(text) is None


@pytest.mark.parametrize("entry", SIGNATURES, ids=lambda entry: entry.kind)
def test_every_signature_is_complete(entry: Signature) -> None:
    """No placeholder without a value, not even where an optional part of the pattern is missing."""
    optional = set(entry.pattern.groupindex) - set(entry.defaults)
    filled = entry.explanation.filled(**dict.fromkeys(optional, "VALUE"), **entry.defaults)
    assert filled.en.endswith((".", "!"))
    assert filled.zh_cn.endswith(("。", "！"))
    assert re.search("[\u4e00-\u9fff]", filled.zh_cn)
    assert "{" not in re.sub(r'\{"[^}]*\}', "", filled.en)
    assert entry.code is None or re.fullmatch(r"RS\d{3}", entry.code)
