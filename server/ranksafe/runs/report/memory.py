"""The forecast of a run's GPU memory: what was held from moment to moment, and what the answer counts."""

from __future__ import annotations

from typing import Any

from ranksafe.localization import Translated
from ranksafe.runs.fit_words import PARTS, REST
from ranksafe.runs.model import MemoryTimeline
from ranksafe.runs.records.forecast import KeptForecast
from ranksafe.runs.report.elements import Element, clean, element
from ranksafe.runs.report.plots import plot_data

_PLOT = "held-memory"
_MOST_LAYERS = 8
"""As many as there are colours."""


def memory_section(forecast: KeptForecast | None) -> list[Element]:
    """The figure, and what is in it; empty where the run was no forecast."""
    if forecast is None:
        return []
    details = element("ul", *(element("li", each) for each in forecast.details), class_="notes")
    if forecast.timeline is None:
        return [element("h2", _TITLE), details]
    title = element("h3", _HELD.filled(gpu=forecast.gpu))
    plot = element("div", title, element("div", id=_PLOT), class_="plot")
    return [element("h2", _TITLE), plot, details, plot_data([_plot(forecast, forecast.timeline)])]


def _plot(forecast: KeptForecast, timeline: MemoryTimeline) -> dict[str, Any]:
    """Layers upon each other, what is held longest at the bottom: the last of the series."""
    layers = [(PARTS.get(name), name, sizes) for name, sizes in timeline.parts.items()]
    layers.sort(key=lambda layer: -max(layer[2]))
    small = layers[_MOST_LAYERS - 1 :]
    if len(small) > 1:
        together = tuple(map(sum, zip(*(sizes for _, _, sizes in small), strict=True)))
        layers[_MOST_LAYERS - 1 :] = [(REST, "", together)]
    layers.sort(key=lambda layer: min(layer[2][len(layer[2]) // 2 :]))
    return {
        "id": _PLOT,
        "unit": "GiB",
        "top": 0,
        "bound": round(forecast.capacity / 2**30, 2),
        "x": list(timeline.moments),
        "xUnit": "",
        "series": [
            {
                "label": clean(label.en if label else name),
                "zh": label and label.zh_cn,
                "values": [round(size / 2**30, 3) for size in sizes],
            }
            for label, name, sizes in layers
        ],
        "stacked": True,
        "marks": [
            {"at": at, "label": text.en, "zh": text.zh_cn}
            for at, step in timeline.steps
            for text in (_STEP.filled(step=step),)
        ],
    }


_TITLE = Translated("GPU memory", "显存")
_HELD = Translated(
    "Held by GPU {gpu}, from block to block taken or given back",
    "GPU {gpu} 的占用（横轴为分配与归还的次数）",
)
_STEP = Translated("step {step}", "第 {step} 步")
