"""Calls of library functions: what they make of their arguments, as far as ranks are concerned."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.traces import Event, Opaque
from ranksafe.semantics.rank_flow.values import (
    NOTHING_KNOWN,
    SAME,
    Known,
    Many,
    Origin,
    Sameness,
    Share,
    Thing,
    Unknown,
    Value,
    combined,
    elementwise,
    joined,
    length_of,
    made_by,
    origin_of,
)
from ranksafe.semantics.rank_flow.wrapped_models import BACKWARD, STATE
from ranksafe.semantics.units import callee_name

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.interpreter import Interpreter

_PASSED_THROUGH = frozenset(
    {
        "tqdm.tqdm", "tqdm.auto.tqdm", "tqdm.trange", "builtins.iter", "builtins.reversed", "builtins.list",
        "builtins.tuple", "builtins.sorted", "copy.deepcopy", "copy.copy", "torch.compile", "builtins.next",
        "rich.progress.track", "tqdm.notebook.tqdm", "accelerate.utils.tqdm", "itertools.cycle",
    }
)  # fmt: skip
SAME_MODEL = frozenset(
    {"to", "cuda", "cpu", "half", "float", "bfloat16", "double", "train", "eval", "requires_grad_"}
)
_SPLITS = frozenset({"numpy.array_split", "torch.tensor_split", "torch.chunk"})
_USES_VALUE = frozenset(
    {
        "builtins.len",
        "builtins.list",
        "builtins.sorted",
        "builtins.sum",
        "builtins.enumerate",
        "builtins.iter",
    }
    | {
        "builtins.max",
        "builtins.min",
        "builtins.int",
        "builtins.float",
        "builtins.dict",
        "builtins.set",
    }
    | {"os.path.join", "builtins.open"}
)
_STATES = frozenset(
    {
        "accelerate.Accelerator",
        "accelerate.PartialState",
        "accelerate.state.PartialState",
        "accelerate.state.AcceleratorState",
    }
)
_KEEPS_SHAPE = SAME_MODEL | frozenset(
    {
        "clone",
        "detach",
        "contiguous",
        "long",
        "int",
        "bool",
        "abs",
        "exp",
        "log",
        "sigmoid",
        "softmax",
    }
)
_KEEPS_FIRST = frozenset(
    {
        "argmax",
        "flatten",
        "reshape",
        "view",
        "squeeze",
        "unsqueeze",
        "softmax",
        "topk",
        "max",
        "sum",
        "mean",
    }
)
"""With a dimension given, these keep the number of rows."""
_TESTS = frozenset(
    {"item", "any", "all", "isnan", "isinf", "isfinite", "equal", "allclose", "isclose", "tolist"}
)
_CLOCKS = frozenset(
    {
        "time.time",
        "time.monotonic",
        "time.perf_counter",
        "datetime.datetime.now",
        "time.process_time",
    }
)
_RANDOM = ("random.", "numpy.random.")
_TORCH_RANDOM = frozenset(
    {
        "torch.rand",
        "torch.randn",
        "torch.randint",
        "torch.randperm",
        "torch.bernoulli",
        "torch.normal",
    }
)
_VALUE_FUNCTIONS = ("torch.", "math.", "numpy.", "builtins.")
_LOSSES = frozenset(
    {
        "criterion", "loss_fn", "loss_function", "loss_func", "criteria", "model", "net", "network",
        "ddp_model", "compute_loss", "module", "encoder", "policy",
    }
)  # fmt: skip


class LibraryCalls:
    """Evaluates calls that are not followed."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._run = interpreter.run
        self._interpreter = interpreter

    def value(self, node: ast.Call, name: str | None, receiver: Value | None) -> Value:
        """What the call returns."""
        run = self._run
        arguments = self._interpreter.calls.arguments(node)
        word = callee_name(node) or ""
        if name is not None:
            made = self._library_object(node, name, arguments)
            if made is not None:
                return made
        if word == "backward" and receiver is not None:
            model = made_by(receiver)
            if model is not None and not run.inside.no_sync and not run.inside.no_grad:
                run.items.append(Event(BACKWARD, run.place(node), model=model))
            return Known(None)
        if any(self._may_be_called_back(value) for value in arguments):
            run.items.append(Opaque(run.place(node)))
        if receiver is not None:
            return self._method(node, word, receiver, arguments)
        if isinstance(node.func, ast.Name):
            callee = self._interpreter.expressions.variable(node.func.id)
            if callee is None:
                by_word = self._interpreter.expressions.by_word(node.func.id, node)
                if by_word is not None and not (name or "").startswith(("torch.", "builtins.")):
                    return by_word
            if node.func.id in _LOSSES:
                return _by_rows(arguments)
        if name is not None and name.startswith(_VALUE_FUNCTIONS):
            if word in _TESTS or word == "bool":
                return replace(combined(*arguments), decides=True)
            return combined(*arguments)
        found = combined(*arguments)
        return replace(NOTHING_KNOWN, made_by=found.made_by)

    def _may_be_called_back(self, value: Value) -> bool:
        """Whether an argument is a function with collectives, which the library may call any number of times."""
        if not isinstance(value, Thing) or value.kind != "function":
            return False
        return self._interpreter.functions.performs(value)

    def _library_object(self, node: ast.Call, name: str, arguments: list[Value]) -> Value | None:
        run = self._run
        last = name.rpartition(".")[2]
        if name in _STATES:
            detail = _accelerator_detail(node)
            return Thing(
                "accelerator", type="accelerate.Accelerator", node=node, module=run.module,
                detail=detail,
            )  # fmt: skip
        if name == "torch.utils.data.Subset" and len(arguments) > 1:
            length = length_of(arguments[1])
            kept = length if isinstance(length, Sameness) else Sameness.UNKNOWN
            return Unknown(length=kept, origin=origin_of(arguments[1]))
        if last == "DistributedSampler":
            return Thing("loader", node=node, module=run.module, detail="sharded")
        if name in _SPLITS and len(arguments) > 1:
            by_size = isinstance(arguments[1], Known) and arguments[1].constant == run.world.size
            part = Unknown(
                Sameness.RANK,
                run.origin(node, Sameness.RANK),
                length=Sameness.RANK if by_size else Sameness.UNKNOWN,
            )
            return Unknown(share=Share.UNEVEN, each=part)
        if name == "math.ceil" and arguments:
            return replace(combined(*arguments), share=Share.UNEVEN)
        if last == "DataLoader" or name == "torch.utils.data.DataLoader":
            return self._loader(node, arguments[0] if arguments else None)
        if name in _PASSED_THROUGH and arguments:
            return arguments[0] if last != "next" else self.element(arguments[0])
        if name == "builtins.enumerate" and arguments:
            return self._enumerated(arguments[0])
        if name == "builtins.zip":
            return self._zipped(arguments)
        if name == "builtins.range":
            return self._range(arguments)
        if name in _USES_VALUE:
            for value, expression in zip(arguments, node.args, strict=False):
                run.none_used(value, expression)
        if name == "builtins.len" and arguments:
            return self._length(arguments[0])
        if (
            name in ("builtins.int", "builtins.str", "builtins.bool", "builtins.float")
            and arguments
        ):
            return _converted(last, arguments[0])
        if last in ("ModuleList", "Sequential") and len(arguments) == 1:
            return arguments[0]
        if name in ("builtins.max", "builtins.min") and len(arguments) > 1:
            numbers = [item.constant for item in arguments if isinstance(item, Known)]
            if len(numbers) == len(arguments) and all(
                isinstance(item, (int, float)) for item in numbers
            ):
                chosen = max(numbers) if last == "max" else min(numbers)
                return Known(chosen, origin_of(*arguments))
        if name in ("builtins.max", "builtins.min", "builtins.abs", "builtins.divmod"):
            return combined(*arguments)
        if name in (
            "builtins.print",
            "builtins.isinstance",
            "builtins.hasattr",
            "builtins.getattr",
        ):
            if last == "getattr" and len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
                by_word = self._interpreter.expressions.by_word(str(node.args[1].value), node)
                return by_word if by_word is not None else NOTHING_KNOWN
            return NOTHING_KNOWN
        if name in ("torch.manual_seed", "torch.cuda.manual_seed", "torch.cuda.manual_seed_all"):
            run.seeded_by_rank = any(item.sameness.varies for item in arguments)
            return SAME
        if name in _CLOCKS or (name.startswith(_RANDOM) and last not in ("seed", "default_rng")):
            return Unknown(Sameness.DATA, run.origin(node, Sameness.DATA))
        if name in _TORCH_RANDOM:
            shaped = last in ("rand", "randn", "bernoulli_")
            given: list[Value] = arguments[: len(node.args)] if shaped else []
            if last == "randint":
                positional = arguments[: len(node.args)]
                given += [item for item in positional if isinstance(item, Many)][:1]
            shape = _shape_from(given) if given else Sameness.UNKNOWN
            dtype = _dtype_of(node, "int64" if last in ("randint", "randperm") else "float32")
            if run.seeded_by_rank:
                origin = run.origin(node, Sameness.DATA)
                return Unknown(Sameness.DATA, origin, shape=shape, dtype=dtype)
            return Unknown(Sameness.UNKNOWN, shape=shape, dtype=dtype)
        if name in ("torch.zeros", "torch.ones", "torch.empty", "torch.full"):
            return Unknown(
                max((item.sameness for item in arguments), default=Sameness.SAME),
                origin_of(*arguments),
                shape=_shape_from(arguments[: 1 if last == "full" else len(node.args)]),
                dtype="" if last == "full" else _dtype_of(node, "float32"),
            )
        if name in ("torch.tensor", "torch.as_tensor") and arguments:
            first = arguments[0]
            found = combined(*arguments)
            size: Sameness | tuple[int, ...] = Sameness.UNKNOWN
            if isinstance(first, Many):
                size = (len(first.items),)
            elif isinstance(first, Known):
                size = ()
            return replace(found, shape=size)
        if name in ("torch.nonzero", "torch.masked_select") and arguments:
            found = combined(*arguments)
            return replace(found, shape=found.sameness)
        return None

    def _loader(self, node: ast.Call, dataset: Value | None) -> Value:
        sampler = next((item.value for item in node.keywords if item.arg == "sampler"), None)
        detail = "plain"
        if sampler is not None and not (
            isinstance(sampler, ast.Constant) and sampler.value is None
        ):
            written = self._run.module.text_of(sampler)
            detail = "sharded" if "Distributed" in written or "sampler" in written else "plain"
        length, origin = Sameness.UNKNOWN, None
        if isinstance(dataset, Unknown) and dataset.length.varies:
            length, origin = dataset.length, dataset.origin
        return Thing(
            "loader",
            node=node,
            module=self._run.module,
            detail=detail,
            length=length,
            origin=origin,
        )

    def element(self, iterable: Value) -> Value:
        """What one step of a loop over a value gives."""
        if isinstance(iterable, Many):
            if not iterable.items:
                return NOTHING_KNOWN
            found = iterable.items[0]
            for item in iterable.items[1:]:
                found = joined(found, item, SAME)
            if iterable.origin is not None and isinstance(found, Unknown):
                # The share of this rank: other ranks have other items.
                return replace(found, sameness=Sameness.DATA, origin=iterable.origin)
            return found
        if isinstance(iterable, Thing) and iterable.kind == "loader":
            if iterable.detail == "plain" or iterable.node is None:
                return NOTHING_KNOWN
            assert iterable.module is not None
            text = " ".join(iterable.module.text_of(iterable.node).split())[:80]
            return Unknown(
                Sameness.DATA, Origin(text, iterable.node, iterable.module, Sameness.DATA)
            )
        if isinstance(iterable, Unknown) and iterable.each is not None:
            return iterable.each
        if isinstance(iterable, Unknown):
            return Unknown(iterable.sameness, iterable.origin, made_by=iterable.made_by)
        if isinstance(iterable, Known) and isinstance(iterable.constant, range):
            return Unknown(Sameness.SAME)
        return NOTHING_KNOWN

    def _enumerated(self, value: Value) -> Value:
        if isinstance(value, Many):
            return Many(tuple(Many((Known(i), item)) for i, item in enumerate(value.items)))
        return _iteration(Many((Unknown(Sameness.SAME), self.element(value))), length_of(value))

    def _zipped(self, values: list[Value]) -> Value:
        if values and all(isinstance(value, Many) for value in values):
            rows = zip(*(value.items for value in values if isinstance(value, Many)), strict=False)
            return Many(tuple(Many(tuple(row)) for row in rows))
        lengths = [item for value in values if isinstance(item := length_of(value), Sameness)]
        pair = Many(tuple(self.element(value) for value in values))
        return _iteration(pair, max(lengths, default=Sameness.UNKNOWN))

    def _range(self, arguments: list[Value]) -> Value:
        if all(isinstance(item, Known) and isinstance(item.constant, int) for item in arguments):
            constants = [item.constant for item in arguments if isinstance(item, Known)]
            try:
                numbers = range(*constants)
            except (TypeError, ValueError):
                return NOTHING_KNOWN
            origin = origin_of(*arguments)
            if len(numbers) <= 64:
                return Many(tuple(Known(item, origin) for item in numbers), origin)
            return Unknown(Sameness.SAME, length=Sameness.SAME)
        found = combined(*arguments)
        step = arguments[2] if len(arguments) > 2 else None
        strided = isinstance(step, Known) and step.constant == self._run.world.size
        if strided and arguments[0].sameness is Sameness.RANK:
            even = found.share is Share.EVEN
            length = Sameness.UNKNOWN if even else Sameness.RANK
            return Unknown(Sameness.RANK, origin_of(arguments[0]), length=length)
        if found.share is Share.UNEVEN and found.sameness is Sameness.RANK:
            return Unknown(Sameness.RANK, found.origin, length=Sameness.RANK)
        varies = found.sameness if found.sameness is Sameness.DATA else Sameness.UNKNOWN
        return Unknown(Sameness.SAME, found.origin, length=varies)

    def _length(self, value: Value) -> Value:
        length = length_of(value)
        if isinstance(length, Sameness):
            return Unknown(length, origin_of(value) if length.varies else None)
        return Known(length, value.origin if isinstance(value, Many) else None)

    def _method(self, node: ast.Call, word: str, receiver: Value, arguments: list[Value]) -> Value:
        run = self._run
        if isinstance(receiver, Thing):
            if word == "unwrap_model" and arguments:
                model = arguments[0]
                inner = run.attribute(model, "module") if isinstance(model, Thing) else None
                return model if inner is None else inner
            if receiver.kind == "object":
                # An attribute that was not followed, a layer most likely, is called.
                return combined(*arguments)
            if receiver.kind == "work" and word in ("wait", "synchronize"):
                run.waited.add(receiver)
                return NOTHING_KNOWN
            if word in SAME_MODEL:
                return receiver
            if word == "generate" and receiver.detail != "fsdp":
                found = combined(*arguments)
                return replace(found, shape=found.sameness) if found.sameness.varies else found
            if receiver.kind == "wrapped" and word in ("forward", "__call__"):
                return self._interpreter.models.call(node, receiver, arguments)
            if receiver.kind == "wrapped" and receiver.detail == "fsdp":
                if word in ("state_dict", "generate", "clip_grad_norm_", "load_state_dict"):
                    run.items.append(Event(STATE, run.place(node), model=receiver))
                    return Thing("value", node=node, module=run.module)
            return NOTHING_KNOWN
        if isinstance(receiver, Many):
            if word in ("append", "extend") and isinstance(node.func, ast.Attribute):
                if arguments and isinstance(node.func.value, ast.Name):
                    added = receiver.items + tuple(arguments[:1])
                    if len(added) <= 64 and word == "append" and not run.frame.loops:
                        self._interpreter.statements.bind(node.func.value, Many(added))
                    else:
                        self._interpreter.statements.bind(
                            node.func.value, combined(*receiver.items, *arguments)
                        )
                return Known(None)
            if word == "copy":
                return receiver
            if word == "index" and arguments and isinstance(arguments[0], Known):
                for index, item in enumerate(receiver.items):
                    if isinstance(item, Known) and item.constant == arguments[0].constant:
                        return Known(index, arguments[0].origin)
            return combined(receiver, *arguments)
        if isinstance(receiver, Unknown):
            if word in ("append", "extend", "add", "update") and isinstance(
                node.func, ast.Attribute
            ):
                if isinstance(node.func.value, ast.Name) and arguments:
                    self._interpreter.statements.bind(
                        node.func.value, combined(receiver, *arguments)
                    )
                return Known(None)
            by_word = self._interpreter.expressions.by_word(word, node)
            if by_word is not None:
                return by_word
            if receiver.sameness is Sameness.UNKNOWN or (
                receiver.sameness is Sameness.SAME and not receiver.made_by
            ):
                if receiver.sameness is Sameness.SAME:
                    return combined(receiver, *arguments)
                found = combined(*arguments)
                if word in _LOSSES:
                    return found
                return replace(NOTHING_KNOWN, made_by=receiver.made_by or found.made_by)
            if word in _KEEPS_SHAPE:
                return elementwise(receiver)
            if word in _KEEPS_FIRST and arguments and isinstance(receiver.shape, Sameness):
                return elementwise(receiver)
            if word == "generate":
                found = combined(receiver, *arguments)
                return replace(found, shape=found.sameness) if found.sameness.varies else found
            if word in _TESTS:
                return replace(combined(receiver, *arguments), decides=True)
            if word in ("size", "dim", "numel", "keys", "items"):
                return NOTHING_KNOWN
            return combined(receiver, *arguments)
        if isinstance(receiver, Known):
            return _of_text(receiver, word, arguments)
        return NOTHING_KNOWN


