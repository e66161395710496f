"""Simulated GPUs for the processes of a run or a proof: what they are told, and the environment they start in."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path

import ranksafe.rehearsal
from ranksafe.localization import Translated
from ranksafe.rehearsal.device_models import DeviceModel, device_model, overhead
from ranksafe.rehearsal.errors import RehearsalNotPossible
from ranksafe.rehearsal.isolation import host_memory_bound
from ranksafe.rehearsal.native import BuildStopped, native_files
from ranksafe.rehearsal.settings import (
    SETTINGS_VARIABLE,
    NativeFiles,
    ProcessSettings,
    RehearsalOptions,
)
from ranksafe.runs import agent
from ranksafe.runs.errors import RunCancelled, RunNotPossible

INJECT_DIRECTORY = Path(ranksafe.rehearsal.__file__).parent / "inject"
"""Goes on PYTHONPATH, behind whatever else rides along; every process of a rehearsal keeps it."""
_NOT_INHERITED = ("CUDA_VISIBLE_DEVICES", "ACCELERATE_USE_CPU", "NVIDIA_VISIBLE_DEVICES")
"""They speak of this machine's real devices."""


@dataclass(frozen=True, slots=True)
class SimulatedDevices:
    """Devices that processes of one torch installation can be given."""

    model: DeviceModel
    memory_bytes: int
    """Capacity of each."""
    native: NativeFiles


def make_devices(
    interpreter: Path,
    environment: Mapping[str, str],
    options: RehearsalOptions,
    say: Callable[[Translated], None],
    should_stop: Callable[[], bool],
) -> SimulatedDevices:
    """Compile what the torch that ``interpreter`` finds needs to carry the devices, unless that was done before.

    Raises RunNotPossible where no simulated device can be had, RunCancelled when ``should_stop`` said so.
    """
    try:
        model = device_model(options.device_model)
        native = native_files(interpreter, say, should_stop, environment)
    except RehearsalNotPossible as error:
        raise RunNotPossible(error.message) from error
    except BuildStopped as error:
        raise RunCancelled from error
    return SimulatedDevices(model, options.memory_bytes or model.memory_bytes, native)


def settings_for(
    devices: SimulatedDevices,
    options: RehearsalOptions,
    *,
    per_node: int,
    script: Path,
    directory: Path,
    offline: bool,
    reads_network: bool = False,
) -> ProcessSettings:
    """What every process is told."""
    driver, context = overhead(devices.memory_bytes)
    return ProcessSettings(
        run_directory=str(directory),
        script=str(script.absolute()),
        agent_directory=str(agent.INJECT_DIRECTORY),
        devices=per_node,
        nodes=options.nodes,
        device_name=devices.model.name,
        capability=devices.model.capability,
        multi_processor_count=devices.model.multi_processor_count,
        memory_bytes=devices.memory_bytes,
        driver_memory_bytes=driver,
        context_memory_bytes=context,
        host_memory_bytes=options.host_memory_bytes or host_memory_bound(),
        shrink=options.shrink.value,
        short_epochs=options.short_epochs,
        forecast=options.forecast,
        unbounded=options.unbounded,
        stands_for=options.stands_for,
        every_block=options.every_block,
        offline=offline,
        reads_network=reads_network,
        native=devices.native,
    )


def give_devices(
    environment: MutableMapping[str, str],
    settings_file: Path,
    ranks: int,
    chosen: Mapping[str, str] | None = None,
) -> None:
    """Change ``environment`` so that every Python process started with it finds the devices.

    ``ranks``: processes that will compute at once; they share this machine's processors. ``chosen``: variables that
    the user set for this very run, which stay.
    """
    for name in _NOT_INHERITED:
        if name not in (chosen or {}):
            environment.pop(name, None)
    environment[SETTINGS_VARIABLE] = str(settings_file)
    put_first(environment, "PYTHONPATH", INJECT_DIRECTORY)
    put_first(environment, "PATH", INJECT_DIRECTORY / "bin")
    environment.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // ranks)))
    if sys.platform == "linux":
        environment.setdefault("GLOO_SOCKET_IFNAME", "lo")


def put_first(environment: MutableMapping[str, str], name: str, folder: Path) -> None:
    """Put ``folder`` before what the variable ``name``, a search path, holds."""
    rest = environment.get(name)
    environment[name] = os.pathsep.join([str(folder), *([rest] if rest else [])])
