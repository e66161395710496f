"""What a forecast of memory said of a script, and the places that it concerns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ranksafe.checker.finding import Level, Related
from ranksafe.localization import Translated
from ranksafe.lsp.messages import FIT_AND, FIT_HELD, FIT_NO_ANSWER, FIT_OUTDATED
from ranksafe.lsp.run_findings import RunFinding, findings_of, place_of

if TYPE_CHECKING:
    from ranksafe.runs.fit import Forecast
    from ranksafe.runs.fit_arguments import Exposed
    from ranksafe.runs.fit_search import Trial
    from ranksafe.runs.model import Failure, Frame, RunRequest, RunResult


@dataclass(frozen=True, slots=True)
class Answer:
    """Of one forecast; the question alone while there is no `result`."""

    request: RunRequest
    gpus: int
    """That it is for; of many, one rank stands for all."""
    exposed: Exposed
    """The script's arguments that decide how much it takes."""
    lines: tuple[str, ...]
    """Of the script's text that was run; line ends differ between buffer and file in some editors."""
    result: RunResult | None = None
    """Of the run on bounded devices."""
    forecast: Forecast | None = None
    trials: tuple[Trial, ...] = ()
    """What was tried to make it fit."""
    is_searched: bool = False
    """Whether all was tried that was to be."""
    is_outdated: bool = False
    """A file that the script imports was saved since."""

    @property
    def script(self) -> Path:
        """Whose memory it is about."""
        return self.request.script

    @property
    def model(self) -> str:
        """The devices', in a word."""
        from ranksafe.runs.fit_words import short_name

        return short_name(self.request.rehearsal.device_model)

    @property
    def is_well(self) -> bool:
        """Whether nothing has to be done about it."""
        from ranksafe.runs.fit import Fits
        from ranksafe.runs.model import Outcome

        if self.forecast is None:
            return self.result is not None and self.result.outcome is Outcome.SUCCEEDED
        return self.forecast.fits is Fits.YES

    def holds_for(self, text: str) -> bool:
        """Whether it was given for this text of the script, and for its imports as they are."""
        return not self.is_outdated and self.lines == tuple(text.splitlines())

    def title(self, text: str) -> Translated | None:
        """A few words for a lens; None where the run gave no forecast. ``text``: the script's at this moment."""
        from ranksafe.runs import fit_words

        if self.forecast is None:
            return None
        title = fit_words.title(self.forecast, self.request, self.gpus)
        return title if self.holds_for(text) else FIT_OUTDATED.filled(answer=title)

    def said(self) -> Translated:
        """The answer in a sentence, for the end of the forecast."""
        if self.forecast is None and not self.is_well:
            failures = self._failures()
            reason = failures[0].message.splitlines()[0] if failures else ""
            return FIT_NO_ANSWER.filled(file=self.script.name, reason=reason)
        head = self.headline()
        if self.forecast is None:
            return head
        if self.is_searched:
            head = FIT_AND.filled(answer=head, search=self._found())
        return Translated(f"{self.script.name} {head.en}", f"{self.script.name} {head.zh_cn}")

    def _found(self) -> Translated:
        """What came of the search."""
        from ranksafe.runs.fit_trials import NOTHING_EXPOSED, conclusion

        return conclusion(self.trials) if self.trials else NOTHING_EXPOSED

    def headline(self) -> Translated:
        """The answer in a sentence, in the words of the command line."""
        from ranksafe.runs import fit_words

        return fit_words.headline(self.forecast, self.request, self.gpus)

    def details(self) -> Iterator[Translated]:
        """What stands below."""
        from ranksafe.runs import fit_words

        if self.forecast is not None:
            yield from fit_words.details(self.forecast)

    def _failures(self) -> list[Failure]:
        result = self.result
        if result is None:
            return []
        return [*filter(None, [result.simulation_limit]), *result.failures]


def findings_of_answer(answer: Answer) -> list[RunFinding]:
    """What has to be drawn: that memory does not suffice, on the line where it ran out or most was held; or why the
    script failed for another reason."""
    if answer.result is None or answer.is_well:
        return []
    if answer.forecast is None:
        failed = findings_of(answer.script, answer.result)
        return [replace(each, of_forecast=True) for each in failed]
    return [_too_little(answer, answer.forecast)]


def _too_little(answer: Answer, forecast: Forecast) -> RunFinding:
    from ranksafe.runs.explain.locate import innermost_user_frame
    from ranksafe.runs.fit import Fits

    failure, peak = forecast.failure, forecast.largest.peak
    at_peak = innermost_user_frame(peak.frames)
    ran_out = None if failure is None else innermost_user_frame(failure.frames)
    path, place = place_of(ran_out or at_peak)
    script = answer.script
    head = answer.headline()
    error = f"\n{failure.message}" if failure is not None else ""
    return RunFinding(
        script=script,
        run_id="" if answer.result is None else answer.result.run_id,
        path=path or script,
        range=place,
        code=None,
        kind=forecast.fits.value,
        message=Translated(f"{head.en}{error}", f"{head.zh_cn}{error}"),
        related=tuple(_composition(forecast, at_peak, script)),
        level=Level.ERROR if forecast.fits is Fits.NO else Level.WARNING,
        told=place,
        of_forecast=True,
    )


def _composition(forecast: Forecast, at_peak: Frame | None, script: Path) -> Iterator[Related]:
    """What was held at the peak, where the forecast saw all that is needed: of what kind, then by which lines."""
    from ranksafe.runs import fit_words
    from ranksafe.runs.explain.locate import innermost_user_frame

    if not forecast.is_whole:
        return
    peak = forecast.largest.peak
    held = FIT_HELD.filled(parts=fit_words.composition(peak))
    for sentence in (fit_words.peak(forecast), held):
        path, place = place_of(at_peak)
        yield Related(sentence, place, path or script)
    for line in peak.lines:
        path, place = place_of(innermost_user_frame(line.frames))
        if path is not None:
            yield Related(fit_words.line_held(line), place, path)
