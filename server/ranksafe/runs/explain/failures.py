"""From one rank's ending to a `Failure`: message, place, explanation."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import replace

from ranksafe.localization import Language, Translated, both
from ranksafe.runs.explain import limits
from ranksafe.runs.explain.deaths import (
    Death,
    Ending,
    is_crash,
    known_failure,
    signal_name,
)
from ranksafe.runs.explain.evidence import Evidence, Raised, RankEvidence
from ranksafe.runs.explain.going_down import hidden_cause
from ranksafe.runs.explain.launcher_report import LAUNCHER_ERRORS
from ranksafe.runs.explain.locate import APPROXIMATE, UserCode, innermost_user_frame
from ranksafe.runs.explain.printed import printed_failure
from ranksafe.runs.explain.signatures import (
    UNKNOWN,
    Signature,
    match,
    meaning_of_end,
    signatures_about,
)
from ranksafe.runs.explain.traceback_text import parse_tracebacks
from ranksafe.runs.explain.unfold import spawned_rank, unfold
from ranksafe.runs.explain.unlisted import quoted_from_worker, unlisted
from ranksafe.runs.model import Failure, Frame

_MESSAGE_LIMIT = 2000
_MESSAGE_END = 600
_STARVED = frozenset({"Empty", "Full", "TimeoutError", "BrokenBarrierError"})
"""What a thread meets that waits for one which is gone."""
_LOST_CHILD = frozenset({"EOFError", "BrokenPipeError", "ConnectionResetError"})
"""What a pipe to a process answers that has ended."""
_PIPES = ("/multiprocessing/connection.py", "/multiprocess/connection.py")
_LAUNCHER = "launcher"
"""The kind of what failed before, or without, a rank to blame."""
_NO_PIN_THREAD = "Pin memory thread exited unexpectedly"
"""torch 2.13.0, torch/utils/data/dataloader.py."""


def marked_evidence(evidence: Evidence, user_code: UserCode) -> Evidence:
    """The evidence with quoted tracebacks unfolded and the user's frames marked everywhere."""
    for rank in evidence.ranks.values():
        if rank.raised is None and rank.thread_errors and not rank.ended:
            rank.raised = rank.thread_errors[-1]
        if rank.raised is not None and is_starved(rank.raised):
            rank.raised = _starved_by(rank.raised, rank.thread_errors, user_code)
        if rank.raised is None and not _went_on(rank):
            rank.raised = _printed(rank.errors)
        if rank.raised is not None:
            rank.raised = hidden_cause(_marked(unfold(rank.raised), user_code))
        rank.exit_frames = user_code.marked(rank.exit_frames)
        rank.beat = user_code.marked(rank.beat)
        rank.fatal = user_code.marked(rank.fatal)
    return evidence


def is_starved(raised: Raised) -> bool:
    """Whether it was raised by who waited in vain for a thread or a process of the program's own."""
    if raised.type in _LOST_CHILD and raised.frames:
        return raised.frames[-1].filename.replace("\\", "/").endswith(_PIPES)
    return raised.type in _STARVED or raised.message.startswith(_NO_PIN_THREAD)


def _starved_by(waited: Raised, thread_errors: Sequence[Raised], user_code: UserCode) -> Raised:
    """The first exception that ended a thread of the user's code: what the main thread then waited for in vain."""
    marked = (_marked(unfold(error), user_code) for error in thread_errors)
    found = next(
        (error for error in marked if innermost_user_frame(error.frames) is not None), None
    )
    return waited if found is None else replace(found, context=waited)


def _went_on(rank: RankEvidence) -> bool:
    """Whether nothing of the rank's own ended it, so that a traceback which it printed last was of a caught error."""
    in_order = rank.ended and not rank.asked_exit and rank.os_exit is None
    return in_order or rank.exit in (0, -signal.SIGTERM)


def _printed(errors: str) -> Raised | None:
    """The last traceback on standard error, for ranks whose agent saw none.

    One that came before a traceback-less end was handled by the script, so only a final one counts.
    """
    found = parse_tracebacks(errors[-20_000:])
    if not found:
        return None
    last = found[-1]
    ending = errors.rstrip()[-4000:]
    return last if last.message[-200:] and ending.endswith(last.message[-200:]) else None


def _marked(raised: Raised, user_code: UserCode) -> Raised:
    return replace(
        raised,
        frames=user_code.marked(raised.frames),
        cause=_marked(raised.cause, user_code) if raised.cause else None,
        context=_marked(raised.context, user_code) if raised.context else None,
        group=tuple(_marked(member, user_code) for member in raised.group),
    )


