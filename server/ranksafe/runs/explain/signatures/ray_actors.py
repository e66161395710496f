"""Ray's word for a process of its own that ended without an exception."""

from __future__ import annotations

from ranksafe.runs.explain.signatures.signature import Signature, signature

SIGNATURES: tuple[Signature, ...] = (
    signature(
        "ray-worker-died",
        # Ray 2.x, python/ray/exceptions.py and the raylet's log; what it guesses stands after "Worker exit detail:".
        r"ActorDiedError|WorkerCrashedError|OwnerDiedError|A worker died or was killed while executing a task"
        r"|The actor (?:is dead|died) because its (?:worker process|node) has died",
        en="A process of Ray ended without an exception of its own, so nothing in this log says why: it was killed "
        "for the machine's memory (look at dmesg, and in Kubernetes at the pod's limit), or compiled code crashed in "
        "it. Its own log, worker-* under /tmp/ray/session_latest/logs on its machine, has its last words. Lost "
        "connections of other ranks follow from it.",
        zh="Ray 的一个进程没有抛出自己的异常就结束了，因此此日志没有说明原因：它可能因主机内存不足被终止"
        "（请查看 dmesg，在 Kubernetes 中查看 pod 的内存上限），或其中的编译代码崩溃。其最后的输出在它所在机器的 "
        "/tmp/ray/session_latest/logs 下的 worker-* 日志中。其他 rank 的连接断开由此引起。",
    ),
)
