"""A run on another host that is no longer seen from here, or that went down with its host, and what is known of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ranksafe.localization import Language, Translated
from ranksafe.runs.explain.evidence import Evidence, RankEvidence, read_tail
from ranksafe.runs.explain.locate import UserCode, innermost_user_frame, place
from ranksafe.runs.model import Failure
from ranksafe.runs.records.redaction import redacted_text

DETACHED: Final = "detached"
"""Status of a run that the user stopped looking for."""
HOST_LOST: Final = "host-lost"
"""Status of a run whose host was sought for as long as the user's patience lasts."""
HOST_RESTARTED: Final = "host-restarted"
"""Status of a run whose host was started anew while it went on."""
STATUSES: Final = frozenset({DETACHED, HOST_LOST, HOST_RESTARTED})
_MOST_RANKS: Final = 8
_LONGEST = 120


def out_of_sight(
    status: str, target: str, run_id: str, known: Translated, language: Language
) -> Failure:
    """What there is to say of it: nothing about the script. ``known``: of its ranks."""
    kind, message, explanation = _WORDS[status]
    filled = explanation.filled(run=run_id, known=known)
    return Failure.without_place(kind, message.filled(target=target), filled, language)


_MESSAGE = Translated(
    en="the connection to {target} is lost; the run goes on there",
    zh_cn="与 {target} 的连接已断开；运行在那里继续",
)
_EXPLANATION = Translated(
    en="`ranksafe attach {run}` follows it again, from where it was lost, and explains its end. The host ends it by "
    "itself when nobody comes back within the hours of its lease (`lease-hours` in hosts.toml). {known}",
    zh_cn="`ranksafe attach {run}` 可从断开处继续查看，并解释其结果。若在租约时间内（hosts.toml 的 `lease-hours`）"
    "无人返回，主机会自行结束它。{known}",
)
_HOST_LOST_MESSAGE = Translated(
    en="{target} did not come back: it was lost while the run went on",
    zh_cn="{target} 没有恢复：运行期间失去了与它的联系",
)
_HOST_LOST = Translated(
    en="Its end is not known. {known} If the host is down, the run ended with it; if only the network is, the run goes "
    "on there until its lease is over (`lease-hours` in hosts.toml). Either way `ranksafe attach {run}` tells once the "
    "host can be reached. How long it is sought is `patience-minutes` in hosts.toml.",
    zh_cn="其结果未知。{known}如果主机已停机，运行也随之结束；如果只是网络中断，运行会在那里继续，直到租约结束"
    "（hosts.toml 的 `lease-hours`）。主机可以访问之后，`ranksafe attach {run}` 会说明是哪一种。"
    "寻找主机的时间由 hosts.toml 中的 `patience-minutes` 指定。",
)
_RESTARTED_MESSAGE = Translated(
    en="{target} was restarted while the run went on, which ended it",
    zh_cn="运行期间 {target} 重新启动，运行因此结束",
)
_RESTARTED = Translated(
    en="Nothing of the script's is to blame. {known} What it had written until then (checkpoints, say) is in the "
    "project's folder there.",
    zh_cn="问题不在脚本。{known}到那时为止写入的内容（例如检查点）仍在那里的项目文件夹中。",
)
_WORDS: Final = {
    DETACHED: ("connection-lost", _MESSAGE, _EXPLANATION),
    HOST_LOST: ("host-lost", _HOST_LOST_MESSAGE, _HOST_LOST),
    HOST_RESTARTED: ("host-restarted", _RESTARTED_MESSAGE, _RESTARTED),
}


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
