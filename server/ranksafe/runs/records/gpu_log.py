"""Memory and utilisation of a run's GPUs, sampled while it goes on."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import threading
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

FILE = "gpus.jsonl"
PERIOD_SECONDS = 2.0
MOST_BYTES = 64 * 2**20
_FIELDS = "index,uuid,memory.used,memory.total,utilization.gpu"
_SAME_MOMENT_SECONDS = 0.5
_END_SECONDS = 5.0


class GpuLog:
    """One nvidia-smi that repeats itself, which costs less than a new one each time.

    It ends with this process: once nobody reads, writing ends it.
    """

    def __init__(self, directory: Path, devices: Collection[str]) -> None:
        self._path = directory / FILE
        self._devices = frozenset(devices)
        """Indices or UUIDs."""
        self._process: subprocess.Popen[str] | None = None
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Start sampling, where there is an nvidia-smi. Raises OSError when it cannot be started."""
        program = shutil.which("nvidia-smi")
        if program is None or not self._devices:
            return
        repeat = str(round(PERIOD_SECONDS * 1000))
        options = [f"--query-gpu={_FIELDS}", "--format=csv,noheader,nounits", "-lms", repeat]
        self._process = subprocess.Popen(
            [program, *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stop sampling."""
        if self._process is None:
            return
        # A driver that hangs keeps its nvidia-smi; the run's end does not wait for it.
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait(_END_SECONDS)
        if self._thread is not None:
            self._thread.join(_END_SECONDS)
        self._process = None

    def _follow(self) -> None:
        process = self._process
        assert process is not None
        assert process.stdout is not None
        size = 0
        moment, devices = 0.0, list[dict[str, Any]]()
        # A full disk ends the log, not the run.
        with contextlib.suppress(OSError), process.stdout, self._path.open("a") as file:
            for line in process.stdout:
                device = parse_sample(line)
                if device is None or not self._devices & {device["uuid"], str(device["index"])}:
                    continue
                now = time.time()
                if devices and now - moment > _SAME_MOMENT_SECONDS:
                    size += _write(file, moment, devices)
                    devices = []
                moment = now
                devices.append(device)
                if size > MOST_BYTES:
                    return
            if devices:
                _write(file, moment, devices)


def parse_sample(line: str) -> dict[str, Any] | None:
    """One device of nvidia-smi's CSV; None for any other line. What it answers ``[N/A]`` to is null."""
    cells = [cell.strip() for cell in line.split(",")]
    if len(cells) != 5 or not cells[0].isdigit():
        return None
    used, total, busy = (int(cell) if cell.isdigit() else None for cell in cells[2:])
    return {
        "index": int(cells[0]),
        "uuid": cells[1],
        "used_mib": used,
        "total_mib": total,
        "busy_percent": busy,
    }


def _write(file: Any, moment: float, devices: list[dict[str, Any]]) -> int:
    text = json.dumps({"time": moment, "devices": devices}) + "\n"
    file.write(text)
    file.flush()
    return len(text)
