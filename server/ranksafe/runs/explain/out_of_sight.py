"""A run on another host that is no longer seen from here, or that went down with its host."""

from __future__ import annotations

from typing import Final

from ranksafe.localization import Language, Translated
from ranksafe.runs.model import Failure

DETACHED: Final = "detached"
"""Status of a run that the user stopped looking for."""
HOST_LOST: Final = "host-lost"
"""Status of a run whose host was sought for as long as the user's patience lasts."""
HOST_RESTARTED: Final = "host-restarted"
"""Status of a run whose host was started anew while it went on."""
STATUSES: Final = frozenset({DETACHED, HOST_LOST, HOST_RESTARTED})


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
