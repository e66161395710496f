"""How many of a run's ranks met a failure: only what all of them met may be called independent of the ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ranksafe.localization import Translated, both
from ranksafe.runs.explain.alike import said_alike
from ranksafe.runs.explain.deaths import Death, Ending
from ranksafe.runs.explain.evidence import LOOSE, Evidence, Raised
from ranksafe.runs.explain.failures import blamed
from ranksafe.runs.explain.launcher_report import LauncherReport
from ranksafe.runs.explain.locate import innermost_user_frame
from ranksafe.runs.explain.ordinary import (
    has_empty_size,
    is_in_parallel_code,
    is_ordinary,
    may_be_about_ranks,
)
from ranksafe.runs.explain.unlisted import UNKNOWN
from ranksafe.runs.model import Failure

_QUOTED = 200
_NO_FILE = "FileNotFoundError"
_OF_NO_RANK = frozenset(
    {
        *("trainer-settings", "deepspeed-settings", "configuration", "version-requirement"),
        *("binary-mismatch", "missing-library"),
        *("server-unreachable", "no-network", "tracker-lost", "missing-credentials"),
    }
)
"""Kinds that no rank's data has a part in: that one rank met it first says nothing."""


def known_ranks(evidence: Evidence, report: LauncherReport) -> int:
    """How many ranks the run is known to have had; 0: it does not tell."""
    stopped = report.stopped_pids - set(report.pids.values())
    numbers = [number for number in (*evidence.ranks, *report.exits) if number >= 0]
    sizes = [rank.world_size for rank in evidence.ranks.values()]
    known = max(
        evidence.expected_ranks or 0,
        len(evidence.ranks),
        # The launcher stops ranks because another one failed.
        max(len(report.exits), 1) + len(stopped) if stopped else len(report.exits),
        *(number + 1 for number in numbers if number > 0),
        *(size for size in sizes if size > 1),
    )
    return 0 if known == 1 and evidence.open_ended else known


_ONLY_ONE_RANK = Translated(
    en="Only this one of the run's ranks reported it before the run ended; whether others would have met it is not "
    "known.",
    zh_cn="运行结束前只有该 rank 报告了它；其他 rank 是否也会遇到尚不清楚。",
)
_WAIT_FOR_FILE = Translated(
    en="Where another rank makes the file, wait for it (dist.barrier(), accelerator.main_process_first()).",
    zh_cn="如果该文件由另一个 rank 创建，请等待它（dist.barrier()、accelerator.main_process_first()）。",
)
_MADE_BY_ANOTHER = Translated(
    en="Only this one of the run's ranks reported it before the run ended: where another rank makes the file, wait for "
    "it (dist.barrier(), accelerator.main_process_first()); where each rank has files of its own, see this one's.",
    zh_cn="运行结束前只有该 rank 报告了它：如果该文件由另一个 rank 创建，请等待它（dist.barrier()、"
    "accelerator.main_process_first()）；如果每个 rank 有各自的文件，请检查该 rank 的文件。",
)
_SOME_RANKS = Translated(
    en="Ranks {ranks} reported it, the others did not before the run ended.",
    zh_cn="rank {ranks} 报告了它，其他 rank 在运行结束前没有。",
)
_EVERY_RANK = Translated(
    en="Every rank failed here in the same way, so this is most likely an ordinary error that one GPU would show too.",
    zh_cn="每个 rank 都在此处以相同方式失败，因此这很可能是单 GPU 也会出现的普通错误。",
)
_EMPTY_SIZE = Translated(
    en="A size is 0: under DeepSpeed ZeRO-3 and FSDP a weight is empty outside of its own forward, so gather it before "
    "you read or change it (deepspeed.zero.GatheredParameters, FSDP.summon_full_params); without them look for where "
    "the 0 comes from.",
    zh_cn="大小为 0：在 DeepSpeed ZeRO-3 和 FSDP 下，权重在其自身的 forward 之外为空，读取或修改之前请先收集它"
    "（deepspeed.zero.GatheredParameters、FSDP.summon_full_params）；若未使用它们，请查明 0 的来源。",
)


