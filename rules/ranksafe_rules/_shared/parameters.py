"""Parameters of a module that can be reached by name, in a replica too."""

from __future__ import annotations

import ast

from ranksafe_rules._shared.replicas import MODULE
from ranksafe_rules._shared.replicated_class import ReplicatedClass, Store

_WITH_WEIGHT = frozenset(
    {
        "Linear",
        "Bilinear",
        "Embedding",
        "EmbeddingBag",
        "LayerNorm",
        "GroupNorm",
        "PReLU",
        "RMSNorm",
    }
    | {f"{kind}{size}d" for kind in ("Conv", "ConvTranspose", "BatchNorm") for size in (1, 2, 3)}
)
WITHOUT_PARAMETERS = frozenset(
    {
        "ReLU",
        "GELU",
        "SiLU",
        "Tanh",
        "Sigmoid",
        "Softmax",
        "LogSoftmax",
        "LeakyReLU",
        "ELU",
        "Identity",
    }
    | {"Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "Flatten", "Unflatten", "Softplus"}
    | {"CrossEntropyLoss", "MSELoss", "BCELoss", "BCEWithLogitsLoss", "NLLLoss", "L1Loss"}
    | {f"{kind}Pool{size}d" for kind in ("Max", "Avg", "AdaptiveAvg") for size in (1, 2, 3)}
)


def parameter_name(view: ReplicatedClass, *, exact: bool, part: str | None = None) -> str | None:
    """Source text of a parameter of the module (or of its sub-module ``self.part``), None when none is certain.

    With ``exact`` it is the one that ``next(self.parameters())`` gives on the original: parameters come in the order
    in which they were registered, a module's own before those of its sub-modules.
    """
    stores = _registered_in_init(view)
    if stores is None:
        return None
    if part is not None:
        return next((_weight(view, store) for store in stores if store.attribute == part), None)
    if exact and not (_derives_directly(view) and not _registers_by_name(view)):
        return None
    own = [store for store in stores if _is_parameter(view, store)]
    if own:
        return f"self.{own[0].attribute}"
    for store in stores:
        weight = _weight(view, store)
        if weight is not None:
            return weight
        if exact and not _has_no_parameters(view, store):
            return None
    return None


def _registered_in_init(view: ReplicatedClass) -> list[Store] | None:
    """Parameters and modules that ``__init__`` certainly assigns, in order; None where a branch or another method may
    add some."""
    init = view.methods.get("__init__")
    if init is None:
        return None
    found: list[Store] = []
    for store in view.stores:
        if store.attribute not in view.copied or not isinstance(store.value, ast.Call):
            continue
        statement = view.module.parent(store.target)
        certain = isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement in init.body
        if certain and len(view.stores_of(store.attribute)) == 1:
            found.append(store)
        else:
            return None
    return found


def _derives_directly(view: ReplicatedClass) -> bool:
    return [view.module.qualified_name(base) for base in view.cls.bases] == [MODULE]


def _registers_by_name(view: ReplicatedClass) -> bool:
    """``register_parameter`` and ``add_module`` put parameters where no assignment shows them."""
    return any(
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in ("register_parameter", "add_module", "register_module")
        for call in view.module.nodes(ast.Call, inside=view.cls)
    )


def _made_by(view: ReplicatedClass, call: ast.expr | None) -> str:
    """``Linear`` for ``nn.Linear(...)``; empty for what is not made by torch.nn."""
    if isinstance(call, ast.Call):
        name = view.module.qualified_name(call.func) or ""
        if name.startswith("torch.nn."):
            return name.rpartition(".")[2]
    return ""


def _is_parameter(view: ReplicatedClass, store: Store) -> bool:
    return _made_by(view, store.value) == "Parameter"


def _weight(view: ReplicatedClass, store: Store) -> str | None:
    text = f"self.{store.attribute}"
    value = store.value
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if value.func.attr not in ("cuda", "to", "cpu", "half", "float"):
            break
        value = value.func.value
    while _made_by(view, value) == "Sequential" and isinstance(value, ast.Call) and value.args:
        text, value = f"{text}[0]", value.args[0]
    if _made_by(view, value) not in _WITH_WEIGHT or not isinstance(value, ast.Call):
        return None
    switched_off = any(
        keyword.arg in ("elementwise_affine", "affine", None) for keyword in value.keywords
    )
    return None if switched_off else f"{text}.weight"


def _has_no_parameters(view: ReplicatedClass, store: Store) -> bool:
    return _made_by(view, store.value) in WITHOUT_PARAMETERS or store.attribute in view.buffers
