"""A job's state in words: where it waits and why, where it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ranksafe.localization import Translated


def job_in_words(job: str, state: Mapping[str, Any]) -> Translated:
    """``job``: its number; ``state``: as the login node's watcher tells it."""
    name, reason, position = state.get("state"), state.get("reason"), state.get("position")
    nodes = state.get("nodes") or []
    if name == "RUNNING" and nodes:
        return _RUNNING.filled(job=job, nodes=", ".join(str(node) for node in nodes))
    if name == "PENDING":
        why = _REASONS.get(str(reason), Translated(str(reason), str(reason)))
        waits = _WAITS.filled(job=job, reason=why)
        if position:
            waits = _POSITION.filled(waits=waits, position=position)
        if state.get("start"):
            waits = _EXPECTED.filled(waits=waits, start=str(state["start"]).replace("T", " "))
        return waits
    if name == "NO_ANSWER":
        return _NO_ANSWER.filled(job=job)
    if name == "COMPLETING":
        return _ENDING.filled(job=job)
    return _STATE.filled(job=job, state=name)


_RUNNING = Translated(en="job {job} runs on {nodes}", zh_cn="作业 {job} 正在 {nodes} 上运行")
_WAITS = Translated(en="job {job} waits: {reason}", zh_cn="作业 {job} 正在排队：{reason}")
_POSITION = Translated(
    en="{waits}; number {position} in the queue", zh_cn="{waits}；队列中第 {position} 位"
)
_EXPECTED = Translated(
    en="{waits}; expected to start at {start}", zh_cn="{waits}；预计 {start} 开始"
)
_NO_ANSWER = Translated(
    en="Slurm's controller does not answer; job {job} goes on, and it is asked again",
    zh_cn="Slurm 控制器没有应答；作业 {job} 会继续，稍后将再次查询",
)
_ENDING = Translated(en="job {job} is ending", zh_cn="作业 {job} 正在结束")
_STATE = Translated(en="job {job}: {state}", zh_cn="作业 {job}：{state}")
_REASONS = {
    "Resources": Translated(
        "the nodes it needs are in use (Resources)", "所需节点正被占用（Resources）"
    ),
    "Priority": Translated(
        "jobs with a higher priority come first (Priority)", "优先级更高的作业在前（Priority）"
    ),
    "ReqNodeNotAvail": Translated(
        "a node it needs is out of service (ReqNodeNotAvail)", "所需节点不可用（ReqNodeNotAvail）"
    ),
    "PartitionTimeLimit": Translated(
        "it asks for more time than the partition gives (PartitionTimeLimit)",
        "请求的时间超过分区时限（PartitionTimeLimit）",
    ),
    "Dependency": Translated(
        "it depends on another job (Dependency)", "依赖另一个作业（Dependency）"
    ),
    "QOSMaxJobsPerUserLimit": Translated(
        "you have as many jobs as your quality of service allows (QOSMaxJobsPerUserLimit)",
        "您的作业数已达服务质量（QOS）上限（QOSMaxJobsPerUserLimit）",
    ),
    "AssocGrpGRES": Translated(
        "your account uses as many GPUs as it may (AssocGrpGRES)",
        "您的账户使用的 GPU 数已达上限（AssocGrpGRES）",
    ),
    "None": Translated("not looked at yet", "调度器尚未处理"),
}
