"""May a failure of a rehearsal come of what the rehearsal itself refused, or put in the place of something else?

`standings.json` says of every kind of failure what could have brought it about, and why; the first that fits counts.
Its groups name what a rehearsal puts in the place of something else, and what of that is of another class.
What a failure touches was written down where it happened (``ranksafe_rehearsal.touched``).
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ranksafe.localization import Translated, both
from ranksafe.runs.explain.evidence import translated_from
from ranksafe.runs.explain.signatures import may_be_predicted, meaning_of
from ranksafe.runs.model import Failure

REFUSED = frozenset({"network", "terminal", "unavailable", "limit"})
"""Kinds of entries that gave the script nothing (``ranksafe_rehearsal.provenance.REFUSALS``)."""


@dataclass(frozen=True, slots=True)
class Touch:
    """A refusal or stand-in that a failure comes through."""

    kind: str
    what: str
    message: Translated
    how: str
    """"line", "value", "same" (the same file or object is named), "number" (so is a file, but for its number), or
    "chain" (it was being handled)."""
    file: str = ""
    line: int = 0
    """Where the script met it."""

    @property
    def is_refusal(self) -> bool:
        """Whether the script got nothing, instead of something else."""
        return self.kind in REFUSED


@dataclass(frozen=True, slots=True)
class Uncaught:
    """What a process wrote of the exception that ended it."""

    rank: int | None
    type: str
    touches: tuple[Touch, ...]


@dataclass(frozen=True, slots=True)
class Doubt:
    """A failure that may come of the rehearsal."""

    failures: tuple[Failure, ...]
    """The one in doubt first; then those that follow it, if it is the script's."""
    touches: tuple[Touch, ...]
    is_certain: bool
    """It follows from a refusal: no second run could tell more."""

    @property
    def failure(self) -> Failure:
        """The one in doubt."""
        return self.failures[0]

    @property
    def names_ranks(self) -> bool:
        """Whether the failing line computes with the number of ranks or its own rank."""
        own = [frame.source for frame in self.failure.frames if frame.in_user_code]
        return bool(own and _OF_RANKS.search(own[-1]))


@dataclass(frozen=True, slots=True)
class Standing:
    """What can bring a failure about. ``pattern``: of its "Type: message"."""

    pattern: re.Pattern[str]
    by: frozenset[str]
    """Kinds of entries."""
    follows: bool
    """Touching a refusal is enough: it is what a thing that is not there looks like."""
    reason: str


@functools.cache
def standings() -> tuple[Standing, ...]:
    """The table, in its order."""
    data = json.loads(Path(__file__).with_name("standings.json").read_text(encoding="utf-8"))
    kinds = {"refused": REFUSED, **data["kinds"]}
    return tuple(
        Standing(
            pattern=re.compile(row["message"], re.DOTALL),
            by=frozenset().union(*(kinds.get(name, [name]) for name in row.get("by", ()))),
            follows=row.get("follows", False),
            reason=row["reason"],
        )
        for row in data["standings"]
    )


_OF_RANKS = re.compile(
    r"\b(?:(?:get_)?world_size|WORLD_SIZE|(?:get_|local_|global_|node_)*rank|(?:LOCAL_)?RANK|num_processes|process_index"
    r"|num_replicas|device_count|nprocs?|n_?gpus?|num_gpus?|world)\b"
)
"""Names under which scripts and libraries keep the number of ranks or their own: torch.distributed, accelerate
(``Accelerator.num_processes``), ``DistributedSampler.num_replicas``, and what people call theirs."""


_EXITED = "exit-status"
"""Of a rank that gave up by itself."""
_OF_ORDER = "RS4"
"""Codes of rules about the order of collectives."""
_OF_VALUES_TOO = frozenset({"batch-norm-single-sample", "batch-not-divisible"})
"""Failures that rules predict, and that the length of a stand-in can bring about as well; all others that rules predict
come of several GPUs alone."""

_OF_MEASURES = re.compile(
    r"\b(?:shapes?|sizes?|dimensions?|channels|out of (?:range|bounds)|divisible)\b"
)
"""Words of failures of sizes, numbers and classes, which stand-ins of the kind "pictures" have from the real ones."""


def uncaught_from(event: Mapping[str, Any]) -> Uncaught:
    """Read the journal's event."""
    rank = event.get("rank")
    touches = tuple(
        _touch(each) for each in event.get("touches") or () if isinstance(each, Mapping)
    )
    return Uncaught(rank if isinstance(rank, int) else None, str(event.get("type", "")), touches)


def _touch(data: Mapping[str, Any]) -> Touch:
    place: Mapping[str, Any] = next(iter(data.get("places") or ()), {})
    return Touch(
        kind=str(data.get("kind", "")),
        what=str(data.get("what", "")),
        message=translated_from(data.get("message")),
        how=str(data.get("how", "")),
        file=str(place.get("file", "")),
        line=int(place.get("line") or 0),
    )


def standing_of(failure: Failure) -> Standing:
    """What could have brought this failure about."""
    return next(each for each in standings() if each.pattern.search(failure.message))


def doubt_about(failures: Sequence[Failure], uncaught: Sequence[Uncaught]) -> Doubt | None:
    """Why the first of these failures may not be the script's; None where nothing says so."""
    failure = failures[0]
    # That a rule expects such a message says less than that nothing else has this kind.
    of_ranks = may_be_predicted(failure.kind) or (failure.code or "").startswith(_OF_ORDER)
    if of_ranks and failure.kind not in _OF_VALUES_TOO:
        return None
    standing = standing_of(failure)
    of_measures = failure.kind in _OF_VALUES_TOO or _OF_MEASURES.search(failure.message)
    by = standing.by - ({"pictures"} if of_measures else set())
    touches = tuple(each for each in _touches_of(failure, uncaught) if each.kind in by)
    if not touches:
        return None
    follows = any(
        standing.follows or (each.file, each.line) == (failure.filename, failure.line)
        for each in touches
        if each.is_refusal
    )
    return Doubt(tuple(failures), touches, is_certain=follows or touches[-1].how == "chain")


def _touches_of(failure: Failure, uncaught: Sequence[Uncaught]) -> tuple[Touch, ...]:
    """Of the exception that the failure tells of: the rank's, or one of its type where ranks are not numbered."""
    if failure.kind == _EXITED:
        named = [each for each in uncaught if each.type == "SystemExit"]
    else:
        named = [each for each in uncaught if each.type and failure.message.startswith(each.type)]
    of_rank = [each for each in named if each.rank == failure.rank]
    return next((each.touches for each in (*of_rank, *named)), ())


def cause(doubt: Doubt) -> Translated:
    """In words: what it comes through, where the script met that, and what the user can do."""
    # How many batches an epoch has is the least likely of several causes.
    stand_ins = [each for each in doubt.touches if each.kind != "short-epoch"] or doubt.touches
    first = next((each for each in doubt.touches if each.is_refusal), stand_ins[-1])
    sentence = _REFUSAL if first.is_refusal else _STAND_IN
    told = sentence.filled(what=first.message, place=f"{Path(first.file).name}:{first.line}")
    remedy = meaning_of("remedies", first.kind) or meaning_of("remedies", "unavailable")
    return told if remedy is None else both(told, remedy)


_REFUSAL = Translated(
    en="What failed comes of something that the rehearsal does not have ({place}): {what}.",
    zh_cn="失败源于预演中没有的内容（{place}）：{what}。",
)
_STAND_IN = Translated(
    en="What failed may come of something that the rehearsal put in the place of the real one ({place}): {what}.",
    zh_cn="失败可能源于预演用来代替真实内容的替身（{place}）：{what}。",
)
