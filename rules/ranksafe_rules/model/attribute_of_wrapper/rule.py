"""RS520: something of the inner model is asked of the wrapper around it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from ranksafe.checker.finding import Applicability, Finding, FixOffer, Level, Related
from ranksafe.checker.rule import Rule, RuleMetadata, Scope, Symptom
from ranksafe.launch.context import LaunchContext
from ranksafe.localization import Translated
from ranksafe.semantics.module import Module
from ranksafe.semantics.walking import unparsed

from ranksafe_rules._shared import wrapper_attributes
from ranksafe_rules._shared.caught import is_caught
from ranksafe_rules._shared.wrapped_by_callers import wraps_by_callers
from ranksafe_rules._shared.wrapped_models import NOTHING, Wrapped, Wrapper, wraps_of
from ranksafe_rules._shared.wrapper_levels import level_of
from ranksafe_rules.model.attribute_of_wrapper import unwrapping

_TABLES: Final = {
    Wrapper.DISTRIBUTED: wrapper_attributes.OF_DISTRIBUTED,
    Wrapper.DATA_PARALLEL: wrapper_attributes.OF_DATA_PARALLEL,
    Wrapper.PREPARED: wrapper_attributes.OF_DISTRIBUTED,
    Wrapper.TRAINER: wrapper_attributes.OF_DISTRIBUTED | wrapper_attributes.OF_DATA_PARALLEL,
}
_NOT_OF_MODELS: Final = wrapper_attributes.OF_MODULES | {"no_sync"}
"""Every module has the first; the last is DistributedDataParallel's alone, and who asks DataParallel for it means to
have the other."""
_ERRORS: Final = frozenset({"AttributeError", "Exception", "BaseException"})
_WRAPPING: Final = frozenset({"DataParallel", ".prepare", "compute_loss", "training_step"})
_EXPLICIT: Final = Translated(
    "{model} is wrapped in {wrapper}, which has no attribute {name} (AttributeError); it is the inner model's: "
    "{model}.module.{name}",
    "{model} 已被 {wrapper} 包装，包装器没有属性 {name}（AttributeError）；它属于内部模型：{model}.module.{name}",
)
_PREPARED: Final = Translated(
    "with several processes prepare() has wrapped {model} in DistributedDataParallel, which has no attribute {name} "
    "(AttributeError): unwrap_model({model}).{name}",
    "多进程时 prepare() 已用 DistributedDataParallel 包装 {model}，包装器没有属性 {name}（AttributeError）："
    "应使用 unwrap_model({model}).{name}",
)
_TRAINER: Final = Translated(
    "on several GPUs the Trainer hands over {model} wrapped in DistributedDataParallel or DataParallel, which has no "
    "attribute {name} (AttributeError); ask the model inside",
    "多 GPU 时 Trainer 传入的 {model} 已被 DistributedDataParallel 或 DataParallel 包装，包装器没有属性 {name}"
    "（AttributeError）；应向内部模型取用",
)
_WRAPPED_HERE: Final = Translated("wrapped here", "在此处包装")
_ASK_INSIDE: Final = Translated("Ask the model inside: {text}", "向内部模型取用：{text}")
_ASK_INSIDE_CALL: Final = Translated(
    "Call it on the model inside: {text} (a loss that is computed there gets no reduced gradients, see RS521)",
    "在内部模型上调用：{text}（在其中计算的损失不会得到归约后的梯度，见 RS521）",
)


class AttributeOfWrapper(Rule):
    """Listens to attributes that neither nn.Module nor its wrapper has."""

    metadata = RuleMetadata(
        code="RS520",
        name="attribute-of-wrapper",
        summary=Translated(
            "A method or attribute of the inner model asked of its DDP or DataParallel wrapper",
            "向 DDP 或 DataParallel 包装器取用内部模型的方法或属性",
        ),
        level=Level.WARNING,
        symptom=Symptom.CRASHES,
        since="0.1.0",
        run_signatures=(
            r"'(DistributedDataParallel|DataParallel)' object has no attribute '(?!module)\w+'",
        ),
    )
    scope = Scope.MODULE
    at_rest = True
    listens_to = (ast.Attribute,)
    mentions = _WRAPPING | {".train(", ".eval(", ".backward("}
    """The last three: a function of the file may be handed a model that is wrapped elsewhere."""
    on_several_gpus = True

    def check(self, node: ast.AST, module: Module, launch: LaunchContext) -> Iterator[Finding]:
        """A finding where the receiver may be a wrapper without that attribute."""
        assert isinstance(node, ast.Attribute)
        if node.attr in _NOT_OF_MODELS or node.attr.startswith("_"):
            return
        receiver = node.value
        if not isinstance(node.ctx, ast.Load) or not isinstance(
            receiver, (ast.Name, ast.Attribute)
        ):
            return
        if isinstance(receiver, ast.Name) and receiver.id == "self":
            return  # Half of all attributes of a file.
        wraps = wraps_of(module, node.value) if module.text_says(_may_wrap) else NOTHING
        known = [(module, item) for item in wraps.known] or wraps_by_callers(module, node.value)
        lacking = [
            (file, wrapped)
            for file, wrapped in known
            if node.attr not in _TABLES[wrapped.how] and not wrapped.apart
        ]
        if not lacking or _is_provided(module, node):
            return
        for file, wrapped in lacking:
            level = level_of(file, launch, wrapped)
            if level is not None:
                text = unwrapping.inner_text(module, node, wraps)
                fixes = [] if text is None else [_offer(module, node, text)]
                yield self._found(module, node, level, (file, wrapped), fixes)
                return

    def _found(
        self,
        module: Module,
        node: ast.Attribute,
        level: Level,
        wrapping: tuple[Module, Wrapped],
        fixes: list[FixOffer],
    ) -> Finding:
        file, wrapped = wrapping
        model = module.text_of(node.value)
        message = {Wrapper.PREPARED: _PREPARED, Wrapper.TRAINER: _TRAINER}.get(
            wrapped.how, _EXPLICIT
        )
        filled = message.filled(model=model, name=node.attr, wrapper=wrapped.how.value)
        related = []
        if wrapped.how is not Wrapper.TRAINER:
            place = file.range_of(wrapped.place)
            related.append(Related(_WRAPPED_HERE, place, file.path_from(module)))
        return self.finding(module, node, filled, level=level, related=related, fixes=fixes)


def _is_provided(module: Module, node: ast.Attribute) -> bool:
    """Whether the program gives the wrapper this attribute, or is prepared for its absence."""
    if is_caught(module, node, _ERRORS, depth=0) or _is_asked_for(module, node):
        return True
    text = unparsed(node.value)
    for other in module.nodes(ast.Attribute):
        if isinstance(other, ast.Attribute) and isinstance(other.ctx, ast.Store):
            if other.attr == node.attr and unparsed(other.value) == text:
                return True
    return any(
        any(isinstance(item, ast.Constant) and item.value == node.attr for item in call.args)
        for word in ("setattr", "add_module", "register_module", "register_buffer")
        for call in module.calls_written(word)
    )


def _is_asked_for(module: Module, node: ast.Attribute) -> bool:
    """Whether a condition names the attribute in a string: ``has_method(model, "update")``."""
    return any(
        isinstance(part, ast.Constant) and part.value == node.attr
        for guard in module.guards(node)
        if guard.positive
        for test in (guard.test, *_named_tests(module, guard.test))
        for part in ast.walk(test)
    )


def _named_tests(module: Module, test: ast.expr) -> Iterator[ast.expr]:
    """What the variables of a condition were assigned."""
    for name in ast.walk(test):
        if isinstance(name, ast.Name):
            yield from module.flow.assigned_values(name)


def _may_wrap(text: str) -> bool:
    return any(word in text for word in _WRAPPING)


def _offer(module: Module, node: ast.Attribute, text: str) -> FixOffer:
    parent = module.parent(node)
    is_call = isinstance(parent, ast.Call) and parent.func is node and node.attr != "generate"
    return FixOffer(
        "ask-inside",
        (_ASK_INSIDE_CALL if is_call else _ASK_INSIDE).filled(text=text),
        Applicability.UNSAFE if is_call else Applicability.SAFE,
    )
