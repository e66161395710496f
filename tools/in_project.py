"""Run Python with the arguments given in the project's environment, which is made first if need be."""

from __future__ import annotations

import subprocess
import sys

from environments import ROOT, SetUpError, project_environment, say


def main(words: list[str]) -> int:
    try:
        python = project_environment(development=True)
    except SetUpError as error:
        say(str(error))
        return 1
    return subprocess.run([str(python), *words], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
