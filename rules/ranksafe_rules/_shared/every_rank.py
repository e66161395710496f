"""Whether a piece of code runs on every rank of a launch with one process per GPU."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from ranksafe.launch.context import LaunchContext
from ranksafe.semantics.facts import OF_SEVERAL_PROCESSES
from ranksafe.semantics.guards import Guard
from ranksafe.semantics.module import Module
from ranksafe.semantics.structure import Function
from ranksafe.semantics.walking import FUNCTIONS

from ranksafe_rules._shared.chosen_branches import comes_to
from ranksafe_rules._shared.lightning_processes import all_start_one
from ranksafe_rules._shared.processes import (
    Certainty,
    launchers_shown,
    several_processes,
    wrappers_shown,
)
from ranksafe_rules._shared.rank_words import (
    asks_for_the_rank,
    assigned_to,
    identifiers,
    names_behind,
)
from ranksafe_rules._shared.trails.functions import called, callers_elsewhere

_MAXIMUM_DEPTH: Final = 8
_STARTERS: Final = frozenset(
    {"spawn", "start_processes", "notebook_launcher", "debug_launcher", "Process", "elastic_launch"}
)
"""They run the function that they are given in processes of their own; what calls them runs once."""
_GIVEN_AS: Final = frozenset({"target", "fn", "function", "entrypoint"})
"""The parameters that take it."""
_RUNNERS: Final = frozenset({"Fire", "run", "typer", "CLI", "run_main", "record", "launch"})
"""They run the function that they are given in this process (fire, absl, typer, jsonargparse)."""
_LAUNCH: Final = re.compile(
    r"dist|ddp|parallel|world|launch|nprocs|num_proc|num_gpu|n_gpu|ngpu|num_replicas|is_initialized|is_available$",
    re.IGNORECASE,
)
_SHARDED: Final = re.compile(
    r"fsdp|deepspeed|zero_?\d|zero_stage|shard|tensor_parallel|pipeline|megatron|(^|_)[tp]p(_|$)",
    re.IGNORECASE,
)
_ONLY_SOME: Final = re.compile(
    r"rank|main_process|master|on_main|only_main|zero|chief|primary|remote|fixture", re.IGNORECASE
)
"""Decorators that keep other ranks out, or hand the function to another program."""
_ALL_RANKS: Final = (
    "backward",
    "barrier",
    "wait_for_everyone",
    "all_reduce",
    "all_gather",
    "all_gather_object",
    "gather_for_metrics",
    "init_process_group",
    "init_distributed",
    "Accelerator",
    "DistributedDataParallel",
    "set_epoch",
)
"""Last words of calls that hang or make no sense unless all ranks come: a function that makes one without a condition
runs on all of them."""
_GROUP_MAKERS: Final = (
    *sorted(_STARTERS),
    "init_process_group",
    "init_device_mesh",
    "init_distributed",
    "Accelerator",
)
_QUESTIONS: Final = frozenset({"torch.distributed.get_rank", "torch.distributed.get_world_size"})
_ONE_PROCESS: Final = re.compile(r"--(nproc[-_]per[-_]node|num[-_]processes|num_gpus)[ =]1\b")
_WORKERS: Final = frozenset({"ray", "submitit", "dask", "pyspark"})
"""Packages whose jobs run in other processes than the script that defines them."""


def every_rank(module: Module, launch: LaunchContext) -> Certainty:
    """What is known of a launch of this file with one process per GPU, for what depends on the file's own code.

    A launch file can start another script of the same project, so that something of several processes has to stand
    in this file too; a world of one process, and a driver of workers, are none.
    """
    sure = several_processes(module, launch)
    if sure < Certainty.SHOWN:
        return sure
    facts = module.facts
    launchers = launchers_shown(module)
    asked_only = all(what in _QUESTIONS for what in launchers)
    shown = bool(
        (launchers and not asked_only)
        or wrappers_shown(module)
        or facts.trainers
        # A tool for one process may ask for its rank, too; it does nothing together with others.
        or (asked_only and any(module.calls_written(name) for name in _ALL_RANKS))
    )
    if not shown or (facts.data_parallel and not facts.distributed_data_parallel):
        return Certainty.POSSIBLE
    if (
        facts.imports & _WORKERS
        or module.text_says(_starts_one)
        or _world_of_one(module)
        or all_start_one(module)
    ):
        return Certainty.NEVER
    return sure


def may_be_reached(module: Module, launch: LaunchContext) -> bool:
    """Whether this file, or one that imports it, is of a launch with one process per GPU: whether it is worth while to
    ask `runs_on_every_rank`."""
    sure = every_rank(module, launch)
    if sure is not Certainty.POSSIBLE:
        return sure >= Certainty.SHOWN
    return any(module.users_mention(word) for word in OF_SEVERAL_PROCESSES)


def kept_to_some_ranks(module: Module, node: ast.AST, *, from_callers: bool = True) -> bool:
    """Whether something between ``node`` and its function (or the module) keeps ranks out, or may do so: a condition
    on the rank, an early exit, a branch for one process, a decorator.

    ``from_callers``: whether a condition on a parameter is followed to those who call the function, for which other
    files may have to be read.
    """
    function = module.enclosing_function(node)
    return _stands_apart(module, node, function, from_callers) or (
        function is not None
        and any(
            _keeps_calls(module, decorator, from_callers) for decorator in function.decorator_list
        )
    )


def _stands_apart(
    module: Module, node: ast.AST, function: Function | None, from_callers: bool
) -> bool:
    return (
        any(_keeps_out(module, guard, from_callers) for guard in module.guards(node))
        or _in_a_rank_block(module, node, from_callers)
        or _in_the_other_arm(module, node)
        or _after_an_exit(module, node, function, from_callers)
    )


def is_sharded_way(module: Module, node: ast.AST) -> bool:
    """Whether a condition around ``node`` asks for a strategy under which all ranks have to save."""
    return any(
        _SHARDED.search(word)
        for guard in module.guards(node)
        for word in names_behind(module, guard.test)
    )


def may_run_on_every_rank(module: Module, node: ast.AST) -> bool:
    """Whether nothing in the file keeps ranks out of ``node``: neither around it nor around all calls of its
    function."""
    return not kept_to_some_ranks(module, node) and not _callers_keep_out(module, node, set(), True)


def runs_on_every_rank(module: Module, node: ast.AST, launch: LaunchContext) -> bool:
    """Whether a way without any guard leads from where each rank starts to ``node``: from the statements of a file of
    several processes, a function that is handed to mp.spawn and its like, or one that performs what all ranks have to;
    through the calls in this file and in those that import it."""
    # Most are not, as the file itself shows: then who calls its functions with what is not asked.
    return all(
        _reached(module, node, _Way(launch, from_callers), _MAXIMUM_DEPTH)
        for from_callers in (False, True)
    )


@dataclass(frozen=True, slots=True)
class _Way:
    """From where each rank starts."""

    launch: LaunchContext
    from_callers: bool
    """As in `kept_to_some_ranks`."""
    seen: set[int] = field(default_factory=set)
    """The functions that were looked at."""


def _reached(module: Module, node: ast.AST, way: _Way, depth: int) -> bool:
    if depth == 0 or kept_to_some_ranks(module, node, from_callers=way.from_callers):
        return False
    together = every_rank(module, way.launch) >= Certainty.SHOWN
    function = module.enclosing_function(node)
    if function is None:
        return together and module.enclosing_class(node) is None and not _starts_processes(module)
    if id(function) in way.seen:
        return False
    way.seen.add(id(function))
    if together and _is_started(module, function, way.from_callers):
        return True
    if together and _meets_all_ranks(module, function, way.from_callers):
        if not _callers_keep_out(module, node, set(), way.from_callers):
            return True
    return any(
        _reached(user, call, way, depth - 1)
        for user, call in (
            *((module, call) for call in callers(module, function, certain=True)),
            *_calls_elsewhere(module, function, way.from_callers),
        )
        if comes_to(module, node, user, call)
    )


def _calls_elsewhere(
    module: Module, function: Function, from_callers: bool
) -> list[tuple[Module, ast.Call]]:
    """The calls in other files; none where one of them keeps ranks out: the others may be prepared for what it did."""
    found = list(callers_elsewhere(module, function))
    return (
        [] if any(kept_to_some_ranks(*item, from_callers=from_callers) for item in found) else found
    )


def _callers_keep_out(module: Module, node: ast.AST, seen: set[int], from_callers: bool) -> bool:
    """Whether there are calls of the function around ``node``, and all of them run on some ranks only."""
    function = module.enclosing_function(node)
    if function is None or id(function) in seen or len(seen) > _MAXIMUM_DEPTH:
        return False
    seen.add(id(function))
    if _is_started(module, function, from_callers):
        return False
    found = list(callers(module, function, certain=False))
    return bool(found) and all(
        kept_to_some_ranks(module, call, from_callers=from_callers)
        or _callers_keep_out(module, call, seen, from_callers)
        for call in found
    )


def callers(module: Module, function: Function, *, certain: bool) -> Iterator[ast.Call]:
    """Calls in this file that run ``function``; with ``certain`` False also method calls of the same name on objects
    that nobody knows."""
    cls = module.parent(function)
    if not isinstance(cls, ast.ClassDef):
        for call in module.calls_written(function.name):
            if module.function_called(call) is function:
                yield call
        for starter in _RUNNERS:
            yield from _handed_over(module, function, starter)
        return
    if function.name == "__init__":
        yield from module.constructions(cls)
        return
    for call in module.calls_written(function.name):
        if not isinstance(call.func, ast.Attribute):
            continue
        own = module.class_of_self(call.func.value)
        unknown = (
            own is None
            and module.type_of(call.func.value) is None
            and module.qualified_name(call.func) is None
        )
        if own is cls or _is_instance(module, call.func.value, cls) or (unknown and not certain):
            yield call


def _is_instance(module: Module, receiver: ast.expr, cls: ast.ClassDef) -> bool:
    return module.is_subclass(module.type_of(receiver), module.class_name(cls))


def _is_started(module: Module, function: Function, from_callers: bool) -> bool:
    return any(
        not kept_to_some_ranks(module, call, from_callers=from_callers)
        for starter in _STARTERS
        for call in _handed_over(module, function, starter)
    )


def _meets_all_ranks(module: Module, function: Function, from_callers: bool) -> bool:
    """Whether a function performs what all ranks have to, itself or through functions of the file."""
    kept_as = f"functions of all ranks, from callers: {from_callers}"
    found: set[int] | None = module.answers.get(kept_as)
    if found is None:
        found = module.answers[kept_as] = set()
        pending = [call for name in _ALL_RANKS for call in module.calls_written(name)]
        while pending:
            call = pending.pop()
            meeting = module.enclosing_function(call)
            if (
                meeting is None
                or id(meeting) in found
                or kept_to_some_ranks(module, call, from_callers=from_callers)
            ):
                continue
            # It runs once and starts the others, or goes on by itself where nothing is to be started.
            if _starts_processes(module, inside=meeting):
                continue
            found.add(id(meeting))
            pending += callers(module, meeting, certain=True)
    return id(function) in found


def _handed_over(module: Module, function: Function, taker: str) -> Iterator[ast.Call]:
    for call in module.calls_written(taker):
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        if any(isinstance(item, ast.Name) and _names(module, item, function) for item in given):
            yield call


def _names(module: Module, name: ast.Name, function: Function) -> bool:
    return name.id == function.name and function in module.bindings(name)[1]


def _starts_processes(module: Module, inside: ast.AST | None = None) -> bool:
    """Whether the file's own statements (or those of a function) run once, in the process that starts the others."""
    return any(
        inside is None or module.is_inside(call, inside)
        for call in (*_starts(module), *_starts_by_helpers(module))
    )


