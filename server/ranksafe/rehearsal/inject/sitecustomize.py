"""Imported by ``site`` in every Python process of a rehearsal: the simulated devices, then what it shadows."""

from __future__ import annotations

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _start_rehearsal() -> None:
    if not os.environ.get("RANKSAFE_REHEARSAL"):
        return
    if _HERE not in sys.path:
        sys.path.insert(0, _HERE)
    from importlib import import_module

    import_module("ranksafe_rehearsal.activation").start()


def _run_shadowed() -> None:
    """Run the next ``sitecustomize``: only folders behind ours, because those before ours have called us."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    folders = [os.path.abspath(entry or os.curdir) for entry in sys.path]
    behind = sys.path[folders.index(_HERE) + 1 :] if _HERE in folders else sys.path
    spec = PathFinder.find_spec("sitecustomize", behind)
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


_start_rehearsal()
_run_shadowed()
