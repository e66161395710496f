"""Does it fit? The commands that forecast a script's GPU memory, and for which GPUs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from ranksafe.lsp.fit_findings import Answer
from ranksafe.lsp.options import as_mapping
from ranksafe.lsp.rehearse_on_save import imports
from ranksafe.lsp.run_request import Refused, request_for, require_trust, script_of
from ranksafe.lsp.session import Session
from ranksafe.lsp.targets import REHEARSAL_GPUS, as_count, is_rehearsal, simulated_gpus
from ranksafe.lsp.user_state import FitDevices

FIT: Final = "ranksafe.fit"
SET_FIT_DEVICES: Final = "ranksafe.setFitDevices"


async def fit(session: Session, uri: str, options: object = None) -> dict[str, Any]:
    """Forecast whether a document's script fits the memory of GPUs: ``{"gpus": N, "deviceModel": "h100",
    "memoryGib": 40}``, else of those that were chosen last.

    ``{"search": true}``: go on to what would make it fit.
    """
    from ranksafe.runs.fit_search import MOST_RUNS

    given = as_mapping(options)
    require_trust(session)
    script = script_of(session, uri)
    devices = _devices(session, script, given)
    asked = _question(session, uri, devices)
    wants_search = given.get("search") is True
    last = session.forecasts.answer(script)
    if wants_search and last is not None and last.request == asked.request:
        # What is known already is not asked again.
        asked = replace(last, trials=()) if last.holds_for("\n".join(asked.lines)) else asked
    name = await session.forecasts.start(asked, most_runs=MOST_RUNS if wants_search else 0)
    if devices != session.user_state.of(script).fit and _names_devices(given):
        session.user_state.remember(script, fit=devices)
    return {"forecastId": name}


async def set_fit_devices(session: Session, uri: str, options: object = None) -> dict[str, Any]:
    """Remember which GPUs a script's memory is forecast for, named as for `fit`; with none named: which there are, and
    whether the user has chosen."""
    from ranksafe.rehearsal.device_models import device_model, keys

    given = as_mapping(options)
    require_trust(session)
    script = script_of(session, uri)
    devices = _devices(session, script, given)
    if _names_devices(given):
        session.user_state.remember(script, fit=devices)
        session.lens_refresh.changed()
    models = [device_model(key) for key in keys()]
    return {
        "gpus": devices.gpus,
        "deviceModel": devices.model,
        "memoryGib": devices.memory_gib,
        "isChosen": session.user_state.of(script).fit is not None,
        "models": [
            {"key": each.key, "name": each.name, "gib": round(each.memory_bytes / 2**30, 1)}
            for each in models
        ],
    }


def saved(session: Session, path: Path | None) -> None:
    """A file was saved: what forecasts said of the scripts that import it holds no more."""
    if path is not None:
        session.forecasts.outdate(lambda script: script != path and imports(session, script, path))


def _names_devices(given: Mapping[str, Any]) -> bool:
    return any(given.get(key) is not None for key in ("gpus", "deviceModel", "memoryGib"))


def _devices(session: Session, script: Path, given: Mapping[str, Any]) -> FitDevices:
    """What the caller names, else what was chosen, else as many as the script is rehearsed on. Raises Refused."""
    from ranksafe.rehearsal.device_models import device_model
    from ranksafe.rehearsal.errors import RehearsalNotPossible
    from ranksafe.runs.fit import DEVICE_MODEL

    choices = session.user_state.of(script)
    last = choices.fit
    rehearsed = simulated_gpus(choices.target) if is_rehearsal(choices.target) else REHEARSAL_GPUS
    named = given.get("deviceModel")
    model = named if isinstance(named, str) and named else last.model if last else DEVICE_MODEL
    try:
        model = device_model(model).key
    except RehearsalNotPossible as error:
        raise Refused(error.message) from error
    # Another model has another memory.
    memory = last.memory_gib if last and last.model == model else None
    if isinstance(size := given.get("memoryGib"), (int, float)):
        memory = float(size) if math.isfinite(size) and size > 0 else None
    return FitDevices(
        as_count(given.get("gpus")) or (last.gpus if last else rehearsed), model, memory
    )


def _question(session: Session, uri: str, devices: FitDevices) -> Answer:
    """What is to be forecast. Raises Refused."""
    from ranksafe.runs.fit import STEPS, as_forecast, needs_one_rank, with_one_rank
    from ranksafe.runs.fit_search import found_in

    memory = devices.memory_gib
    request = request_for(session, uri, {"target": f"simulated:{devices.gpus}"})
    request = as_forecast(replace(request, steps=STEPS))
    options = replace(
        request.rehearsal,
        short_epochs=False,
        device_model=devices.model,
        memory_bytes=None if memory is None else int(memory * 2**30),
    )
    request = replace(request, rehearsal=options)
    if needs_one_rank(request, devices.gpus):
        request = with_one_rank(request, devices.gpus)
    text = request.script.read_text(encoding="utf-8-sig", errors="replace")
    found = found_in(request.script, request)
    return Answer(request, devices.gpus, found, tuple(text.splitlines()))
