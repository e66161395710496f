"""Does it fit? What a forecast saw of memory, judged against the devices it was for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

from ranksafe.rehearsal.device_models import beside_context, device_model, overhead
from ranksafe.rehearsal.settings import Confirm, RehearsalOptions, Shrink
from ranksafe.runs.explain.signatures.gpu_memory import KIND
from ranksafe.runs.model import Failure, MemoryPeak, Outcome, RunRequest, RunResult

DEVICE_MODEL = "h100"
STEPS = 3
"""Optimizers take their memory in the first step, so it is the second that shows the peak; one more to be sure."""
MOST_PROCESSES = 8
"""Of more ranks one stands for all, unless something else was asked for."""
_MARGIN = 0.08
"""Of what the caching allocator reserves. The worst figure of the same software beside a real device was 7 % too low
(torchtitan pull request 165, full checkpointing)."""
_MARGIN_OF_CONVOLUTIONS = 0.2
"""Where there are any: cuDNN's workspaces are not known, and took up to 19 % more on an H200 (docs/rehearsal.md)."""


class Fits(str, Enum):
    """What a forecast says of a device's memory."""

    YES = "fits"
    TIGHT = "tight"
    """It may, or may not."""
    NO = "does-not-fit"


@dataclass(frozen=True, slots=True)
class Need:
    """What one device must have, in bytes."""

    allocated: int
    """By tensors and by libraries' workspaces."""
    cache: int
    """Of the caching allocator: what it reserves beside, unused blocks and fragments."""
    context: int
    """CUDA's context and the driver's part."""
    code: int
    """Of CUDA's libraries."""
    groups: int
    """Of NCCL, one group for each rank that has any."""
    margin: int
    """For what is not known: a part of what is reserved, and NCCL's further groups."""

    @property
    def least(self) -> int:
        """Without this it cannot run: the cache is given back under pressure, code is loaded when it is needed."""
        return self.allocated + self.context

    @property
    def likely(self) -> int:
        """What the device would hold."""
        return self.least + self.cache + self.code + self.groups

    @property
    def most(self) -> int:
        """With the margin."""
        return self.likely + self.margin


@dataclass(frozen=True, slots=True)
class DeviceNeed:
    """One device, with what the ranks on it held."""

    number: int
    """Of all nodes."""
    need: Need
    peak: MemoryPeak
    """Of the rank that held most."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """The answer for a script."""

    fits: Fits
    capacity: int
    """Of each device, in bytes."""
    devices: tuple[DeviceNeed, ...]
    """Those of which anything was taken, by number; at least one."""
    failure: Failure | None
    """Memory ran out, here."""
    is_whole: bool
    """Whether the script was seen to go on to its end, so that its need is known; else only the least is."""
    ran_out: bool
    """Whether memory ran out at least once; without a `failure`, the script went on with something else."""
    stands_for: int
    """How many ranks the only one stood for; 1: all of them ran."""

    @property
    def largest(self) -> DeviceNeed:
        """The device that needs most."""
        return max(self.devices, key=lambda device: device.need.most)

    @property
    def smallest(self) -> DeviceNeed:
        """The device that needs least."""
        return min(self.devices, key=lambda device: device.need.most)


def margin_of(peak: MemoryPeak) -> float:
    """For what is not known of a rank's memory: a part of what it reserves."""
    return _MARGIN_OF_CONVOLUTIONS if peak.convolves else _MARGIN


def as_forecast(
    request: RunRequest, *, unbounded: bool = False, every_block: bool = False
) -> RunRequest:
    """The request of a rehearsal, at true size and for memory's sake. The rest: see `RehearsalOptions`."""
    options = replace(
        request.rehearsal,
        forecast=True,
        unbounded=unbounded,
        every_block=every_block or request.rehearsal.every_block,
        shrink=Shrink.OFF,
        # A script that fails for want of values fails on one process, too.
        confirm=Confirm.OFF,
    )
    return replace(request, rehearsal=options)


def needs_one_rank(request: RunRequest, number: int) -> bool:
    """Whether one rank stands for all of so many, unless the user says otherwise: what a configuration file starts is
    not known beforehand."""
    return number > MOST_PROCESSES and request.config_file is None


def with_one_rank(request: RunRequest, per_node: int) -> RunRequest:
    """The request with one rank that stands for those of all devices, ``per_node`` of each node."""
    ranks = per_node * request.rehearsal.nodes
    return replace(request, gpus=1, rehearsal=replace(request.rehearsal, nodes=1, stands_for=ranks))


def out_of_memory(result: RunResult) -> Failure | None:
    """Why the run failed, where GPU memory that ran out is why."""
    if result.outcome is not Outcome.FAILED:
        return None
    roots = [failure for failure in result.failures if failure.root_cause]
    return next((failure for failure in roots if failure.kind == KIND), None)


def forecast_of(
    request: RunRequest, per_node: int, result: RunResult, unbounded: RunResult | None
) -> Forecast | None:
    """The answer; None where the run gives none, or took nothing of any device.

    ``per_node``: devices of each node. ``unbounded``: the same script once more, if the first run ran out of memory.
    """
    failure = out_of_memory(result)
    if failure is None and result.outcome not in (Outcome.SUCCEEDED, Outcome.SILENT_FAILURE):
        return None
    is_whole = failure is None or (
        unbounded is not None
        and unbounded.outcome in (Outcome.SUCCEEDED, Outcome.SILENT_FAILURE)
        and bool(unbounded.memory)
    )
    seen = unbounded if failure is not None and is_whole and unbounded is not None else result
    capacity = _capacity(request.rehearsal)
    devices = tuple(_devices(seen.memory, request.rehearsal.nodes, per_node, capacity))
    if not devices:
        return None
    least = max(device.need.least for device in devices)
    most = max(device.need.most for device in devices)
    fits = Fits.YES if most <= capacity and failure is None else Fits.TIGHT
    # A compiled program keeps less of its forward passes; how much less is not known.
    if least > capacity and not any(peak.compiled for peak in seen.memory):
        fits = Fits.NO
    ran_out = any(peak.refused for peak in result.memory)
    stands_for = request.rehearsal.stands_for
    return Forecast(fits, capacity, devices, failure, is_whole, ran_out, stands_for)


def _capacity(options: RehearsalOptions) -> int:
    return options.memory_bytes or device_model(options.device_model).memory_bytes


def _devices(
    peaks: Iterable[MemoryPeak], nodes: int, per_node: int, capacity: int
) -> Iterable[DeviceNeed]:
    """Ranks that take something of the same device share it."""
    of_device: dict[int, list[MemoryPeak]] = {}
    for peak in peaks:
        node = min(peak.rank // per_node, nodes - 1)
        of_device.setdefault(node * per_node + peak.device, []).append(peak)
    for number, held in sorted(of_device.items()):
        largest = max(held, key=lambda peak: peak.reserved)
        yield DeviceNeed(number, _need(held, capacity), largest)


def _need(peaks: Iterable[MemoryPeak], capacity: int) -> Need:
    driver, context = overhead(capacity)
    code, group = beside_context(capacity)
    need = Need(0, 0, driver, 0, 0, 0)
    for peak in peaks:
        allocated = max(peak.allocated, peak.refused)
        need = Need(
            allocated=need.allocated + allocated,
            cache=need.cache + max(0, peak.reserved - allocated),
            context=need.context + context,
            code=need.code + code,
            groups=need.groups + (group if peak.groups else 0),
            margin=need.margin
            + int(margin_of(peak) * max(peak.reserved, allocated))
            + group * max(0, peak.groups - 1),
        )
    return need
