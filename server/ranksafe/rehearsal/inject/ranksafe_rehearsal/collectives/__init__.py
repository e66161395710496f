"""``torch.distributed`` with ``nccl`` on simulated devices: the backend, the interface it uses, how a process ends."""

from __future__ import annotations

from .. import importing
from ..settings import Settings
from . import backend, ending, interface


def install(settings: Settings) -> None:
    """Called once torch is imported; acts when ``torch.distributed`` is, which most versions import by themselves."""
    interface.use_loopback()
    importing.after_import("torch.distributed", lambda _: backend.install(settings))
    ending.install()