def failure_of(death: Death, deaths: Sequence[Death], language: Language) -> Failure:
    """The failure of one rank."""
    if death.raised is not None:
        spawned = spawned_rank(death.raised)
        rank = death.rank.rank if spawned is None else spawned
        failure = raised_failure(death.raised, rank, language, death.known)
        if failure.kind == "batch-norm-single-sample" and death.rank.steps == 0:
            # The very first batch: not a last partial one, but one sample per process or replica.
            failure = replace(failure, code="RS302")
        return failure
    if death.ending is Ending.FINISHED:
        return _left_early(death, deaths, language)
    return _silent(death, language)


_WAITED_IN_VAIN = Translated(
    en='This exception ended "{where}", a thread or process of the rank, which then waited for it in vain ({type}).',
    zh_cn="该异常终止了该 rank 的线程或进程“{where}”，随后该 rank 一直徒劳地等待它（{type}）。",
)


def raised_failure(
    raised: Raised,
    rank: int | None,
    language: Language,
    known: tuple[Signature, Translated] | None,
) -> Failure:
    """The failure an exception tells of. The place is where the trouble began: its explicit cause, if it has one.

    ``known``: as what it is known.
    """
    limit = limits.limit_behind(raised)
    if limit is not None:
        # Not the script's failure: `rehearsed` takes it from here.
        return _located(
            Failure(
                kind=limits.KIND,
                rank=rank,
                message=_short(limits.limit_text(limit.message)),
                frames=_call_chain(raised, limit),
                explanation=limits.EXPLANATION,
            )
        )
    origin = blamed(raised)
    explanation = known[1] if known else unlisted(raised, origin)
    if raised.where and raised.context is not None and is_starved(raised.context):
        told = _WAITED_IN_VAIN.filled(where=raised.where, type=raised.context.type)
        explanation = told if explanation is UNKNOWN else both(explanation, told)
    return _located(
        Failure(
            kind=known[0].kind if known else "exception",
            code=known[0].code if known else None,
            rank=rank,
            message=_message(raised, origin, language),
            frames=_call_chain(raised, origin),
            explanation=explanation,
        )
    )


def blamed(raised: Raised) -> Raised:
    """The exception at the bottom: through explicit causes and groups, as long as they touch the user's code."""
    first: Raised | None = None
    for origin in (raised.cause, *raised.group):
        if origin is None:
            continue
        deeper = blamed(origin)
        if innermost_user_frame(deeper.frames) is not None:
            return deeper
        first = first or deeper
    return raised if first is None or innermost_user_frame(raised.frames) is not None else first


def _call_chain(raised: Raised, origin: Raised) -> tuple[Frame, ...]:
    """The frames that lead to the blamed exception.

    A cause's own traceback begins where it was caught, so what called that function is taken from the exception it
    became; one from a worker or a replica continues its caller's frames where it has none of the user's.
    """
    if origin is raised or not origin.frames:
        return raised.frames
    if origin.where is not None:
        return (
            origin.frames if innermost_user_frame(origin.frames) else raised.frames + origin.frames
        )
    first = origin.frames[0]
    for index in range(len(raised.frames) - 1, -1, -1):
        frame = raised.frames[index]
        if (frame.filename, frame.function) == (first.filename, first.function):
            return raised.frames[:index] + origin.frames
    return origin.frames


_CAUSED_BY = Translated(en="{outer} (caused by {inner})", zh_cn="{outer}（起因：{inner}）")


def _message(raised: Raised, origin: Raised, language: Language) -> str:
    if origin is raised and (quoted := quoted_from_worker(raised)) is not None:
        origin = quoted
    first = _short(origin.text if origin.where else raised.text)
    if origin.where:
        return f"{first} [{origin.where}]"
    if origin is raised or _short(origin.text) == first:
        return first
    return _CAUSED_BY.in_language(language).format(outer=first, inner=_short(origin.text))


def _short(text: str) -> str:
    head = text.split("\nOriginal Traceback", 1)[0].strip()
    if len(head) <= _MESSAGE_LIMIT:
        return head
    # Libraries put the reason last.
    return f"{head[: _MESSAGE_LIMIT - _MESSAGE_END]}\n…\n{head[-_MESSAGE_END:]}"


def _located(failure: Failure) -> Failure:
    return failure.at(innermost_user_frame(failure.frames))


_KILLED = Translated(en="killed by {signal}", zh_cn="被 {signal} 终止")
_ENDED = Translated(en="ended with exit status {status}{how}", zh_cn="以退出码 {status} 结束{how}")


