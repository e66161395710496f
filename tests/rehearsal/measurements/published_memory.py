"""Forecasts of memory beside what others measured and published, and what forecasts cost.

    PYTHONPATH=server:rules:. python tests/rehearsal/measurements/published_memory.py PYTHON [--json FILE] [NAME…]

Figures, bounds of costs and targets are in ``figures.toml`` of ``tests/rehearsal/published_memory``, a set that was written
down before any forecast of it in ``unseen.toml``, the programs beside them. PYTHON has torch and transformers; what else a
program needs is installed once into an overlay. Each runs in ``ranksafe fit``. Status 1 where a target is missed. ``--json``
keeps every answer and is continued by a later call; costs want a quiet machine.
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
        if done.returncode != 0:
            print(done.stderr[-4000:], file=sys.stderr)
            return float("nan")
        return float(done.lines[-1])

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


@dataclass(frozen=True, kw_only=True)
class Cost(Forecast):
    """What a forecast may cost."""

    name: str
    seconds: float
    gibibytes: float


def figures() -> list[Figure]:
    """The figures of figures.toml, and those that were written down before the first forecast of any."""
    return [Figure(**row) for name in ("figures", "unseen") for row in _rows("figure", name)]


def costs() -> list[Cost]:
    """The bounds of costs of figures.toml."""
    return [Cost(**row) for row in _rows("cost")]


@dataclass(frozen=True)
class Runs:
    """Answers, each asked for once."""

    python: Path
    file: Path | None
    kept: dict[str, dict[str, Any]]

    def of(self, forecast: Forecast) -> dict[str, Any]:
        """The answer to one."""
        key = repr([getattr(forecast, name) for name in Forecast.__dataclass_fields__])
        if key not in self.kept:
            self.kept[key] = forecast.run(self.python)
            print(self.kept[key]["error"], file=sys.stderr, end="")
            if self.file:
                answered = {key: run for key, run in self.kept.items() if not run["error"]}
                self.file.write_text(json.dumps(answered))
        return self.kept[key]


def main() -> int:
    """Run what is asked for, print a table; 1 where a target is missed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("python", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_intermixed_args()
    file: Path | None = arguments.json
    kept = json.loads(file.read_text()) if file and file.is_file() else {}
    runs = Runs(Path(os.path.abspath(arguments.python)), file, kept)

    def chosen(name: str) -> bool:
        return name in (arguments.names or [name])

    _told("figure", "quantity", "published", "forecast", "", "ratio", "target", "held")
    _told(*["---"] * 8)
    held = [_told_beside(each, runs) for each in figures() if chosen(each.name)]
    print()
    _told("cost", "processor, s", "at most", "largest process, GiB", "at most", "held")
    _told(*["---"] * 6)
    held += [_told_cost(each, runs.of(each)) for each in costs() if chosen(each.name)]
    return int(not all(held))


def _read(text: str) -> dict[str, Any]:
    try:
        told: dict[str, Any] = json.loads(text)
    except ValueError:
        return {}
    return told


def _rows(kind: str, name: str = "figures") -> list[dict[str, Any]]:
    rows: dict[str, list[dict[str, Any]]]
    rows = tomllib.loads((PROGRAMS / f"{name}.toml").read_text("utf-8"))
    return rows[kind]


def _told_beside(figure: Figure, runs: Runs) -> bool:
    expected, forecast = figure.expected(runs.python), figure.forecast(runs.of(figure)["told"])
    held = abs(forecast / expected - 1) <= figure.target
    unit, digits = (
        ("GiB", 3) if figure.unit == "bytes" else (figure.unit, 0 if figure.unit == "MiB" else 2)
    )
    sizes = (f"{size / UNITS[unit]:.{digits}f}" for size in (expected, forecast))
    _told(
        figure.name,
        figure.quantity,
        *sizes,
        unit,
        f"{forecast / expected:.3f}",
        f"{figure.target:.1%}",
        _held(held),
    )
    return held


def _told_cost(cost: Cost, run: Mapping[str, Any]) -> bool:
    gibibytes = run["host"] / 2**30
    held = not run["error"] and run["processor"] <= cost.seconds and gibibytes <= cost.gibibytes
    _told(
        cost.name,
        f"{run['processor']:.0f}",
        f"{cost.seconds:.0f}",
        f"{gibibytes:.2f}",
        f"{cost.gibibytes:.1f}",
        _held(held),
    )
    return held


def _held(held: bool) -> str:
    return "yes" if held else "NO"


def _told(*cells: str) -> None:
    print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
