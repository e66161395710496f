"""Steps that transformers' and Lightning's training loops do for a function: what a callback asks for with its
``control``, and the backward pass after ``training_step``."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ranksafe.semantics.rank_flow.operations import Operation
from ranksafe.semantics.rank_flow.traces import Event
from ranksafe.semantics.rank_flow.values import Known, Thing, Value

if TYPE_CHECKING:
    from ranksafe.semantics.rank_flow.interpreter import Interpreter

CONTROL = "transformers.TrainerControl"
CALLBACKS = ("transformers.TrainerCallback", "transformers.trainer_callback.TrainerCallback")
_STOP = f"{CONTROL}.should_training_stop"
_STEP = "lightning.pytorch.LightningModule.training_step"
# transformers 5.23.0, trainer.py: the loop reads these flags of each process, and nothing makes them equal.
_ASKED_FOR = {
    "should_training_stop": "training_step",
    "should_epoch_stop": "training_step",
    "should_evaluate": "evaluate",
    "should_log": "log",
}
_MODULE = "lightning.pytorch.LightningModule"


def asked_for(
    interpreter: Interpreter, control: Thing, target: ast.Attribute, value: Value
) -> None:
    """``control.should_training_stop = True`` in a callback."""
    word = _ASKED_FOR.get(target.attr)
    if control.type != CONTROL or word is None:
        return
    if isinstance(value, Known) and value.constant is True:
        stops = word == "training_step"
        name = _STOP if stops else f"{CONTROL}.{target.attr}"
        run = interpreter.run
        run.items.append(Event(_operation(name, word), run.place(target)))


def stepped(interpreter: Interpreter, node: ast.Return, value: Value) -> None:
    """``return loss`` of a LightningModule's ``training_step``: the loop goes on with the backward pass.

    Returning None skips it, which Lightning does not support on several GPUs (lightning 2.6.6, core/module.py).
    """
    run = interpreter.run
    receiver = run.frame.receiver
    if getattr(run.frame.function, "name", "") != "training_step" or receiver is None:
        return
    if isinstance(value, Known) and value.constant is None:
        return
    if _MODULE not in interpreter.library_objects.classes_of(receiver):
        return
    if "automatic_optimization" not in run.heap.get(receiver, {}):
        run.items.append(Event(_operation(_STEP, "backward"), run.place(node)))


def leaves_the_loop(event: Event) -> bool:
    """Whether the event is a rank's wish to stop: the others wait for it in the next step."""
    return event.operation.name == _STOP


def ends_a_step(event: Event) -> bool:
    """Whether the event is the backward pass that the training loop does."""
    return event.operation.name == _STEP


def _operation(name: str, word: str) -> Operation:
    return Operation(name, "step", word, None, None, None, False, None, None, False, None)
