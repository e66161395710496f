"""What only a rehearsal runs into: things the simulated devices, or this machine, cannot do.

A limit is never the user's error, so it is recognised before anything else is made of an exception.
"""

from __future__ import annotations

import re

from ranksafe.localization import Translated, both
from ranksafe.rehearsal.settings import LIMIT_PREFIX
from ranksafe.runs.explain.cpu_kernels import refused_by_the_cpu
from ranksafe.runs.explain.evidence import Raised
from ranksafe.runs.explain.signatures import meaning_of, signatures_about
from ranksafe.runs.model import Failure

KIND = "simulation-limit"
"""Of a failure that the simulated devices themselves called a limit."""
_TYPE = "SimulationLimit"
_CPP_TRACE = re.compile(
    r"\n(?:Exception raised from|C\+\+ CapturedTraceback|CPU: registered at).*", re.DOTALL
)


def limit_behind(raised: Raised) -> Raised | None:
    """The limit that an exception is or came from; what was being handled when it was raised counts, too."""
    limits = (each for each in raised.chain() if each.type == _TYPE or LIMIT_PREFIX in each.message)
    return next(limits, None)


def limit_text(text: str) -> str:
    """The words of a limit, without the prefix and without what libtorch appends to its messages."""
    _, found, rest = text.partition(LIMIT_PREFIX)
    return _CPP_TRACE.sub("", rest if found else text).strip()


def kind_of_limit(failure: Failure, *, offline: bool) -> str | None:
    """Which limit of a rehearsal an ordinary-looking failure is; None: it is none.

    ``offline``: the network was kept out of reach, so a failed download says nothing about the script.
    """
    if failure.kind in _KINDS:
        return _KINDS[failure.kind]
    if offline and failure.kind == "no-network":
        return "network"
    return kind_of_text(failure.message, offline=offline)


def kind_of_text(text: str, *, offline: bool) -> str | None:
    """The same for an exception's "Type: message"."""
    if LIMIT_PREFIX in text or text.startswith(_TYPE):
        return KIND
    if refused_by_the_cpu(text):
        return "missing-kernel"
    rows = signatures_about("limits")
    kinds = (each.kind for each in rows if each.pattern.search(text))
    return next((kind for kind in kinds if offline or kind != "network"), None)


def explained(kind: str) -> Translated:
    """What a kind of limit means, and what that says of the script."""
    meaning = meaning_of("limits", kind)
    return EXPLANATION if meaning is None else both(meaning, EXPLANATION)


_KINDS = {
    "host-out-of-memory": "host-memory",
    "worker-killed": "host-memory",
    "shared-memory": "host-memory",
    "disk-full": "disk",
    "write-failed": "disk",
    "worker-died": "host-memory",
    "fatal-signal": "crash",
}
"""Known failures that say something of this machine only."""
EXPLANATION = Translated(
    en="The rehearsal cannot go beyond this point. This says nothing about your code: what came before worked, what "
    "comes after was not tried.",
    zh_cn="预演无法越过此处。这并不说明你的代码有问题：此前的部分运行正常，此后的部分没有尝试。",
)
