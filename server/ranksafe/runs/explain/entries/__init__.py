"""What a failure means where its log shows more than the message: data, each entry with its conditions."""

from ranksafe.runs.explain.entries.entry import Confidence, Entry, entries
from ranksafe.runs.explain.entries.refine import refined

__all__ = ["Confidence", "Entry", "entries", "refined"]