def _iteration(step: Many, length: Sameness | int) -> Value:
    """What a loop runs over when each step gives ``step``."""
    found = combined(*step.items)
    known = length if isinstance(length, Sameness) else Sameness.SAME
    return replace(found, length=known, each=step)


def _converted(kind: str, value: Value) -> Value:
    if isinstance(value, Known):
        try:
            made = {"int": int, "str": str, "bool": bool, "float": float}[kind](value.constant)
        except (TypeError, ValueError):
            return combined(value)
        return Known(made, value.origin)
    return combined(value)


def _of_text(receiver: Known, word: str, arguments: list[Value]) -> Value:
    if isinstance(receiver.constant, str) and word in ("lower", "upper", "strip") and not arguments:
        return Known(getattr(receiver.constant, word)(), receiver.origin)
    return combined(receiver, *arguments)


def _by_rows(arguments: list[Value]) -> Unknown:
    """What a model makes of a batch: as many rows as the batch has."""
    found = combined(*arguments)
    shapes = [item.shape for item in arguments if isinstance(item, Unknown)]
    varying = [item for item in shapes if isinstance(item, Sameness) and item.varies]
    return replace(found, shape=varying[0]) if varying else found


def _accelerator_detail(node: ast.Call) -> str | None:
    """What an Accelerator's arguments say of sharding and of uneven batches."""
    if any(item.arg in ("fsdp_plugin", "deepspeed_plugin") for item in node.keywords):
        return "sharded"
    for item in ast.walk(node):
        if isinstance(item, ast.keyword) and item.arg == "even_batches":
            if isinstance(item.value, ast.Constant) and item.value.value is False:
                return "uneven"
    return None


def _dtype_of(node: ast.Call, default: str) -> str:
    """The element type a creation asks for; empty when it is not written as ``torch.name``."""
    for keyword in node.keywords:
        if keyword.arg == "dtype":
            return keyword.value.attr if isinstance(keyword.value, ast.Attribute) else ""
    return default


def _shape_from(arguments: list[Value]) -> Sameness | tuple[int, ...]:
    sizes = list(arguments)
    if len(sizes) == 1 and isinstance(sizes[0], Many):
        sizes = list(sizes[0].items)
    if sizes and all(isinstance(item, Known) and isinstance(item.constant, int) for item in sizes):
        return tuple(item.constant for item in sizes if isinstance(item, Known))
    worst = max((item.sameness for item in sizes), default=Sameness.UNKNOWN)
    return worst if worst.varies else Sameness.UNKNOWN
