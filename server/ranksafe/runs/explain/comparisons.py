"""What shows only between ranks: what each wrote down for itself (``ranksafe_agent.detectors``), compared.

Every comparison speaks only of what is certain; where a rank wrote nothing down, or it may be meant so, it is silent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranksafe.runs.explain import collective_order
from ranksafe.runs.explain import comparison_words as words
from ranksafe.runs.explain.deaths import Ending, deaths_of
from ranksafe.runs.explain.evidence import (
    Evidence,
    RankEvidence,
    Suspicion,
    frames_from,
    parse_entry,
)
from ranksafe.runs.explain.launcher_report import read_launcher

Event = Mapping[str, Any]
Events = Sequence[Event]

_LEAST_ROWS = 3
_DISTINCT = 0.75
_SCALARS = 16
_STUCK_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Noted:
    """What the detectors of one rank wrote down, by the name of the event."""

    rank: RankEvidence
    events: Mapping[str, Events]

    def of(self, name: str) -> Events:
        """The events of one name, in order."""
        return self.events.get(name, ())


def compare_ranks(directory: Path, evidence: Evidence) -> None:
    """Add what the comparison shows to the suspicions of the rank it is drawn on."""
    noted = {
        number: Noted(rank, _events(directory / f"rank{number}.jsonl"))
        for number, rank in sorted(evidence.ranks.items())
    }
    if len(noted) < 2:
        return
    for compare in (_samples, _weights, _buffers, _splits, _orders, _files, _idle):
        for rank, suspicion in compare(noted):
            evidence.ranks[rank].suspicions.append(suspicion)
    mismatch = _collectives(directory, evidence, noted)
    if mismatch is not None:
        rank, suspicion = mismatch
        evidence.ranks[rank].suspicions.append(suspicion)


Found = Iterator[tuple[int, Suspicion]]


def _samples(noted: Mapping[int, Noted]) -> Found:
    """Models that were called with the same rows on several ranks of one DDP group."""
    for peers, calls in _by_model(noted, "samples", "call"):
        if len(calls) < 2 or not all(_same_batch(list(each.values())) for each in calls.values()):
            continue
        first = calls[min(calls)]
        rows = [row for number in calls for row in calls[number][peers[0]]["batch"]]
        if len(rows) < _LEAST_ROWS or len(set(rows)) < _DISTINCT * len(rows):
            continue  # toy data that repeats itself is equal on every rank whoever chose it
        event = first[peers[0]]
        length = event["length"]
        if length is not None and length < len(peers) * len(event["batch"]):
            continue  # too few samples to give every rank its own
        message = words.SAME_SAMPLES.filled(ranks=_list(peers), batches=len(calls))
        yield peers[0], Suspicion("same-samples", None, message, frames_from(event["frames"]))


def _same_batch(events: Events) -> bool:
    """Whether ranks drew the same samples from loaders of the same kind and called their models with the same."""
    first = events[0]
    keys = ("inputs", "batch", "indices", "length", "batches")
    return bool(first["inputs"] and first["batch"]) and all(
        each[key] == first[key] for each in events[1:] for key in keys
    )


def _weights(noted: Mapping[int, Noted]) -> Found:
    """Weights that were equal, or that DDP had made equal, and are no longer after a step."""
    for peers, steps in _by_model(noted, "weights", "step"):
        wrapped = bool(steps[min(steps)][peers[0]]["wrapped"])
        if not wrapped and (0 not in steps or _differing(steps[0]) or _exchanged(noted, steps[0])):
            continue
        for number in sorted(steps):
            names = _differing(steps[number])
            if not names:
                continue
            bypassed = [rank for rank in peers if steps[number][rank]["bypassed"]]
            drawn = bypassed[0] if bypassed else peers[0]
            message = (
                words.DIVERGED_BYPASS
                if bypassed
                else words.DIVERGED
                if wrapped
                else words.DIVERGED_ALONE
            )
            told = message.filled(step=number, ranks=_list(peers), names=_some(names))
            kind = "diverged-weights"
            yield drawn, Suspicion(kind, None, told, frames_from(steps[number][drawn]["frames"]))
            return


def _buffers(noted: Mapping[int, Noted]) -> Found:
    """Buffers that every rank accumulates from its own batches and DDP overwrites with rank 0's before each forward."""
    for peers, steps in _by_model(noted, "buffers", "step"):
        for number in sorted(steps):
            of_rank = [
                {str(name): (value, place) for name, value, place in event["buffers"]}
                for event in steps[number].values()
            ]
            first = of_rank[0]
            names = [
                name
                for name in first
                if any(name in other and other[name][0] != first[name][0] for other in of_rank[1:])
            ]
            if names:
                message = words.BUFFERS.filled(step=number, ranks=_list(peers), names=_some(names))
                frames = frames_from([first[names[0]][1]])
                yield peers[0], Suspicion("diverged-buffers", None, message, frames)
                return


