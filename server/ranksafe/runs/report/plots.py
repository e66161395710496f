"""GPU memory and utilisation over time, drawn by uPlot (MIT, ``uplot/LICENSE``), which rides along in the page.

uPlot 1.6.32: 51 kB, no dependency, no network. plotly.js' smallest bundle has a megabyte, and SVG for thousands of
samples on dozens of devices more still. Without scripts, and for readers, the table of peaks says the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ranksafe.localization import Translated
from ranksafe.runs.records.timeline import GpuSample, Timeline
from ranksafe.runs.report.elements import Element, clean, element, raw

MOST_POINTS = 4000
"""Per plot; of more samples every nth is drawn."""
_HERE = Path(__file__).parent
_MEMORY, _BUSY = "gpu-memory", "gpu-busy"


def plots_section(timeline: Timeline) -> list[Element]:
    """Two plots and a table of peaks; empty where nothing was sampled."""
    devices = _devices(timeline.samples)
    if not devices:
        return []
    plots = [
        element("div", element("h3", title), element("div", id=name), class_="plot")
        for name, title in ((_MEMORY, _MEMORY_TITLE), (_BUSY, _BUSY_TITLE))
    ]
    return [
        element("h2", _TITLE),
        element("div", *plots, class_="plots"),
        _peaks(timeline.samples, devices),
        plot_data(_plots(timeline, devices)),
    ]


def plot_style() -> str:
    """What uPlot needs of a style sheet."""
    return (_HERE / "uplot" / "uPlot.min.css").read_text(encoding="utf-8")


def plot_script() -> str:
    """The library with its licence, then what uses it."""
    licence = (_HERE / "uplot" / "LICENSE").read_text(encoding="utf-8")
    library = (_HERE / "uplot" / "uPlot.iife.min.js").read_text(encoding="utf-8")
    ours = (_HERE / "plots.js").read_text(encoding="utf-8")
    return f"/*\nuPlot 1.6.32\n{licence}*/\n{library}\n{ours}"


def plot_data(plots: Sequence[Mapping[str, Any]]) -> Element:
    """For the script: the plots of elements by ``id``, as plots.js reads them."""
    text = json.dumps(plots).replace("<", "\\u003c").replace(">", "\\u003e")
    return raw("script", text, type="application/json", class_="plot-data")


def _devices(samples: Sequence[GpuSample]) -> list[str]:
    return sorted({sample.device for sample in samples}, key=lambda name: (len(name), name))


def _plots(timeline: Timeline, devices: Sequence[str]) -> list[dict[str, Any]]:
    """One time axis, a gap where a device was not sampled."""
    start = timeline.start or timeline.samples[0].time
    times = sorted({sample.time for sample in timeline.samples})
    times = times[:: max(1, -(-len(times) // MOST_POINTS))]
    at = {(sample.time, sample.device): sample for sample in timeline.samples}
    memory: list[list[float | None]] = []
    busy: list[list[float | None]] = []
    for device in devices:
        found = [at.get((time, device)) for time in times]
        memory.append([_gib(each.used_mib) if each else None for each in found])
        busy.append([each.busy_percent if each else None for each in found])
    labels = [clean(f"GPU {device}") for device in devices]
    total = max((sample.total_mib or 0.0 for sample in timeline.samples), default=0.0)
    return [
        {
            "id": name,
            "unit": unit,
            "top": top,
            "bound": None,
            "x": [round(time - start, 2) for time in times],
            "xUnit": "s",
            "series": [
                {"label": label, "values": of_device}
                for label, of_device in zip(labels, values, strict=True)
            ],
            "stacked": False,
            "marks": [],
        }
        for name, unit, top, values in (
            (_MEMORY, "GiB", _gib(total), memory),
            (_BUSY, "%", 100, busy),
        )
    ]


def _peaks(samples: Sequence[GpuSample], devices: Sequence[str]) -> Element:
    rows = []
    for device in devices:
        own = [sample for sample in samples if sample.device == device]
        used = max((sample.used_mib for sample in own if sample.used_mib is not None), default=None)
        total = max((each.total_mib for each in own if each.total_mib is not None), default=None)
        busy = [sample.busy_percent for sample in own if sample.busy_percent is not None]
        cells = (
            f"GPU {device}",
            "" if used is None else f"{_gib(used)} GiB",
            "" if total is None else f"{_gib(total)} GiB",
            f"{sum(busy) / len(busy):.0f} %" if busy else "",
        )
        rows.append(element("tr", *(element("td", cell, class_="number") for cell in cells)))
    head = element("tr", *(element("th", text) for text in _COLUMNS))
    return element("table", element("thead", head), element("tbody", *rows), class_="facts")


def _gib(mib: float | None) -> float | None:
    return None if mib is None else round(mib / 1024, 2)


_TITLE = Translated("GPUs", "GPU")
_MEMORY_TITLE = Translated("Memory in use", "已用显存")
_BUSY_TITLE = Translated("Utilisation", "利用率")
_COLUMNS = (
    Translated("Device", "设备"),
    Translated("Most memory in use", "显存占用峰值"),
    Translated("Memory", "显存总量"),
    Translated("Mean utilisation", "平均利用率"),
)
