"""Why a host cannot be talked to."""

from __future__ import annotations

from ranksafe.runs.errors import RunNotPossible


class HostUnreachable(RunNotPossible):
    """No conversation began: unknown name or host key, refused, no permission, no interpreter there."""


class HostLost(RunNotPossible):
    """A conversation broke off: the network, the host, or the program's death."""


class ProgramFailed(RunNotPossible):
    """The program ran on the host, and ended badly."""
