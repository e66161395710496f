"""Forecasts of memory: says what the program is doing when memory is taken, and writes down what it held at most."""

from __future__ import annotations

import atexit
import functools
import os
import sys
import sysconfig
import threading
from types import FrameType
from typing import Any

from . import journal
from .collectives import backend
from .settings import Settings
from .state import devices

_PHASES = ("forward", "backward", "recomputed", "optimizer", "no-gradients")
"""By number, as in native/src/memory_peak.h."""
_LIBRARIES = ("site-packages", "dist-packages")


class _Places:
    """The lines that took much memory, by number: the innermost one outside torch, then the user's own."""

    def __init__(self, torch: str) -> None:
        self.frames: list[tuple[tuple[str, int, str], ...]] = []
        self._numbers: dict[tuple[tuple[str, int, str], ...], int] = {}
        self._kinds: dict[str, int] = {}
        ours = os.path.dirname(os.path.abspath(__file__))
        self._passed_over = ("<", os.path.join(ours, ""), os.path.join(torch, ""))
        self._standard = os.path.join(sysconfig.get_paths()["stdlib"], "")
        self._main = threading.main_thread().ident

    def number(self) -> int:
        """Of the line at work; never raises. A thread of autograd's has none of its own: the main one waits for it."""
        try:
            found = self._found(sys._getframe(0))
            if not found:
                found = self._found(sys._current_frames().get(self._main or 0))
            known = self._numbers.get(found)
            if known is None:
                known = self._numbers[found] = len(self.frames)
                self.frames.append(found)
            return known
        except Exception:
            return -1

    def _found(self, frame: FrameType | None) -> tuple[tuple[str, int, str], ...]:
        found: list[tuple[str, int, str]] = []
        while frame is not None:
            name = frame.f_code.co_filename
            kind = self._kinds.get(name)
            if kind is None:
                kind = self._kinds[name] = self._kind(name)
            if kind == 2 or (kind == 1 and not found):
                found.append((name, frame.f_lineno, frame.f_code.co_name))
            if kind == 2:
                break
            frame = frame.f_back
        return tuple(found)

    def _kind(self, name: str) -> int:
        """0: torch's, Python's or ours; 1: another library's; 2: the user's."""
        if name.startswith(self._passed_over):
            return 0
        if not set(_LIBRARIES).isdisjoint(name.split(os.sep)):
            return 1
        return 0 if name.startswith(self._standard) else 2


class _Forecast:
    """Of one process."""

    def __init__(self, torch: Any) -> None:
        self.places = _Places(os.path.dirname(os.path.abspath(torch.__file__)))
        self.steps: dict[int, int] = {}
        """How many each optimizer has begun."""
        self.is_stepping = False
        self.written: dict[int, list[int]] = {}
        self.step_at_peak: dict[int, int] = {}

    @property
    def step(self) -> int:
        """The optimizer step that was begun last, from 1."""
        return max(self.steps.values(), default=0)

    def before_step(self, optimizer: object, *_: Any) -> None:
        """Called by torch before each ``Optimizer.step``."""
        devices().library.forecast_optimizer(True)
        self.is_stepping = True
        self.steps[id(optimizer)] = self.steps.get(id(optimizer), 0) + 1

    def after_step(self, *_: Any) -> None:
        """Called by torch after each ``Optimizer.step``, unless that was the last one of a short run."""
        devices().library.forecast_optimizer(False)
        self.is_stepping = False
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
            "phases": {name: pair for name, pair in zip(_PHASES, by_phase) if any(pair)},
            "groups": backend.groups[0],
        }

    def _frames(self, place: int) -> list[dict[str, Any]]:
        """Outermost first."""
        if not 0 <= place < len(self.places.frames):
            return []
        return [
            {"file": name, "line": line, "function": function}
            for name, line, function in reversed(self.places.frames[place])
        ]

    def end(self) -> None:
        """The process ends: nothing asks Python any more."""
        devices().library.forecast_places(None)
        self.write(self.step if self.is_stepping else self.step + 1, is_last=True)


def install(settings: Settings) -> None:
    """Begin to watch; called when torch was imported, in a forecast."""
    torch: Any = sys.modules["torch"]
    forecast = _Forecast(torch)
    devices().library.forecast_places(forecast.places.number)
    from torch.optim import optimizer

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
