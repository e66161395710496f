"""``make demo``: a hang seen before the run, rehearsed, fixed, and rehearsed again, from nothing."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from environments import ROOT, SetUpError, project_environment, say, torch_environment

HEADLINE = "report_loss.py"
DATA_PARALLEL = "model.py"


def main() -> int:
    try:
        python = project_environment(development=False)
        torch = torch_environment(for_tests=False)
    except SetUpError as error:
        say(str(error))
        return 1
    with tempfile.TemporaryDirectory(prefix="ranksafe-demo-") as folder:
        for name in (HEADLINE, DATA_PARALLEL):
            shutil.copy(ROOT / "examples" / name, folder)
        show = Show(python, Path(folder))
        rehearsal = ["rehearse", HEADLINE, "--quiet", "--python", str(torch)]
        shown = [
            show("A hang, seen before the run", 1, "check", HEADLINE),
            show("The same, rehearsed on two simulated GPUs", 1, *rehearsal),
            show("The fix", 1, "fix", "--diff", "--unsafe", HEADLINE),
            show("The fix, written", 0, "fix", "--unsafe", HEADLINE),
            show("The rehearsal passes", 0, *rehearsal),
            show("What replicas of nn.DataParallel trip over", 1, "check", DATA_PARALLEL),
        ]
    print(
        "\nThe same in an editor:\n"
        "  make vscode   VS Code, with squiggles, fixes and the Run on GPUs lens\n"
        "  make nvim     Neovim, with the same over plain LSP\n"
        "and of a script of yours: ranksafe check, ranksafe rehearse, ranksafe run"
    )
    return 0 if all(shown) else 1


@dataclass(frozen=True)
class Show:
    """Runs commands in a folder where they may write, and shows the line that a newcomer would type."""

    python: Path
    folder: Path

    def __call__(self, text: str, expected: int, *words: str) -> bool:
        """Whether the command ended as the demo says it does."""
        bar = "=" * 72
        print(f"\n{bar}\n{text}\n$ ranksafe {shlex.join(words)}\n{bar}\n", flush=True)
        environment = {**os.environ}
        if sys.stdout.isatty() or environment.get("FORCE_COLOR"):
            environment["FORCE_COLOR"] = "1"
        command = [str(self.python), "-m", "ranksafe", *words]
        status = subprocess.run(
            command, cwd=self.folder, env=environment, stderr=sys.stdout, check=False
        ).returncode
        if status != expected:
            say(f"not as it should be: `{words[0]}` ended with {status}, not {expected}")
        return status == expected


if __name__ == "__main__":
    sys.exit(main())
