"""Library versions for proofs: installed once, however many want them."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no file locks there")

ASK = """
import sys
from pathlib import Path
from ranksafe.runs.proofs.environment import overlay_for
print(overlay_for(["tiny==1.0"], Path(sys.argv[1]), lambda text: None))
"""


def wheel(folder: Path) -> None:
    information = "tiny-1.0.dist-info"
    files = {
        "tiny.py": "",
        f"{information}/METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
        f"{information}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{information}/RECORD": "",
    }
    with zipfile.ZipFile(folder / "tiny-1.0-py3-none-any.whl", "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)


def test_processes_that_want_the_same_install_it_once(tmp_path: Path) -> None:
    wheel(tmp_path)
    calls = tmp_path / "calls"
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\necho "$@" >> {calls}\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    environment = {
        **os.environ,
        "RANKSAFE_CACHE": str(tmp_path / "cache"),
        "PYTHONPATH": os.pathsep.join(sys.path),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(tmp_path),
    }
    asking = [
        subprocess.Popen(
            [sys.executable, "-c", ASK, str(python)], env=environment, stdout=subprocess.PIPE
        )
        for _ in range(2)
    ]
    overlays = {process.communicate()[0].decode().strip() for process in asking}
    (overlay,) = overlays
    assert (Path(overlay) / "tiny.py").is_file()
    assert sum("--target" in call for call in calls.read_text().splitlines()) == 1
