"""Forecasts the public scripts of fit.toml at true size, beside what arithmetic says each GPU holds at least.

    PYTHONPATH=server:rules python tests/rehearsal/measurements/fit_scripts.py PYTHON --sources DIR --work DIR [NAME…]

DIR of ``--sources`` has each repository at its commit as ``owner+name`` and each release as ``name-version``. In
``--work`` the stand-ins are made once, and ``results.json`` is kept: what it has is not run again. PYTHON has what the
scripts import; ``--overlay NAME=DIR`` stands before it for scripts that require NAME ("transformers 4").
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[3]
PUBLIC = Path(__file__).parents[1] / "public_scripts"
GIBIBYTE = 2**30
_LONGEST_SECONDS = 1800
_STAND_INS = (
    "import pathlib, sys; sys.path.insert(0, sys.argv[1]); import stand_ins_for_fit as made;"
)
_ZERO2 = """compute_environment: LOCAL_MACHINE
deepspeed_config:
  deepspeed_config_file: {sources}/huggingface+accelerate/examples/deepspeed_config_templates/zero_stage2_config.json
  zero3_init_flag: true
distributed_type: DEEPSPEED
machine_rank: 0
num_machines: 1
num_processes: 2
"""
Row = dict[str, Any]


def listed() -> list[Row]:
    """The scripts of fit.toml."""
    rows: list[Row] = tomllib.loads((PUBLIC / "fit.toml").read_text("utf-8"))["script"]
    return rows


def bound(script: Row) -> int:
    """What each GPU holds at least, in bytes."""
    return int(sum(number * size / shared for number, size, shared in script["bound"]))


def main() -> int:
    """Run what has no result; 1 where one says that it fits and the bound says no."""
    parser = argparse.ArgumentParser()
    parser.add_argument("python", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--sources", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--overlay", action="append", default=[], metavar="NAME=DIR")
    arguments = parser.parse_intermixed_args()
    work = arguments.work.absolute()
    if not (work / "hf" / "data").is_dir():
        making = _STAND_INS + "made.make(pathlib.Path(sys.argv[2]))"
        made = [str(arguments.python), "-c", making, str(PUBLIC), str(work / "hf")]
        subprocess.run(made, check=True)
    results = work / "results.json"
    kept: dict[str, Row] = json.loads(results.read_text()) if results.is_file() else {}
    overlays = dict(overlay.split("=", 1) for overlay in arguments.overlay)
    chosen = [
        script for script in listed() if script["name"] in (arguments.names or [script["name"]])
    ]
    for script in chosen:
        if script["name"] not in kept:
            kept[script["name"]] = _forecast(script, arguments, work, overlays)
            results.write_text(json.dumps(kept))
            print(_row(script, kept[script["name"]]), flush=True)
    print("\n".join(_row(script, kept[script["name"]]) for script in chosen))
    return int(any(_is_below(script, kept[script["name"]]) for script in chosen))


def _forecast(
    script: Row, arguments: argparse.Namespace, work: Path, overlays: dict[str, str]
) -> Row:
    source = arguments.sources.absolute() / _folder_of(script["source"])
    path = source / script["path"]
    if hashlib.sha256(path.read_bytes()).hexdigest() != script["sha256"]:
        return {"outcome": f"another file than {script['sha256'][:12]}"}
    python = Path(os.path.abspath(arguments.python))
    data, model = work / "hf" / "data", script.get("model", "")
    places = {
        "data": data,
        "accelerate": arguments.sources.absolute() / "huggingface+accelerate",
        "model": work
        / "hf"
        / "hub"
        / f"models--{model.replace('/', '--')}"
        / "snapshots"
        / ("0" * 40),
    }
    with tempfile.TemporaryDirectory(dir=work) as folder:
        started_in = Path(folder)
        if "folder" in script:
            started_in /= "checkout"
            shutil.copytree(source / script["folder"], started_in)
            path = started_in / os.path.relpath(path, source / script["folder"])
        _beside(started_in, data)
        config = script.get("config_file", "").format(**places)
        if config.endswith("zero2.yaml"):
            (started_in / "zero2.yaml").write_text(
                _ZERO2.format(sources=arguments.sources.absolute())
            )
            config = str(started_in / "zero2.yaml")
        what = ["-m", script["module"]] if "module" in script else [str(path)]
        command = [
            *(sys.executable, "-m", "ranksafe", "fit", "--output-format", "json", "--lang", "en"),
            *("--python", str(python), "--gpus", str(script["gpus"]), "--yes", "--warm", "off"),
            *("--launcher", script["launcher"], "--ranks", script.get("ranks", "auto")),
            *("--timeout", str(_LONGEST_SECONDS)),
            *(("--config-file", str(source / config)) if config else ()),
            *(*what, "--", *shlex.split(script.get("arguments", "").format(**places))),
        ]
        before = os.times()
        began = time.monotonic()
        done = subprocess.run(
            command,
            cwd=started_in,
            env=_environment(work, overlays.get(script.get("requires", ""), "")),
            capture_output=True,
            text=True,
            errors="replace",
        )
        after = os.times()
    used = (
        after.children_user - before.children_user + after.children_system - before.children_system
    )
    try:
        told = json.loads(done.stdout)
    except ValueError:
        told = None
    return {
        "outcome": "forecast" if told and told.get("needs") else "none",
        "status": done.returncode,
        "seconds": time.monotonic() - began,
        "processor": used,
        "told": told,
        "stderr": done.stderr[-6000:],
    }


def _beside(started_in: Path, data: Path) -> None:
    """What scripts look for beside themselves."""
    for name, target in (
        ("temp/data/FinancialPhraseBank-v1.0", data / "phrases"),
        ("tests/assets/c4_test", data / "c4_test"),
        ("data/openwebtext", data / "tokens" / "openwebtext"),
        ("data/shakespeare", data / "tokens" / "shakespeare"),
    ):
        place = started_in / name
        if place.is_dir():
            shutil.copytree(target, place, dirs_exist_ok=True)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(target)


def _folder_of(source: str) -> str:
    return source.partition("@")[0].replace("/", "+").replace("==", "-")


def _environment(work: Path, overlay: str) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(
            [str(ROOT / "server"), str(ROOT / "rules"), *filter(None, [overlay])]
        ),
        "HF_HOME": str(work / "hf"),
    }


def _needs(done: Row) -> Row:
    needs: Row = (done.get("told") or {}).get("needs") or {}
    return needs


def _is_below(script: Row, done: Row) -> bool:
    needs = _needs(done)
    return bool(needs) and int(needs["allocated"]) < bound(script)


def _row(script: Row, done: Row) -> str:
    needs, told = _needs(done), done.get("told") or {}
    gib = " – ".join(
        f"{needs[key] / GIBIBYTE:.1f}" for key in ("at_least", "at_most") if key in needs
    )
    outcome = told.get("fits") or _reason(told) or str(done.get("stderr", ""))[-160:]
    cells = (
        *(script["name"], str(script["gpus"]), f"{bound(script) / GIBIBYTE:.2f}", gib),
        *(f"{'BELOW ' * _is_below(script, done)}{outcome}", f"{done.get('processor', 0):.0f}"),
    )
    return "| " + " | ".join(" ".join(cell.split()) for cell in cells) + " |"


def _reason(told: Row) -> str:
    run = told.get("run") or {}
    found = [run.get("simulation_limit"), *(run.get("failures") or [])]
    messages = [str(failure["message"]).strip() for failure in found if failure]
    return f"{run.get('outcome')}: {messages[0][:200]}" if messages else str(run.get("outcome", ""))


if __name__ == "__main__":
    sys.exit(main())
