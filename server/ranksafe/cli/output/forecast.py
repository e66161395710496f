"""The answer to "does it fit?": as text, as JSON, and for GitHub Actions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ranksafe.cli.output.github import command
from ranksafe.cli.output.run_as_github import in_checkout
from ranksafe.localization import Language
from ranksafe.runs import fit_words
from ranksafe.runs.explain.locate import innermost_user_frame
from ranksafe.runs.fit import DeviceNeed, Fits, Forecast
from ranksafe.runs.model import MemoryPeak, RunRequest, RunResult
from ranksafe.runs.serialize import frame_json, to_json

SCHEMA = "ranksafe-fit/1"


def headline(
    forecast: Forecast | None, request: RunRequest, number: int, language: Language
) -> str:
    """One line; ``number``: of all devices."""
    return fit_words.headline(forecast, request, number).in_language(language)


def details(forecast: Forecast, language: Language) -> list[str]:
    """What stands below: where the peak is, what is in the figure, and what is not."""
    return [sentence.in_language(language) for sentence in fit_words.details(forecast)]


def as_json(
    forecast: Forecast | None,
    request: RunRequest,
    number: int,
    result: RunResult,
    language: Language,
) -> dict[str, Any]:
    """One object; sizes in bytes."""
    run = to_json(result, language)
    told: dict[str, Any] = {
        "schema": SCHEMA,
        "fits": None if forecast is None else forecast.fits.value,
        "gpus": number,
        "stands_for": request.rehearsal.stands_for,
        "device_model": request.rehearsal.device_model,
        "summary": None,
        "notes": [],
        "capacity": None,
        "needs": None,
        "peak": None,
        "devices": [],
        "run": run,
    }
    if forecast is None:
        return told
    return {
        **told,
        "summary": headline(forecast, request, number, language),
        "notes": details(forecast, language),
        "capacity": forecast.capacity,
        "needs": needs_json(forecast.largest, is_whole=forecast.is_whole),
        "peak": _peak(forecast.largest.peak),
        "devices": [
            {
                "gpu": each.number,
                "needs": needs_json(each, is_whole=forecast.is_whole),
                "peak": _peak(each.peak),
            }
            for each in forecast.devices
        ],
    }


def needs_json(device: DeviceNeed, *, is_whole: bool) -> dict[str, int | None]:
    """In bytes; ``is_whole``: as `Forecast`'s."""
    need = device.need
    return {
        "at_least": need.least,
        "most_likely": need.likely if is_whole else None,
        "at_most": need.most if is_whole else None,
        "allocated": need.allocated,
        "cache": need.cache,
        "context": need.context,
        "code": need.code,
        "nccl": need.groups,
        "margin": need.margin,
    }


def _peak(peak: MemoryPeak) -> dict[str, Any]:
    return {
        "rank": peak.rank,
        "phase": peak.phase,
        "step": peak.step,
        "steps": peak.steps,
        "frames": [frame_json(frame) for frame in peak.frames],
        "phases": {
            name: {"allocated": allocated, "reserved": reserved}
            for name, (allocated, reserved) in peak.phases.items()
        },
        "retries": peak.retries,
        "parts": dict(peak.parts),
        "lines": [
            {
                "part": line.part,
                "size": line.size,
                "blocks": line.blocks,
                "frames": [frame_json(frame) for frame in line.frames],
            }
            for line in peak.lines
        ],
    }


def as_github(
    forecast: Forecast | None,
    request: RunRequest,
    number: int,
    language: Language,
    *,
    must_fit: bool,
    more: Sequence[str] = (),
) -> str:
    """A notice where it fits, a warning where it may not, an error where it does not and must; ``more``: lines."""
    level = "notice"
    if forecast is not None and forecast.fits is not Fits.YES:
        level = "error" if must_fit and forecast.fits is Fits.NO else "warning"
    properties: dict[str, object] = {"title": "ranksafe fit"}
    frame = None if forecast is None else innermost_user_frame(forecast.largest.peak.frames)
    if frame is not None:
        properties |= {"file": in_checkout(frame.filename), "line": frame.line}
    notes = [] if forecast is None else details(forecast, language)
    text = "\n".join([headline(forecast, request, number, language), *notes, *more])
    return command(level, properties, text)
