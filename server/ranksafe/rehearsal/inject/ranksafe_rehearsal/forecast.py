"""Forecasts of memory: says what the program is doing when memory is taken, and writes down what it held at most."""

from __future__ import annotations

import atexit
import functools
import os
import sys
import sysconfig
import threading
import weakref
from collections.abc import Iterable
from types import FrameType
from typing import Any, NamedTuple

from . import compiler, journal
from .collectives import backend
from .settings import Settings
from .state import devices

_PHASES = ("forward", "backward", "recomputed", "optimizer", "no-gradients")
"""By number, as in native/src/memory_peak.h."""
_PARTS_OF_PHASES = ("activations", "backward", "recomputed", "optimizer", "other")
_UNKNOWN, _PARAMETER, _GRADIENT, _STATE, _BUFFER = range(5)
_PARTS = ("", "parameters", "gradients", "optimizer-states", "buffers", "workspaces")
"""By the number of the purpose, as there."""
_PARTS_OF_CALLS = {
    ("_fsdp_collectives.py", "foreach_all_gather"): "gathered",
    ("_fsdp_collectives.py", "foreach_all_gather_copy_out"): "gathered",
    ("_fsdp_collectives.py", "foreach_reduce"): "reduced",
    ("_fsdp_param.py", "init_all_gather_outputs"): "gathered",
    ("_fsdp_param.py", "alloc_all_gather_outputs"): "gathered",
    ("_fsdp_param.py", "init_unsharded_param"): "gathered",
    ("_flat_param.py", "_alloc_padded_unsharded_flat_param"): "gathered",
    ("_flat_param.py", "_all_gather_flat_param"): "gathered",
    ("distributed.py", "_ddp_init_helper"): "buckets",
    ("distributed.py", "_pre_forward"): "buckets",
}
"""Functions of torch (2.4 to 2.13: torch/distributed/fsdp, torch/nn/parallel/distributed.py) that take memory for what
FSDP gathers and reduces, and for DDP's buckets."""
_TOLD_WITH_LINE = 16 << 20
_MOST_LINES = 200
_MOST_KINDS = 20_000
_MOST_MOMENTS = 500
"""Of a timeline."""
_LIBRARIES = ("site-packages", "dist-packages")


class _Place(NamedTuple):
    """Where memory was taken."""

    frames: tuple[tuple[str, int, str], ...]
    """File, line and function: of the innermost line outside torch, then of the user's own."""
    part: str
    """What for, where a function of torch tells; else empty."""


class _Places:
    """The lines that took much memory, by number: the innermost one outside torch, then the user's own."""

    def __init__(self, torch: str, agent: str) -> None:
        """The folders of torch, and of what else of ours may stand between the user's lines and torch's."""
        self.known: list[_Place] = []
        self._numbers: dict[_Place, int] = {}
        self._kinds: dict[str, int] = {}
        passed_over = (os.path.dirname(os.path.abspath(__file__)), agent, torch)
        self._passed_over = ("<", *(os.path.join(folder, "") for folder in passed_over))
        self._standard = os.path.join(sysconfig.get_paths()["stdlib"], "")
        self._main = threading.main_thread().ident

    def number(self) -> int:
        """Of the line at work; never raises. A thread of autograd's has none of its own: the main one waits for it."""
        try:
            found = self._found(sys._getframe(0))
            if not found.frames:
                waits = self._found(sys._current_frames().get(self._main or 0))
                found = _Place(waits.frames, found.part)
            known = self._numbers.get(found)
            if known is None:
                known = self._numbers[found] = len(self.known)
                self.known.append(found)
            return known
        except Exception:
            return -1

    def _found(self, frame: FrameType | None) -> _Place:
        found: list[tuple[str, int, str]] = []
        part = ""
        while frame is not None:
            name = frame.f_code.co_filename
            kind = self._kinds.get(name)
            if kind is None:
                kind = self._kinds[name] = self._kind(name)
            if kind == 0 and not found and not part:
                function = frame.f_code.co_name
                part = _PARTS_OF_CALLS.get((os.path.basename(name), function), "")
            if kind == 2 or (kind == 1 and not found):
                found.append((name, frame.f_lineno, frame.f_code.co_name))
            if kind == 2:
                break
            frame = frame.f_back
        return _Place(tuple(found), part)

    def _kind(self, name: str) -> int:
        """0: torch's, Python's or ours; 1: another library's; 2: the user's."""
        if name.startswith(self._passed_over):
            return 0
        if not set(_LIBRARIES).isdisjoint(name.split(os.sep)):
            return 1
        return 0 if name.startswith(self._standard) else 2


