"""What a run's folder on the cluster holds before the job begins."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from ranksafe.localization import Translated
from ranksafe.runs import agent
from ranksafe.runs.launch_plan import own_config
from ranksafe.runs.model import RunRequest
from ranksafe.runs.targets.slurm.project import Project
from ranksafe.runs.targets.supervised import ride_along

CONFIG: Final = "accelerate.yaml"
_INJECT = "inject"
_COMPUTE_NODE = Path(__file__).parent / "compute_node"
_LOGIN_NODE = Path(__file__).parent / "login_node"


def files_of(
    request: RunRequest,
    there: str,
    project: Project,
    launcher: Sequence[str],
    variables: Mapping[str, str],
    ranks: int,
) -> dict[str, str]:
    """Texts by name: the plan and the programs that carry it out, accelerate's configuration, the agent.

    ``there``: the folder. Raises OSError when the user's configuration cannot be read.
    """
    plan = {
        "launcher": list(launcher),
        "script": [project.script, *request.arguments],
        "environment": dict(variables),
        "inject": f"{there}/{_INJECT}",
        "working_directory": project.working_directory,
    }
    config = request.config_file
    files = {
        "plan.json": json.dumps(plan),
        CONFIG: own_config(ranks) if config is None else config.read_text(encoding="utf-8"),
    }
    programs = (_COMPUTE_NODE / "job.py", _COMPUTE_NODE / "node.py", _LOGIN_NODE / "tree.py")
    for path in programs:
        files[path.name] = path.read_text(encoding="utf-8")
    root = agent.INJECT_DIRECTORY
    for path in sorted(root.rglob("*.py")):
        name = f"{_INJECT}/{path.relative_to(root).as_posix()}"
        files[name] = path.read_text(encoding="utf-8")
    return files


def variables_of(
    request: RunRequest, there: str, script: str, *, cpu: bool
) -> tuple[dict[str, str], tuple[Translated, ...]]:
    """What the launchers on the nodes get besides the job's environment, and what that changes, in words."""
    variables: dict[str, str] = {}
    modified = ride_along(variables, request, Path(there), detectors="cheap")
    # The node puts the agent's folder before what the job inherits.
    del variables["PYTHONPATH"]
    variables[agent.SCRIPT_VARIABLE] = script
    if cpu:
        variables["ACCELERATE_USE_CPU"] = "true"
        variables["CUDA_VISIBLE_DEVICES"] = ""
    return variables, modified
