"""What would make it fit: as a table, and as JSON."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from ranksafe.cli.output.forecast import needs_json
from ranksafe.localization import Language, Translated
from ranksafe.runs.fit_search import GPUS, Change, Trial
from ranksafe.runs.fit_trials import (
    NOTHING_EXPOSED,
    conclusion,
    recommended,
    remarks,
    told,
)

_OURS = {
    "--search": False,
    "--max-runs": True,
    "--compare": True,
    "--snapshot": True,
    "--gpus": True,
}
"""Options that a command for one change is told without, or anew, and whether a value follows."""
_HEADLINE = Translated(
    "what would make it fit ({runs} more runs):", "怎样才能放下（另外运行 {runs} 次）："
)
_STOPPED = Translated(
    "the search was stopped; this is what is known", "搜索已停止；以上是已知的结果"
)
_AFTER_EDIT = Translated("    after that edit: {command}", "    修改之后：{command}")


def as_text(
    trials: Sequence[Trial], words: Sequence[str], language: Language, *, stopped: bool
) -> list[str]:
    """The lines; ``words``: those of our own command line."""
    return [
        each if isinstance(each, str) else each.in_language(language)
        for each in _lines(trials, words, stopped)
    ]


def _lines(
    trials: Sequence[Trial], words: Sequence[str], stopped: bool
) -> Iterator[Translated | str]:
    if not trials and not stopped:
        yield NOTHING_EXPOSED
        return
    yield _HEADLINE.filled(runs=len(trials))
    for trial in trials:
        for each in (told(trial), *remarks(trial)):
            yield Translated(f"  {each.en}", f"  {each.zh_cn}")
        reproduces = shlex.join(command(trial.change, words))
        if trial.change.is_written:
            yield _AFTER_EDIT.filled(command=reproduces)
        else:
            yield f"    {reproduces}"
    if stopped:
        yield _STOPPED
    if trials:
        yield conclusion(trials)


def command(change: Change, words: Sequence[str]) -> list[str]:
    """What reproduces a row."""
    kept: list[str] = []
    skip = False
    for word in words:
        name, equals, _ = word.partition("=")
        if skip:
            skip = False
        elif name in _OURS:
            skip = _OURS[name] and not equals
        else:
            kept.append(word)
    script = ["--", *change.arguments] if change.arguments else []
    return ["ranksafe", "fit", *kept, "--gpus", str(change.gpus), *script]


def as_json(
    trials: Sequence[Trial], words: Sequence[str], language: Language, *, stopped: bool
) -> dict[str, Any]:
    """One object; sizes in bytes."""
    best = recommended(trials)
    return {
        "stopped": stopped,
        "recommended": None if best is None else trials.index(best),
        "summary": as_text(trials, words, language, stopped=stopped),
        "trials": [
            {
                "what": " + ".join(trial.change.kinds),
                "change": list(trial.change.told),
                "arguments": list(trial.change.arguments),
                "gpus": trial.change.gpus,
                "command": command(trial.change, words),
                "edits": list(_edits(trial.change)),
                "keeps_effective_batch": None
                if GPUS in trial.change.kinds
                else trial.change.batch is None,
                "fits": None if trial.fits is None else trial.fits.value,
                "outcome": trial.outcome.value,
                "needs": None
                if trial.forecast is None or trial.fits is None
                else needs_json(trial.forecast.largest, is_whole=True),
            }
            for trial in trials
        ],
    }


def _edits(change: Change) -> Iterator[dict[str, Any]]:
    """Of the script, before the command shows the same; columns from 1, in characters."""
    for file, edit in change.written:
        start, end = edit.range.start, edit.range.end
        yield {
            "filename": str(file.absolute()),
            "location": {"row": start.line + 1, "column": start.column + 1},
            "end_location": {"row": end.line + 1, "column": end.column + 1},
            "content": edit.new_text,
        }
