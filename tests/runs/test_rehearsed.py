"""How a rehearsal ended: the script's failures, silent ones, and the limits of the simulation are told apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ranksafe.runs.explain import explain
from ranksafe.runs.explain.evidence import load_evidence
from ranksafe.runs.explain.locate import UserCode
from ranksafe.runs.explain.silent import with_silent_failures
from ranksafe.runs.model import Outcome
from ranksafe.runs.rehearsals.verdict import NOT_SIMULATED, Verdict, judged, load_rehearsal

USER_FILE = "/home/user/train.py"
OUR_FILE = "/opt/ranksafe/rehearsal/inject/ranksafe_rehearsal/communication.py"
_USER_CODE = UserCode([Path("/home/user")], Path("/home/user"))


class RunFolder:
    """A run's folder as the processes of a rehearsal leave it."""

    def __init__(self, path: Path, offline: bool = False) -> None:
        self.path = path
        self._write("rehearsal.json", {"offline": offline, "extra": {}})
        self.end()

    def _write(self, name: str, *entries: dict[str, Any]) -> None:
        with (self.path / name).open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries)

    def end(self, status: str = "exited", returncode: int = 1) -> None:
        (self.path / "supervisor.json").unlink(missing_ok=True)
        self._write("supervisor.json", {"status": status, "returncode": returncode})

    def rank(self, number: int, *events: dict[str, Any]) -> None:
        start = {"event": "start", "local_rank": number, "world_size": 2, "host": "h", "pid": 7}
        self._write(f"rank{number}.jsonl", {**start, "time": 1.0}, *events)

    def journal(self, *events: dict[str, Any]) -> None:
        self._write("rehearsal-7.jsonl", *events)

    def verdict(self, language: Any = "en") -> Verdict:
        evidence = load_evidence(self.path, 2)
        failures, _ = explain(evidence, _USER_CODE, language)
        failures = with_silent_failures(failures, evidence, _USER_CODE, language)
        failed = evidence.returncode != 0
        outcome = Outcome.FAILED if failed else Outcome.SUCCEEDED
        if failures and not failed:
            outcome = Outcome.SILENT_FAILURE
        rehearsal = load_rehearsal(self.path)
        assert rehearsal is not None
        return judged(rehearsal, evidence, outcome, failures, language)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path)


def _raised(kind: str, message: str, time: float = 2.0, **more: Any) -> dict[str, Any]:
    exception = {"type": kind, "message": message, "frames": _frames(), **more}
    return {"event": "exception", "time": time, "exception": exception}


def _frames(*more: str) -> list[dict[str, Any]]:
    files = [USER_FILE, "/env/site-packages/torch/nn/functional.py", *more]
    return [{"file": file, "line": 5, "function": "f"} for file in files]


_LIMIT = {
    "event": "limit",
    "kind": "missing-function",
    "what": "_cuda_graph",
    "rank": 0,
    "time": 1.5,
    "message": {"en": "`_cuda_graph` is not simulated", "zh_cn": "模拟设备不支持 `_cuda_graph`"},
}


def test_a_limit_is_an_outcome_of_its_own_at_the_users_line(folder: RunFolder) -> None:
    text = "ranksafe simulation limit: `_cuda_graph` is not simulated"
    folder.rank(0, _raised("SimulationLimit", text))
    folder.rank(1, _raised("RuntimeError", "Connection closed by peer [127.0.0.1]:1", 1.9))
    folder.journal(_LIMIT)
    verdict = folder.verdict("zh-cn")
    assert verdict.outcome is Outcome.SIMULATION_LIMIT
    assert verdict.failures == []
    limit = verdict.simulation_limit
    assert limit is not None
    assert (limit.kind, limit.message) == ("missing-function", "模拟设备不支持 `_cuda_graph`")
    assert (limit.filename, limit.line, limit.rank) == (USER_FILE, 5, 0)


