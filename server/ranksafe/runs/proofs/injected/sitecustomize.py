"""Rides along in every Python process of a proof: this folder stands first on PYTHONPATH (standard library only).

Records an uncaught exception with its frames in RANKSAFE_PROOF_EVIDENCE, one file per process, gives each rank of a
launcher a file there for what it writes, and installs the emulated DataParallel after ``import torch`` where
RANKSAFE_PROOF_REPLICAS asks for it. Nothing here may change the program's outcome otherwise.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import os
import sys
import traceback
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType, TracebackType
from typing import Any


def _record_exceptions(folder: str) -> None:
    previous = sys.excepthook

    def record(
        kind: type[BaseException], value: BaseException, trace: TracebackType | None
    ) -> None:
        try:
            frames = traceback.extract_tb(trace)
            evidence = {
                "rank": int(os.environ["RANK"]) if "RANK" in os.environ else None,
                "type": kind.__qualname__,
                "message": str(value),
                "frames": [[f.filename, f.lineno, f.name, f.line or ""] for f in frames],
            }
            name = os.path.join(folder, "exception-%d.json" % os.getpid())
            with open(name, "w", encoding="utf-8") as file:
                json.dump(evidence, file)
        except Exception as error:  # a failing recorder must not hide the program's own failure
            sys.stderr.write("ranksafe: the exception was not recorded: %r\n" % error)
        previous(kind, value, trace)

    sys.excepthook = record


def _keep_output_apart(folder: str, rank: str) -> None:
    """Ranks share their launcher's streams and write unbuffered, so the pieces of their lines would mix there."""
    name = os.path.join(folder, "output-of-rank-" + rank)
    file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.close(file)


class _AfterTorch:
    """Calls ``then`` once torch has been executed by its real loader; many libraries ask for the spec only."""

    def __init__(self, then: Callable[[], None]) -> None:
        self.then = then
        self.searching = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != "torch" or self.searching:
            return None
        self.searching = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.searching = False
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            self.then()

        loader: Any = spec.loader
        loader.exec_module = exec_module
        return spec


def _emulate(replicas: int) -> None:
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    try:
        import emulated_data_parallel
    finally:
        del sys.path[0]
    emulated_data_parallel.install(replicas)


def _run_the_shadowed_one() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    elsewhere = [entry for entry in sys.path if os.path.abspath(entry) != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", elsewhere)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


_evidence, _rank = os.environ.get("RANKSAFE_PROOF_EVIDENCE"), os.environ.get("RANK")
_launched = "RANKSAFE_PROOF_LAUNCHED" in os.environ
if _evidence and not (_launched and _rank is None):
    _record_exceptions(_evidence)
if _evidence and _launched and _rank is not None:
    # What the rank starts itself writes where the rank lets it.
    del os.environ["RANKSAFE_PROOF_LAUNCHED"]
    _keep_output_apart(_evidence, _rank)
if os.environ.get("RANKSAFE_PROOF_REPLICAS"):
    sys.meta_path.insert(
        0, _AfterTorch(lambda: _emulate(int(os.environ["RANKSAFE_PROOF_REPLICAS"])))
    )
_run_the_shadowed_one()
