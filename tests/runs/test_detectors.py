"""Silent failures: each detector on a program that goes wrong without an error, and on what is right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from .detector_runs import PROGRAMS, Detected, detect

pytestmark = pytest.mark.torch

Detect = Callable[..., Detected]


@pytest.fixture
def detected(torch_python: Path, tmp_path: Path) -> Detect:
    """Run a program on two CPU ranks under all detectors."""

    def run(program: str, *arguments: str, **options: object) -> Detected:
        found = detect(
            torch_python,
            tmp_path / "run",
            PROGRAMS / program,
            *arguments,
            **options,  # type: ignore[arg-type]
        )
        assert not found.problems
        return found

    return run


def test_a_rank_that_gloo_aborts_at_its_end_is_run_again(
    torch_python: Path, tmp_path: Path
) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import os, pathlib, sys\n"
        f"once = pathlib.Path({str(tmp_path / 'once')!r} + os.environ['RANK'])\n"
        "if not once.exists():\n"
        "    once.touch()\n"
        "    sys.stderr.write('terminate called without an active exception\\n')\n"
        "    sys.stderr.flush()\n"
        "    os.abort()\n",
        encoding="utf-8",
    )
    assert detect(torch_python, tmp_path / "run", script).returncodes == [0, 0]


WRONG = [
    ("same_samples.py", "wrong", "same-samples", "loader = DataLoader(", "# drawn here"),
    ("diverged_weights.py", "bypass", "diverged-weights", "outputs = model.module(", "# drawn"),
    ("diverged_weights.py", "unwrapped", "diverged-weights", "optimizer.step()", "# stepped here"),
    ("diverged_buffers.py", "wrong", "diverged-buffers", "def forward(", "# drawn here"),
    ("stale_optimizer.py", "wrong", "optimizer-without-gradients", "optimizer =", "# drawn here"),
    ("scaled_gradients.py", "wrong", "scaled-gradients", "dist.all_reduce(", "# drawn here"),
    ("random_choices.py", "split", "different-splits", "train, held_out =", "# split here"),
    ("random_choices.py", "epoch", "different-orders", "list(sampler)", "# ordered here"),
    ("idle_rank.py", "wrong", "idle-ranks", "dist.barrier()", "# waits here"),
    ("changed_in_flight.py", "send", "changed-in-flight", "work = dist.isend(", "# sent here"),
    ("changed_in_flight.py", "reduce", "changed-in-flight", "work = dist.all_r", "# summed here"),
    ("read_in_flight.py", "sum", "read-in-flight", "work = dist.all_reduce(", "# summed here"),
    ("read_in_flight.py", "part", "read-in-flight", "work = dist.all_gather_", "# gathered here"),
    ("read_in_flight.py", "weights", "read-in-flight", "work = dist.broadcast(", "# sent here"),
    ("read_in_flight.py", "half", "changed-in-flight", "dist.all_reduce(", "# halved here"),
]
IN_GATE = {
    ("random_choices.py", "split"),
    ("idle_rank.py", "wrong"),
    ("changed_in_flight.py", "send"),
}


@pytest.mark.parametrize(
    ("program", "kind_of_program", "kind", "begins", "ends"),
    [
        pytest.param(
            *case, marks=[] if case[:2] in IN_GATE else [pytest.mark.long], id="-".join(case[:2])
        )
        for case in WRONG
    ],
)
def test_what_goes_wrong_without_an_error_is_drawn_on_its_line(
    detected: Detect, program: str, kind_of_program: str, kind: str, begins: str, ends: str
) -> None:
    found = detected(program, kind_of_program)
    assert found.returncodes == [0, 0], found.stderr
    assert found.kinds == [kind]
    line = found.line_of(kind)
    assert line.startswith(begins)
    assert ends in line


def test_everything_that_is_right_is_silent(detected: Detect, tmp_path: Path) -> None:
    found = detected("everything_right.py", str(tmp_path / "output"))
    assert found.returncodes == [0, 0], found.stderr
    assert (tmp_path / "run" / "rank0.stdout").read_text().endswith("all right\n")
    assert found.failures == []


def test_files_that_every_rank_writes_are_told_by_path(detected: Detect, tmp_path: Path) -> None:
    found = detected("written_files.py", "wrong", str(tmp_path / "output"), mode="cheap")
    assert found.kinds == ["same-file-written", "same-file-written"]
    told = [
        (failure.message.split(" write ")[1].split(":")[0], failure.line)
        for failure in found.failures
    ]
    source = (PROGRAMS / "written_files.py").read_text(encoding="utf-8").splitlines()
    assert [(Path(path).name, source[(line or 0) - 1].split("# ")[1]) for path, line in told] == [
        ("model.pt", "checkpoint"),
        ("result.json", "text"),
    ]


def test_ranks_that_call_other_collectives_are_shown_with_both_lines(detected: Detect) -> None:
    found = detected("collective_order.py", "order", mode="cheap")
    assert found.kinds == ["collective-mismatch"]
    source = (PROGRAMS / "collective_order.py").read_text(encoding="utf-8").splitlines()
    one = next(number for number, line in enumerate(source, 1) if "# the one" in line)
    other = next(number for number, line in enumerate(source, 1) if "# the other" in line)
    assert found.failures[0].line == one
    assert found.failures[0].message == (
        f"collective 2: rank 0 calls all_reduce float32[4] at collective_order.py:{one}, "
        f"rank 1 calls broadcast float32[4] at collective_order.py:{other}"
    )


def test_a_collective_that_one_rank_lacks_is_drawn(detected: Detect) -> None:
    found = detected("collective_order.py", "count", mode="cheap")
    assert found.kinds == ["collective-mismatch"]
    assert found.line_of("collective-mismatch").endswith("# nobody listens")
    assert found.failures[0].message.endswith("rank 1 did not")


@pytest.mark.long
def test_hand_made_gradients_that_differ_are_seen_after_the_first_step(detected: Detect) -> None:
    found = detected("diverged_weights.py", "by-hand", steps=1)
    assert found.kinds == ["diverged-weights"]
    assert found.line_of("diverged-weights").endswith("# stepped here")


@pytest.mark.long
def test_averaging_by_hand_after_no_sync_is_silent(detected: Detect) -> None:
    assert detected("scaled_gradients.py", "no-sync").failures == []


@pytest.mark.long
@pytest.mark.parametrize("mode", ["all", "cheap"])
@pytest.mark.parametrize(
    "program",
    ["accelerate_loop.py", "local_sgd.py", "trainer.py", "supervised_fine_tuning.py"],
)
def test_correct_programs_of_the_libraries_are_silent(
    detected: Detect, tmp_path: Path, program: str, mode: str
) -> None:
    found = detected(f"correct/{program}", str(tmp_path / "output"), mode=mode, timeout=300.0)
    assert found.returncodes == [0, 0], found.stderr
    assert found.failures == []


def test_without_the_detectors_nothing_is_noted(torch_python: Path, tmp_path: Path) -> None:
    found = detect(
        torch_python, tmp_path / "run", PROGRAMS / "random_choices.py", "split", mode="off"
    )
    assert found.returncodes == [0, 0]
    assert found.failures == []
    assert not list((tmp_path / "run").glob("*.collectives"))
