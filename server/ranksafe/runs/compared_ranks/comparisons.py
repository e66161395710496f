"""What shows only between ranks: what each wrote down for itself (``ranksafe_agent.detectors``), compared.

Every comparison speaks only of what is certain; where a rank wrote nothing down, or it may be meant so, it is silent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranksafe.localization import Translated
from ranksafe.runs.explain import collective_order
from ranksafe.runs.explain.deaths import Ending, deaths_of
from ranksafe.runs.explain.evidence import (
    Evidence,
    RankEvidence,
    Suspicion,
    entries_of,
    frames_from,
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
    compared = (_samples, _weights, _buffers, _splits, _orders, _files, _idle, _groups)
    found = [each for compare in compared for each in compare(noted)]
    for rank, suspicion in (*found, *_collectives(directory, evidence, noted)):
        evidence.ranks[rank].suspicions.append(suspicion)


Found = Iterator[tuple[int, Suspicion]]


_SAME_SAMPLES = Translated(
    en="ranks {ranks} trained on the same samples in each of the first {batches} batches: nothing gives every rank a "
    "share of its own (DistributedSampler, accelerator.prepare)",
    zh_cn="rank {ranks} 在前 {batches} 个批次中训练的样本完全相同：没有给每个 rank 分配各自的数据"
    "（DistributedSampler、accelerator.prepare）",
)


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
        message = _SAME_SAMPLES.filled(ranks=_list(peers), batches=len(calls))
        yield peers[0], _seen("same-samples", message, event)


def _same_batch(events: Events) -> bool:
    """Whether ranks drew the same samples from loaders of the same kind and called their models with the same."""
    first = events[0]
    keys = ("inputs", "batch", "indices", "length", "batches")
    return bool(first["inputs"] and first["batch"]) and all(
        each[key] == first[key] for each in events[1:] for key in keys
    )


_DIVERGED = Translated(
    en="after step {step} the ranks {ranks} have different weights ({names}) in a model that "
    "DistributedDataParallel keeps equal",
    zh_cn="第 {step} 步之后，rank {ranks} 的权重不同（{names}），而 DistributedDataParallel 应使它们保持一致",
)
_DIVERGED_BYPASS = Translated(
    en="the module inside DistributedDataParallel is called past it here, so its gradients are not averaged: after "
    "step {step} the ranks {ranks} have different weights ({names})",
    zh_cn="此处绕过 DistributedDataParallel 直接调用了内部模块，梯度没有求平均："
    "第 {step} 步之后，rank {ranks} 的权重不同（{names}）",
)
_DIVERGED_ALONE = Translated(
    en="ranks {ranks} began with the same weights and have different ones after step {step}: the model is not wrapped "
    "(DistributedDataParallel, accelerator.prepare), so nothing averaged the gradients",
    zh_cn="rank {ranks} 的初始权重相同，第 {step} 步之后却不同：模型没有被包装（DistributedDataParallel、"
    "accelerator.prepare），梯度没有求平均",
)


def _weights(noted: Mapping[int, Noted]) -> Found:
    """Weights that were equal, or that DDP had made equal, and are no longer after a step."""
    for peers, steps in _by_model(noted, "weights", "step"):
        wrapped = bool(steps[min(steps)][peers[0]]["wrapped"])
        if not wrapped and (
            0 not in steps or _differing(steps[0], "parameters") or _exchanged(noted, steps[0])
        ):
            continue
        for number in sorted(steps):
            names = _differing(steps[number], "parameters")
            if not names:
                continue
            bypassed = [rank for rank in peers if steps[number][rank]["bypassed"]]
            drawn = bypassed[0] if bypassed else peers[0]
            message = _DIVERGED_BYPASS if bypassed else _DIVERGED if wrapped else _DIVERGED_ALONE
            told = message.filled(step=number, ranks=_list(peers), names=_some(names))
            yield drawn, _seen("diverged-weights", told, steps[number][drawn])
            return


_BUFFERS = Translated(
    en="after step {step} the ranks {ranks} have different values in the buffers {names}: each rank adds its own "
    "batch, and DistributedDataParallel overwrites all of them with rank 0's before the next forward. Reduce them over "
    "the ranks where they are changed",
    zh_cn="第 {step} 步之后，rank {ranks} 的 buffer {names} 的值不同：每个 rank 只累积自己的批次，而 "
    "DistributedDataParallel 会在下一次 forward 之前用 rank 0 的值覆盖它们。请在修改处对各 rank 做归约",
)


def _buffers(noted: Mapping[int, Noted]) -> Found:
    """Buffers that every rank accumulates from its own batches and DDP overwrites with rank 0's before each forward."""
    for peers, steps in _by_model(noted, "buffers", "step"):
        for number in sorted(steps):
            names = _differing(steps[number], "buffers")
            if names:
                message = _BUFFERS.filled(step=number, ranks=_list(peers), names=_some(names))
                buffers = next(iter(steps[number].values()))["buffers"]
                places = {name: place for name, _, place in buffers}
                told = {"frames": [places[names[0]]]}
                yield peers[0], _seen("diverged-buffers", message, told)
                return


def _differing(of_rank: Mapping[int, Event], key: str) -> list[str]:
    """The names, each the first of an entry, under which not all ranks have the same value, its second."""
    values = [{entry[0]: entry[1] for entry in event[key]} for event in of_rank.values()]
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


