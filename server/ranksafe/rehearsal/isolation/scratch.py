"""Clearing away what an isolation needs in the run's folder."""

# Files as the kernel sees them, call by call: pathlib would only hide which calls are made.
# ruff: noqa: PTH101, PTH106, PTH114, PTH118

from __future__ import annotations

import contextlib
import os
import shutil

from ranksafe.rehearsal.isolation.specification import ROOT_FOLDER, SCRATCH_FOLDER


def clear(run_directory: str) -> None:
    """Remove what was written to disk and the empty place of the root; never raises.

    Overlays keep folders in their work folder that even their owner may not open.
    """
    folder = os.path.join(run_directory, SCRATCH_FOLDER)
    for directory, names, _ in os.walk(folder):
        for name in names:
            path = os.path.join(directory, name)
            with contextlib.suppress(OSError):
                if not os.path.islink(path):
                    os.chmod(path, 0o700)
    shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):
        os.rmdir(os.path.join(run_directory, ROOT_FOLDER))