class _Forecast:
    """Of one process."""

    def __init__(self, torch: Any, settings: Settings) -> None:
        folder = os.path.dirname(os.path.abspath(torch.__file__))
        self.places = _Places(folder, settings.agent_directory)
        self.every_block = settings.every_block
        self.steps: dict[int, int] = {}
        """How many each optimizer has begun."""
        self.is_stepping = False
        self.written: dict[int, list[int]] = {}
        self.step_at_peak: dict[int, int] = {}
        self.convolves = False
        self.ends: dict[int, list[tuple[int, int]]] = {}
        """By device, when steps ended: the moment and the step."""
        self.modules: Any = weakref.WeakSet()
        """Those whose parameters were seen, and all within them."""
        self.parameters: Any = weakref.WeakValueDictionary()
        """By id."""

    @property
    def step(self) -> int:
        """The optimizer step that was begun last, from 1."""
        return max(self.steps.values(), default=0)

    def before_forward(self, module: Any, *_: Any) -> None:
        """Called by torch before each module's forward: the outermost one tells of all within it."""
        if module in self.modules:
            return
        self.modules.update(module.modules())
        kind = sys.modules["torch"].nn.modules.conv._ConvNd
        self.convolves = self.convolves or any(isinstance(each, kind) for each in module.modules())
        parameters = list(module.parameters())
        self.parameters.update((id(parameter), parameter) for parameter in parameters)
        self._are_for(_PARAMETER, parameters)
        self._are_for(_BUFFER, module.buffers())

    def _are_for(self, purpose: int, tensors: Iterable[Any]) -> None:
        """Say what tensors are for; never raises."""
        try:
            storages = [each for each in map(_storage, tensors) if each]
            devices().library.forecast_purpose(storages, purpose)
        except Exception as error:
            journal.problem("forecast", error)

    def _label_gradients(self) -> None:
        gradients = (parameter.grad for parameter in list(self.parameters.values()))
        self._are_for(_GRADIENT, (each for each in gradients if each is not None))

    def before_step(self, optimizer: Any, *_: Any) -> None:
        """Called by torch before each ``Optimizer.step``."""
        stepped = [each for group in optimizer.param_groups for each in group["params"]]
        self.parameters.update((id(parameter), parameter) for parameter in stepped)
        self._are_for(_PARAMETER, stepped)
        self._label_gradients()
        devices().library.forecast_optimizer(True)
        self.is_stepping = True
        self.steps[id(optimizer)] = self.steps.get(id(optimizer), 0) + 1

    def after_step(self, optimizer: Any, *_: Any) -> None:
        """Called by torch after each ``Optimizer.step``, unless that was the last one of a short run."""
        devices().library.forecast_optimizer(False)
        self.is_stepping = False
        states = (state for state in optimizer.state.values() if isinstance(state, dict))
        self._are_for(_STATE, (each for state in states for each in state.values()))
        for device in range(len(devices().physical)):
            moment = devices().library.forecast_moments(device)[0]
            self.ends.setdefault(device, []).append((moment, self.step))
        self.write(self.step)

    def write(self, step: int, *, is_last: bool = False) -> None:
        """Write down every device's peak that is higher than it was, the last time in any case; never raises.

        ``step``: the optimizer step that is ending.
        """
        here = devices()
        if here.forked or here.is_template:
            return
        try:
            for device, physical in enumerate(here.physical):
                numbers = here.library.forecast_peak(device)
                known = self.written.get(device)
                if not any(numbers[:3]) or (numbers == known and not is_last):
                    continue
                if known is None or numbers[0] > known[0]:
                    self.step_at_peak[device] = step
                self.written[device] = numbers
                journal.write("memory-peak", **self._record(device, physical, numbers))
                if is_last:
                    journal.write("memory-timeline", **self._timeline(device, physical))
        except Exception as error:
            journal.problem("forecast", error)

    def _record(self, device: int, physical: int, numbers: list[int]) -> dict[str, Any]:
        allocated, reserved, refused, retries, place, phase = numbers[:6]
        by_phase = zip(numbers[6::2], numbers[7::2])
        return {
            "device": physical,
            "allocated": allocated,
            "reserved": reserved,
            "refused": refused,
            "retries": retries,
            "phase": _PHASES[phase],
            "step": self.step_at_peak[device],
            "steps": self.step,
            "frames": self._frames(place),
            **self._held(device),
            "phases": {name: pair for name, pair in zip(_PHASES, by_phase) if any(pair)},
            "groups": backend.groups[0],
            "convolves": self.convolves,
            "compiled": compiler.called[0],
        }

    def _frames(self, place: int) -> list[dict[str, Any]]:
        """Outermost first."""
        if not 0 <= place < len(self.places.known):
            return []
        return [
            {"file": name, "line": line, "function": function}
            for name, line, function in reversed(self.places.known[place].frames)
        ]

    def _held(self, device: int) -> dict[str, Any]:
        """What was held at the peak: by what it is for, the lines that took large blocks, and all blocks if wanted."""
        parts: dict[str, int] = {}
        lines: dict[tuple[int, str], list[int]] = {}
        alike: dict[tuple[str, int, int], int] = {}
        for size, purpose, phase, place in devices().library.forecast_blocks(device):
            part = self._part(purpose, phase, place)
            parts[part] = parts.get(part, 0) + size
            if self.every_block:
                alike[part, size, place] = alike.get((part, size, place), 0) + 1
            if size >= _TOLD_WITH_LINE:
                line = lines.setdefault((place, part), [0, 0])
                line[0] += size
                line[1] += 1
        ordered = sorted(lines.items(), key=lambda item: -item[1][0])
        told = sorted(alike.items())[:_MOST_KINDS]
        return {
            "parts": parts,
            "blocks": [[*key, count] for key, count in told],
            "places": {place: self._frames(place) for (_, _, place), _ in told},
            "lines": [
                {"part": part, "size": size, "blocks": blocks, "frames": self._frames(place)}
                for (place, part), (size, blocks) in ordered[:_MOST_LINES]
            ],
        }

    def _part(self, purpose: int, phase: int, place: int) -> str:
        """What a block is for."""
        part = _PARTS[purpose]
        if not part and 0 <= place < len(self.places.known):
            part = self.places.known[place].part
        return part or _PARTS_OF_PHASES[phase]

    def _timeline(self, device: int, physical: int) -> dict[str, Any]:
        """What was held from moment to moment: of many in a row the one with most."""
        now, since = devices().library.forecast_moments(device)
        changes: list[tuple[int, int, str]] = []
        for size, purpose, phase, place, taken, gone in devices().library.forecast_history(device):
            part = self._part(purpose, phase, place)
            changes.append((max(taken, since), size, part))
            if gone:
                changes.append((gone, -size, part))
        changes.sort()
        told_at_once = -(-(now - since + 1) // _MOST_MOMENTS)
        held: dict[str, int] = {}
        total = most = last = 0
        moments: list[int] = []
        stacks: list[dict[str, int]] = []
        for moment, size, part in changes:
            held[part] = held.get(part, 0) + size
            total += size
            window = (moment - since) // told_at_once
            if not moments or window != last:
                moments.append(moment)
                stacks.append(dict(held))
                most, last = total, window
            elif total > most:
                moments[-1], stacks[-1], most = moment, dict(held), total
        return {
            "device": physical,
            "moments": moments,
            "parts": {part: [stack.get(part, 0) for stack in stacks] for part in held},
            "steps": [end for end in self.ends.get(device, ()) if end[0] >= since],
        }

    def end(self) -> None:
        """The process ends: nothing asks Python any more."""
        devices().library.forecast_places(None)
        self._label_gradients()
        self.write(self.step if self.is_stepping else self.step + 1, is_last=True)


def _storage(tensor: Any) -> int:
    """The address of a tensor's storage, of a distributed one its local part's; 0 where it has none of a device."""
    local = getattr(tensor, "_local_tensor", tensor)
    if not getattr(local, "is_cuda", False):
        return 0
    try:
        return int(local.untyped_storage()._cdata)
    except Exception:  # kinds of tensors without a storage
        return 0


def install(settings: Settings) -> None:
    """Begin to watch; called when torch was imported, in a forecast."""
    torch: Any = sys.modules["torch"]
    forecast = _Forecast(torch, settings)
    devices().library.forecast_places(forecast.places.number)
    from torch.nn.modules import module
    from torch.optim import optimizer

    module.register_module_forward_pre_hook(forecast.before_forward)
    optimizer.register_optimizer_step_pre_hook(forecast.before_step)
    optimizer.register_optimizer_step_post_hook(forecast.after_step)
    waiting: Any = sys.modules.get("ranksafe_agent.waiting")
    if waiting is not None:
        waiting.here.work = devices().library.kernel_calls
    atexit.register(forecast.end)
    leave = os._exit

    @functools.wraps(leave)
    def leave_told(status: int) -> Any:
        forecast.end()
        leave(status)

    os._exit = leave_told
