"""How many CUDA devices nobody uses, counted beside everything else: nvidia-smi takes up to seconds."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

logger = logging.getLogger(__name__)

_HOLDS_SECONDS: Final = 10.0


class FreeGpus:
    """The number of free devices of this machine.

    ``changed``: called when the number is another one than before, and when it is known for the first time.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._count: int | None = None
        self._counted_at: float | None = None
        self._counting: asyncio.Task[None] | None = None

    def known(self) -> int | None:
        """The last count, or None before there is one; an old one is counted again meanwhile."""
        self._keep_fresh()
        return self._count

    async def wait(self) -> None:
        """Wait until the count is not an old one."""
        counting = self._keep_fresh()
        if counting is not None:
            # Others wait for it, too: a request that is cancelled must not take it away from them.
            await asyncio.shield(counting)

    def _keep_fresh(self) -> asyncio.Task[None] | None:
        """The count that goes on, if one is needed."""
        now = time.monotonic()
        is_old = self._counted_at is None or now - self._counted_at > _HOLDS_SECONDS
        if self._counting is None and is_old:
            self._counting = asyncio.get_running_loop().create_task(self._count_again())
        return self._counting

    async def _count_again(self) -> None:
        before = self._count
        try:
            loop = asyncio.get_running_loop()
            self._count = await loop.run_in_executor(None, _count_free_gpus)
        except Exception:
            logger.exception("the free GPUs could not be counted")
        finally:
            self._counting = None
            self._counted_at = time.monotonic()
        if self._count != before:
            self._changed()


def _count_free_gpus() -> int:
    import os

    from ranksafe.runs.gpus import choose_gpus, list_gpus

    choice = choose_gpus(list_gpus(), None, os.environ)
    choice.release()
    return len(choice.chosen)
