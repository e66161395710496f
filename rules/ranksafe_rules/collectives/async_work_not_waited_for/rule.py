"""RS413: an asynchronous collective that nobody waits for."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ranksafe.checker.finding import Applicability, FixOffer, Level
from ranksafe.checker.rule import RuleMetadata, Symptom
from ranksafe.localization import Translated
from ranksafe.rank_flow import CHANGED, CUT_OFF, KEPT, Issue, Kind
from ranksafe.semantics.module import Module

from ranksafe_rules.collectives.flow_rule import RankFlowRule

_MESSAGE = Translated(
    "Nobody waits for this asynchronous {operation}, but its tensor is "
    "used afterwards: the values may not be there yet",
    "没有等待这个异步的 {operation} 完成就使用了它的张量：其值可能尚未就绪",
)
_TOO_LATE = Translated(
    "The tensor of this asynchronous {operation} is used before anybody waits for it: "
    "the values may not be there yet, or change while they are sent",
    "在等待这个异步的 {operation} 完成之前就使用了它的张量：其值可能尚未就绪，或在发送途中被改写",
)
_CHANGED = Translated(
    "What this asynchronous {operation} sends is changed before anybody waits for it: "
    "the new values may arrive instead",
    "在等待这个异步的 {operation} 完成之前就改写了它所发送的张量：对方可能收到改写后的值",
)
_CUT_OFF = Translated(
    "Nobody waits for this asynchronous {operation}: with gloo a transfer ends when its work is "
    "thrown away, and the receiver waits for ever",
    "没有等待这个异步的 {operation} 完成：使用 gloo 时，work 一旦被丢弃，传输随之中止，接收方会一直等待",
)
_MESSAGES = {KEPT: _TOO_LATE, CHANGED: _CHANGED, CUT_OFF: _CUT_OFF}

_SYNCHRONOUS = Translated(
    "Wait for it in the call (drop async_op=True)", "在调用处等待完成（去掉 async_op=True）"
)


class AsyncWorkNotWaitedFor(RankFlowRule):
    """Reports asynchronous collectives whose tensor is used although nobody waits for the work, or not yet."""

    metadata = RuleMetadata(
        code="RS413",
        name="async-work-not-waited-for",
        summary=Translated(
            "An asynchronous collective that nobody waits for",
            "没有等待完成的异步集合通信",
        ),
        level=Level.WARNING,
        symptom=Symptom.WRONG,
        since="0.1.0",
    )
    kind = Kind.NEVER_WAITED_FOR

    def message(self, issue: Issue) -> Translated:
        """The sentence for one issue."""
        return _MESSAGES.get(issue.name, _MESSAGE).filled(operation=issue.operation)

    def fixes(self, issue: Issue, module: Module) -> Sequence[FixOffer]:
        """Dropping ``async_op`` where it is written in the call and nothing reads the work, which is None then."""
        call = issue.place.node
        if issue.name == KEPT:
            return []
        if not isinstance(call, ast.Call) or all(item.arg != "async_op" for item in call.keywords):
            return []
        holder = module.parent(call)
        if isinstance(holder, ast.Assign) and any(
            not isinstance(target, ast.Name) or module.loads_of_same_name(target)
            for target in holder.targets
        ):
            return []
        return [FixOffer("synchronous", _SYNCHRONOUS, Applicability.SAFE)]
