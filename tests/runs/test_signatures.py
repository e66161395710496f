"""The table of known failures: right kind, right rule, complete sentences."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import ranksafe.runs.explain.signatures
from ranksafe.runs.diagnosis.diagnose import diagnose
from ranksafe.runs.explain.evidence import Raised
from ranksafe.runs.explain.signatures import match, signatures, signatures_about
from ranksafe.runs.explain.signatures.signature import Signature
from ranksafe.runs.explain.unlisted import unlisted
from ranksafe.runs.log_text.excerpt import is_telling
from ranksafe.runs.model import Frame

_USER = "/home/user/train.py"
_WITHOUT_EXAMPLE, _WITHOUT_SOURCE = 96, 206
_FOLDER = Path(ranksafe.runs.explain.signatures.__file__).parent
_REGEX_PARSER = importlib.import_module(
    "re._parser" if sys.version_info >= (3, 11) else "sre_parse"
)


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
    ("RuntimeError: received 0 items of ancdata", "too-many-open-files"),
    ("Timeout: The file lock '/c/x.lock' could not be acquired.", "file-race"),
    ("OperationalError: (sqlite3.OperationalError) database is locked", "file-race"),
    (
        "RuntimeError: One of the subprocesses has abruptly died during map operation.To debug",
        "worker-died",
    ),
    (
        "BrokenProcessPool: A process in the process pool was terminated abruptly while the future",
        "worker-died",
    ),
    (
        "RuntimeError: unable to mmap 1024 bytes from file </d/x>: Cannot allocate memory (12)",
        "host-out-of-memory",
    ),
    ("ValueError: Global rank 3 is not part of group <object>", "group-rank"),
    (
        "ValueError: Invalid usage of tensors with different dtypesFound torch.float32 and",
        "collective-dtype-mismatch",
    ),
    (
        "RuntimeError: Expected to have finished reduction in the prior iteration before",
        "unused-parameters",
    ),
    (
        "Parameters which did not receive grad for rank 1: head.weight, head.bias",
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
    ("AssertionError: Invalid device id", "too-few-gpus"),
    ("FloatingPointError: Minimum loss scale reached (0.0001).", "not-finite"),
    (
        "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.",
        "not-finite",
    ),
    (
        "ImportError: This example requires a source install from HuggingFace diffusers (see\n`https://x/installation`),"
        " but the version found is 0.14.0.",
        "version-requirement",
    ),
    (
        "ValueError: You set `devices=4` in Lightning, but the number of tasks per node configured in SLURM "
        "`--ntasks-per-node=1` does not match. HINT: Set `devices=1`.",
        "launch-mismatch",
    ),
    (
        "RuntimeError: Lightning can't create new processes if CUDA is already initialized. Did you manually call",
        "fork-after-cuda",
    ),
    (
        "wandb.errors.CommError: Run initialization has timed out after 90.0 sec.",
        "tracker-lost",
    ),
    (
        'RuntimeError: NVML_SUCCESS == r INTERNAL ASSERT FAILED at "../c10/cuda/CUDACachingAllocator.cpp":838, please '
        "report a bug to PyTorch.",
        "cuda-out-of-memory",
    ),
    (
        'RuntimeError: expect_autograd_hooks_ INTERNAL ASSERT FAILED at "/pytorch/torch/csrc/distributed/c10d/'
        'reducer.cpp":1703, please report a bug to PyTorch.',
        "backward-without-forward",
    ),
    (
        "RuntimeError: aten._foreach_norm.Scalar got mixed torch.Tensor and DTensor, need to convert all torch.Tensor",
        "mixed-tensor-and-dtensor",
    ),
    (
        "srun: error: Unable to create step for job 123: More processors requested than permitted",
        "submit-rejected",
    ),
    (
        "srun: fatal: SLURM_MEM_PER_CPU, SLURM_MEM_PER_GPU, and SLURM_MEM_PER_NODE are mutually exclusive.",
        "submit-rejected",
    ),
    ("slurmstepd: error: execve(): train.py: Permission denied", "missing-launcher"),
    ("/usr/bin/python3: No module named torch.distributed.run", "missing-launcher"),
    ("/usr/bin/env: 'python': No such file or directory", "missing-launcher"),
    (
        "/home/me/run.sh: line 3: /home/me/venv/bin/activate: No such file or directory",
        "missing-launcher",
    ),
    (
        'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].',
        "gpu-not-ready",
    ),
    ("Unable to determine the device handle for GPU 0000:3B:00.0: Unknown Error", "gpu-hardware"),
    ("Failed to initialize NVML: Driver/library version mismatch", "driver-too-old"),
    ("terminate called after throwing an instance of 'std::bad_alloc'", "host-out-of-memory"),
    (
        "RuntimeError: cuDNN version incompatibility: PyTorch was compiled  against (8, 9, 2) but found runtime version (8, 5, 0).",
        "cuda-library-error",
    ),
    ("RuntimeError: Expected is_sm80 || is_sm90 to be true, but got false.", "gpu-architecture"),
    ("RuntimeError: HIP error: invalid device function", "gpu-architecture"),
    ("RuntimeError: CUDA error: an illegal instruction was encountered", "cuda-error"),
    ("Error invalid device function at line 224 in file /src/csrc/ops.hip", "gpu-architecture"),
    ("Error out of memory at line 380 in file /src/csrc/pythonInterface.cu", "cuda-error"),
    (
        "RuntimeError: device >= 0 && device < num_gpus INTERNAL ASSERT FAILED at x.cpp:51, please report a bug to PyTorch.",
        "too-few-gpus",
    ),
    ("RuntimeError: expected device cuda:1 but got device cuda:0", "device-mismatch"),
    ("RuntimeError: Tensor on device cuda:0 is not on the expected device meta!", "meta-tensor"),
    (
        "AssertionError: DeepSpeed requires --deepspeed_config to specify configuration file",
        "deepspeed-settings",
    ),
    ("RuntimeError: Unable to proceed, no GPU resources available", "too-few-gpus"),
    (
        "RuntimeError: Horovod has been shut down. This was caused by an exception on one of the ranks or an attempt",
        "peer-lost",
    ),
    ("RuntimeError: call aclnnMatmul failed, detail:EZ1001", "npu-error"),
    ("RuntimeError: [ERR02200] DIST call hccl api failed.", "collective-failed"),
    (
        "RuntimeError: Model replicas must have an equal number of parameters.",
        "models-differ-between-ranks",
    ),
    (
        "ConnectionError: HTTPConnectionPool(host='localhost', port=25077): Max retries exceeded with url: /api/log (Caused by NewConnectionError(\"Failed to establish a new connection: [Errno 111] Connection refused\"))",
        "server-unreachable",
    ),
    ("ValueError: API key must be 40 characters long, yours was 13", "missing-credentials"),
    ("AttributeError: 'Params4bit' object has no attribute 'absmax'", "fsdp-quantized"),
    (
        "bin/python3: symbol lookup error: /x/lib/libcudnn_cnn_infer.so.8: undefined symbol: _ZN15Trace, version libcudnn_ops_infer.so.8",
        "binary-mismatch",
    ),
    ("NCCL WARN Failed to initialize any NET plugin", "nccl-no-interface"),
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


@pytest.mark.parametrize("text", [each[0] for each in (*_CASES, *_KINDS)])
def test_a_known_message_is_looked_at_in_a_log(text: str) -> None:
    assert any(is_telling(line) for line in text.splitlines())


_EVERY = [
    row
    for path in sorted(_FOLDER.glob("*.json"))
    for row in signatures_about(path.stem)
    # What a row of these means is another message, or a clause, and no sentence.
    if path.stem not in ("elsewhere", "gpu_memory_already")
]


@pytest.mark.parametrize("entry", _EVERY, ids=lambda entry: entry.kind)
def test_every_signature_is_complete(entry: Signature) -> None:
    """No placeholder without a value, whichever optional parts of the pattern take part."""
    searched = (entry.pattern, entry.needs.printed, entry.needs.facts)
    groups = {name for each in searched if each is not None for name in each.groupindex}
    optional = {name for name in groups if f"[[{{{name}}}" in entry.explanation.en}
    optional |= set(re.findall(r"\{(\w+)\}", " ".join(_OPTIONAL.findall(entry.explanation.en))))
    for present in (set(groups), set(groups) - optional):
        filled = entry.explained(dict.fromkeys(present, "VALUE"))
        assert filled.en.endswith((".", "!"))
        assert filled.zh_cn.endswith(("。", "！"))
        assert re.search("[\u4e00-\u9fff]", filled.zh_cn)
        assert "{" not in re.sub(r'\{"[^}]*\}', "", filled.en)
        assert "[[" not in filled.en + filled.zh_cn
        assert "  " not in filled.en
    assert _OPTIONAL.findall(entry.explanation.en) == [] or "[[" in entry.explanation.zh_cn
    assert entry.code is None or re.fullmatch(r"RS\d{3}", entry.code)


@pytest.mark.parametrize("entry", _EVERY, ids=lambda entry: entry.kind)
def test_a_placeholder_outside_of_optional_parts_always_has_a_value(entry: Signature) -> None:
    needs = entry.needs
    searched = (entry.pattern, needs.frames, needs.own_line, needs.printed, needs.facts)
    certain = {name for each in searched if each is not None for name in _never_empty(each)}
    for words in (entry.explanation.en, entry.explanation.zh_cn):
        while _OPTIONAL.search(words):
            words = _OPTIONAL.sub("", words)
        assert set(re.findall(r"\{(\w+)\}", words)) <= certain


def _never_empty(pattern: re.Pattern[str]) -> set[str]:
    """The named groups that take part in every match, with at least one character."""
    parsed = _REGEX_PARSER.parse(pattern.pattern, pattern.flags & ~re.UNICODE)
    names = {number: name for name, number in parsed.state.groupdict.items()}

    def within(items: Iterable[tuple[Any, Any]]) -> set[str]:
        found: set[str] = set()
        for operator, operand in items:
            match str(operator):
                case "SUBPATTERN":
                    number, _, _, inner = operand
                    found |= within(inner)
                    if number in names and inner.getwidth()[0] > 0:
                        found.add(names[number])
                case "MAX_REPEAT" | "MIN_REPEAT":
                    least, _, inner = operand
                    found |= within(inner) if least > 0 else set()
                case "ASSERT":
                    found |= within(operand[1])
        return found

    return within(parsed)


def _with_log(*, example: bool) -> list[Signature]:
    found = ((each, each.example if example else each.counterexample) for each in signatures())
    return [each for each, log in found if log is not None and log.log]


@pytest.mark.parametrize(
    "entry",
    [each for each in signatures() if each.example and each.example.text],
    ids=lambda entry: entry.kind,
)
def test_a_signature_wins_on_its_own_example(entry: Signature) -> None:
    example = entry.example
    assert example is not None
    function, source = example.own_line.split(": ", 1) if example.own_line else ("", "")
    frames = _frames(example.frame) if example.frame else ()
    known = match(example.text, frames, _user(function, source) if function else None)
    assert known is not None
    assert known[0] is entry
    for told in (known[1].en, known[1].zh_cn):
        assert not re.search(r"\[\[|\{[a-z_]+\}", told)


@pytest.mark.parametrize("entry", _with_log(example=True), ids=lambda entry: entry.kind)
def test_a_signature_wins_on_its_log_and_shows_why(entry: Signature) -> None:
    assert entry.example is not None
    failure = diagnose(entry.example.log)[0]
    english, chinese = failure.explanation.en, failure.explanation.zh_cn
    assert failure.kind == entry.kind
    assert entry.explanation.en in english
    assert english.endswith(entry.action.en)
    assert entry.explanation.zh_cn in chinese
    assert chinese.endswith(entry.action.zh_cn)
    assert ("Probably" in english) == (entry.confidence == "likely")
    if entry.confidence is not None:
        shown = english.split("The log shows it: ")[1].removesuffix(f". {entry.action.en}")
        assert shown in chinese
        assert shown.split(":")[0] in entry.example.log


@pytest.mark.parametrize("entry", _with_log(example=False), ids=lambda entry: entry.kind)
def test_a_signature_is_silent_without_what_it_needs(entry: Signature) -> None:
    assert entry.counterexample is not None
    failure = diagnose(entry.counterexample.log)[0]
    assert entry.pattern.search(failure.message)
    assert entry.explanation.en not in failure.explanation.en
    assert entry.explanation.zh_cn not in failure.explanation.zh_cn


@pytest.mark.parametrize(
    "note",
    [*signatures_about("notes"), *signatures_about("notes_of_logs")],
    ids=lambda note: f"{note.kind} {note.source}",
)
def test_a_note_is_said_of_its_log(note: Signature) -> None:
    assert note.source
    assert note.example is not None
    failure = diagnose(note.example.log)[0]
    assert re.fullmatch(note.kind, failure.kind)
    for told, words in (
        (failure.explanation.en, note.explanation.en),
        (failure.explanation.zh_cn, note.explanation.zh_cn),
    ):
        said = re.escape(re.sub(r"\[\[.*?\]\]|\{\w+\}", "\0", words)).replace("\0", ".*")
        assert re.search(f"^{said}" if note.instead else f".{said}", told)


_OF_FACTS = ("extent", "gpu_memory_numbers", "other_ranks", "signals", "timeouts", "unlisted")


@pytest.mark.parametrize(
    "row",
    [row for subject in _OF_FACTS for row in signatures_about(subject) if row.example],
    ids=lambda row: row.example.log[:40],
)
def test_what_a_fact_means_is_said_of_its_log(row: Signature) -> None:
    assert row.example is not None
    for told, words in _beside_its_words(row, row.example.log):
        assert _longest_part(words) in told


def _beside_its_words(row: Signature, log: str) -> Iterator[tuple[str, str]]:
    """What is said of a log, and the row's words, in each language."""
    told = diagnose(log)[0].explanation
    yield told.en, row.explanation.en
    yield told.zh_cn, row.explanation.zh_cn


