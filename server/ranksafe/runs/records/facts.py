"""What a run ran on: versions, hosts, devices, the project's commit. No values of environment variables."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ranksafe import __version__
from ranksafe.launch.interpreter import site_packages
from ranksafe.runs.launch_plan import Plan
from ranksafe.runs.model import RankReport, RunRequest
from ranksafe.runs.records.git_commit import commit_of
from ranksafe.runs.records.redaction import redacted_command

_INSTALLED = re.compile(r"(?P<name>.+?)-(?P<version>[^-]+)\.(?:dist-info|egg-info)")


def facts_at_start(request: RunRequest, plan: Plan) -> dict[str, Any]:
    """What is known when the run starts; on this machine only, other hosts are described by their ranks."""
    here = request.target.partition(":")[0] in ("local", "simulated")
    commit = commit_of(request.script.absolute().parent)
    return {
        "ranksafe": __version__,
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "interpreter": plan.command[0] if plan.command else None,
        "packages": installed_packages(Path(plan.command[0])) if here and plan.command else {},
        "gpus": _described(given_gpus(request, plan)),
        "git": None if commit is None else {"commit": commit.commit, "branch": commit.branch},
        "environment_names": sorted(request.environment),
    }


def facts_at_end(ranks: Sequence[RankReport], python: str | None) -> dict[str, Any]:
    """What the ranks told: their hosts and their Python."""
    hosts = list(dict.fromkeys(rank.host for rank in ranks if rank.host))
    return {"hosts": hosts, "python": python}


def request_facts(request: RunRequest) -> dict[str, Any]:
    """The request as JSON: names of environment variables, not their values."""
    options = request.rehearsal
    return {
        "script": str(request.script.absolute()),
        "target": request.target,
        "gpus": request.gpus,
        "cpu_ranks": request.cpu_ranks,
        "steps": "auto" if options.short_epochs and request.steps is None else request.steps,
        "arguments": redacted_command(request.arguments),
        "config_file": None if request.config_file is None else str(request.config_file),
        "interpreter": None if request.interpreter is None else str(request.interpreter),
        "working_directory": str(request.working_directory or Path.cwd()),
        "timeout_seconds": request.timeout_seconds,
        "launcher": request.launcher,
        "rehearsal": {
            "nodes": options.nodes,
            "device_model": options.device_model,
            "memory_bytes": options.memory_bytes,
            "shrink": options.shrink.value,
            "short_epochs": options.short_epochs,
            "isolation": options.isolation.value,
            "confirm": options.confirm.value,
            "forecast": options.forecast,
            "stands_for": options.stands_for,
        }
        if request.target.startswith("simulated:")
        else None,
    }


def installed_packages(interpreter: Path) -> dict[str, str]:
    """Every distribution an interpreter sees, by the names of its metadata folders; no file is opened."""
    found: dict[str, str] = {}
    for folder in site_packages(interpreter):
        try:
            names = sorted(entry.name for entry in os.scandir(folder))
        except OSError:
            continue
        for name in names:
            match = _INSTALLED.fullmatch(name)
            if match is not None:
                normalized = re.sub(r"[-_.]+", "-", match["name"]).lower()
                found.setdefault(normalized, match["version"])
    return dict(sorted(found.items()))


def given_gpus(request: RunRequest, plan: Plan) -> frozenset[str]:
    """The devices of this machine that the run may use, by index or UUID; simulated ones are none."""
    if request.target != "local":
        return frozenset()
    names = plan.environment.get("CUDA_VISIBLE_DEVICES", "").split(",")
    return frozenset(name.strip() for name in names if name.strip())


def _described(chosen: frozenset[str]) -> list[dict[str, Any]]:
    if not chosen:
        return []
    # POSIX modules.
    from ranksafe.runs.gpus import list_gpus

    return [
        {"index": gpu.index, "uuid": gpu.uuid, "name": gpu.name, "free_mib": gpu.free_mib}
        for gpu in list_gpus()
        if gpu.uuid in chosen or str(gpu.index) in chosen
    ]
