"""What a change costs in GPU memory: as text, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ranksafe.localization import Language, Translated
from ranksafe.runs.fit_comparison import Comparison, Difference, Place
from ranksafe.runs.fit_words import NO_LINE, PARTS, gib

_TOLD = 5 * 2**20
"""Bytes: what differs by less is nothing that a change was made for."""
_MOST_LINES = 5
_COSTS = Translated(
    "compared with {file}: costs {growth} GiB more per GPU, {before} → {after}{most}",
    "与 {file} 相比：每个 GPU 多占用 {growth} GiB，{before} → {after}{most}",
)
_SAVES = Translated(
    "compared with {file}: saves {growth} GiB per GPU, {before} → {after}{most}",
    "与 {file} 相比：每个 GPU 节省 {growth} GiB，{before} → {after}{most}",
)
_SAME = Translated(
    "compared with {file}: the same, {after} GiB per GPU",
    "与 {file} 相比：相同，每个 GPU {after} GiB",
)
_MOST = Translated("; most of it at {place}", "；大部分位于 {place}")
_AT_LEAST = Translated(
    "compared is what is needed at least: one of the two ran out of memory before its end",
    "比较的是至少需要的量：两者之一在结束前显存不足",
)
_OTHER_DEVICES = Translated(
    "the earlier one was for {before} × {model}, this one is for {after} × {other}",
    "之前的预测用于 {before} × {model}，此次用于 {after} × {other}",
)
_LINE = Translated("{growth} GiB at {place}: {part}", "{place} 处 {growth} GiB：{part}")


def as_text(comparison: Comparison, file: str, language: Language) -> list[str]:
    """A headline and what stands below it."""
    first, *rest = [each.in_language(language) for each in _lines(comparison, file)]
    return [first, *(f"  {each}" for each in rest)]


def _lines(comparison: Comparison, file: str) -> Iterator[Translated]:
    total, before, after = comparison.total, comparison.before, comparison.after
    sentence = _COSTS if total.growth > 0 else _SAVES
    yield (_SAME if abs(total.growth) < _TOLD else sentence).filled(
        file=file,
        growth=gib(abs(total.growth)),
        before=gib(total.before),
        after=gib(total.after),
        most=_most(comparison),
    )
    if not comparison.is_whole:
        yield _AT_LEAST
    if (before.gpus, before.device_model) != (after.gpus, after.device_model):
        yield _OTHER_DEVICES.filled(
            before=before.gpus,
            model=before.device_model,
            after=after.gpus,
            other=after.device_model,
        )
    parts = [
        (PARTS.get(name, Translated(name, name)), _signed(each))
        for name, each in comparison.parts.items()
        if abs(each.growth) >= _TOLD
    ]
    if parts:
        yield Translated(
            " · ".join(f"{part.en} {growth}" for part, growth in parts),
            " · ".join(f"{part.zh_cn} {growth}" for part, growth in parts),
        )
    for place, each in [item for item in comparison.lines.items() if abs(item[1].growth) >= _TOLD][
        :_MOST_LINES
    ]:
        yield _LINE.filled(
            growth=_signed(each),
            place=_place(comparison, place) or NO_LINE,
            part=PARTS.get(place.part, Translated(place.part, place.part)),
        )


def _most(comparison: Comparison) -> Translated:
    """The line that more than half of it comes of, where there is one."""
    total = comparison.total.growth
    for place, each in comparison.lines.items():
        where = _place(comparison, place)
        if where and abs(total) >= _TOLD and each.growth / total > 0.5:
            return _MOST.filled(place=where)
    return Translated("", "")


def _place(comparison: Comparison, place: Place) -> str:
    """As the later program has it, or else the earlier one; innermost first."""
    numbers = comparison.after.numbers.get(place) or comparison.before.numbers.get(place, ())
    return " ← ".join(reversed(numbers))


def _signed(difference: Difference) -> str:
    return ("+" if difference.growth > 0 else "−") + gib(abs(difference.growth))


def as_json(comparison: Comparison, file: str, language: Language) -> dict[str, Any]:
    """One object; sizes in bytes."""
    return {
        "before": file,
        "of": "most_likely" if comparison.is_whole else "at_least",
        "total": _pair(comparison.total),
        "parts": {name: _pair(each) for name, each in comparison.parts.items()},
        "lines": [
            {
                "part": place.part,
                "before_at": list(comparison.before.numbers.get(place, ())),
                "after_at": list(comparison.after.numbers.get(place, ())),
                **_pair(each),
            }
            for place, each in comparison.lines.items()
        ],
        "summary": as_text(comparison, file, language),
    }


def _pair(difference: Difference) -> dict[str, int]:
    return {"before": difference.before, "after": difference.after, "growth": difference.growth}