def _longest_part(words: str) -> str:
    """Of a row's words without the values: it may be a part of a longer sentence."""
    return max(re.split(_VALUES, words), key=len)[1:].rstrip(".。")


_OF_GPU_MEMORY = [
    row
    for subject in ("gpu_memory_already", "gpu_memory_numbers")
    for row in signatures_about(subject)
]


@pytest.mark.parametrize(
    "row", [row for row in _OF_GPU_MEMORY if row.counterexample], ids=lambda row: row.explanation.en
)
def test_no_remedy_is_told_that_the_run_rules_out(row: Signature) -> None:
    assert row.counterexample is not None
    for told, words in _beside_its_words(row, row.counterexample.log):
        assert _longest_part(words) not in told


@pytest.mark.parametrize(
    "row", signatures_about("gpu_memory_already"), ids=lambda row: row.explanation.en
)
def test_what_the_run_does_already_is_told_with_the_words_that_show_it(row: Signature) -> None:
    assert row.example is not None
    shown = None if row.needs.printed is None else row.needs.printed.search(row.example.log)
    assert (shown is None) == (row.needs.printed is None)
    for told, words in _beside_its_words(row, row.example.log):
        assert words.replace("{said}", shown["said"] if shown else "") in told
        assert "zeRO" not in told


@pytest.mark.parametrize(
    ("numbers", "unsaid"),
    [
        (("20.00 MiB", "23.68 GiB", "3.81 MiB", "23.67 GiB", "82.00 MiB"), "expandable_segments"),
        (("2.00 GiB", "79.35 GiB", "1.00 GiB", "20.38 GiB", "0 bytes"), "smaller batch"),
        (("2.00 GiB", "7.96 GiB", "1.00 GiB", "17179869184.00 GiB", "0 bytes"), "17179869184"),
    ],
)
def test_gpu_memory_that_makes_no_difference_is_not_counted_on(
    numbers: tuple[str, ...], unsaid: str
) -> None:
    asked, total, free, held, unused = numbers
    text = (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked}. GPU 0 has a total capacity of {total} "
        f"of which {free} is free. Process 77 has 58.00 GiB memory in use. Including non-PyTorch memory, this process "
        f"has {held} memory in use. Of the allocated memory 1.00 GiB is allocated by PyTorch, and {unused} is reserved "
        "by PyTorch but unallocated."
    )
    told = diagnose(text)[0].explanation
    assert unsaid not in told.en
    assert asked in told.en


