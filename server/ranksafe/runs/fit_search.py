"""What would make it fit: the same forecast again, with one thing of the script's launch changed, or two."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

from ranksafe.rehearsal.isolation import probe
from ranksafe.rehearsal.settings import Isolation
from ranksafe.runs.fit import Fits, Forecast, forecast_of, margin_of
from ranksafe.runs.fit_arguments import Argument, Exposed, Form, What, exposed
from ranksafe.runs.model import Outcome, RunRequest, RunResult
from ranksafe.source.position import Edit
from ranksafe.source.text import SourceText

GPUS = "gpus"
MOST_RUNS = 8
"""That a search makes, unless the user says otherwise."""
_MOST_GPUS = 8
"""Of a node, as they are sold; more ranks than that are more than a question that was not asked should start."""
_SHORTEST = 64
_OF_NO_BATCH = frozenset(
    {"parameters", "gradients", "optimizer-states", "buffers", "gathered", "reduced", "buckets"}
    | {"workspaces"}
)
"""Parts of a peak that do not grow with the batch."""


@dataclass(frozen=True, slots=True)
class Change:
    """What is different."""

    kinds: tuple[str, ...]
    """Each a value of `What`, or `GPUS`."""
    told: tuple[str, ...]
    """As it is typed, from what to what: "--batch-size 8 → 2"."""
    arguments: tuple[str, ...]
    """Of the script, all of them."""
    gpus: int
    """Of each node."""
    batch: tuple[int, int] | None = None
    """The micro-batch from which to which, where the effective batch changes with it."""
    sets: tuple[tuple[Argument, str], ...] = ()
    """The script's arguments, each with its other value."""

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Of the script's text, after which it needs none of this on a command line; empty where there are none."""
        if GPUS in self.kinds:
            return ()
        literals = [(each.literal, value) for each, value in self.sets]
        edits = tuple(literal.set_to(value) for literal, value in literals if literal is not None)
        return edits if len(edits) == len(self.sets) else ()

    @property
    def written(self) -> tuple[tuple[Path, Edit], ...]:
        """Of `edits`, by file, those without which no command line does the same."""
        return tuple(
            (argument.literal.file, argument.literal.set_to(value))
            for argument, value in self.sets
            if argument.form is Form.WRITTEN and argument.literal is not None
        )

    @property
    def is_written(self) -> bool:
        """Whether the script's text has to change."""
        return bool(self.written)

    @property
    def texts(self) -> tuple[tuple[str, str], ...]:
        """The script with those values in it that stand in its text alone. Raises OSError."""
        edits: dict[Path, list[Edit]] = {}
        for file, edit in self.written:
            edits.setdefault(file, []).append(edit)
        return tuple(
            (str(file.absolute()), SourceText(file.read_bytes().decode("utf-8-sig")).edited(each))
            for file, each in edits.items()
        )


@dataclass(frozen=True, slots=True)
class Trial:
    """A forecast with a change."""

    change: Change
    outcome: Outcome
    forecast: Forecast | None
    reason: str = ""
    """Why there is no forecast, in the run's own words."""
    is_short: bool = False
    """Whether it made fewer optimizer steps than show the peak, and the run without the change did not."""

    @property
    def fits(self) -> Fits | None:
        """None where that is not known."""
        return None if self.forecast is None or self.is_short else self.forecast.fits


@dataclass(frozen=True, slots=True)
class _Way:
    """Changes of one kind, by size; the larger one is wanted."""

    sizes: tuple[int, ...]
    of: Callable[[int], Change]
    size: int
    """Without a change, more than all of them."""


def trial_of(change: Change, request: RunRequest, result: RunResult, first: Forecast) -> Trial:
    """What the run of a change showed; ``request``: the changed one."""
    forecast = forecast_of(request, change.gpus, result, None)
    if forecast is None:
        failures = (*filter(None, [result.simulation_limit]), *result.failures)
        return Trial(change, result.outcome, None, failures[0].message if failures else "")
    seen, wanted = forecast.largest.peak.steps, first.largest.peak.steps
    return Trial(change, result.outcome, forecast, is_short=seen < min(2, wanted))


