"""What is known of ranks that are no longer seen: the last line each printed, and where it stood."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ranksafe.localization import Translated
from ranksafe.runs.explain.evidence import Evidence, RankEvidence, read_tail
from ranksafe.runs.explain.locate import UserCode, innermost_user_frame, place
from ranksafe.runs.records.redaction import redacted_text

_MOST_RANKS: Final = 8
_LONGEST = 120


def last_words(directory: Path, evidence: Evidence, user_code: UserCode) -> Translated:
    """When the run was last heard of, then a sentence for each of its first ranks."""
    heard = max((path.stat().st_mtime for path in directory.glob("rank*.*")), default=None)
    ranks = sorted(evidence.ranks)
    said = [_NOTHING]
    if heard is not None and ranks:
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(heard))
        said = [_HEARD.filled(time=at)]
    said += [_of_rank(evidence.ranks[rank], directory, user_code) for rank in ranks[:_MOST_RANKS]]
    if len(ranks) > _MOST_RANKS:
        said.append(_MORE.filled(count=len(ranks) - _MOST_RANKS))
    return Translated(" ".join(each.en for each in said), "".join(each.zh_cn for each in said))


def _of_rank(rank: RankEvidence, directory: Path, user_code: UserCode) -> Translated:
    line = _last_line([directory / f"rank{rank.rank}.{name}" for name in ("stdout", "stderr")])
    frame = innermost_user_frame(user_code.marked(rank.beat))
    sentence = _PRINTED if line else _SILENT
    where = "" if frame is None else _AT.filled(place=place(frame))
    return sentence.filled(rank=rank.rank, line=line, where=where)


def _last_line(paths: Sequence[Path]) -> str:
    """Of the file that was written to last, the last line that is not blank."""
    written = [path for path in paths if path.is_file() and path.stat().st_size]
    for path in sorted(written, key=lambda each: each.stat().st_mtime, reverse=True):
        lines = [line.strip() for line in read_tail(path).splitlines() if line.strip()]
        if lines:
            return redacted_text(lines[-1])[:_LONGEST]
    return ""


_HEARD = Translated(en="It was last heard of at {time}.", zh_cn="最后一次收到消息是在 {time}。")
_NOTHING = Translated(en="No rank of it was ever heard of.", zh_cn="从未收到任何 rank 的消息。")
_PRINTED = Translated(
    en='Rank {rank} last printed "{line}"{where}.', zh_cn="rank {rank} 最后输出“{line}”{where}。"
)
_SILENT = Translated(
    en="Rank {rank} had printed nothing{where}.", zh_cn="rank {rank} 没有输出{where}。"
)
_AT = Translated(en=" and was at {place}", zh_cn="，位于 {place}")
_MORE = Translated(en="{count} more ranks were seen, too.", zh_cn="另有 {count} 个 rank。")