def _silent(death: Death, language: Language) -> Failure:
    """A rank that left no exception: what is known of its end, and the last line it was seen on."""
    rank, status = death.rank, death.exit or 0
    frames = rank.fatal or rank.exit_frames or rank.beat
    exact = bool(rank.fatal or rank.exit_frames)
    told = (
        printed_failure(list(enumerate(rank.errors[-4000:].splitlines()))) if status > 0 else None
    )
    known = match(told.raised.text) if told is not None else None
    if status < 0:
        name = signal_name(status)
        of_signal = next(each for each in signatures_about("signals") if each.pattern.search(name))
        kind, explanation = of_signal.kind, of_signal.explanation
        message = _KILLED.in_language(language).format(signal=name)
    else:
        kind = "exit-status"
        how = "os._exit" if rank.os_exit is not None else "sys.exit" if rank.exit_frames else ""
        suffix = f" ({how})" if how else ""
        message = _ENDED.filled(status=status, how=suffix).in_language(language)
        explanation = meaning_of_end(kind)
    if known is not None and not known[0].secondary:
        kind, explanation = known[0].kind, known[1]
    if not exact and frames:
        explanation = both(explanation, APPROXIMATE)
    return _located(
        Failure(
            kind=kind,
            code=known[0].code if known else None,
            rank=rank.rank,
            message=message,
            frames=frames,
            explanation=explanation,
        )
    )


_LEFT_EARLY_MESSAGE = Translated(
    en="rank {rank} ended while rank {peer} was still waiting for it in a collective",
    zh_cn="rank {rank} 已结束，而 rank {peer} 仍在集合通信中等待它",
)
_CRASHED_LEAVING = Translated(
    en="Its script had ended when compiled code crashed in its process ({signal}): that follows, and "
    "dist.destroy_process_group() at the end of the script avoids it.",
    zh_cn="其脚本结束之后，进程中的编译代码才崩溃（{signal}）：这是后果，在脚本末尾调用 "
    "dist.destroy_process_group() 可避免。",
)


def _left_early(death: Death, deaths: Sequence[Death], language: Language) -> Failure:
    """The place is where a peer still waited; the rank that left has no line any more."""
    waiting = next(each for each in deaths if each.ending is Ending.PEER_LOST)
    assert waiting.raised is not None
    failure = raised_failure(waiting.raised, death.rank.rank, language, waiting.known)
    message = _LEFT_EARLY_MESSAGE.filled(rank=death.rank.rank, peer=waiting.rank.rank)
    explanation = meaning_of_end("rank-left-early")
    if death.exit and is_crash(death):
        crashed = _CRASHED_LEAVING.filled(signal=signal_name(death.exit))
        explanation = both(explanation, crashed)
    return replace(
        failure,
        kind="rank-left-early",
        code=None,
        message=message.in_language(language),
        explanation=explanation,
    )


_LOST_MESSAGE = Translated(en="the run's supervisor died", zh_cn="运行的监督进程已终止")


def launcher_failure(evidence: Evidence, user_code: UserCode, language: Language) -> Failure | None:
    """A run that failed before, or without, a rank of its own to blame."""
    if evidence.status == "lost":
        return Failure.without_place(
            "run-lost", _LOST_MESSAGE, meaning_of_end("run-lost"), language
        )
    told = [_marked(unfold(each), user_code) for each in parse_tracebacks(evidence.launcher)]
    own = [each for each in told if each.type not in LAUNCHER_ERRORS]
    if own:
        failure = raised_failure(own[0], None, language, known_failure(own[0], evidence))
        if failure.kind == "exception":
            failure = replace(failure, kind=_LAUNCHER, explanation=meaning_of_end(_LAUNCHER))
        return failure
    printed = printed_failure(list(enumerate(evidence.launcher.splitlines())))
    if printed is not None and not printed.secondary:
        raised = printed.raised
        return raised_failure(raised, None, language, known_failure(raised, evidence))
    if not evidence.returncode:
        return None
    if evidence.returncode < 0:
        # What it said last, it said of something else.
        killed = _KILLED.filled(signal=signal_name(evidence.returncode))
        return Failure.without_place(_LAUNCHER, killed, meaning_of_end(_LAUNCHER), language)
    text = _last_line(evidence.launcher) or f"exit status {evidence.returncode}"
    said = Translated(text, text)
    return Failure.without_place(_LAUNCHER, said, meaning_of_end(_LAUNCHER), language)


def _last_line(text: str) -> str:
    # Launchers draw lines of stars around what they say.
    lines = [line for line in text.splitlines() if any(map(str.isalnum, line))]
    errors = [line for line in lines if "rror" in line or "xited with" in line]
    return (errors or lines or [""])[-1].strip()[:500]
