"""What a Trainer does under nn.DataParallel, by the versions of transformers and TRL."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from packaging.version import Version
from ranksafe.checker.finding import Level
from ranksafe.launch.context import LaunchContext
from ranksafe.localization import Translated
from ranksafe.semantics.module import Module

from ranksafe_rules._shared import trainer_methods as methods
from ranksafe_rules._shared.count_windows import Count, count_at
from ranksafe_rules.launch.implicit_data_parallel import messages

_SFT = "trl.SFTTrainer"
_REFUSES_SINCE = {
    "SFTTrainer": Version("1.15.0"),
    "DPOTrainer": Version("1.15.0"),
    "KTOTrainer": Version("1.15.0"),
    "GRPOTrainer": Version("1.15.0"),
    "RLOOTrainer": Version("1.15.0"),
    "DistillationTrainer": Version("1.15.0"),
    "RewardTrainer": Version("1.16.0"),
}
"""TRL trainers that raise a ValueError when `args.n_gpu > 1`, read in TRL 1.14, 1.15 and 1.16."""
REFUSING_TRAINERS = frozenset(_REFUSES_SINCE)
_LOADS_SPREAD = Version("0.26.0")
"""From here on TRL loads a model given by name with `device_map="auto"` when nothing launched the script."""
_NAME_SUFFIXES = ("name_or_path", "model_name", "model_path", "model_id")
_MOST_BASES = 4
_COMPARES = Version("0.15.1")
"""From here on SFTTrainer compares logits and labels of the process in `compute_loss`."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What happens; ``level`` when the launch is certain."""

    message: Translated
    level: Level
    is_known: bool = True
    """False where it depends on versions that are not known."""


def refusal_of(module: Module, built: ast.Call, launch: LaunchContext) -> Outcome | None:
    """The refusal of recent TRL versions, None where the Trainer starts."""
    name = _refusing(module, built)
    version = launch.version("trl")
    if name is None or version is None or version < _REFUSES_SINCE[name]:
        return None
    if _is_given_by_name(module, built):
        return None
    return Outcome(messages.REFUSED.filled(**_kept(), trainer=name), Level.ERROR)


def outcome_of(module: Module, built: ast.Call, launch: LaunchContext) -> Outcome | None:
    """What goes wrong in `train`, None where nothing does."""
    refusing = _refusing(module, built)
    trl = launch.version("trl")
    if _is_trl(module, built) and _is_given_by_name(module, built):
        if trl is None or trl >= _LOADS_SPREAD:
            return None
    form = count_at(launch.version("transformers"))
    is_sft = module.is_subclass(module.qualified_name(built.func), _SFT)
    if _is_trl(module, built) and not is_sft:
        return _of_other_trl_trainer(refusing, trl)
    if not _hands_count_over(module, built):
        return None
    if is_sft and form is Count.LENGTH_ONE and (trl is None or trl >= _COMPARES):
        message = messages.SIZES if trl is not None else messages.SIZES_OR_ONE_REPLICA
        return Outcome(message, Level.ERROR if trl is not None else Level.WARNING)
    if is_sft and trl is None and form in (Count.PER_REPLICA, Count.UNKNOWN):
        return Outcome(messages.SFT_UNKNOWN, Level.WARNING, is_known=False)
    return _BY_COUNT[form]


def _of_other_trl_trainer(refusing: str | None, trl: Version | None) -> Outcome | None:
    if trl is None and refusing is not None:
        since = _REFUSES_SINCE[refusing]
        message = messages.MAY_REFUSE.filled(**_kept(), trainer=refusing, since=since)
        return Outcome(message, Level.WARNING, is_known=False)
    return None


_BY_COUNT: dict[Count, Outcome | None] = {
    Count.UNKNOWN: Outcome(messages.UNKNOWN, Level.WARNING, is_known=False),
    Count.ABSENT: None,
    Count.INTEGER: Outcome(messages.SMALL_LOSS, Level.WARNING),
    Count.ZERO_DIMENSIONAL: Outcome(messages.CRASH, Level.ERROR),
    Count.LENGTH_ONE: Outcome(messages.ONE_REPLICA, Level.WARNING),
    Count.PER_REPLICA: None,
}


def _kept() -> dict[str, str]:
    """Placeholders that the rule fills later."""
    return {name: f"{{{name}}}" for name in ("transformers", "trl", "gpus", "lost")}


def _refusing(module: Module, built: ast.Call) -> str | None:
    name = module.qualified_name(built.func)
    return next((item for item in _REFUSES_SINCE if module.is_subclass(name, f"trl.{item}")), None)


def _is_trl(module: Module, built: ast.Call) -> bool:
    return module.is_subclass(
        module.qualified_name(built.func), "trl.trainer.base_trainer._BaseTrainer"
    ) or (_refusing(module, built) is not None)


def _is_given_by_name(module: Module, built: ast.Call) -> bool:
    """Whether the Trainer is given the model's name or path: a string, or a setting that is called so."""
    model = module.argument(built, "model", 0)
    if model is not None and isinstance(model.only_constant(), str):
        return True
    node = module.argument_node(built, "model", 0)
    word = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return str(word).endswith(_NAME_SUFFIXES)


def _hands_count_over(module: Module, built: ast.Call) -> bool:
    """False where the Trainer's own `compute_loss` keeps the count or changes it (RS501, RS502 look at that), or the
    model is a class of this file whose forward takes no ``**kwargs`` (`Trainer.model_accepts_loss_kwargs`)."""
    override = _override(module, module.qualified_name(built.func), _MOST_BASES)
    if override is not None and not _hands_it_on(*override):
        return False
    model = module.argument_node(built, "model", 0)
    cls = module.class_named(module.type_of(model)) if model is not None else None
    forward = module.method(cls, "forward") if cls is not None else None
    return forward is None or forward.args.kwarg is not None


def _override(
    module: Module, trainer: str | None, depth: int
) -> tuple[Module, methods.Function] | None:
    """The `compute_loss` of a class of the project, its own or inherited, with the file that it stands in."""
    if trainer is None or depth == 0:
        return None
    cls, place = module.class_named(trainer), module
    if cls is None:
        definition = module.project_definition(trainer)
        if definition is None or not isinstance(definition[1], ast.ClassDef):
            return None
        place, cls = definition[0], definition[1]
    own = place.method(cls, "compute_loss")
    if own is not None:
        return place, own
    inherited = (_override(place, place.qualified_name(base), depth - 1) for base in cls.bases)
    return next((found for found in inherited if found is not None), None)


def _hands_it_on(module: Module, override: methods.Function) -> bool:
    return (
        any(methods.handovers(module, override))
        and methods.scaling(module, override) is methods.Scaling.NONE
        and not methods.is_converted(module, override)
    )
