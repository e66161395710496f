"""Which samples each rank trains on: digests of the first batches, of what DDP is called with and of what the
DataLoader gave before it. Compared between ranks after the run."""

from __future__ import annotations

import functools
import weakref
from dataclasses import dataclass, field
from typing import Any, Callable

from . import digests
from .watch import Watch, is_user_file, stack
from .wrappers import Wrapper, Wrappers

_WATCHED_FORWARDS = 4
_WATCHED_BATCHES = 32
_MOST_ROWS = 256


@dataclass
class _Loader:
    frames: list[dict[str, Any]]
    length: int | None
    """Of the dataset; None: iterable."""
    batches: int = 0
    rows: list[int] = field(default_factory=list)
    indices: list[str] = field(default_factory=list)
    """Of the batches drawn so far, in order."""


class _Samples:
    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.places: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self.loaders: weakref.WeakKeyDictionary[Any, _Loader] = weakref.WeakKeyDictionary()
        self.of_iterator: weakref.WeakKeyDictionary[Any, _Loader] = weakref.WeakKeyDictionary()
        self.last: _Loader | None = None
        self.recorded: dict[int, int] = {}

    def made(self, loader: Any) -> None:
        """Remember where a DataLoader was made."""
        self.places[loader] = [frame for frame in stack() if is_user_file(frame["file"])]

    def started(self, iterator: Any, loader: Any) -> None:
        """A loader begins to give batches."""
        known = self.loaders.get(loader)
        if known is None:
            known = _Loader(self.places.get(loader, []), _length(loader))
            self.loaders[loader] = known
        self.of_iterator[iterator] = known

    def chosen(self, iterator: Any, indices: Any) -> None:
        """The sampler gave the indices of a batch."""
        known = self.of_iterator.get(iterator)
        if known is not None and len(known.indices) < _WATCHED_BATCHES:
            known.indices.append(repr(indices)[:400])

    def drawn(self, iterator: Any, batch: Any) -> None:
        """A batch leaves the loader."""
        known = self.of_iterator.get(iterator)
        if known is None:
            return
        known.batches += 1
        self.last = known
        if known.batches <= _WATCHED_BATCHES:
            known.rows = digests.row_digests(batch)

    def forward(self, wrapper: Wrapper, inputs: Any) -> None:
        """DDP is called for training."""
        loader = self.last
        count = self.recorded.get(wrapper.index, 0)
        if loader is None or count >= _WATCHED_FORWARDS or loader.batches > _WATCHED_BATCHES:
            return
        self.recorded[wrapper.index] = count + 1
        self.watch.journal.write(
            "samples",
            model=f"ddp {wrapper.index}",
            ranks=wrapper.ranks,
            call=count + 1,
            inputs=digests.row_digests(inputs)[:_MOST_ROWS],
            batch=loader.rows[:_MOST_ROWS],
            batches=loader.batches,
            indices=loader.indices[: loader.batches],
            length=loader.length,
            frames=loader.frames,
        )


def hooks(watch: Watch, known: Wrappers) -> dict[str, Callable[[Any], None]]:
    """What to do after which import."""
    samples = _Samples(watch)
    known.on_forward.append(samples.forward)
    return {"torch.utils.data.dataloader": functools.partial(_hook, samples)}


def _hook(samples: _Samples, module: Any) -> None:
    watch = samples.watch
    loader, iterator = module.DataLoader, module._BaseDataLoaderIter
    make, start, draw = loader.__init__, iterator.__init__, iterator.__next__
    choose = iterator._next_index

    @functools.wraps(make)
    def watched_make(self: Any, *arguments: Any, **keywords: Any) -> None:
        make(self, *arguments, **keywords)
        watch.attempt(samples.made, self)

    @functools.wraps(start)
    def watched_start(self: Any, source: Any, *arguments: Any, **keywords: Any) -> None:
        # Before the original, which asks the sampler for the first batches when there are workers.
        watch.attempt(samples.started, self, source)
        start(self, source, *arguments, **keywords)

    @functools.wraps(choose)
    def watched_choose(self: Any) -> Any:
        indices = choose(self)
        watch.attempt(samples.chosen, self, indices)
        return indices

    @functools.wraps(draw)
    def watched_draw(self: Any) -> Any:
        batch = draw(self)
        watch.attempt(samples.drawn, self, batch)
        return batch

    loader.__init__, iterator.__init__ = watched_make, watched_start
    iterator._next_index, iterator.__next__ = watched_choose, watched_draw


def _length(loader: Any) -> int | None:
    dataset: Any = getattr(loader, "dataset", None)
    if not hasattr(dataset, "__len__") or not hasattr(dataset, "__getitem__"):
        return None
    return len(dataset)
