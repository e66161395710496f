"""Forecasts of memory beside what others measured and published, and what a forecast costs.

    PYTHONPATH=server:rules:. python tests/rehearsal/measurements/published_memory.py PYTHON [--json FILE] [NAME…]

Figures and targets are in ``tests/rehearsal/published_memory/figures.toml``, with the programs beside it. PYTHON has torch
and transformers; what else a program needs is installed once into an overlay. Each runs in ``ranksafe fit``. Status 1 where
a target is missed. ``--json`` keeps every answer and is continued by a later call.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ranksafe.runs.proofs.environment import overlay_for

from tests.rehearsal.conftest import compiled_for, run_rehearsal
from tests.rehearsal.one_device import settings_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[3]
PROGRAMS = Path(__file__).parents[1] / "published_memory"
UNITS = {"bytes": 1, "MiB": 2**20, "GiB": 2**30, "GB": 10**9}
_LONGEST_SECONDS = 900


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """A call of ``ranksafe fit``."""

    program: str
    options: str
    arguments: str = ""
    packages: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    def run(self, python: Path) -> dict[str, Any]:
        """Its answer, and what it cost: seconds of processors, bytes of its largest process."""
        overlay = overlay_for(self.packages, python, lambda step: print(step.en, file=sys.stderr))
        paths = [str(ROOT / "server"), str(ROOT / "rules"), *([str(overlay)] if overlay else [])]
        command = [
            *(sys.executable, "-m", "ranksafe", "fit", "--output-format", "json", "--lang", "en"),
            *("--python", str(python), "--yes", "--warm", "off"),
            *("--timeout", str(_LONGEST_SECONDS), *shlex.split(self.options)),
            *(str(PROGRAMS / self.program), "--", *shlex.split(self.arguments)),
        ]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **self.environment}
        with tempfile.TemporaryDirectory() as folder:
            out, error = Path(folder, "out"), Path(folder, "error")
            with out.open("wb") as stdout, error.open("wb") as stderr:
                process = subprocess.Popen(
                    command, cwd=folder, env=environment, stdout=stdout, stderr=stderr
                )
                # Of it and of all that it waited for.
                _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            told = _read(out.read_text("utf-8"))
            return {
                "told": told,
                "processor": used.ru_utime + used.ru_stime,
                "host": used.ru_maxrss * 1024,
                "error": "" if told.get("needs") else error.read_text("utf-8", "replace")[-4000:],
            }


@dataclass(frozen=True, kw_only=True)
class Figure(Forecast):
    """A row of figures.toml, which says what its fields mean."""

    name: str
    source: str
    settings: str
    quantity: str
    target: float
    unit: str = "bytes"
    published: float = 0.0
    reference: str = ""
    why: str = ""

    def expected(self, python: Path) -> float:
        """What was published, or what the reference says, in bytes."""
        if not self.reference:
            return self.published * UNITS[self.unit]
        words = [str(PROGRAMS / self.program), *shlex.split(self.arguments)]
        with tempfile.TemporaryDirectory() as folder:
            done = run_rehearsal(
                compiled_for(python),
                Path(folder),
                PROGRAMS / self.reference,
                *words,
                timeout=_LONGEST_SECONDS,
                **settings_of("h100"),
            )
        return float(done.lines[-1]) if done.returncode == 0 else float("nan")

    def forecast(self, told: Mapping[str, Any]) -> float:
        """The same of an answer, in bytes."""
        needs, parts = told.get("needs"), (told.get("peak") or {}).get("parts")
        if not needs or not parts:
            return float("nan")
        if self.quantity in parts:
            return float(parts[self.quantity])
        allocated = needs["allocated"]
        return {
            "allocated": allocated,
            "reserved": allocated + needs["cache"],
            "tensors": allocated - parts.get("workspaces", 0),
            "device": needs["most_likely"],
        }[self.quantity]


def figures() -> list[Figure]:
    """The rows of figures.toml."""
    rows = tomllib.loads((PROGRAMS / "figures.toml").read_text("utf-8"))
    return [Figure(**row) for row in rows["figure"]]


def main() -> int:
    """Run what is asked for, print a table; 1 where a target is missed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("python", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    python = Path(os.path.abspath(arguments.python))
    file: Path | None = arguments.json
    kept: dict[str, Any] = json.loads(file.read_text()) if file and file.is_file() else {}
    chosen = [each for each in figures() if each.name in (arguments.names or [each.name])]
    print("| figure | quantity | published | forecast | | ratio | target | held |")
    print("|---|---|---|---|---|---|---|---|")
    missed = False
    for figure in chosen:
        run = repr([getattr(figure, name) for name in Forecast.__dataclass_fields__])
        if run not in kept:
            kept[run] = figure.run(python)
            print(kept[run]["error"], file=sys.stderr, end="")
        expected, forecast = figure.expected(python), figure.forecast(kept[run]["told"])
        held = abs(forecast / expected - 1) <= figure.target
        missed |= not held
        print(_row(figure, expected, forecast, held), flush=True)
        if file:
            file.write_text(json.dumps(kept))
    return int(missed)


def _read(text: str) -> dict[str, Any]:
    try:
        told: dict[str, Any] = json.loads(text)
    except ValueError:
        return {}
    return told


def _row(figure: Figure, expected: float, forecast: float, held: bool) -> str:
    unit = "GiB" if figure.unit == "bytes" else figure.unit
    sizes = (f"{size / UNITS[unit]:.{0 if unit == 'MiB' else 2}f}" for size in (expected, forecast))
    cells = (
        *(figure.name, figure.quantity, *sizes, unit, f"{forecast / expected:.3f}"),
        *(f"{figure.target:.1%}", "yes" if held else "NO"),
    )
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