def _starts(module: Module) -> Iterator[ast.Call]:
    """The calls that start processes with a function."""
    for starter in _STARTERS:
        for call in module.calls_written(starter):
            words = (word.value for word in call.keywords if word.arg in _GIVEN_AS)
            if any(
                isinstance(item, (ast.Name, ast.Attribute)) for item in (*call.args[:2], *words)
            ):
                yield call


def _starts_by_helpers(module: Module) -> list[ast.Call]:
    """The calls that hand a function of this file to one of another file that starts processes."""
    found: list[ast.Call] | None = module.answers.get("starts by helpers")
    if found is None:
        found = module.answers["starts by helpers"] = []
        for call in module.nodes(ast.Call):
            if isinstance(call, ast.Call) and any(_is_function(module, it) for it in call.args[:2]):
                helper = called(module, call)
                if helper is not None and helper.module is not module:
                    if any(
                        helper.module.is_inside(start, helper.function)
                        for start in _starts(helper.module)
                    ):
                        found.append(call)
    return found


def _is_function(module: Module, node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and any(
        isinstance(binding, FUNCTIONS) for binding in module.bindings(node)[1]
    )


def _keeps_out(module: Module, guard: Guard, from_callers: bool) -> bool:
    """Whether a condition lets only some ranks pass, or is met only where a single process runs."""
    return all(_keeps_out_by(module, way, guard.positive, from_callers) for way in _ways_in(guard))


def _ways_in(guard: Guard) -> list[ast.expr]:
    """The alternatives of ``is_main and first or second``: by the second one, every rank comes in."""
    test = guard.test
    if guard.positive and isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        if any(isinstance(way, ast.BoolOp) for way in test.values):
            return test.values
    return [test]


def _keeps_out_by(module: Module, test: ast.expr, positive: bool, from_callers: bool) -> bool:
    if asks_for_the_rank(module, test, from_callers=from_callers) or _asks_somebody(module, test):
        return True
    if not any(_LAUNCH.search(word) for word in names_behind(module, test)):
        return False
    return not (positive and _says_several(module, test))


def _asks_somebody(module: Module, test: ast.expr) -> bool:
    """Whether a condition waits for an answer that somebody types: one rank reads it, the others wait on."""
    pending: list[ast.AST] = [test] if module.calls_written("input") else []
    seen: set[ast.AST] = set()
    while pending:
        for call in module.nodes(ast.Call, inside=pending.pop()):
            assert isinstance(call, ast.Call)
            if isinstance(call.func, ast.Name) and call.func.id == "input":
                return True
            function = module.function_called(call)
            if function is not None and function not in seen:
                seen.add(function)
                pending.append(function)
    return False


def _says_several(module: Module, test: ast.expr, depth: int = _MAXIMUM_DEPTH) -> bool:
    """``args.distributed``, ``dist.is_initialized()``, ``world_size > 1`` and conjunctions of them."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return all(_says_several(module, part, depth) for part in test.values)
    if isinstance(test, ast.Compare):
        bound = test.comparators[0]
        return (
            len(test.ops) == 1
            and isinstance(test.ops[0], (ast.Gt, ast.GtE, ast.NotEq))
            and isinstance(bound, ast.Constant)
            and bound.value in (1, 2)
        )
    if isinstance(test, ast.Name) and depth:
        return all(_says_several(module, value, depth - 1) for value in assigned_to(module, test))
    return isinstance(test, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))


def _in_a_rank_block(module: Module, node: ast.AST, from_callers: bool) -> bool:
    """Blocks that are no guards: ``match rank``, ``for rank in range(world_size)``, a context for one process at a
    time, a loop or comprehension with a condition."""
    current = module.parent(node)
    while current is not None and not isinstance(current, (*FUNCTIONS, ast.Lambda)):
        if isinstance(current, ast.ExceptHandler):
            return True  # Only ranks on which something went wrong come here.
        if isinstance(current, ast.Match) and asks_for_the_rank(
            module, current.subject, from_callers=from_callers
        ):
            return True
        if isinstance(current, (ast.For, ast.AsyncFor)) and asks_for_the_rank(
            module, current.target, from_callers=from_callers
        ):
            return True
        if isinstance(current, (ast.With, ast.AsyncWith)) and any(map(_one_by_one, current.items)):
            return True
        current = module.parent(current)
    return False


def _in_the_other_arm(module: Module, node: ast.AST) -> bool:
    """Whether a condition sends ``node`` one way and all that makes the file's process group the other:
    ``if mode == "single": run_alone() else: run_in_a_group()``."""
    made = [call for name in _GROUP_MAKERS for call in module.calls_written(name)]
    current = module.parent(node) if made else None
    while current is not None and not isinstance(current, FUNCTIONS):
        if isinstance(current, ast.If) and not module.is_inside(node, current.test):
            here = any(module.is_inside(node, statement) for statement in current.body)
            other = current.orelse if here else current.body
            if all(_only_through(module, call, other, _MAXIMUM_DEPTH) for call in made):
                return True
        current = module.parent(current)
    return False


def _only_through(module: Module, node: ast.AST, arm: list[ast.stmt], depth: int) -> bool:
    """Whether every known way to ``node`` leads through the statements of an arm."""
    if any(module.is_inside(node, statement) for statement in arm):
        return True
    function = module.enclosing_function(node)
    if function is None or depth == 0:
        return False
    calls = list(callers(module, function, certain=False))
    return bool(calls) and all(_only_through(module, call, arm, depth - 1) for call in calls)


def _one_by_one(item: ast.withitem) -> bool:
    return any(
        _ONLY_SOME.search(word) or "lock" in word.lower() or "first" in word.lower()
        for word in identifiers(item.context_expr)
    )


def _keeps_calls(module: Module, decorator: ast.expr, from_callers: bool) -> bool:
    """Whether a decorator lets only some ranks call the function, by its name or by what the file shows of it."""
    if any(_ONLY_SOME.search(word) for word in identifiers(decorator)):
        return True
    for maker in module.bindings(decorator)[1] if isinstance(decorator, ast.Name) else ():
        if not isinstance(maker, FUNCTIONS):
            continue
        given = [*maker.args.posonlyargs, *maker.args.args][:1]
        calls = [call for item in given for call in module.calls_written(item.arg)]
        inside = [call for call in calls if module.is_inside(call, maker)]
        if inside and all(
            _stands_apart(module, call, module.enclosing_function(call), from_callers)
            for call in inside
        ):
            return True
    return False


def _after_an_exit(
    module: Module, node: ast.AST, function: Function | None, from_callers: bool
) -> bool:
    """Whether some ranks leave before ``node``, however deep the ``return`` stands."""
    if function is None:
        return False
    for kind in (ast.Return, ast.Continue, ast.Break):
        for leaving in module.nodes(kind, inside=function):
            if module.order_of(leaving) >= module.order_of(node):
                break
            if module.enclosing_function(leaving) is function and any(
                asks_for_the_rank(module, guard.test, from_callers=from_callers)
                for guard in module.guards(leaving)
            ):
                return True
    return False


def _starts_one(text: str) -> bool:
    """Whether the file tells its users to start one process: a tool that needs a process group, and no other rank."""
    return _ONE_PROCESS.search(text) is not None


def _world_of_one(module: Module) -> bool:
    """``os.environ["WORLD_SIZE"] = "1"`` or ``init_process_group(..., world_size=1)``."""
    for call in module.calls_written("init_process_group"):
        size = module.argument(call, "world_size", 3)
        if size is not None and size.only_constant() == 1:
            return True
    for node in module.nodes(ast.Subscript):
        assert isinstance(node, ast.Subscript)
        if isinstance(node.ctx, ast.Store) and isinstance(node.slice, ast.Constant):
            if node.slice.value == "WORLD_SIZE" and _assigns_one(module.parent(node)):
                return True
    return False


def _assigns_one(statement: ast.AST | None) -> bool:
    return (
        isinstance(statement, ast.Assign)
        and isinstance(statement.value, ast.Constant)
        and str(statement.value.value) == "1"
    )
