"""Programs that run on a host: sent as text, standard library only, CPython 3.8 and newer, nothing installed.

Each reads its request as one line of JSON from standard input and answers on standard output.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

_HERE: Final = Path(__file__).parent
_PACKAGE: Final = "ranksafe.runs"


def program(main: str, *modules: str) -> str:
    """The text of ``main``, with the ``modules`` it imports on board; names as below ``ranksafe.runs``.

    ``program("on_host.start", "supervisor")`` is one program that can import ``ranksafe.runs.supervisor``.
    """
    texts = {f"{_PACKAGE}.{name}": _text(name) for name in modules}
    return _CARRIER.format(modules=texts, name=f"{_PACKAGE}.{main}", text=_text(main))


def _text(name: str) -> str:
    return (_HERE.parent / (name.replace(".", "/") + ".py")).read_text(encoding="utf-8")


_CARRIER: Final = """\
import sys, types

def _module(name):
    if name not in sys.modules:
        module = sys.modules[name] = types.ModuleType(name)
        module.__path__ = []
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(_module(parent), last, module)
    return sys.modules[name]

for _name, _text in {modules!r}.items():
    exec(compile(_text, _name, "exec"), _module(_name).__dict__)
exec(compile({text!r}, {name!r}, "exec"), {{"__name__": "__main__"}})
"""