def test_an_exception_without_frames_has_no_line() -> None:
    raised = Raised("ValueError", "too little", ())
    assert "no traceback" in unlisted(raised, raised).en
    rows = [row for subject in _OF_FACTS for row in signatures_about(subject)]
    assert [row.needs.facts for row in rows if row.example is None] == [
        re.compile(r"^(?P<type>\S+) without a traceback$", re.MULTILINE)
    ]


def test_what_needs_more_of_a_log_has_logs_with_it_and_without_it() -> None:
    both = {id(each) for each in _with_log(example=True)}
    both &= {id(each) for each in _with_log(example=False)}
    for entry in signatures():
        if entry.needs.printed or entry.confidence is not None:
            assert id(entry) in both, entry.kind


def test_what_the_data_lack_becomes_less() -> None:
    assert sum(each.example is None for each in signatures()) <= _WITHOUT_EXAMPLE
    assert sum(each.source is None for each in signatures()) <= _WITHOUT_SOURCE


def test_what_is_told_of_ranks_is_never_called_independent_of_them() -> None:
    plain = [entry.explanation.en for entry in signatures() if entry.plain]
    assert [told for told in plain if re.search(r"\branks?\b", told)] == []


@pytest.mark.parametrize(
    ("text", "kind", "facts"),
    [
        (
            "NCCL WARN Mismatched NCCL version detected : rank 1 version 22705 rank 0 version 22703",
            "nccl-version-skew",
            ["22705", "22703"],
        ),
        (
            "misc/shmutils.cc:132 NCCL WARN Error while creating shared memory segment /dev/shm/nccl-WU88OE "
            "(size 9637888), error: No space left on device (28)",
            "nccl-shared-memory",
            ["/dev/shm/nccl-WU88OE", "9637888"],
        ),
        (
            "[3] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device",
            "nccl-shared-memory",
            ["--shm-size"],
        ),
        ("Bootstrap : no socket interface found", "nccl-no-interface", ["NCCL_SOCKET_IFNAME"]),
        (
            "misc/ibvwrap.cc:187 NCCL WARN Call to ibv_modify_qp failed with error Network is unreachable",
            "nccl-infiniband",
            ["ibv_modify_qp", "Network is unreachable", "NCCL_IB_DISABLE=1"],
        ),
        (
            "NCCL WARN NET/IB : Got completion from peer 10.0.0.2<55921> with status=12 opcode=1 len=0 vendor err 129",
            "nccl-infiniband",
            ["10.0.0.2<55921>"],
        ),
        (
            "[12345.6] Memory cgroup out of memory: Killed process 4711 (python) total-vm:9kB, anon-rss:65536kB, x",
            "host-out-of-memory",
            ["4711", "65536"],
        ),
        (
            "RuntimeError: DataLoader worker (pid(s) 12, 13) exited unexpectedly",
            "worker-died",
            ["12, 13", "num_workers=0"],
        ),
        (
            "wandb: ERROR Error while calling W&B API: permission denied (<Response [401]>)",
            "missing-credentials",
            ["wandb login --relogin"],
        ),
        (
            "requests.exceptions.HTTPError: 401 Client Error: Unauthorized for url: https://huggingface.co/api/whoami-v2",
            "missing-credentials",
            ["https://huggingface.co/api/whoami-v2", "HF_TOKEN"],
        ),
        (
            "botocore.exceptions.ClientError: An error occurred (ExpiredToken) when calling the PutObject operation: x",
            "missing-credentials",
            ["ExpiredToken"],
        ),
        (
            "../aten/src/ATen/native/cuda/Loss.cu:250: nll_loss: block: [0,0,0], thread: [5,0,0] Assertion "
            "`t >= 0 && t < n_classes` failed.",
            "cuda-assert",
            ["CUDA_LAUNCH_BLOCKING=1"],
        ),
        (
            "ImportError: tokenizers>=0.21,<0.22 is required for a normal functioning of this module, but found "
            "tokenizers==0.20.3.",
            "version-requirement",
            ["tokenizers>=0.21", "tokenizers==0.20.3"],
        ),
    ],
)
def test_a_known_message_is_explained_with_its_facts(
    text: str, kind: str, facts: list[str]
) -> None:
    known = match(text, printed=True)
    assert known is not None
    assert known[0].kind == kind
    for fact in facts:
        assert fact in known[1].en
        assert fact in known[1].zh_cn


