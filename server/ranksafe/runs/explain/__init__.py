"""From evidence to failures: which rank failed first, where in the user's code, and what it means."""

from __future__ import annotations

from ranksafe.runs.explain.explain import explain

__all__ = ["explain"]