def changed(request: RunRequest, change: Change) -> RunRequest:
    """The request with a change, for devices without a bound: it tells what is needed in one run."""
    options = request.rehearsal
    stands_for = options.stands_for
    if stands_for > 1:
        stands_for = stands_for * change.gpus // int(request.target.partition(":")[2])
    return replace(
        request,
        arguments=change.arguments,
        target=f"simulated:{change.gpus}",
        rehearsal=replace(
            options, unbounded=True, every_block=False, stands_for=stands_for, texts=change.texts
        ),
    )


def found_in(script: Path | None, request: RunRequest) -> Exposed:
    """What of a script can be changed, its text only where the script can be kept apart from the text that is tried."""
    written = request.rehearsal.isolation is not Isolation.OFF and probe() is None
    return exposed(script, request.arguments, written=written)


def search(
    request: RunRequest,
    per_node: int,
    first: Forecast,
    found: Exposed,
    *,
    most_runs: int,
    run: Callable[[Change], Trial],
) -> Iterator[Trial]:
    """Every change that was tried, in order of what it costs the user: time, numbers, data, GPUs; then two of them
    together, where none fits alone.

    ``per_node``: devices of each node. Where the largest value that fits is looked for, it gets the runs that the
    other kinds leave.
    """
    ways = list(_ways(request, per_node, first, found))
    tried: list[list[Trial]] = []
    left = most_runs
    for position, way in enumerate(ways):
        if left < 1:
            return
        tried.append([])
        for trial in _largest(way, first, max(1, left - (len(ways) - position - 1)), run):
            left -= 1
            tried[-1].append(trial)
            yield trial
    is_found = any(trial.fits is Fits.YES for trials in tried for trial in trials)
    for way, base in () if is_found else _pairs(ways, tried, first):
        for trial in _largest(way, base, left, run):
            left -= 1
            is_found = is_found or trial.fits is Fits.YES
            yield trial
        if is_found:
            return


def _pairs(
    ways: Sequence[_Way], tried: Sequence[Sequence[Trial]], first: Forecast
) -> Iterator[tuple[_Way, Forecast]]:
    """Two ways at once, the second time with what the other needed at least: only those that may fit."""
    least: dict[int, tuple[Change, Forecast]] = {}
    for at, trials in enumerate(tried):
        known = [
            (trial.change, trial.forecast)
            for trial in trials
            if trial.forecast is not None and not trial.is_short
        ]
        if known:
            least[at] = min(known, key=lambda each: each[1].largest.need.most)
    for pair in combinations(least, 2):
        # Two changes together save no more than the sum of what each saves alone.
        alone = sum(least[at][1].largest.need.most for at in pair)
        if alone - first.largest.need.most <= first.capacity:
            moved = max(pair, key=lambda at: len(ways[at].sizes))
            (kept,) = set(pair) - {moved}
            change, base = least[kept]
            yield _beside(ways[moved], change, is_first=moved < kept), base


def _beside(way: _Way, kept: Change, *, is_first: bool) -> _Way:
    """The way on top of a change that stays."""

    def change(size: int) -> Change:
        both = (way.of(size), kept)
        return _together(*(both if is_first else reversed(both)))

    return _Way(way.sizes, change, way.size)


def _together(one: Change, other: Change) -> Change:
    words = list(one.arguments)
    for argument, value in other.sets:
        words = argument.set_in(words, value)
    return Change(
        (*one.kinds, *other.kinds),
        (*one.told, *other.told),
        tuple(words),
        other.gpus if GPUS in other.kinds else one.gpus,
        one.batch or other.batch,
        (*one.sets, *other.sets),
    )


def _ways(request: RunRequest, per_node: int, first: Forecast, found: Exposed) -> Iterator[_Way]:
    words = request.arguments
    batch, length = found.numbers.get(What.MICRO_BATCH), found.numbers.get(What.LENGTH)
    if batch is not None and (batch.number or 0) > 1:
        yield _smaller_batches(words, per_node, batch, found)
    for what in (What.CHECKPOINTING, What.PRECISION):
        if what in found.turned_on:
            yield _one(_set(what, words, per_node, [found.turned_on[what]]))
    if length is not None and (length.number or 0) >= 2 * _SHORTEST:
        yield _shorter(words, per_node, length)
    gpus, options = min(_MOST_GPUS, 2 * per_node), request.rehearsal
    if options.stands_for == 1:
        are_all_used = len(first.devices) == per_node * options.nodes
        if not are_all_used or gpus * options.nodes > _MOST_GPUS:
            return
    if gpus > per_node:
        yield _one(Change((GPUS,), (f"--gpus {per_node} → {gpus}",), words, gpus))