_SPLITS = Translated(
    en="random_split divided the data differently on every rank: what one rank trains on, another validates on. Pass "
    "generator=torch.Generator().manual_seed(…)",
    zh_cn="random_split 在各 rank 上的划分不同：一个 rank 的训练数据是另一个 rank 的验证数据。请传入 "
    "generator=torch.Generator().manual_seed(…)",
)


def _splits(noted: Mapping[int, Noted]) -> Found:
    """random_split that gave every rank other parts of the same data."""
    for first, event, of_rank in _numbered(noted, "split"):
        same_place = all(_line(each) == _line(event) for each in of_rank.values())
        same_lengths = all(each["lengths"] == event["lengths"] for each in of_rank.values())
        differs = any(each["digest"] != event["digest"] for each in of_rank.values())
        if same_place and same_lengths and differs:
            yield first, _seen("different-splits", _SPLITS, event)
            return


_ORDERS = Translated(
    en="the DistributedSamplers of the ranks differ in {what} ({values}): their shares overlap, and some samples are "
    "never seen",
    zh_cn="各 rank 的 DistributedSampler 的 {what} 不同（{values}）：它们分到的数据互相重叠，有些样本永远不会被用到",
)


def _orders(noted: Mapping[int, Noted]) -> Found:
    """DistributedSamplers of different seed, epoch or shuffling: their shares overlap."""
    for first, event, of_rank in _numbered(noted, "order"):
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
                message = _ORDERS.filled(what=key, values=text)
                yield first, _seen("different-orders", message, event)
                return


def _numbered(
    noted: Mapping[int, Noted], name: str
) -> Iterator[tuple[int, Event, dict[int, Event]]]:
    """The n-th events of this name, where every rank has one; before them the first rank and its own."""
    numbers: dict[int, dict[int, Event]] = {}
    for rank, each in noted.items():
        for event in each.of(name):
            numbers.setdefault(int(event["number"]), {})[rank] = event
    for _, of_rank in sorted(numbers.items()):
        if len(of_rank) == len(noted):
            first = min(of_rank)
            yield first, of_rank[first], of_rank


_FILES = Translated(
    en="ranks {ranks} all write {path}: the last one wins, or the file is damaged. Write it on one rank",
    zh_cn="rank {ranks} 都在写入 {path}：最后写入者覆盖其他，或文件损坏。请只在一个 rank 上写入",
)


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
        message = _FILES.filled(ranks=_list(ranks), path=path)
        yield ranks[-1], _seen("same-file-written", message, event)


_IDLE = Translated(
    en="rank {rank} computed nothing while ranks {ranks} trained: its GPU was idle",
    zh_cn="rank {rank} 没有进行任何计算，而 rank {ranks} 在训练：它的 GPU 处于空闲",
)


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
        message = _IDLE.filled(rank=rank, ranks=_list(trained))
        yield rank, _seen("idle-ranks", message, {"frames": places[-1]["value"] if places else ()})


_GROUPS = Translated(
    en="rank {rank} makes a group of {members} here where rank {peer} makes one of {others}: every rank has to make "
    "all groups, in the same order, those it is not in as well",
    zh_cn="rank {rank} 在此创建由 {members} 组成的组，而 rank {peer} 创建的是 {others}：每个 rank 都必须按相同顺序"
    "创建所有的组，包括它不属于的组",
)


_ALL_RANKS = Translated("all ranks", "所有 rank")


def _groups(noted: Mapping[int, Noted]) -> Found:
    """The first group that ranks make of different members at the same time."""
    for first, event, of_rank in _numbered(noted, "group-made"):
        other = next((r for r in of_rank if of_rank[r]["members"] != event["members"]), None)
        if other is not None:
            members, others = (
                _ALL_RANKS if each["members"] is None else _list(each["members"])
                for each in (event, of_rank[other])
            )
            message = _GROUPS.filled(rank=first, members=members, peer=other, others=others)
            yield first, _seen(collective_order.GROUPS_KIND, message, event)
            return


def _collectives(directory: Path, evidence: Evidence, noted: Mapping[int, Noted]) -> Found:
    of_rank = {
        rank: collective_order.calls_of(
            directory / f"rank{rank}.collectives", each.of("collective-name")
        )
        for rank, each in noted.items()
    }
    found = collective_order.first_mismatch(of_rank, _missing_before(evidence))
    if found is None:
        return
    rank, call = found.one
    peer, theirs = found.other
    evidence.mismatch = found
    if theirs is not None and not call.place:
        rank, call = peer, theirs
    yield rank, _seen(collective_order.KIND, found.message, {"frames": call.place})


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
    for event in entries_of(path):
        found.setdefault(str(event.get("event", "")), []).append(event)
    return found


def _seen(kind: str, message: Translated, event: Event) -> Suspicion:
    return Suspicion(kind, None, message, frames_from(event["frames"]))


def _line(event: Event) -> tuple[Any, ...]:
    frames = event["frames"]
    return (frames[-1]["file"], frames[-1]["line"]) if frames else ()


def _list(ranks: Sequence[int]) -> str:
    return ", ".join(str(rank) for rank in ranks)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
