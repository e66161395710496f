"""Calls that write a file under a name that all ranks share."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from packaging.version import Version
from ranksafe.launch.context import LaunchContext
from ranksafe.semantics.module import Module

from ranksafe_rules._shared.every_rank import is_sharded_way, runs_on_every_rank
from ranksafe_rules._shared.loops import loops_around
from ranksafe_rules._shared.rank_words import identifiers, names_behind
from ranksafe_rules._shared.same_path import is_same_on_all_ranks

_WRITERS: Final = {
    "torch.save": ("f", 1),
    "safetensors.torch.save_file": ("filename", 1),
    "safetensors.torch.save_model": ("filename", 1),
    "numpy.save": ("file", 0),
    "numpy.savez": ("file", 0),
    "numpy.savez_compressed": ("file", 0),
    "numpy.savetxt": ("fname", 0),
    "joblib.dump": ("filename", 1),
    "shutil.copy": ("dst", 1),
    "shutil.copy2": ("dst", 1),
    "shutil.copyfile": ("dst", 1),
    "torchvision.utils.save_image": ("fp", 1),
    "matplotlib.pyplot.savefig": ("fname", 0),
}
"""Functions that write a file, with the parameter that names it (read in torch 2.13.0, numpy 2)."""
_METHODS: Final = {
    "save_pretrained": ("save_directory", 0),
    "to_csv": ("path_or_buf", 0),
    "to_parquet": ("path", 0),
    "to_json": ("path_or_buf", 0),
    "to_pickle": ("path", 0),
}
"""Methods that do: of models and tokenizers of transformers, diffusers and peft, and of pandas's frames."""
_FIRST_SAFETENSORS: Final = Version("4.35.0")
"""From here on transformers writes safetensors unless told otherwise, and asks ``save_function`` for nothing then (read
in 4.34.1, 4.35.0, 4.57.1)."""
_WITHOUT_SAVE_FUNCTION: Final = Version("5.0.0")
"""It has no such parameter any more (read in 5.23.0)."""
_PATH_METHODS: Final = frozenset({"write_text", "write_bytes"})
_WORDS: Final = frozenset(name.rpartition(".")[2] for name in _WRITERS)
MENTIONS: Final = frozenset(f"{word}(" for word in (*_WORDS, *_METHODS, *_PATH_METHODS, "open"))
_WRITING: Final = frozenset("wx")
_MAKING: Final = ("mkdir", "makedirs")
_LOOKS_FIRST: Final = re.compile(r"exists|is_?file|is_?dir|cache", re.IGNORECASE)
_RESULT: Final = re.compile(
    r"result|metric|pred|output|(^|_)acc|loss|score|eval|answer|response|generat|(?-i:loader)|history|stats|summary",
    re.IGNORECASE,
)
_SMALL: Final = re.compile(
    r"tokenizer|processor|feature_extractor|config|cfg|(^|_)args$|hparams|vocab|sched",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Write:
    """One call that writes a file on every rank."""

    call: ast.Call
    path: ast.expr
    alike: bool
    """Whether what the ranks write is small and the same: a tokenizer, a configuration."""


def writes_on_every_rank(module: Module, launch: LaunchContext) -> Iterator[Write]:
    """The calls of the file that write one file from all ranks, in source order; what is alike only where the program
    reads it again: else the file is right in the end."""
    found = []
    writes = list(_writes(module))
    for call, path in writes:
        alike = _is_alike(module, call)
        if alike and not _is_read_again(module, call, path, [target for _, target in writes]):
            continue
        if _leaves_it_to_a_function(module, call, launch):
            continue
        if _is_shared(module, call, path, launch):
            found.append(Write(call, path, alike))
    yield from sorted(found, key=lambda write: module.order_of(write.call))


def _writes(module: Module) -> Iterator[tuple[ast.Call, ast.expr]]:
    for call in module.calls(*_WRITERS):
        parameter, position = _WRITERS.get(module.qualified_name(call.func) or "", ("", None))
        path = module.argument_node(call, parameter, position)
        if path is not None:
            yield call, path
    for method, (parameter, position) in _METHODS.items():
        for call in module.calls_written(method):
            path = module.argument_node(call, parameter, position)
            main = module.argument(call, "is_main_process", 1)
            if path is not None and main is None and isinstance(call.func, ast.Attribute):
                yield call, path
    for call in module.calls_written("open"):
        path = _opened(module, call)
        if path is not None:
            yield call, path
    for method in _PATH_METHODS:
        for call in module.calls_written(method):
            if isinstance(call.func, ast.Attribute):
                yield call, call.func.value


def _leaves_it_to_a_function(module: Module, call: ast.Call, launch: LaunchContext) -> bool:
    """``model.save_pretrained(path, save_function=accelerator.save)`` where transformers calls that: accelerate's own
    writes on the main process only (accelerate 1.15.0 `utils/other.py` ``save``), and others are not known."""
    given = module.argument_node(call, "save_function", None)
    if given is None or module.qualified_name(given) == "torch.save":
        return False
    version = launch.version("transformers")
    safe = module.argument(call, "safe_serialization")
    if safe is None:
        return version is not None and version < _FIRST_SAFETENSORS
    if version is not None and version >= _WITHOUT_SAVE_FUNCTION:
        return False
    return safe.only_constant() is False


def _opened(module: Module, call: ast.Call) -> ast.expr | None:
    """The path of ``open(path, "w")`` and ``path.open("w")``; appending is left alone: nothing is written over."""
    if module.qualified_name(call.func) == "builtins.open":
        path, position = module.argument_node(call, "file", 0), 1
    elif isinstance(call.func, ast.Attribute) and module.type_of(call.func.value) == "pathlib.Path":
        path, position = call.func.value, 0
    else:
        return None
    mode = module.argument(call, "mode", position)
    modes = [] if mode is None else [str(value) for value in mode.constants()]
    return path if modes and all(_WRITING & set(value) for value in modes) else None


def _is_shared(module: Module, call: ast.Call, path: ast.expr, launch: LaunchContext) -> bool:
    return (
        not is_sharded_way(module, call)
        and not _looks_first(module, call)
        and runs_on_every_rank(module, call, launch)
        and is_same_on_all_ranks(module, path)
    )


def _looks_first(module: Module, call: ast.Call) -> bool:
    """Whether it is only written where it is missing: which rank does so depends on who comes first."""
    return any(
        _LOOKS_FIRST.search(word)
        for guard in module.guards(call)
        for word in names_behind(module, guard.test)
    )


def _is_read_again(module: Module, call: ast.Call, path: ast.expr, targets: list[ast.expr]) -> bool:
    """Whether the program names what it has written once more, for another purpose than to write there, or may do so
    elsewhere: in an attribute. ``targets``: the paths of all that it writes."""
    if isinstance(path, ast.Attribute):
        return True
    if isinstance(path, ast.Name):
        named: Iterable[ast.AST] = module.loads_of_same_name(path)
    else:
        written = module.text_of(path)
        named = (node for node in module.nodes(type(path)) if module.text_of(node) == written)
    making = [made for word in _MAKING for made in module.calls_written(word)]
    return any(
        _may_follow(module, other, call)
        for other in named
        if not any(module.is_inside(other, target) for target in (*targets, *making))
    )


def _may_follow(module: Module, node: ast.AST, call: ast.Call) -> bool:
    """Whether ``node`` may run behind a call: it stands behind it, in another function, or in a loop with it."""
    return (
        module.enclosing_function(node) is not module.enclosing_function(call)
        or module.order_of(node) > module.order_of(call)
        or any(module.is_inside(node, loop) for loop in loops_around(module, call))
    )


def _is_alike(module: Module, call: ast.Call) -> bool:
    """Whether the ranks write something small that is the same for all: a tokenizer, a configuration, text without
    results in it."""
    holder = module.parent(call)
    if module.qualified_name(call.func) in _WRITERS:
        return False
    if isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS:
        kind = (module.type_of(call.func.value) or "").rpartition(".")[2]
        return any(map(_SMALL.search, (kind, *identifiers(call.func.value))))
    written: list[ast.AST] = [call]
    if isinstance(holder, ast.withitem):
        statement = module.parent(holder)
        written = [*statement.body] if isinstance(statement, ast.With) else []
    elif isinstance(holder, ast.Call):
        written = [item for item in holder.args if item is not call]
    elif isinstance(call.func, ast.Attribute):
        written = [*call.args]
    words = (word for part in written for word in names_behind(module, part))
    return not any(map(_RESULT.search, words))
