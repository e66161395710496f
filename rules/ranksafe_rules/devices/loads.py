"""Calls that load a model, and the device map they ask for."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Final

from packaging.version import Version
from ranksafe.launch.context import LaunchContext
from ranksafe.semantics.module import Module
from ranksafe.semantics.values import Value, Values
from ranksafe.source.position import Range

from ranksafe_rules.devices.destinations import depends_on_launch

SPREADING: Final = frozenset({"auto", "balanced", "balanced_low_0", "sequential"})
"""Device maps with which accelerate spreads one model over all visible GPUs."""

_FIRST_TENSOR_PARALLEL: Final = Version("4.50.0")
_AFTER_TENSOR_PARALLEL: Final = Version("4.54.0")
_QUANTIZATION_FLAGS: Final = ("load_in_4bit", "load_in_8bit")
_OTHER_LIBRARIES: Final = frozenset(
    {"diffusers", "unsloth", "vllm", "sentence_transformers", "auto_gptq"}
)
"""Their ``from_pretrained`` treats device maps in its own way."""


@dataclass(frozen=True, slots=True)
class AskedDeviceMap:
    """A device map that spreads the model, whoever asks for it."""

    strategy: str
    """One of `SPREADING`."""
    anchor: ast.expr
    """The expression inside the call that brings the map: the keyword's value, or ``kw`` of ``**kw``."""
    source: ast.expr
    """Where the strategy itself is written."""
    certain: bool
    """False where it is a default that the user of the script can change."""


def is_model_load(module: Module, call: ast.Call) -> bool:
    """Whether ``call`` is ``<model class>.from_pretrained(...)`` of transformers or a library that passes it on."""
    if not (isinstance(call.func, ast.Attribute) and call.func.attr == "from_pretrained"):
        return False
    owner = module.qualified_name(call.func.value) or ""
    return owner.split(".")[0] not in _OTHER_LIBRARIES


def is_quantized(module: Module, load: ast.Call) -> bool:
    """Whether a load certainly quantises the model with bitsandbytes or another configuration."""
    configuration = module.argument(load, "quantization_config")
    if configuration is not None and configuration.known:
        return any(
            not (value.is_constant and value.constant is None) for value in configuration.known
        )
    for flag in _QUANTIZATION_FLAGS:
        given = module.argument(load, flag)
        if given is not None and any(
            value.is_constant and value.constant is True for value in given.known
        ):
            return True
    return False


def becomes_tensor_parallel(strategy: str, launch: LaunchContext) -> bool | None:
    """Whether transformers turns the map into ``tp_plan="auto"`` when WORLD_SIZE is set; None: version not known.

    ``PreTrainedModel.from_pretrained`` does so from 4.50.0 to 4.53.3, and only for "auto" (read in both sources).
    """
    if strategy != "auto":
        return False
    version = launch.version("transformers")
    if version is None:
        return None
    return _FIRST_TENSOR_PARALLEL <= version < _AFTER_TENSOR_PARALLEL


def device_map_of(module: Module, call: ast.Call) -> AskedDeviceMap | None:
    """The unguarded device map of a load that spreads the model, else None."""
    asked = module.argument(call, "device_map")
    if asked is None or depends_on_launch(module.guards(call)):
        return None
    if not asked.known:
        return _default_of_field(module, call)
    return _asked(module, call, asked)


def _default_of_field(module: Module, call: ast.Call) -> AskedDeviceMap | None:
    """``arguments.device_map`` where a dataclass of the file (for HfArgumentParser) has a field of that name."""
    given = module.argument_node(call, "device_map")
    if not isinstance(given, ast.Attribute):
        return None
    for node in module.nodes(ast.AnnAssign):
        assert isinstance(node, ast.AnnAssign)
        is_field = isinstance(node.target, ast.Name) and node.target.id == given.attr
        if is_field and isinstance(module.parent(node), ast.ClassDef) and node.value is not None:
            default = node.value
            if isinstance(default, ast.Call):
                default = module.argument_node(default, "default", 0) or default
            if isinstance(default, ast.Constant) and default.value in SPREADING:
                return AskedDeviceMap(str(default.value), given, default, certain=False)
    return None


def device_map_in_init_kwargs(module: Module, call: ast.Call, name: str) -> AskedDeviceMap | None:
    """The same for ``SFTConfig(model_init_kwargs={"device_map": "auto"})``; ``name`` is the argument's."""
    for keyword in call.keywords:
        if keyword.arg == name:
            asked = module.dictionary_entry(keyword.value, "device_map")
            return None if asked is None else _asked(module, call, asked, keyword.value)
    return None


def _asked(
    module: Module, call: ast.Call, asked: Values, given: ast.expr | None = None
) -> AskedDeviceMap | None:
    if any(depends_on_launch(value.guards) for value in asked.known):
        return None
    if any(isinstance(value.node, ast.Dict) for value in asked.known):
        return None  # ``{"": rank}`` on another way: whatever chooses between them, the author has thought of it.
    for value in asked.known:
        if value.is_constant and value.constant in SPREADING and not _is_overridden(module, value):
            anchor = _anchor(module, call, value.node, given)
            certain = asked.complete and len(asked.known) == 1
            return AskedDeviceMap(str(value.constant), anchor, value.node, certain)
    return None


def _is_overridden(module: Module, value: Value) -> bool:
    """Whether the value is a parameter's default that some call in the file replaces."""
    function = module.parent(value.node)
    if isinstance(function, ast.arguments):
        function = module.parent(function)
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    return any(
        call.args or any(keyword.arg in (None, "device_map") for keyword in call.keywords)
        for call in module.calls_written(function.name)
    )


def _anchor(module: Module, call: ast.Call, value: ast.expr, given: ast.expr | None) -> ast.expr:
    """The value itself where it is written in the call, else the argument that brings it: findings stay in the
    statement they are about."""
    node: ast.AST | None = value
    while node is not None and node is not call:
        node = module.parent(node)
    if node is call:
        return value
    if given is not None:
        return given
    for keyword in call.keywords:
        if keyword.arg == "device_map":
            return keyword.value
    for keyword in call.keywords:
        if keyword.arg is None and module.dictionary_entry(keyword.value, "device_map") is not None:
            return keyword.value
    return call.func


def map_expression_at(module: Module, place: Range) -> ast.expr | None:
    """The expression of the device map that a finding at ``place`` is about, as written in the call's keyword or in
    the dictionary that reaches it."""
    for keyword in module.nodes(ast.keyword):
        if not isinstance(keyword, ast.keyword):
            continue
        if keyword.arg == "device_map" and module.range_of(keyword.value) == place:
            return keyword.value
        if keyword.arg is None or keyword.arg.endswith("init_kwargs"):
            entry = _entry_at(module, keyword, place)
            if entry is not None:
                return entry
    return None


def _entry_at(module: Module, keyword: ast.keyword, place: Range) -> ast.expr | None:
    entry = module.dictionary_entry(keyword.value, "device_map")
    for value in entry.known if entry is not None else ():
        if value.is_constant and value.constant in SPREADING:
            if place in (module.range_of(keyword.value), module.range_of(value.node)):
                return value.node
    return None
