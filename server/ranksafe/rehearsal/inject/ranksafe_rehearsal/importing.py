"""Run functions right before or right after a module is really executed.

Acting in ``exec_module`` and not in ``find_spec`` matters: libraries probe ``find_spec("torch")`` without importing.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from . import journal

Before = Callable[[ModuleSpec], None]
After = Callable[[ModuleType], None]


class _Finder:
    """First on ``sys.meta_path``: asks the finders behind it and wraps the loaders of the modules it waits for."""

    def __init__(self) -> None:
        self.before: dict[str, Before] = {}
        self.after: dict[str, list[After]] = {}
        self.failed: dict[str, Callable[[ImportError], None]] = {}
        self.replaced: dict[str, Callable[[], ModuleSpec]] = {}
        self._busy = threading.local()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module's spec with a wrapped loader, or None for modules that nobody waits for."""
        if name in self.replaced:
            return self.replaced[name]()
        if name not in self.before and name not in self.after and name not in self.failed:
            return None
        busy = self._busy.__dict__.setdefault("names", set())
        if name in busy:  # another finder that asks everyone, asks us
            return None
        busy.add(name)
        try:
            spec = self._ask_others(name, path, target)
        finally:
            busy.discard(name)
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
            before = self.before.pop(name, None)
            if before is not None:
                before(spec)
            try:
                execute(module)
            except ImportError as error:
                if name in self.failed:
                    self.failed[name](error)
                raise
            for action in self.after.pop(name, ()):
                try:
                    action(module)
                except NotImplementedError:  # a limit must be seen
                    raise
                except Exception as error:  # an unknown version of a library
                    journal.problem(f"after import of {name}", error)

        try:
            loader.exec_module = exec_module
        except AttributeError as error:
            journal.problem(f"loader of {name}", error)


_finder = _Finder()


def install() -> None:
    """Start to watch imports; once per process."""
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)  # type: ignore[arg-type]


def before_import(name: str, action: Before) -> None:
    """Call ``action(spec)`` right before ``name`` is executed; what it raises, the import raises."""
    _finder.before[name] = action


def after_import(name: str, action: After) -> None:
    """Call ``action(module)`` once ``name`` was executed, at once if it already was."""
    module = sys.modules.get(name)
    spec = getattr(module, "__spec__", None)
    if module is not None and not getattr(spec, "_initializing", False):
        action(module)
        return
    _finder.after.setdefault(name, []).append(action)


def on_import_error(name: str, action: Callable[[ImportError], None]) -> None:
    """Call ``action(error)`` when executing ``name`` raises ImportError, before the importer sees it."""
    _finder.failed[name] = action


def replace(name: str, spec: Callable[[], ModuleSpec]) -> None:
    """Answer every import of ``name`` with another module."""
    _finder.replaced[name] = spec
