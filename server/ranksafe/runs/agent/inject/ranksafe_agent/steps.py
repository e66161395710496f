"""Counts optimizer steps, and ends a smoke run after N of them without a change to the script.

Every rank counts for itself: ranks that run the same program stop after the same step, with no collective of ours.
"""

from __future__ import annotations

import functools
import threading
from typing import Any

from . import distributed, heartbeat, waiting
from .after_import import Action, after_import
from .journal import Journal

_JOURNALED_STEPS = 5
_ENOUGH_STEPS = 100
_ENOUGH_EPOCHS = 2


class SmokeRunEnd(SystemExit):
    """Ends a rank after the wanted number of steps; status 0, so that launchers see a success."""

    def __init__(self) -> None:
        super().__init__(0)


class _Steps:
    def __init__(self, journal: Journal, limit: int | None, until_enough: bool) -> None:
        self.journal = journal
        self.limit = limit
        self.until_enough = until_enough
        self.by_optimizer: dict[int, int] = {}
        self.highest = 0
        self.trainer_steps = 0
        self.trainers_running = 0
        self.trainings_ended = False

    def optimizer_stepped(self, optimizer: object, *_: Any) -> None:
        """Called by torch after each ``Optimizer.step``."""
        known = self.by_optimizer
        count = known.get(id(optimizer), 0) + 1
        known[id(optimizer)] = count
        if count > self.highest:
            self.highest = waiting.here.steps = count
            if count <= _JOURNALED_STEPS or count % 100 == 0:
                heartbeat.revive()
                self.journal.write("step", step=count, group=distributed.group_size())
            if self.until_enough and self.limit is None and _is_enough(count):
                self.limit = count
        if self.limit is not None and self.journal.is_mine and self._is_over(self.limit):
            self.end()

    def _is_over(self, limit: int) -> bool:
        """Several optimizers (a GAN) finish the same round; one that steps no more does not hold up the end."""
        counts = self.by_optimizer.values()
        over = max(counts) > limit or min(counts) >= limit
        if self.trainers_running:
            # The Trainer stops by itself through its control flag; only one that ignores the flag is cut short.
            return max(counts) > limit and not self.until_enough
        return over

    def end_training(self) -> None:
        """A Trainer is about to be told that it has trained enough."""
        if not self.trainings_ended:
            self.trainings_ended = True
            self.journal.write("trained-enough", steps=self.limit)

    def end(self) -> None:
        """End this rank here. Raising in another thread would end only that thread."""
        if threading.current_thread() is not threading.main_thread():
            self.journal.write("agent-problem", text="steps are made in a thread: cannot stop")
            self.limit = None
            return
        self.journal.write("stopped", steps=max(self.by_optimizer.values(), default=0))
        self.journal.ended_early = True
        raise SmokeRunEnd


def _is_enough(steps: int) -> bool:
    """Whether more steps would show what these have shown. All ranks that made the same ones say the same."""
    here = waiting.here
    of_epoch = steps - here.epoch_began
    return steps >= _ENOUGH_STEPS and (here.epochs >= _ENOUGH_EPOCHS or of_epoch >= _ENOUGH_STEPS)


def install(journal: Journal, limit: int | None, *, until_enough: bool = False) -> None:
    """Count steps from torch's first import on; with ``limit``, stop there. ``until_enough``: end the training, or
    where that cannot be done the run, after a number of steps that every rank finds for itself."""
    steps = _Steps(journal, limit, until_enough)

    def on_optimizer(module: Any) -> None:
        # torch >= 2.0 has the global hook; before that steps are not counted.
        module.register_optimizer_step_post_hook(steps.optimizer_stepped)

    actions: dict[str, Action] = {"torch.optim.optimizer": on_optimizer}
    if limit is not None or until_enough:
        actions["transformers.trainer_callback"] = functools.partial(_hook_callbacks, steps)
        actions["transformers.trainer"] = functools.partial(_hook_trainer, steps)
    after_import(actions, lambda text: journal.write("agent-problem", text=text))


def _hook_callbacks(steps: _Steps, module: Any) -> None:
    handler: Any = module.CallbackHandler
    on_step_end, on_epoch_end = handler.on_step_end, handler.on_epoch_end

    def quiet(control: Any) -> Any:
        """The last step of a smoke run must not save over the user's checkpoints or start a full evaluation."""
        control.should_training_stop = True
        control.should_save = False
        control.should_evaluate = False
        return control

    @functools.wraps(on_step_end)
    def step_end(self: Any, *arguments: Any, **keywords: Any) -> Any:
        control = on_step_end(self, *arguments, **keywords)
        steps.trainer_steps += 1
        if steps.limit is None or steps.trainer_steps < steps.limit:
            return control
        if steps.until_enough:
            steps.end_training()
            control.should_training_stop = True
            return control
        return quiet(control)

    @functools.wraps(on_epoch_end)
    def epoch_end(self: Any, *arguments: Any, **keywords: Any) -> Any:
        control = on_epoch_end(self, *arguments, **keywords)
        is_over = steps.limit is not None and steps.trainer_steps >= steps.limit
        return quiet(control) if is_over and not steps.until_enough else control

    handler.on_step_end, handler.on_epoch_end = step_end, epoch_end


def _hook_trainer(steps: _Steps, module: Any) -> None:
    trainer: Any = module.Trainer
    train = trainer.train

    @functools.wraps(train)
    def smoke_train(self: Any, *arguments: Any, **keywords: Any) -> Any:
        steps.trainers_running += 1
        try:
            result = train(self, *arguments, **keywords)
        finally:
            steps.trainers_running -= 1
        if (
            steps.limit is not None
            and steps.trainer_steps >= steps.limit
            and not steps.until_enough
        ):
            # What follows would save or evaluate a model that was hardly trained.
            steps.end()
        return result

    trainer.train = smoke_train
