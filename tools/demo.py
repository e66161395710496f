"""``make demo``: ranksafe on the example project, from nothing to a failure drawn on its source line."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

from environments import ROOT, SetUpError, project_environment, say, torch_environment

CHECKED = "examples"
FIXED = "examples/finetune.py"
STARTED = "examples/train_ddp.py"


def main() -> int:
    try:
        python = project_environment(development=False)
        words = ["check", CHECKED, "--launcher", "accelerate"]
        title("What ranksafe sees while you type", *words)
        # A check with findings ends with status 1: that is what the demo is about.
        checked = ranksafe(python, *words)
        words = ["fix", "--diff", FIXED, "--launcher", "accelerate"]
        title("A repair, as a diff", *words)
        fixed = ranksafe(python, *words)
        torch = torch_environment(for_tests=False)
        words = ["run", STARTED, "--python", str(torch)]
        title("A run, and its failure on the line that caused it", *words)
        ran = ranksafe(python, *words)
    except SetUpError as error:
        say(str(error))
        return 1
    print(
        "\nThe same project in an editor:\n"
        "  make vscode   VS Code, with squiggles, fixes and the Run on GPUs lens\n"
        "  make nvim     Neovim, with the same over plain LSP"
    )
    as_told = checked == 1 and fixed in (0, 1) and ran == 1
    if not as_told:
        say(f"not as it should be: check ended with {checked}, fix with {fixed}, run with {ran}")
    return 0 if as_told else 1


def title(text: str, *words: str) -> None:
    bar = "=" * 72
    print(f"\n{bar}\n{text}\n$ ranksafe {shlex.join(words)}\n{bar}\n", flush=True)


def ranksafe(python: Path, *words: str) -> int:
    environment = {**os.environ}
    if sys.stdout.isatty() or environment.get("FORCE_COLOR"):
        environment["FORCE_COLOR"] = "1"
    return subprocess.run(
        [str(python), "-m", "ranksafe", *words], cwd=ROOT, env=environment, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
