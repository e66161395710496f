"""The start of the extension in VS Code: until the first squiggle, and what it adds to the editor's own start."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
from pathlib import Path

from compared_tools import ToolMissing
from report import Figure

ROOT = Path(__file__).resolve().parents[2]
SQUIGGLE_SECONDS = 1.5
ACTIVATION_MILLISECONDS = 50.0
_MARK = "FIGURES "


def measure() -> list[Figure]:
    """Start the workbench several times (``editor_start.mjs``); raises ToolMissing where it does not start."""
    node = shutil.which("node")
    if node is None:
        raise ToolMissing("Node 20 or newer is needed for the workbench")
    command = [node, "tests/editors/vscode/run.mjs", "tests/bench/editor_start.mjs"]
    # Users' servers find the bytecode that their first start has written.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    answer = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env=environment, check=False
    )
    line = next((line for line in answer.stdout.splitlines() if line.startswith(_MARK)), None)
    if line is None:
        raise ToolMissing(f"the workbench gave no figures:\n{answer.stdout[-2000:]}")
    found = json.loads(line.removeprefix(_MARK))
    squiggle, activated = found["squiggle"], found["activated"]
    return [
        Figure(
            "first squiggle after its file is shown",
            statistics.median(squiggle),
            SQUIGGLE_SECONDS,
            "s",
            detail=f"{min(squiggle):.2f} to {max(squiggle):.2f} s, server and extension started for it",
        ),
        Figure(
            "loading and activating the extension",
            statistics.median(activated),
            ACTIVATION_MILLISECONDS,
            "ms",
            detail=f"{min(activated):.0f} to {max(activated):.0f} ms, as VS Code reports it",
        ),
    ]