def with_extent(
    failure: Failure,
    root: Death,
    deaths: Sequence[Death],
    evidence: Evidence,
    report: LauncherReport,
) -> Failure:
    """The failure with what may be said of it because every rank met it, or because only one did."""
    raised = root.raised
    if raised is None or failure.kind != (root.known[0].kind if root.known else "exception"):
        return failure
    origin = blamed(raised)
    plain = root.known[0].plain if root.known else is_ordinary(origin)
    plain = plain and not has_empty_size(origin.message)
    alike = [
        death
        for death in deaths
        if death.ending is Ending.RAISED and death.raised and said_alike(death.raised, raised)
    ]
    met, ranks = max(len(alike), evidence.alike), known_ranks(evidence, report)
    if ranks > 1 and met >= ranks:
        if root.known is not None:
            return _without_ranks(failure, origin, known=True) if plain else failure
        if may_be_about_ranks(failure.message, failure.frames) or is_in_parallel_code(
            failure.frames
        ):
            return failure
        if has_empty_size(origin.message):
            return _said_also(failure, _EMPTY_SIZE)
        return _said_also(failure, _EVERY_RANK)
    others = [
        death
        for death in deaths
        if death.ending is Ending.RAISED and death.rank.rank >= 0 and death not in alike
    ]
    if others and root in alike and not evidence.going_on:
        return _said_also(failure, _another(others[0]))
    if 1 < len(alike) < ranks and met < ranks and not evidence.going_on:
        numbers = sorted(death.rank.rank for death in alike)
        if numbers[0] >= 0:
            listed = ", ".join(map(str, numbers))
            failure = _said_also(failure, _SOME_RANKS.filled(ranks=listed))
            return _said_also(failure, _WAIT_FOR_FILE) if origin.type == _NO_FILE else failure
    alone = ranks > 1 and met == 1 and root.rank.raised_at != LOOSE
    # While the run goes on, the others may meet it yet.
    alone = alone and not evidence.going_on and bool(failure.frames)
    if plain and ranks == 1:
        return _without_ranks(failure, origin, known=root.known is not None)
    if not alone or (root.known is not None and (not plain or failure.kind in _OF_NO_RANK)):
        return failure
    return _said_also(failure, _MADE_BY_ANOTHER if origin.type == _NO_FILE else _ONLY_ONE_RANK)


_ANOTHER_RAISED = Translated(
    en="Rank {rank} raised another exception by itself: {text}. Both may have one cause.",
    zh_cn="rank {rank} 自己抛出了另一个异常：{text}。二者可能有同一个原因。",
)


def _another(death: Death) -> Translated:
    """What another rank raised by itself."""
    assert death.raised is not None
    origin = blamed(death.raised)
    text = origin.text.strip().split("\n", 1)[0][:_QUOTED]
    frame = innermost_user_frame(origin.frames)
    place = "" if frame is None else f" ({Path(frame.filename).name}:{frame.line})"
    return _ANOTHER_RAISED.filled(rank=death.rank.rank, text=text + place)


_ORDINARY = Translated(
    en="It is an ordinary {type}: neither the message nor the line has anything to do with several GPUs, and one GPU "
    "would show it too.",
    zh_cn="这是普通的 {type}：消息和该行都与多 GPU 无关，单 GPU 也会出现。",
)
_ONE_GPU_TOO = Translated(en="This has nothing to do with several GPUs.", zh_cn="这与多 GPU 无关。")


def _without_ranks(failure: Failure, origin: Raised, *, known: bool) -> Failure:
    if is_in_parallel_code(failure.frames):
        return failure
    return _said_also(failure, _ONE_GPU_TOO if known else _ORDINARY.filled(type=origin.type))


def _said_also(failure: Failure, sentence: Translated) -> Failure:
    """The failure with one more sentence, or with that one alone where nothing was known."""
    if failure.explanation is UNKNOWN:
        return replace(failure, explanation=sentence)
    return replace(failure, explanation=both(failure.explanation, sentence))
