"""Which changes are tried, in which order and how often, and which of them is recommended."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from ranksafe.cli.output import fit_search as answer
from ranksafe.localization import Translated
from ranksafe.rehearsal.settings import RehearsalOptions
from ranksafe.runs.fit import Fits, Forecast, as_forecast, forecast_of, with_one_rank
from ranksafe.runs.fit_arguments import exposed
from ranksafe.runs.fit_search import Change, Trial, changed, search, trial_of
from ranksafe.runs.fit_trials import recommended
from ranksafe.runs.model import Failure, MemoryPeak, Outcome, RunRequest, RunResult
from ranksafe.source.text import SourceText

GIBIBYTE = 2**30
FIXED = 8


def _request(*words: str, gpus: int = 8) -> RunRequest:
    options = RehearsalOptions(device_model="h100", memory_bytes=20 * GIBIBYTE)
    request = RunRequest(Path("train.py"), f"simulated:{gpus}", arguments=words, rehearsal=options)
    return as_forecast(request)


def _peak(gibibytes: float, steps: int = 3) -> MemoryPeak:
    size = int(gibibytes * GIBIBYTE)
    parts = {"parameters": FIXED * GIBIBYTE, "activations": size - FIXED * GIBIBYTE}
    return MemoryPeak(
        *(0, 0, size, size, 0, 0, "backward", 2, steps),
        *((), {}, 0),
        parts=parts,
    )


def _result(*peaks: MemoryPeak, outcome: Outcome = Outcome.SUCCEEDED) -> RunResult:
    return RunResult("", outcome, "simulated:8", (), (), (), (), (), 1.0, None, None, memory=peaks)


def _first(request: RunRequest, gibibytes: float = 40) -> Forecast:
    forecast = forecast_of(request, 8, _result(_peak(gibibytes)), None)
    assert forecast is not None
    return forecast


def _tried(
    request: RunRequest, per_row: float, *, most_runs: int = 6, gpus: int = 8
) -> list[Trial]:
    """Each row of a batch takes ``per_row`` GiB, whatever else is changed."""

    def run(change: Change) -> Trial:
        numbers = [word for word in change.arguments if word.isdigit()]
        needed = FIXED + per_row * int(numbers[0])
        return trial_of(change, request, _result(_peak(needed)), first)

    first = _first(request)
    found = exposed(None, request.arguments)
    return list(search(request, gpus, first, found, most_runs=most_runs, run=run))


@pytest.mark.parametrize(
    ("per_row", "sizes"),
    [
        # The composition of the peak leads to the largest that fits; one run more shows that it is.
        (1.0, ["8", "16"]),
        # What grows by less, or by more, than expected: bisection.
        (0.2, ["8", "16"]),
        (2.0, ["8", "4"]),
        (40.0, ["8", "1"]),
    ],
)
def test_the_largest_batch_that_fits_is_found_in_few_runs(per_row: float, sizes: list[str]) -> None:
    words = ("--batch_size", "32", "--gradient_accumulation_steps", "2")
    trials = _tried(_request(*words), per_row)
    assert [trial.change.arguments[1] for trial in trials] == sizes
    assert [trial.change.arguments[3] for trial in trials] == [str(64 // int(s)) for s in sizes]
    assert all(trial.change.batch is None for trial in trials)


def test_without_accumulation_every_batch_comes_into_question_and_is_told() -> None:
    trials = _tried(_request("--batch_size", "32"), 1.0)
    best = recommended(trials)
    assert best is not None
    assert best.change.batch == (32, 9)
    text = "\n".join(answer.as_text(trials, ["train.py"], "en", stopped=False))
    assert "the effective batch becomes 9/32 of what it was" in text
    assert text.endswith("the least change that fits: --batch_size 32 → 9")


def test_the_batch_of_all_ranks_keeps_the_effective_batch() -> None:
    words = ("--micro-batch-size", "32", "--global-batch-size", "512")
    trials = _tried(_request(*words), 1.0)
    assert {trial.change.arguments[3] for trial in trials} == {"512"}
    assert {trial.change.batch for trial in trials} == {None}


def test_every_kind_gets_a_run_in_the_order_of_what_it_costs() -> None:
    typed = "--batch_size 32 --bf16 False --seq-len 512 --gradient_checkpointing False"
    words = typed.split()
    request = _request(*words, gpus=1)
    kinds = [each.change.kinds for each in _tried(request, 9.0, most_runs=5, gpus=1)]
    assert kinds == [
        *(("micro-batch",), ("checkpointing",), ("precision",), ("length",)),
        ("gpus",),
    ]
    kinds = [each.change.kinds for each in _tried(request, 9.0, most_runs=2, gpus=1)]
    assert kinds == [("micro-batch",), ("checkpointing",)]


def test_where_none_fits_alone_two_are_tried_together(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        'parser.add_argument("--batch-size", default=4)\n'
        'parser.add_argument("--gradient-accumulation-steps", default=1)\n'
        'parser.add_argument("--seq-len", default=512)\n'
    )
    request = replace(_request(), script=script)
    first = _first(request)

    def tried(kept: float, most_runs: int = 8) -> list[Trial]:
        def run(change: Change) -> Trial:
            given = dict(zip(change.arguments[::2], change.arguments[1::2], strict=True))
            rows, length = (int(given.get(f"--{name}", 0)) for name in ("batch-size", "seq-len"))
            grows = (32 - kept) * (rows or 4) / 4 * (length or 512) / 512
            return trial_of(change, request, _result(_peak(FIXED + kept + grows)), first)

        return list(search(request, 8, first, exposed(script, ()), most_runs=most_runs, run=run))

    trials = tried(kept=8)
    pairs = [each for each in trials if len(each.change.kinds) == 2]
    assert [each.fits for each in pairs] == [Fits.TIGHT, Fits.YES]
    assert trials[-2:] == pairs
    best = recommended(trials)
    assert best is not None
    assert best.change.told == (
        *("--batch-size 4 → 1", "--gradient-accumulation-steps 1 → 4"),
        "--seq-len 512 → 128",
    )
    text = SourceText(script.read_text()).edited(list(best.change.edits))
    assert [line.rpartition("=")[2] for line in text.splitlines()] == ["1)", "4)", "128)"]
    assert all(len(each.change.kinds) == 1 for each in tried(kept=8, most_runs=len(trials) - 2))
    # Whatever each saves, together they save no more: two more runs would tell nothing.
    assert all(len(each.change.kinds) == 1 for each in tried(kept=28))


def test_what_ended_in_another_way_is_never_recommended() -> None:
    request = _request("--batch_size", "32")
    first = _first(request)
    limit = Failure.without_place("limit", Translated("no time", ""), Translated("", ""), "en")
    result = replace(_result(_peak(1), outcome=Outcome.SIMULATION_LIMIT), simulation_limit=limit)
    found = exposed(None, request.arguments)
    trials = list(
        search(
            request,
            8,
            first,
            found,
            most_runs=6,
            run=lambda change: trial_of(change, changed(request, change), result, first),
        )
    )
    assert [(trial.fits, trial.outcome) for trial in trials] == [(None, Outcome.SIMULATION_LIMIT)]
    assert recommended(trials) is None
    lines = answer.as_text(trials, ["train.py", "--search"], "en", stopped=False)
    assert "no forecast, the run ended in another way (no time" in lines[1]
    assert lines[-1] == "none of these is known to make it fit"
    assert answer.as_json(trials, [], "en", stopped=False)["trials"][0]["needs"] is None


def test_a_run_of_fewer_steps_shows_no_peak() -> None:
    request = _request("--batch_size", "32")
    change = Change(("micro-batch",), ("--batch_size 32 → 1",), ("--batch_size", "1"), 8)
    trial = trial_of(change, request, _result(_peak(9, steps=1)), _first(request))
    assert trial.fits is None
    assert "made 1 optimizer steps, too few" in answer.as_text([trial], [], "en", stopped=False)[1]


def test_where_nothing_is_exposed_a_sentence_says_so() -> None:
    assert _tried(_request("--lr", "1"), 1.0) == []
    lines = answer.as_text([], [], "en", stopped=False)
    assert len(lines) == 1
    assert lines[0].startswith("what would make it fit: not tried")


def test_a_row_is_reproduced_by_its_command() -> None:
    change = Change(("gpus",), ("--gpus 2 → 4",), ("--lr", "1"), 4)
    words = ["train.py", "--search", "--gpus", "2", "--max-runs=9", "--yes"]
    assert answer.command(change, words) == [
        *("ranksafe", "fit", "train.py", "--yes", "--gpus", "4", "--", "--lr", "1")
    ]


def test_a_change_is_run_on_devices_without_a_bound() -> None:
    request = _request("--batch_size", "32", gpus=2)
    again = changed(request, Change(("gpus",), (), ("--batch_size", "32"), 4))
    assert (again.target, again.rehearsal.unbounded) == ("simulated:4", True)
    assert replace(again, target=request.target, rehearsal=request.rehearsal) == request


def test_more_gpus_are_not_tried_where_those_there_are_were_not_all_used() -> None:
    assert _tried(_request("--x", "2", gpus=2), 1.0, gpus=2) == []


def test_one_rank_for_all_stands_for_more_of_them() -> None:
    request = with_one_rank(_request("--x", "2", gpus=4), 4)
    request = replace(request, rehearsal=replace(request.rehearsal, stands_for=16))
    trials = _tried(request, 1.0, gpus=4)
    assert [trial.change.told for trial in trials] == [("--gpus 4 → 8",)]
    assert changed(request, trials[0].change).rehearsal.stands_for == 32


def test_a_change_is_an_edit_where_the_script_writes_all_that_it_sets(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        'parser.add_argument("--batch-size", default=32)\n'
        'parser.add_argument("--gradient-accumulation-steps", default=1)\n'
    )

    def edited(*words: str) -> str:
        request = replace(_request(*words), script=script)
        first = _first(request)
        tried: list[Change] = []

        def run(change: Change) -> Trial:
            tried.append(change)
            return trial_of(change, request, _result(_peak(9)), first)

        list(search(request, 8, first, exposed(script, words), most_runs=1, run=run))
        return SourceText(script.read_text()).edited(list(tried[0].edits))

    text = edited()
    assert 'add_argument("--batch-size", default=8)' in text
    assert 'add_argument("--gradient-accumulation-steps", default=4)' in text
    # What the command line gives is not what the script says.
    assert edited("--batch-size", "64") == script.read_text()
    assert edited("--gradient-accumulation-steps", "2") == script.read_text()


def test_what_the_text_alone_says_is_changed_in_a_text_of_its_own(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "from transformers import TrainingArguments\n"
        "TrainingArguments('out', per_device_train_batch_size=32)\n"
    )
    request = replace(_request(), script=script)
    first = _first(request)
    tried: list[Change] = []

    def run(change: Change) -> Trial:
        tried.append(change)
        return trial_of(change, request, _result(_peak(9)), first)

    found = exposed(script, (), written=True)
    list(search(request, 8, first, found, most_runs=1, run=run))
    assert tried[0].told == (
        "train.py:2 per_device_train_batch_size=32 → 8",
        "gradient_accumulation_steps=1 → 4",
    )
    again = changed(request, tried[0])
    assert again.arguments == ()
    ((path, text),) = again.rehearsal.texts
    assert path == str(script)
    assert text.endswith("per_device_train_batch_size=8, gradient_accumulation_steps=4)\n")
