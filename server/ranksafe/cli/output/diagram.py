"""What two ranks do, as two columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ranksafe.cli.terminal import Style, display_width
from ranksafe.localization import Language, Translated
from ranksafe.rank_flow.diagram import Cell, Row, Traces
from ranksafe.rank_flow.traces import Place

_IN_FUNCTION = Translated(
    "What two ranks do in `{name}` ({path}:{line}):",
    "两个 rank 在 `{name}`（{path}:{line}）中的行为：",
)
_AT_TOP = Translated(
    "What two ranks do in {path}, outside its functions:", "两个 rank 在 {path} 的函数之外的行为："
)
_MARKED = Translated(
    "> here the ranks part, or do not fit together", "> 各 rank 在此处分开，或彼此不一致"
)
_NOT_MARKED = Translated(
    "Ranks 0 and 1 do the same here: the finding is about other ranks, or about how the operation is used.",
    "rank 0 和 rank 1 在此处行为相同：该提示涉及其他 rank，或操作的使用方式。",
)
_CELLS = {
    "operation": Translated("{text} {place}", "{text}{place}"),
    "exit": Translated("{text} {place}", "{text}{place}"),
    "opaque": Translated("unknown call {text} {place}", "未知调用 {text}{place}"),
    "call": Translated("calls {text} {place}", "调用 {text}{place}"),
    "taken": Translated("if {text} {place}: yes", "如果 {text}{place}：是"),
    "not-taken": Translated("if {text} {place}: no", "如果 {text}{place}：否"),
    "if": Translated("if {text} {place}", "如果 {text}{place}"),
    "unless": Translated("if not {text} {place}", "如果不满足 {text}{place}"),
    "else": Translated("else {place}", "否则{place}"),
    "loop": Translated("repeated {place}", "重复{place}"),
}
_LINE = Translated("(line {line})", "（第 {line} 行）")
_ELSEWHERE = Translated("({path}:{line})", "（{path}:{line}）")
_NOTHING = "-"
_INDENT = "  "


def render(
    traces: Traces,
    rows: Sequence[Row],
    path: Path,
    language: Language,
    style: Style,
    *,
    expects_parting: bool,
) -> str:
    """The diagram with its heading; ``expects_parting``: say so where the two ranks do not part."""
    line = traces.module.range_of(traces.root).start.line + 1 if traces.name else 0
    title = (_IN_FUNCTION if traces.name else _AT_TOP).filled(
        name=traces.name, path=path, line=line
    )
    table = [(row.parts, [_cell(cell, traces, language) for cell in row.cells]) for row in rows]
    width = max(display_width(cells[0]) for _, cells in table)
    width = max(width, len("rank 0"))
    lines = [style.paint("bold", title.in_language(language)), ""]
    lines.append("  " + style.paint("bold", f"{'rank 0':<{width}}   rank 1"))
    for parts, (first, second) in table:
        padded = first + " " * (width - display_width(first))
        text = f"{'>' if parts else ' '} {padded} | {second}"
        lines.append(style.paint("yellow", text) if parts else text)
    if any(parts for parts, _ in table):
        lines += ["", _MARKED.in_language(language)]
    elif expects_parting:
        lines += ["", _NOT_MARKED.in_language(language)]
    return "\n".join(lines)


def _cell(cell: Cell | None, traces: Traces, language: Language) -> str:
    if cell is None:
        return _NOTHING
    text = _CELLS[cell.kind].filled(text=cell.text, place=_place(cell.place, traces))
    return _INDENT * cell.depth + text.in_language(language)


def _place(place: Place, traces: Traces) -> Translated:
    line = place.module.range_of(place.node).start.line + 1
    if place.module is traces.module or place.module.path is None:
        return _LINE.filled(line=line)
    path = Path(place.module.path)
    here = Path.cwd()
    shown = path.relative_to(here) if path.is_relative_to(here) else path
    return _ELSEWHERE.filled(path=shown.as_posix(), line=line)
