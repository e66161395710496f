"""The part that rides along in the user's processes.

`inject` is put on PYTHONPATH of a run; nothing else of ranksafe is importable there. It uses the standard library
only (and debugpy in a rank that is to be debugged), runs on CPython 3.8 and newer, and writes JSON and plain text,
never pickles.
"""

from __future__ import annotations

from pathlib import Path

INJECT_DIRECTORY = Path(__file__).parent / "inject"
"""Goes first on PYTHONPATH; holds `sitecustomize` and the package `ranksafe_agent`, nothing a script could shadow."""

DIRECTORY_VARIABLE = "RANKSAFE_RUN_DIRECTORY"
SCRIPT_VARIABLE = "RANKSAFE_RUN_SCRIPT"
MODULE_VARIABLE = "RANKSAFE_RUN_MODULE"
"""The name by which the script is started (``-m``); unset: it is started as a file."""
STEPS_VARIABLE = "RANKSAFE_RUN_STEPS"
"""After how many optimizer steps a rank ends, or `ENOUGH_STEPS`; unset: never."""
ENOUGH_STEPS = "auto"
"""When further steps would show nothing new; a Trainer then ends its training, and the script goes on."""
DETECTORS_VARIABLE = "RANKSAFE_RUN_DETECTORS"
"""``all`` (rehearsals), ``cheap`` (real runs) or ``off``: which silent failures are looked for; unset is ``off``."""
DEBUGGED_RANK_VARIABLE = "RANKSAFE_RUN_DEBUGGED_RANK"
DEBUGPY_VARIABLE = "RANKSAFE_RUN_DEBUGPY"
"""A folder with debugpy, for ranks whose Python has none."""