_PRINTED = (
    "RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running collective: "
    "CollectiveFingerPrint({}), but Rank 1 is running collective: CollectiveFingerPrint({}).Collectives differ in the "
    "following aspects: "
)
"""As torch 2.13.0 printed it with gloo on two ranks."""


def _print(op: str, shape: str, dtype: str = "Float", device: str = "cpu", number: int = 0) -> str:
    options = f"TensorOptions(dtype=float (default), device={device}, layout=Strided (default))"
    return (
        f"SequenceNumber={number}, OpType={op}, TensorShape=[{shape}], TensorDtypes={dtype}, "
        f"TensorDeviceTypes={options}"
    )


def _simulated(op: str, elements: int, dtype: str = "Float", number: int = 5) -> str:
    """As the simulated NCCL prints it."""
    return f"SequenceNumber={number}, OpType={op}, Elements={elements}, TensorDtypes={dtype}, ReduceOp=SUM"


@pytest.mark.parametrize(
    ("one", "two", "kind", "facts"),
    [
        (
            _simulated("ALLREDUCE", 4),
            _simulated("ALLREDUCE", 4, "Double"),
            "collective-dtype-mismatch",
            ["rank 0 has Float and rank 1 Double"],
        ),
        (
            _simulated("ALLREDUCE", 1),
            _simulated("ALLREDUCE", 11689512),
            "collective-shape-mismatch",
            ["of 1 and", "of 11689512", "more often"],
        ),
        (
            _simulated("ALLGATHER", 8),
            _simulated("ALLREDUCE", 8),
            "collective-mismatch",
            ["rank 0 is in ALLGATHER, rank 1 in ALLREDUCE"],
        ),
        (
            _print("_ALLGATHER_BASE", "13"),
            _print("_ALLGATHER_BASE", "12"),
            "collective-shape-mismatch",
            ["[13]", "[12]", "pad"],
        ),
        (
            _print("ALLGATHER", "3, 2"),
            _print("ALLGATHER", "4, 2"),
            "collective-shape-mismatch",
            ["[3, 2]", "[4, 2]"],
        ),
        (
            _print("ALLREDUCE", "4", number=7),
            _print("ALLREDUCE", "3", number=7),
            "collective-shape-mismatch",
            ["ALLREDUCE", "[4]", "[3]", "more often"],
        ),
        (
            _print("ALLREDUCE", "4"),
            _print("ALLREDUCE", "4", dtype="Double"),
            "collective-dtype-mismatch",
            ["Float", "Double"],
        ),
        (
            _print("ALLREDUCE", "4"),
            _print("ALLREDUCE", "4", device="cuda"),
            "collective-device-mismatch",
            ["on cpu", "on cuda"],
        ),
        (
            _print("BROADCAST", "4"),
            _print("ALLREDUCE", "4"),
            "collective-mismatch",
            ["rank 0 is in BROADCAST, rank 1 in ALLREDUCE", "branch"],
        ),
        (
            _print("ALLREDUCE", "4"),
            "SequenceNumber=0OpType=REDUCE",
            "collective-mismatch",
            ["rank 0 is in ALLREDUCE, rank 1 in another collective"],
        ),
        (
            "SequenceNumber=0OpType=BARRIER",
            "SequenceNumber=0OpType=GATHER",
            "collective-mismatch",
            ["rank 0 is in BARRIER, rank 1 in another collective"],
        ),
    ],
)
def test_what_differs_between_two_collectives_is_named(
    one: str, two: str, kind: str, facts: list[str]
) -> None:
    known = match(_PRINTED.format(one, two))
    assert known is not None
    assert known[0].kind == kind
    assert [fact for fact in facts if fact not in known[1].en] == []
    older = _PRINTED.format(*(re.sub(r"SequenceNumber=\d+,? ?", "", each) for each in (one, two)))
    found = match(older)
    assert found is not None
    assert found[0].kind == kind