def _set(
    what: What,
    words: Sequence[str],
    per_node: int,
    sets: Sequence[tuple[Argument, str]],
    batch: tuple[int, int] | None = None,
) -> Change:
    """The change that gives arguments other values. What was not given stands at the end: the places of the words
    before it are as they were."""
    arguments, told, last = list(words), [], ""
    for argument, value in sets:
        arguments = argument.set_in(arguments, value)
        line = _line(argument)
        told.append(f"{line} {_told(argument, value)}" if line != last else _told(argument, value))
        last = line
    return Change((what.value,), tuple(told), tuple(arguments), per_node, batch, tuple(sets))


def _line(argument: Argument) -> str:
    """Where it stands in the script's text alone."""
    if argument.form is not Form.WRITTEN or argument.literal is None:
        return ""
    return f"{argument.literal.file.name}:{argument.literal.range.start.line + 1}"


def _one(change: Change) -> _Way:
    return _Way((1,), lambda _size: change, 2)


def _smaller_batches(words: Sequence[str], per_node: int, batch: Argument, found: Exposed) -> _Way:
    number = batch.number or 1
    accumulation = found.numbers.get(What.ACCUMULATION)
    is_kept = What.WHOLE_BATCH in found.numbers or accumulation is not None
    sizes = range(1, number)

    def change(size: int) -> Change:
        sets = [(batch, str(size))]
        if accumulation is not None and What.WHOLE_BATCH not in found.numbers:
            sets.append((accumulation, str((accumulation.number or 1) * (number // size))))
        return _set(What.MICRO_BATCH, words, per_node, sets, None if is_kept else (number, size))

    wanted = [size for size in sizes if number % size == 0] if is_kept else sizes
    return _Way(tuple(wanted), change, number)


def _shorter(words: Sequence[str], per_node: int, length: Argument) -> _Way:
    number = length.number or 1
    sizes = [number // part for part in (8, 4, 2) if number // part >= _SHORTEST]

    def change(size: int) -> Change:
        return _set(What.LENGTH, words, per_node, [(length, str(size))])

    return _Way(tuple(sizes), change, number)


def _told(argument: Argument, value: str) -> str:
    """A switch that is off has no value to show."""
    if argument.form is Form.WRITTEN:
        return f"{argument.spelling}={argument.value} → {value}"
    if argument.value.lower() in ("", "false"):
        return " ".join(argument.set_in((), value))
    between = " " if argument.spelling.startswith("-") else "="
    return f"{argument.spelling}{between}{argument.value} → {value}"


def _largest(
    way: _Way, first: Forecast, most_runs: int, run: Callable[[Change], Trial]
) -> Iterator[Trial]:
    """Bisection, begun where the composition of the peak lets the largest that fits be expected."""
    low, high = -1, len(way.sizes)
    below, above = (0, _without_batch(first)), (way.size, first.largest.need.most)
    while most_runs > 0 and high - low > 1:
        at = (low + high) // 2
        if first.is_whole and below[1] < above[1]:
            slope = (above[1] - below[1]) / (above[0] - below[0])
            expected = below[0] + (first.capacity - below[1]) / slope
            at = min(max(bisect_right(way.sizes, expected) - 1, low + 1), high - 1)
        trial = run(way.of(way.sizes[at]))
        most_runs -= 1
        yield trial
        if trial.forecast is None or trial.fits is None:
            return
        point = (way.sizes[at], trial.forecast.largest.need.most)
        if trial.fits is Fits.YES:
            low, below = at, point
        else:
            high, above = at, point


def _without_batch(forecast: Forecast) -> int:
    """What the device would need at most with an empty batch, roughly."""
    device = forecast.largest
    fixed = sum(size for part, size in device.peak.parts.items() if part in _OF_NO_BATCH)
    grows = max(0, device.peak.allocated - fixed)
    return device.need.most - int(grows * (1 + margin_of(device.peak)))