@pytest.mark.parametrize("relation", ["cause", "context"])
def test_what_a_limit_became_is_a_limit_too(folder: RunFolder, relation: str) -> None:
    text = "ranksafe simulation limit: aten::foo\nException raised from f at x.cpp:1 (most"
    inner = {"type": "NotImplementedError", "message": text, "frames": _frames()}
    folder.rank(0, _raised("RuntimeError", "could not train", **{relation: inner}))
    limit = folder.verdict().simulation_limit
    assert limit is not None
    assert (limit.kind, limit.message) == ("missing-kernel", "aten::foo")


_TIMED_OUT = "[x/unbound_buffer.cc:78] Timed out waiting 5000ms for recv operation to complete"


@pytest.mark.parametrize(
    ("inside", "ended", "outcome"),
    [
        ([], False, Outcome.SIMULATION_LIMIT),
        (["/env/torch/distributed/distributed_c10d.py"], False, Outcome.FAILED),
        ([], True, Outcome.FAILED),
    ],
    ids=["at work", "waiting elsewhere", "ended"],
)
def test_a_time_limit_of_the_script_that_a_slow_rank_missed_accuses_nobody(
    folder: RunFolder, inside: list[str], ended: bool, outcome: Outcome
) -> None:
    end = [{"event": "exit", "time": 6.0}] if ended else []
    folder.rank(0, *end)
    folder._write("rank0.beat", {"time": 6.5, "frames": _frames(*inside)})
    folder.rank(1, _raised("RuntimeError", _TIMED_OUT, 7.0))
    verdict = folder.verdict()
    assert verdict.outcome is outcome
    limit = verdict.simulation_limit
    assert (limit.kind if limit else None) == (
        "own-time-limit" if outcome is Outcome.SIMULATION_LIMIT else None
    )


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("ModuleNotFoundError: No module named 'flash_attn'", "missing-package"),
        (
            "ImportError: Using `bitsandbytes` 4-bit quantization requires bitsandbytes: `pip install -U bitsandbytes>=0.46.1`",
            "missing-package",
        ),
        ("OSError: libcublas.so.12: cannot open shared object file: No such", "missing-package"),
        ("RuntimeError: \"addmv_impl_cpu\" not implemented for 'Half'", "missing-kernel"),
        ("NotImplementedError: \"median_cpu\" not implemented for 'Bool'", "missing-kernel"),
        ("NotImplementedError: \"never_measured_cpu\" not implemented for 'Int'", "missing-kernel"),
        ("RuntimeError: string pointer is null", "missing-kernel"),
        ("RuntimeError: MKL FFT doesn't support tensors of type: Half", "missing-kernel"),
        ("RuntimeError: nansum on CPU does not support complex inputs", "missing-kernel"),
        ("EOFError: EOF when reading a line", "no-terminal"),
        (
            "NotImplementedError: Could not run 'aten::x' with arguments from the 'CUDA' backend.",
            "missing-kernel",
        ),
        ("OSError: [Errno 28] No space left on device: 'out/model.bin'", "disk"),
        ("RuntimeError: [enforce fail at alloc_cpu.cpp:118] . DefaultCPUAllocator: can't allocate memory", "host-memory"),
        ("InductorError: RuntimeError: 0 active drivers ([]).", "compiler"),
    ],
)  # fmt: skip
def test_what_only_this_machine_lacks_is_a_limit(folder: RunFolder, text: str, kind: str) -> None:
    name, _, message = text.partition(": ")
    folder.rank(0, _raised(name, message))
    verdict = folder.verdict()
    assert verdict.outcome is Outcome.SIMULATION_LIMIT
    assert verdict.simulation_limit is not None
    assert verdict.simulation_limit.kind == kind


@pytest.mark.parametrize(
    "text",
    [
        "ModuleNotFoundError: No module named 'my_package'",
        "RuntimeError: chunk expects at least a 1-dimensional tensor",
        "RuntimeError: \"binary_cross_entropy\" not implemented for 'Long'",
        "NotImplementedError: \"gcd_cpu\" not implemented for 'Double'",
        "RuntimeError: Expected all tensors to be on the same device, but got weight is on cpu, different from cuda:0",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has ...",
        "ConnectionError: the user's own service",
    ],
)
def test_the_scripts_own_errors_stay_failures(folder: RunFolder, text: str) -> None:
    name, _, message = text.partition(": ")
    folder.rank(0, _raised(name, message))
    verdict = folder.verdict()
    assert verdict.outcome is Outcome.FAILED
    assert verdict.simulation_limit is None
    assert verdict.failures[0].line == 5