def _differing(of_rank: Mapping[int, Event]) -> list[str]:
    values = [dict(map(tuple, event["parameters"])) for event in of_rank.values()]
    first = values[0]
    return [
        name
        for name in first
        if any(other.get(name, first[name]) != first[name] for other in values)
    ]


def _exchanged(noted: Mapping[int, Noted], of_rank: Mapping[int, Event]) -> bool:
    """Whether tensors of more than a few numbers were exchanged by hand: weights may be averaged now and then."""
    for rank in of_rank:
        told = noted[rank].of("activity")
        if not told or told[-1].get("largest_collective", 0) > _SCALARS:
            return True
    return False


def _by_model(
    noted: Mapping[int, Noted], name: str, key: str
) -> Iterator[tuple[list[int], dict[int, dict[int, Event]]]]:
    """Events of the same model on all ranks of its group: ``{number: {rank: event}}``, numbers all have told."""
    groups: dict[tuple[str, tuple[int, ...]], dict[int, dict[int, Event]]] = {}
    for rank, each in noted.items():
        for event in each.of(name):
            members = tuple(int(member) for member in event["ranks"])
            numbers = groups.setdefault((str(event["model"]), members), {})
            numbers.setdefault(int(event[key]), {})[rank] = event
    for (_, members), numbers in sorted(groups.items()):
        whole = {
            number: of_rank for number, of_rank in numbers.items() if len(of_rank) == len(members)
        }
        if len(members) > 1 and whole:
            yield list(members), whole


def _splits(noted: Mapping[int, Noted]) -> Found:
    """random_split that gave every rank other parts of the same data."""
    for _, of_rank in _numbered(noted, "split"):
        first, event = next(iter(of_rank.items()))
        same_place = all(_line(each) == _line(event) for each in of_rank.values())
        same_lengths = all(each["lengths"] == event["lengths"] for each in of_rank.values())
        differs = any(each["digest"] != event["digest"] for each in of_rank.values())
        if same_place and same_lengths and differs:
            yield (
                first,
                Suspicion("different-splits", None, words.SPLITS, frames_from(event["frames"])),
            )
            return


def _orders(noted: Mapping[int, Noted]) -> Found:
    """DistributedSamplers of different seed, epoch or shuffling: their shares overlap."""
    for _, of_rank in _numbered(noted, "order"):
        first, event = next(iter(of_rank.items()))
        same = all(
            each[key] == event[key] for each in of_rank.values() for key in ("replicas", "length")
        )
        if not same or event["replicas"] != len(of_rank):
            continue
        for key in ("shuffle", "seed", "epoch"):
            if key != "shuffle" and not event["shuffle"]:
                continue
            values = {rank: each[key] for rank, each in of_rank.items()}
            if len(set(values.values())) > 1:
                text = ", ".join(f"rank {rank}: {value}" for rank, value in values.items())
                message = words.ORDERS.filled(what=key, values=text)
                yield (
                    first,
                    Suspicion("different-orders", None, message, frames_from(event["frames"])),
                )
                return


