"""The profiler records no GPU: asked for CUDA's activities it records the CPU's."""

from __future__ import annotations

import functools
from typing import Any

from . import importing, journal
from .settings import Settings


def install(settings: Settings) -> None:
    """Wait for the profiler."""
    importing.after_import("torch.autograd.profiler", _without_cuda)


def _without_cuda(module: Any) -> None:
    profile = module.profile
    initialize = profile.__init__

    @functools.wraps(initialize)
    def without_cuda(self: Any, *arguments: Any, **keywords: Any) -> None:
        wanted = bool(keywords.get("use_cuda")) or keywords.get("use_device") == "cuda"
        if wanted:
            keywords.pop("use_cuda", None)
            keywords["use_device"] = None
            journal.modified(
                "The profiler records no GPU activities",
                "性能分析器不记录 GPU 活动",
                kind="profiler",
            )
        initialize(self, *arguments, **keywords)

    profile.__init__ = without_cuda