def test_without_a_network_a_download_is_a_limit(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, offline=True)
    folder.rank(0, _raised("OSError", "We couldn't connect to 'https://huggingface.co' to load"))
    limit = folder.verdict().simulation_limit
    assert limit is not None
    assert limit.kind == "network"


def test_a_run_that_outgrew_the_memory_ended_at_a_limit_whatever_its_ranks_say(
    folder: RunFolder,
) -> None:
    folder.rank(0, _raised("RuntimeError", "Connection closed by peer [127.0.0.1]:1"))
    folder.rank(1)
    message = {"en": "the rehearsal held 9 GiB", "zh_cn": "预演占用了 9 GiB"}
    folder.journal({"event": "limit", "kind": "host-memory", "message": message, "time": 1.0})
    limit = folder.verdict().simulation_limit
    assert limit is not None
    assert (limit.kind, limit.message) == ("host-memory", "the rehearsal held 9 GiB")


def test_time_that_ran_out_while_every_rank_computed_is_a_limit(folder: RunFolder) -> None:
    _timed_out(folder, "/env/site-packages/torch/nn/functional.py", USER_FILE)
    verdict = folder.verdict()
    assert verdict.outcome is Outcome.SIMULATION_LIMIT
    assert verdict.simulation_limit is not None
    assert (verdict.simulation_limit.kind, verdict.simulation_limit.line) == ("time", 5)


def test_time_that_ran_out_while_ranks_waited_for_each_other_is_the_scripts(
    folder: RunFolder,
) -> None:
    _timed_out(folder, "/env/site-packages/torch/distributed/distributed_c10d.py", USER_FILE)
    verdict = folder.verdict()
    assert (verdict.outcome, verdict.simulation_limit) == (Outcome.FAILED, None)
    assert verdict.failures[0].rank == 1


def test_ranks_that_wait_at_the_same_line_when_time_is_over_are_slow(folder: RunFolder) -> None:
    _timed_out(folder, *["/env/site-packages/torch/autograd/graph.py"] * 2)
    verdict = folder.verdict()
    assert verdict.outcome is Outcome.SIMULATION_LIMIT
    assert verdict.simulation_limit is not None
    assert verdict.simulation_limit.kind == "time"


def test_a_rank_that_ended_leaves_the_others_waiting_at_one_line(folder: RunFolder) -> None:
    _timed_out(folder, *["/env/site-packages/torch/distributed/distributed_c10d.py"] * 2)
    folder.rank(2, {"event": "exit", "clean": True, "time": 1.5})
    beat = (folder.path / "rank0.beat").read_text()
    (folder.path / "rank2.beat").write_text(beat)
    assert folder.verdict().outcome is Outcome.FAILED


def _timed_out(folder: RunFolder, *innermost: str) -> None:
    for number, file in enumerate(innermost):
        folder.rank(number)
        line = 9 if file == USER_FILE else 5
        frames = [*_frames()[:1], {"file": file, "line": line, "function": "g"}]
        beat = {"time": 2.0, "frames": frames}
        (folder.path / f"rank{number}.beat").write_text(json.dumps(beat))
    folder.end("timed-out", returncode=-15)


def test_our_own_frames_are_not_shown(folder: RunFolder) -> None:
    error = _raised("RuntimeError", "chunk expects at least a 1-dimensional tensor")
    error["exception"]["frames"] = _frames(OUR_FILE)
    folder.rank(0, error)
    frames = folder.verdict().failures[0].frames
    assert [frame.filename for frame in frames] == [each["file"] for each in _frames()]


def _suspicion(line: int = 9) -> dict[str, Any]:
    return {
        "event": "silent-failure",
        "kind": "idle-replicas",
        "code": "RS304",
        "message": {"en": "replica 3 got no rows", "zh_cn": "副本 3 没有收到数据"},
        "frames": [{"file": USER_FILE, "line": line, "function": "f"}, *_frames(OUR_FILE)[1:]],
        "time": 2.0,
    }