def _numbered(noted: Mapping[int, Noted], name: str) -> Iterator[tuple[int, dict[int, Event]]]:
    """The n-th events of this name, where every rank has one."""
    numbers = {int(event["number"]) for each in noted.values() for event in each.of(name)}
    for number in sorted(numbers):
        of_rank = {
            rank: event
            for rank, each in noted.items()
            for event in each.of(name)
            if int(event["number"]) == number
        }
        if len(of_rank) == len(noted):
            yield number, of_rank


def _files(noted: Mapping[int, Noted]) -> Found:
    """Files that several ranks of one host opened to write them anew."""
    writers: dict[tuple[str, str], dict[int, Event]] = {}
    for rank, each in noted.items():
        for event in each.of("file-written"):
            writers.setdefault((each.rank.host, str(event["path"])), {})[rank] = event
    told: set[tuple[Any, ...]] = set()
    for (_, path), events in sorted(writers.items()):
        ranks = sorted(events)
        event = events[ranks[-1]]
        if len(ranks) < 2 or _line(event) in told:
            continue
        told.add(_line(event))
        message = words.FILES.filled(ranks=_list(ranks), path=path)
        yield ranks[-1], Suspicion("same-file-written", None, message, frames_from(event["frames"]))


def _idle(noted: Mapping[int, Noted]) -> Found:
    """Ranks that ran to their end and computed nothing, while others trained."""
    trained = [rank for rank, each in noted.items() if each.rank.steps > 0]
    for rank, each in noted.items():
        told = each.of("activity")
        if not trained or not told or each.rank.steps or told[-1]["forward"] or told[-1]["rpc"]:
            continue
        places = [
            event
            for event in each.of("collective-name")
            if event["table"] == "place" and event["value"]
        ]
        frames = frames_from(places[-1]["value"]) if places else ()
        message = words.IDLE.filled(rank=rank, ranks=_list(trained))
        yield rank, Suspicion("idle-ranks", None, message, frames)


def _collectives(
    directory: Path, evidence: Evidence, noted: Mapping[int, Noted]
) -> tuple[int, Suspicion] | None:
    of_rank = {
        rank: collective_order.calls_of(
            directory / f"rank{rank}.collectives", each.of("collective-name")
        )
        for rank, each in noted.items()
    }
    found = collective_order.first_mismatch(of_rank, _missing_before(evidence))
    if found is None:
        return None
    rank, call = found.one
    peer, theirs = found.other
    if theirs is not None and not call.place:
        rank, call = peer, theirs
    return rank, Suspicion(collective_order.KIND, None, found.message, frames_from(call.place))


def _missing_before(evidence: Evidence) -> float | None:
    """Since when a call that one rank lacks is no coincidence; None: ranks died before they could make it."""
    if evidence.status == "timed-out":
        # Whoever waits for its peers this long when time is over waits for good.
        times = [rank.last_seen for rank in evidence.ranks.values() if rank.last_seen is not None]
        return max(times) - _STUCK_SECONDS if times else None
    deaths = deaths_of(evidence, read_launcher(evidence.launcher))
    if any(death.ending in (Ending.RAISED, Ending.SILENT) for death in deaths):
        return None
    return float("inf")


def _events(path: Path) -> dict[str, list[Event]]:
    found: dict[str, list[Event]] = {}
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return found
    for line in lines:
        event = parse_entry(line)
        found.setdefault(str(event.get("event", "")), []).append(event)
    return found


def _line(event: Event) -> tuple[Any, ...]:
    frames = event["frames"]
    return (frames[-1]["file"], frames[-1]["line"]) if frames else ()


def _list(ranks: Sequence[int]) -> str:
    return ", ".join(str(rank) for rank in ranks)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
