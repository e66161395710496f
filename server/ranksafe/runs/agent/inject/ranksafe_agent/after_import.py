"""Call a function once a named module has really been imported.

Acting in ``exec_module`` and not in ``find_spec`` matters: libraries probe ``find_spec("torch")`` without importing.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Callable

Action = Callable[[ModuleType], None]


class _Finder:
    """Stands first on ``sys.meta_path``, asks the others, and wraps the loader of the modules it waits for."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self.actions: dict[str, Action] = {}
        self.report = report
        self.asking: set[str] = set()
        """Names the others are being asked for; another finder of this kind among them asks back."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in self.actions or name in self.asking:
            return None
        self.asking.add(name)
        try:
            spec = self._ask_others(name, path, target)
        finally:
            self.asking.discard(name)
        if spec is not None:
            self._wrap(name, spec)
        return spec

    def _ask_others(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> ModuleSpec | None:
        for finder in list(sys.meta_path):
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                return spec
        return None

    def _wrap(self, name: str, spec: ModuleSpec) -> None:
        loader: Any = spec.loader
        if loader is None or not hasattr(loader, "exec_module"):
            return
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            with contextlib.suppress(AttributeError):
                del loader.exec_module
            execute(module)
            self.act(name, module)

        try:
            loader.exec_module = exec_module
        except AttributeError:
            self.report(f"{name}: its loader cannot be wrapped")

    def act(self, name: str, module: ModuleType) -> None:
        """Run the module's action, once."""
        action = self.actions.pop(name, None)
        if action is None:
            return
        try:
            action(module)
        except Exception as error:  # an unknown version of a library
            self.report(f"{name}: {error!r}")


def after_import(actions: Mapping[str, Action], report: Callable[[str], None]) -> None:
    """Run each action after its module's first import, at once where that is over; problems go to ``report``, never to
    the importer."""
    finder = _Finder(report)
    finder.actions.update(actions)
    sys.meta_path.insert(0, finder)
    for name in [name for name in actions if name in sys.modules]:
        finder.act(name, sys.modules[name])
