"""Imported by ``site`` in every Python process of a run: starts the agent, then the sitecustomize it shadows.

Nothing of ours may change how the process goes on, so the agent's own errors are swallowed; those of the shadowed
module are not, because without us ``site`` would have reported them too.
"""

from __future__ import annotations

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _start_agent() -> None:
    try:
        from importlib import import_module

        import_module("ranksafe_agent").activate(_HERE)
    except Exception:  # a broken agent must stay unnoticed by the script
        pass


def _run_shadowed() -> None:
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    others = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != _HERE]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


_start_agent()
_run_shadowed()
