"""Waits for a debugger before the script begins. Imported in the one rank that is to be debugged, and nowhere else."""

from __future__ import annotations

import os
import sys

from .journal import Journal

_HOST = "127.0.0.1"
_QUIET = "PYDEVD_DISABLE_FILE_VALIDATION"
"""Keeps debugpy from warning of Python's frozen modules, in which nobody wants to stop."""


def wait(journal: Journal, libraries: str | None) -> None:
    """Listen on this machine alone, tell where, and wait; ``libraries``: has debugpy where this Python has not."""
    if libraries is not None:
        # Last: whatever the script imports is what it would be without us.
        sys.path.append(libraries)
    before = os.environ.get(_QUIET)
    os.environ[_QUIET] = "1"
    try:
        import debugpy

        host, port = debugpy.listen((_HOST, 0))
    except Exception as error:
        journal.write("debugger", problem=repr(error))
        return
    finally:
        if before is None:
            del os.environ[_QUIET]
        else:
            os.environ[_QUIET] = before
    journal.write("debugger", host=host, port=port)
    debugpy.wait_for_client()
