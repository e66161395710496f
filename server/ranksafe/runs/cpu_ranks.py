"""How many ranks a run has where they share a machine's processors instead of having a GPU each."""

from __future__ import annotations

from typing import Final

from ranksafe.localization import Translated
from ranksafe.runs.errors import RunNotPossible

_USUAL: Final = 2
_MOST: Final = 256
"""Each is a process with torch in it, of about 250 MB: more is a slip of the hand, and takes the machine down."""


def cpu_ranks(wanted: int | None) -> int:
    """The number of ranks, two where none is asked for. Raises RunNotPossible for a number no machine should meet."""
    if wanted is not None and wanted > _MOST:
        raise RunNotPossible(_TOO_MANY.filled(wanted=wanted, most=_MOST))
    return wanted or _USUAL


_TOO_MANY = Translated(
    en="{wanted} ranks are too many for the processors of one machine: at most {most}.",
    zh_cn="单机的处理器无法运行 {wanted} 个 rank：最多 {most} 个。",
)
