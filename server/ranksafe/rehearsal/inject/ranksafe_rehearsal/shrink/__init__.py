"""Small enough to rehearse: pretrained models, tokenizers and datasets are replaced by small ones of the same kind.

In a forecast, where they mean nothing, only metrics are. Nothing is loaded that is not on disk, no remote code is
executed, and every replacement is named in the journal.
"""

from __future__ import annotations

import os

from ..settings import Settings

_OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE")


def install(settings: Settings) -> None:
    """Hook the libraries that load pretrained models and datasets, as the script imports them."""
    if settings.offline:
        for name in _OFFLINE:
            # Without it every look-up waits for its retries.
            os.environ.setdefault(name, "1")
    if settings.shrink != "off" or settings.forecast:
        from . import metric_hooks

        metric_hooks.install()
    if settings.shrink == "off":
        return
    from . import (
        adapter_hooks,
        batches,
        datasets_hooks,
        diffusers_hooks,
        downloads,
        images,
        random_weights,
        transformers_hooks,
        vision_hooks,
    )
    from .repositories import Repositories

    repositories = Repositories(settings)
    transformers_hooks.install(repositories)
    adapter_hooks.install(repositories)
    datasets_hooks.install(settings)
    diffusers_hooks.install()
    if settings.offline:
        downloads.install()
    random_weights.install()
    if settings.shrink == "work":
        batches.install()
        images.install()
    vision_hooks.install()
