"""The end of a run's log, however large the log is."""

from __future__ import annotations

from pathlib import Path

from ranksafe.localization import Translated
from ranksafe.runs.records.redaction import redacted_text
from ranksafe.runs.report.elements import Element, clean, element
from ranksafe.source.plain_files import open_plain

MOST_BYTES = 256 * 1024
MOST_LINES = 300
LONGEST_LINE = 1000
_LAUNCHER = "[launcher] "


def log_section(log: Path) -> list[Element]:
    """The ranks' last lines, and the launcher's apart; empty without a log."""
    lines, is_cut = _last_lines(log)
    if not lines:
        return []
    launcher = [line.removeprefix(_LAUNCHER) for line in lines if line.startswith(_LAUNCHER)]
    ranks = [line for line in lines if not line.startswith(_LAUNCHER)]
    found = [element("h2", _TITLE)]
    if is_cut or len(ranks) > MOST_LINES:
        found.append(element("p", _CUT.filled(path=log), class_="quiet"))
    if ranks:
        found.append(element("pre", "\n".join(ranks[-MOST_LINES:]), class_="log"))
    if launcher:
        pre = element("pre", "\n".join(launcher[-MOST_LINES:]), class_="log")
        found.append(element("details", element("summary", _OF_LAUNCHER), pre))
    return found


def _last_lines(log: Path) -> tuple[list[str], bool]:
    """Lines without colours and secrets, each of bounded length, and whether the log has more."""
    try:
        with open_plain(log) as file:
            size = file.seek(0, 2)
            start = max(0, size - MOST_BYTES)
            file.seek(start)
            text = file.read(MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return [], False
    lines = text.split("\n")
    if start:
        lines = lines[1:] if len(lines) > 1 else lines
    return [_bounded(line) for line in lines if line.strip()], start > 0


def _bounded(line: str) -> str:
    # Cut before it is cleaned, and with room for colours: cleaning a line of a megabyte is work for nothing.
    line = redacted_text(clean(line[: 4 * LONGEST_LINE]))
    return line if len(line) <= LONGEST_LINE else line[:LONGEST_LINE] + " …"


_TITLE = Translated("End of the log", "日志末尾")
_CUT = Translated(
    "Only its last lines; everything is in {path}.", "仅显示最后几行；完整日志见 {path}。"
)
_OF_LAUNCHER = Translated("The launcher's lines", "启动器的输出")
