"""What forecasts of memory know of a script's arguments: told beside their names, and as edits of the script.

Only what a run has shown is told, and edits are offered only of the text that was run.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ranksafe.localization import Translated
from ranksafe.lsp.analysis import entry_of
from ranksafe.lsp.documents import Document, TextDocument
from ranksafe.lsp.fit_findings import Answer
from ranksafe.lsp.messages import (
    FIT_AFTER_EDIT,
    FIT_HEADING,
    FIT_LARGEST,
    FIT_NONE_FITS,
    FIT_OUTDATED,
    FIT_SET,
    FIT_WITH,
)
from ranksafe.lsp.session import Session
from ranksafe.source.position import Edit, Position, Range

_NAME: Final = re.compile(r"[\w-]+")


@dataclass(frozen=True, slots=True)
class Advice:
    """What is known at a place."""

    place: Range
    heading: Translated
    sentences: tuple[Translated, ...]
    command: str
    """That shows it again."""
    details: tuple[Translated, ...] = ()
    """What is in the figures, and what is not."""


@dataclass(frozen=True, slots=True)
class FitOffer:
    """A change of the script that was seen to fit."""

    title: Translated
    edits: tuple[Edit, ...]

    def touches(self, first: int, last: int) -> bool:
        """Whether it changes one of these lines."""
        return any(first <= each.range.start.line <= last for each in self.edits)


def advice_at(session: Session, document: Document, position: Position) -> Advice | None:
    """For the argument that is named at a place, and all of the answer at the script's entry; None where no forecast
    knows anything."""
    from ranksafe.runs.fit_arguments import key_of

    answer = session.forecasts.answer(document.path)
    if answer is None or answer.forecast is None:
        return None
    entry = entry_of(document) if isinstance(document, TextDocument) else None
    if entry is not None and entry.range.start.line == position.line:
        return _whole(answer, entry.range, document.text)
    for match in _NAME.finditer(document.line(position.line)):
        if match.start() <= position.column <= match.end():
            if key_of(match[0]) not in answer.exposed.keys:
                return None
            start, end = (
                Position(position.line, match.start()),
                Position(position.line, match.end()),
            )
            return _advice(answer, key_of(match[0]), Range(start, end), document.text)
    return None


def fit_offers(answer: Answer, text: str) -> Iterator[FitOffer]:
    """For a script with this text; the one that costs least first."""
    from ranksafe.runs.fit_trials import best_of_each_kind, change_told, needed, remarks

    if answer.holds_for(text):
        for trial in best_of_each_kind(answer.trials):
            if trial.change.edits:
                title = FIT_SET.filled(change=change_told(trial.change), needs=needed(trial))
                for also in remarks(trial):
                    title = Translated(f"{title.en}; {also.en}", f"{title.zh_cn}；{also.zh_cn}")
                yield FitOffer(title, trial.change.edits)


def _whole(answer: Answer, place: Range, text: str) -> Advice:
    command = _command(answer, answer.request.arguments)
    details = tuple(answer.details())
    return Advice(place, FIT_HEADING, (_said(answer, text),), command, details)


def _said(answer: Answer, text: str) -> Translated:
    said = answer.headline()
    return said if answer.holds_for(text) else FIT_OUTDATED.filled(answer=said)


def _advice(answer: Answer, key: str, place: Range, text: str) -> Advice:
    from ranksafe.runs.fit import Fits
    from ranksafe.runs.fit_trials import change_told, needed, told

    sentences = [_said(answer, text)]
    change = None
    trials = [
        each for each in answer.trials if key in {argument.key for argument, _ in each.change.sets}
    ]
    fitting = [each for each in trials if each.fits is Fits.YES]
    if fitting:
        change = fitting[-1].change
        sentence = (
            FIT_WITH if len(change.sets) == 1 and not change.sets[0][0].number else FIT_LARGEST
        )
        sentences.append(sentence.filled(change=change_told(change), needs=needed(fitting[-1])))
    elif trials:
        sentences += [FIT_NONE_FITS, *map(told, trials)]
    if change is not None and change.is_written:
        sentences.append(FIT_AFTER_EDIT)
    arguments = answer.request.arguments if change is None else change.arguments
    return Advice(place, FIT_HEADING, tuple(sentences), _command(answer, arguments))


def _command(answer: Answer, arguments: Sequence[str]) -> str:
    """Typed in the folder of the workspace, it forecasts the same."""
    request = answer.request
    script, folder = request.script, request.working_directory
    if folder is not None and script.is_relative_to(folder):
        script = script.relative_to(folder)
    words = ["ranksafe", "fit", str(script), "--gpus", str(answer.gpus)]
    words += ["--device-model", request.rehearsal.device_model]
    if request.rehearsal.memory_bytes is not None:
        words += ["--gpu-memory", f"{request.rehearsal.memory_bytes / 2**30:g}GiB"]
    if request.config_file is not None:
        words += ["--config-file", str(request.config_file)]
    return shlex.join([*words, "--", *arguments] if arguments else words)