@pytest.mark.parametrize(
    ("text", "frame", "kind", "said"),
    [
        (
            "AttributeError: module 'torch._C' has no attribute '_cuda_setDevice'",
            "torch/cuda/__init__.py:set_device",
            "no-cuda",
            "CPU-only",
        ),
        (
            "AssertionError: Torch not compiled with CUDA enabled",
            "torch/cuda/__init__.py:_lazy_init",
            "no-cuda",
            "CPU-only",
        ),
        (
            "AttributeError: module 'torch._C' has no attribute '_xpu_setDevice'",
            "torch/xpu/__init__.py:set_device",
            "no-accelerator-build",
            "xpu",
        ),
        (
            "AttributeError: module 'torch._C' has no attribute '_scatter'",
            "site-packages/x.py:f",
            "binary-mismatch",
            "Reinstall",
        ),
        (
            "RuntimeError: assigned grad has data of a different type",
            "/torch/distributed/fsdp/flat_param.py:_use_unsharded_grad_views",
            "mixed-dtypes-in-fsdp",
            "use_orig_params",
        ),
        (
            "RuntimeError: attempting to assign a gradient with dtype 'float' to a tensor with grad_dtype 'c10::Half'. x",
            "/torch/distributed/fsdp/_flat_param.py:x",
            "mixed-dtypes-in-fsdp",
            "float and c10::Half",
        ),
        (
            "RuntimeError: assigned grad has data of a different size",
            "/torch/distributed/fsdp/flat_param.py:x",
            "fsdp-gradient-size",
            "no_sync",
        ),
        (
            "TypeError: cannot pickle '_thread.lock' object",
            "/torch/distributed/distributed_c10d.py:_object_to_tensor",
            "cannot-pickle",
            "'_thread.lock' object",
        ),
        (
            "RuntimeError: Rank 1 successfully reached monitoredBarrier, but received errors while waiting for send/recv "
            "from rank 0. Please check rank 0 logs for faulty rank.",
            "/torch/distributed/distributed_c10d.py:monitored_barrier",
            "collective-timeout",
            "Rank 0's message",
        ),
        (
            "DistStoreError: Timed out waiting on barrier on rank 0, for key prefix: a (world_size=2, "
            "missing_ranks=[1 (host: n7)], timeout=300)",
            "/torch/distributed/elastic/utils/store.py:barrier",
            "collective-timeout",
            "1 (host: n7)",
        ),
        (
            "ValueError: host not found: Name or service not known",
            "/torch/distributed/rendezvous.py:_env_rendezvous_handler",
            "rendezvous-failed",
            "MASTER_ADDR",
        ),
    ],
)
def test_a_message_is_explained_by_where_it_was_raised(
    text: str, frame: str, kind: str, said: str
) -> None:
    known = match(text, _frames(frame))
    assert known is not None
    assert known[0].kind == kind
    assert said in known[1].en
    assert "misspelt" not in known[1].en.replace("misspelt name, and", "")


