"""What the detectors saw go wrong without an error, as failures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ranksafe.localization import Language, Translated
from ranksafe.runs.explain.collective_order import GROUPS_KIND, KIND
from ranksafe.runs.explain.evidence import Evidence
from ranksafe.runs.explain.locate import UserCode, innermost_user_frame
from ranksafe.runs.model import Failure


def with_silent_failures(
    failures: Sequence[Failure], evidence: Evidence, user_code: UserCode, language: Language
) -> list[Failure]:
    """``failures``, root causes first, and what the detectors saw besides.

    Where every rank only waited for others, the collectives in which they parted are the cause.
    """
    alone = not any(failure.root_cause for failure in failures)
    silent = silent_failures(evidence, user_code, language, root_cause=alone)
    somebody_blamed = any(
        failure.root_cause and failure.kind not in _WAITING for failure in failures
    ) or any(failure.kind == "time-limit" and not failure.root_cause for failure in failures)
    if alone or somebody_blamed:
        return [*failures, *silent]
    parted = [replace(each, root_cause=True) for each in silent if each.kind in _PARTED]
    others = [each for each in silent if each.kind not in _PARTED]
    if parted:
        failures = [replace(each, root_cause=False) for each in failures]
    return [*parted, *failures, *others]


def silent_failures(
    evidence: Evidence, user_code: UserCode, language: Language, *, root_cause: bool
) -> list[Failure]:
    """One failure per kind and line: what several ranks report alike is one.

    ``root_cause``: whether nothing else explains how the run ended.
    """
    found: dict[tuple[str, str | None, int | None], Failure] = {}
    for _, rank in sorted(evidence.ranks.items()):
        for suspicion in rank.suspicions:
            frames = user_code.marked(suspicion.frames)
            parted = suspicion.kind in _PARTED and not root_cause
            failure = Failure(
                kind=suspicion.kind,
                code=suspicion.code,
                rank=rank.rank,
                message=suspicion.message.in_language(language),
                frames=frames,
                explanation=_PARTED_HERE if parted else _NO_ERROR,
                root_cause=root_cause,
            ).at(innermost_user_frame(frames))
            found.setdefault((failure.kind, failure.filename, failure.line), failure)
    return list(found.values())


_PARTED = frozenset({KIND, GROUPS_KIND})
_WAITING = frozenset({"collective-timeout", "peer-lost", "time-limit"})
_PARTED_HERE = Translated(
    en="Here the ranks part: what one calls, another does not, and who waits for it waits in vain.",
    zh_cn="各 rank 在此处分开：一个 rank 调用的集合通信，另一个没有调用，等待它的 rank 将一直等下去。",
)
_NO_ERROR = Translated(
    en="Nothing raises an error here, and the result is wrong all the same.",
    zh_cn="此处不会报错，但结果仍然是错的。",
)
