"""The top of a report: what was run, how it ended, and why, in one glance."""

from __future__ import annotations

from ranksafe.localization import Language, Translated
from ranksafe.runs.fit import Fits
from ranksafe.runs.records.forecast import KeptForecast
from ranksafe.runs.records.kept_runs import OUTCOMES, KeptRun, outcome_text, started_text
from ranksafe.runs.report.elements import Content, Element, element

_CLASSES = {
    "succeeded": "good",
    "failed": "bad",
    "silent-failure": "bad",
    "not-started": "bad",
    Fits.YES.value: "good",
    Fits.NO.value: "bad",
}
_FITS = {
    Fits.YES.value: Translated("fits", "可放入"),
    Fits.TIGHT.value: Translated("tight", "很紧张"),
    Fits.NO.value: Translated("does not fit", "无法放入"),
}


def verdict(run: KeptRun, forecast: KeptForecast | None) -> list[Element]:
    """Heading, the forecast or the root cause in one sentence, and the facts people ask for first."""
    kind = _CLASSES.get(run.outcome, "warn")
    outcome = OUTCOMES.get(run.outcome, Translated(run.outcome, run.outcome))
    sentences: list[Content] = _sentences(run)
    if forecast is not None:
        kind = _CLASSES.get(forecast.fits, "warn")
        outcome, sentences = _FITS.get(forecast.fits, outcome), [element("p", forecast.headline)]
    badge = element("span", outcome, class_=f"badge {kind}")
    heading = element("h1", run.script.name, " ", badge)
    return [heading, element("div", *sentences, class_=f"verdict {kind}"), _meta(run)]


def title_of(run: KeptRun, language: Language, forecast: KeptForecast | None) -> str:
    """Of the page."""
    outcome = outcome_text(run.outcome, language)
    if forecast is not None:
        outcome = forecast.title.in_language(language)
    return f"{run.script.name}: {outcome} · ranksafe"


def _sentences(run: KeptRun) -> list[Content]:
    first = next(iter(run.failures), None)
    if first is None:
        sentence = _OUTCOMES.get(run.outcome, _NO_REASON)
        return [element("p", sentence)]
    message = str(first.get("message") or first.get("kind")).partition("\n")[0][:600]
    location = first.get("location")
    row = location.get("row") if isinstance(location, dict) else None
    where: list[Content] = []
    if first.get("rank") is not None:
        where.append(f"rank {first['rank']}")
    if first.get("filename") and row:
        name = str(first["filename"]).replace("\\", "/").rpartition("/")[2]
        where.append([", " if where else "", element("code", f"{name}:{row}")])
    parts: list[Content] = [element("b", message)]
    if where:
        parts += [" (", *where, ")"]
    meaning = next(iter(run.sentences("explanations")), None)
    return [element("p", *parts), element("p", meaning) if meaning else None]


def _meta(run: KeptRun) -> Element:
    ranks = run.result.get("ranks")
    facts: list[tuple[Translated, str]] = [
        (_TARGET, run.target),
        (_RANKS, str(len(ranks)) if isinstance(ranks, list) and ranks else ""),
        (_STARTED, started_text(run)),
        (_SECONDS, "" if run.seconds is None else f"{run.seconds:.1f} s"),
        (_RUN, run.run_id),
    ]
    items = [element("li", name, " ", element("b", text)) for name, text in facts if text]
    return element("ul", *items, class_="meta")


_TARGET = Translated("target", "目标")
_RANKS = Translated("ranks", "rank 数")
_STARTED = Translated("started", "开始于")
_SECONDS = Translated("took", "用时")
_RUN = Translated("run", "运行")
_NO_REASON = Translated(
    "No reason was recorded; the end of the log is below.", "没有记录到原因；日志末尾见下文。"
)
_OUTCOMES = {
    "succeeded": Translated("Every rank ended in order.", "所有 rank 均正常结束。"),
    "cancelled": Translated("The run was cancelled.", "此次运行被取消。"),
    "running": Translated(
        "The run goes on; this is what is known so far.", "运行仍在进行；以下是目前已知的内容。"
    ),
    "detached": Translated(
        "The run was left to itself on its host; its end has not been seen.",
        "此次运行在其主机上独立进行；尚未看到其结束。",
    ),
    "lost": Translated(
        "The program that watched this run ended before the run did.",
        "监视此次运行的程序先于运行结束。",
    ),
}
