"""Decisions that each rank takes by itself, and how all ranks can take them together."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ranksafe.checker.finding import Applicability, FixOffer
from ranksafe.fixes.arguments import replace
from ranksafe.fixes.statements import insert_before
from ranksafe.localization import Translated
from ranksafe.rank_flow import Issue
from ranksafe.semantics.module import Module
from ranksafe.source.position import Edit

from ranksafe_rules.collectives.edits import distributed_name, new_name
from ranksafe_rules.collectives.guards import is_elif

TRIGGER = "trigger"
TOGETHER = "together"
_TRIGGER = Translated(
    "Leave on all ranks as soon as one wants to (set_trigger and check_trigger)",
    "任一 rank 要离开时所有 rank 一起离开（set_trigger 与 check_trigger）",
)
_TOGETHER = Translated(
    "Leave on all ranks as soon as one wants to (gathers the decision in every step)",
    "任一 rank 要离开时所有 rank 一起离开（每一步都收集各 rank 的决定）",
)


def own_branch(issue: Issue, module: Module) -> ast.If | None:
    """The ``if`` of the decision, when it stands directly in the loop and does nothing that forbids a collective."""
    branch = None if issue.branch is None else issue.branch.node
    if not isinstance(branch, ast.If) or module.parent(issue.place.node) is not branch:
        return None
    if is_elif(branch, module) or issue.place.node not in branch.body:
        return None
    if not isinstance(module.parent(branch), (ast.For, ast.While, ast.AsyncFor)):
        return None
    if any(isinstance(node, (ast.NamedExpr, ast.Await)) for node in ast.walk(branch.test)):
        return None
    return branch


def accelerator_name(branch: ast.If, module: Module) -> str | None:
    """How the function around calls its Accelerator; None without one."""
    function = module.enclosing_function(branch)
    for node in ast.walk(module.tree if function is None else function):
        if isinstance(node, ast.Attribute) and node.attr == "backward":
            text = module.text_of(node.value)
            if (
                text.rpartition(".")[2] == "accelerator"
                and module.enclosing_function(node) is function
            ):
                return text
    return None


def offers(issue: Issue, module: Module) -> list[FixOffer]:
    """How all ranks can decide together here."""
    branch = own_branch(issue, module)
    if branch is None or "\n" in module.text_of(branch.test):
        return []
    if accelerator_name(branch, module) is not None:
        return [FixOffer(TRIGGER, _TRIGGER, Applicability.UNSAFE)]
    if distributed_name(module) is not None:
        return [FixOffer(TOGETHER, _TOGETHER, Applicability.UNSAFE)]
    return []


def decide_together(issue: Issue, key: str, module: Module) -> Sequence[Edit] | None:
    """The decision of one rank made that of all."""
    branch = own_branch(issue, module)
    if branch is None:
        return None
    test = module.text_of(branch.test)
    if key == TRIGGER:
        accelerator = accelerator_name(branch, module)
        before = f"if {test}:\n    {accelerator}.set_trigger()"
        after = f"{accelerator}.check_trigger()"
    else:
        name, decisions = distributed_name(module), new_name(module, "decisions")
        before = (
            f"{decisions} = [None] * {name}.get_world_size()\n"
            f"{name}.all_gather_object({decisions}, bool({test}))"
        )
        after = f"any({decisions})"
    inserted = insert_before(module, branch, before)
    return None if inserted is None else [inserted, replace(module, branch.test, after)]