def test_of_very_many_unused_parameters_the_first_are_named() -> None:
    names = [f"head.{number}" for number in range(9)]
    text = f"Parameters which did not receive grad for rank 3: {', '.join(names)}"
    known = match(text)
    assert known is not None
    expected = f"On rank 3 {', '.join(names[:6])}, … had no part"
    assert known[1].en.startswith(expected)


@pytest.mark.parametrize(
    "text",
    [
        "FileExistsError: it is fine, going on",
        "loss 0.3, 2 broken pipes replaced",
        "write a README about connection timeouts",
        "val error: 0.25",
        "Permission denied, trying the next mirror",
        "downloading with at most 5 retries",
    ],
)
def test_common_words_in_a_log_are_no_failure(text: str) -> None:
    assert match(text, printed=True) is None


_VALUES = re.compile(r"\[\[.*?\]\]|\{\w+\}")
_OPTIONAL = re.compile(r"\[\[(.*?)\]\]")


def test_a_pipe_to_a_process_of_the_script_is_no_connection_between_ranks() -> None:
    text = "ConnectionResetError: [Errno 104] Connection reset by peer"
    own = match(text, _frames("lib/python3.11/multiprocessing/connection.py:_recv"))
    ranks = match(text, _frames("torch/distributed/distributed_c10d.py:all_reduce"))
    assert own is not None
    assert ranks is not None
    assert (own[0].kind, ranks[0].kind) == ("child-process-lost", "peer-lost")


def test_a_graph_of_gradients_fails_in_the_backward_of_ddp_alone() -> None:
    text = (
        "RuntimeError: a leaf Variable that requires grad is being used in an in-place operation."
    )
    inside = match(text, _frames("torch/autograd/graph.py:_engine_run_backward"))
    outside = match(text, _frames("train.py:main"))
    assert inside is not None
    assert inside[0].kind == "ddp-create-graph"
    assert outside is None