def test_what_detectors_saw_is_a_silent_failure_once_for_all_ranks(folder: RunFolder) -> None:
    folder.end(returncode=0)
    end = {"event": "exit", "clean": True, "time": 3.0}
    folder.rank(0, _suspicion(), _suspicion(), _suspicion(line=12), end)
    folder.rank(1, _suspicion(), end)
    verdict = folder.verdict("zh-cn")
    assert verdict.outcome is Outcome.SILENT_FAILURE
    assert [(each.code, each.line, each.rank) for each in verdict.failures] == [
        ("RS304", 9, 0),
        ("RS304", 12, 0),
    ]
    assert all(each.root_cause for each in verdict.failures)
    assert verdict.failures[0].message == "副本 3 没有收到数据"
    assert NOT_SIMULATED in verdict.limits


def test_ranks_that_parted_explain_why_all_waited(folder: RunFolder) -> None:
    parted = {**_suspicion(), "kind": "collective-mismatch", "code": "RS401"}
    lost = _raised("RuntimeError", "Connection closed by peer [127.0.0.1]:1")
    folder.rank(0, lost)
    folder.rank(1, parted, lost)
    failures = folder.verdict().failures
    assert [(each.kind, each.root_cause) for each in failures] == [
        ("collective-mismatch", True),
        ("peer-lost", False),
    ]


def test_a_rank_that_was_elsewhere_outranks_the_collectives_that_missed_it(
    folder: RunFolder,
) -> None:
    _timed_out(folder, "/env/site-packages/torch/distributed/distributed_c10d.py", USER_FILE)
    parted = {**_suspicion(), "kind": "collective-mismatch"}
    folder.rank(2, parted, {"event": "exit", "clean": True, "time": 1.5})
    assert [(each.kind, each.root_cause) for each in folder.verdict().failures] == [
        ("time-limit", True),
        ("time-limit", False),
        ("collective-mismatch", False),
    ]


def test_a_silent_failure_seen_before_a_limit_counts_more(folder: RunFolder) -> None:
    limit = _raised("SimulationLimit", "ranksafe simulation limit: aten::foo")
    folder.rank(0, _suspicion(), limit)
    verdict = folder.verdict()
    assert verdict.outcome is Outcome.SILENT_FAILURE
    assert [(each.kind, each.root_cause) for each in verdict.failures] == [("idle-replicas", True)]
    assert verdict.simulation_limit is not None


def test_a_passed_rehearsal_says_what_it_was_and_what_it_could_not_show(folder: RunFolder) -> None:
    folder.end(returncode=0)
    folder.rank(0, {"event": "exit", "clean": True, "time": 3.0})
    shrunk = {"event": "modified", "time": 1.0, "message": {"en": "2 layers", "zh_cn": "2 层"}}
    gone = {"event": "unavailable", "time": 1.2, "message": {"en": "no org/model", "zh_cn": "无"}}
    folder.journal(shrunk, shrunk, gone, _LIMIT, _LIMIT, {"event": "agent-problem", "text": "x"})
    verdict = folder.verdict()
    assert verdict.outcome is Outcome.SUCCEEDED
    assert [each.en for each in verdict.modified] == ["2 layers"]
    said = [each.en for each in verdict.limits]
    assert said[:2] == [NOT_SIMULATED.en, "no org/model"]
    assert len(said) == 3
    assert "`_cuda_graph` is not simulated" in said[2]


def test_a_refused_connection_that_a_library_words_anew_is_one(folder: RunFolder) -> None:
    refused = "there is no network in a rehearsal: example.org cannot be reached"
    folder.journal(
        {"event": "unavailable", "time": 1.2, "message": {"en": refused, "zh_cn": "无网络"}}
    )
    words = f"Max retries (Caused by NoNetwork('ranksafe simulation limit: {refused}'))"
    folder.rank(0, _raised("RuntimeError", words))
    verdict = folder.verdict()
    assert verdict.simulation_limit is not None
    assert verdict.simulation_limit.kind == "network"
    assert verdict.simulation_limit.message == refused


def test_an_ordinary_run_is_not_judged_by_this(tmp_path: Path) -> None:
    assert load_rehearsal(tmp_path) is None
