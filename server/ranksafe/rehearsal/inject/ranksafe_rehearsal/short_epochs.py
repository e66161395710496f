"""Long epochs become short ones, so that a script comes to its last batch, its evaluation, its checkpoint and its end.

torch's DataLoader leaves out batches in the middle of an epoch; what goes wrong at the first ones or at the last goes
wrong still. The number left out is a multiple of `UNIT` and depends on the number of batches alone: where ranks have
the same number they keep the same, where one has a batch more they still differ, and the last partial group of
accumulated batches is as it was. A data set that does not say its length is left alone; the number of steps ends the
training.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from . import journal
from .importing import after_import
from .settings import Settings

UNIT = 8
"""A multiple of the usual numbers of accumulated batches."""
_FIRST = 4
"""Batches before the gap; at least as many come after it."""
_LOADERS = "torch.utils.data.dataloader"
_WAITING = "ranksafe_agent.waiting"


def install(settings: Settings) -> None:
    """Shorten every epoch of this process, where that was chosen."""
    if settings.short_epochs:
        after_import(_LOADERS, _hook)


def kept(batches: int) -> int:
    """How many of an epoch's batches remain."""
    return batches if batches <= 2 * UNIT else UNIT + batches % UNIT


class ShortSampler:
    """What a loader takes its batches from, with a gap in the middle; in all else the sampler that it stands for."""

    def __init__(self, sampler: Any) -> None:
        self._sampler = sampler

    def __getattr__(self, name: str) -> Any:
        if name == "_sampler":  # not there yet: this one is being copied
            raise AttributeError(name)
        return getattr(self._sampler, name)

    def __len__(self) -> int:
        return kept(len(self._sampler))

    def __iter__(self) -> Iterator[Any]:
        whole = len(self._sampler)
        gap = range(_FIRST, _FIRST + whole - kept(whole))
        if gap:
            _tell(whole)
        return (batch for number, batch in enumerate(self._sampler) if number not in gap)


def _hook(module: Any) -> None:
    loader: Any = module.DataLoader
    iterator: Any = module._BaseDataLoaderIter
    index_sampler, following = loader._index_sampler.fget, iterator.__next__
    streamed = module._DatasetKind.Iterable

    def shortened(self: Any) -> Any:
        sampler = index_sampler(self)
        if self._dataset_kind == streamed or isinstance(sampler, ShortSampler):
            return sampler
        try:
            len(sampler)
        except Exception:  # whatever a class of the user's raises
            return sampler
        return ShortSampler(sampler)

    def counted(self: Any) -> Any:
        try:
            return following(self)
        except StopIteration:
            _epoch_ended()
            raise

    counted.__wrapped__ = following  # type: ignore[attr-defined]
    loader._index_sampler = property(shortened)
    iterator.__next__ = counted


def _epoch_ended() -> None:
    """Tell the counter of steps; it knows whether any were made since the last time."""
    waiting: Any = sys.modules.get(_WAITING)
    if waiting is not None and waiting.here.is_rank:
        waiting.here.epoch_ended()


def _tell(batches: int) -> None:
    left = kept(batches)
    journal.modified(
        f"epochs of {batches} batches are cut to {left}: the first {_FIRST} and the last {left - _FIRST}",
        f"每个 epoch 的 {batches} 个批次缩减为 {left} 个：前 {_FIRST} 个和后 {left - _FIRST} 个",
        kind="short-epoch",
    )
