"""The text of a log of many ranks, from bytes to what each rank said, in constant memory."""

from __future__ import annotations

from ranksafe.runs.log_text.decode import is_binary
from ranksafe.runs.log_text.reader import LogReader

__all__ = ["LogReader", "is_binary"]
