"""What a rule reports."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, IntEnum
from pathlib import Path
from typing import Any

from ranksafe.localization import Translated
from ranksafe.source.position import Range


class Level(IntEnum):
    """How certain and how bad; a larger value is worse.

    ERROR: certain to fail in the known launch context. WARNING: fails, hangs or is silently wrong on several ranks.
    INFORMATION: slower or fragile, or a pitfall of a launcher that is not known to be used.
    """

    INFORMATION = 1
    WARNING = 2
    ERROR = 3

    @property
    def label(self) -> str:
        """The level's name as users write it (``error``, ``warning``, ``information``)."""
        return self.name.lower()


class Applicability(str, Enum):
    """Whether a fix may be applied without reading it.

    SAFE: same meaning on one device, right on many. UNSAFE: changes numbers, batches or files (the title says what).
    DISPLAY: explained only, no edit.
    """

    SAFE = "safe"
    UNSAFE = "unsafe"
    DISPLAY = "display"


@dataclass(frozen=True, slots=True)
class Related:
    """Another place that belongs to a finding: where the model was loaded, where it was handed over."""

    message: Translated
    range: Range
    path: Path | None = None
    """None: in the same document as the finding."""


@dataclass(frozen=True, slots=True)
class FixOffer:
    """A promise that the rule's fix module can build an edit; the edit is computed when it is asked for.

    ``key`` tells the fix module which of its fixes is meant (one finding may have several).
    """

    key: str
    title: Translated
    applicability: Applicability


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule firing at a place in the source."""

    code: str
    name: str
    level: Level
    message: Translated
    range: Range
    related: tuple[Related, ...] = ()
    fixes: tuple[FixOffer, ...] = ()
    data: tuple[tuple[str, Any], ...] = field(default=(), compare=True)
    """Facts the fix needs again (JSON values, sorted by name), never positions: the fix finds those afresh."""

    @property
    def facts(self) -> dict[str, Any]:
        """`data` as a dictionary."""
        return dict(self.data)
