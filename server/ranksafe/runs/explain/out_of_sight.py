"""A run on another host that is no longer seen from here, though it may go on."""

from __future__ import annotations

from ranksafe.localization import Language, Translated
from ranksafe.runs.model import Failure


def out_of_sight(target: str, run_id: str, language: Language) -> Failure:
    """What there is to say of it: nothing about the script."""
    return Failure(
        kind="connection-lost",
        code=None,
        rank=None,
        message=_MESSAGE.filled(target=target).in_language(language),
        filename=None,
        line=None,
        column=None,
        end_line=None,
        end_column=None,
        frames=(),
        explanation=_EXPLANATION.filled(run=run_id),
    )


_MESSAGE = Translated(
    en="the connection to {target} is lost; the run goes on there",
    zh_cn="与 {target} 的连接已断开；运行在那里继续",
)
_EXPLANATION = Translated(
    en="`ranksafe attach {run}` follows it again, from where it was lost, and explains its end. The host ends it by "
    "itself when nobody comes back within the hours of its lease (`lease-hours` in hosts.toml).",
    zh_cn="`ranksafe attach {run}` 可从断开处继续查看，并解释其结果。若在租约时间内（hosts.toml 的 `lease-hours`）"
    "无人返回，主机会自行结束它。",
)
