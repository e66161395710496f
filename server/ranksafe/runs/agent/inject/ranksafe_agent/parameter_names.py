"""The names of parameters where DistributedDataParallel tells the indices of those without a gradient.

torch maps indices to names for every model that is wrapped, and prints the names only where TORCH_DISTRIBUTED_DEBUG is
set (2.13.0, ``nn/parallel/distributed.py`` and ``reducer.cpp``). Its mapping is kept here, and used for the model whose
method has raised.
"""

from __future__ import annotations

import functools
import re
import weakref
from typing import Any, Callable, Mapping

from .after_import import after_import
from .journal import Journal

_UNUSED = re.compile(r"Parameter indices which did not receive grad for rank (\d+):((?: \d+)+)")
_NAMED = "Parameters which did not receive grad for rank"

_names: weakref.WeakKeyDictionary[Any, Mapping[int, str]] = weakref.WeakKeyDictionary()


def install(journal: Journal) -> None:
    """Keep what torch knows of each model that is wrapped from now on."""
    actions = {"torch.nn.parallel.distributed": _hook}
    after_import(actions, lambda text: journal.write("agent-problem", text=text))


def _hook(module: Any) -> None:
    kind = module.DistributedDataParallel
    build: Callable[..., Any] = kind._build_debug_param_to_name_mapping

    @functools.wraps(build)
    def kept(self: Any, *arguments: Any, **keywords: Any) -> Any:
        names = _names[self] = build(self, *arguments, **keywords)
        return names

    kind._build_debug_param_to_name_mapping = kept


def notes_on(error: BaseException, text: str) -> list[str]:
    """What torch would print with names, in its own words; nothing where the model is not certain."""
    found = _UNUSED.search(text)
    if found is None or _NAMED in text:
        return []
    try:
        names = _of_who_raised(error)
        # Of what is wrapped itself, torch's names begin with a dot.
        told = [names[int(index)].lstrip(".") for index in found[2].split()]
    except Exception:  # the error itself is what has to be written down
        return []
    return [f"{_NAMED} {found[1]}: {', '.join(told)}"]


def _of_who_raised(error: BaseException) -> Mapping[int, str]:
    names: Mapping[int, str] = {}
    trace = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        owner = frame.f_locals.get("self")
        if frame.f_code.co_filename.endswith("distributed.py") and owner in _names:
            names = _names[owner]
        trace = trace.tb_next
    return names
