"""What can stand in a replica for a parameter that was looked up."""

from __future__ import annotations

import ast

from ranksafe_rules._shared.devices import DeviceUse, own_device
from ranksafe_rules._shared.parameter_lookups import looked_up_part
from ranksafe_rules._shared.parameters import parameter_name
from ranksafe_rules._shared.replicated_class import Function, ReplicatedClass


def replacement_for(
    view: ReplicatedClass, method: Function, lookup: ast.AST
) -> tuple[ast.AST, str] | None:
    """The node to replace and the text to put there, or None.

    A parameter reached by name means the same on one device. Where none is known, ``next(...).device`` can become an
    input's device, unless that input is what is moved.
    """
    found = looked_up_part(view, lookup)
    if found is None or found[0].func.attr == "named_parameters":  # type: ignore[attr-defined]
        return None
    attribute = view.module.parent(lookup)
    wants_device = isinstance(attribute, ast.Attribute) and attribute.attr == "device"
    name = parameter_name(view, exact=not wants_device, part=found[1])
    if name is not None:
        return lookup, name
    if not wants_device or not isinstance(attribute, ast.Attribute):
        return None
    call = view.module.parent(attribute)
    call = view.module.parent(call) if isinstance(call, ast.keyword) else call
    if not isinstance(call, ast.Call):
        return None
    moved = None
    if isinstance(call.func, ast.Attribute) and call.func.attr in ("to", "cuda"):
        moved = call.func.value
    source = own_device(view, method, DeviceUse(attribute, call, moved))
    return None if source is None else (attribute, source)
