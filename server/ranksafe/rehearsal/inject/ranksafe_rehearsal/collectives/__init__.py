"""``torch.distributed`` on simulated devices: its backends, the interface they use, how a process ends."""

from __future__ import annotations

from .. import importing
from ..settings import Settings


def install(settings: Settings) -> None:
    """Called once torch is imported; acts when ``torch.distributed`` is, which most versions import by themselves.

    ``ending`` is installed before, when the process starts, so that its exit handler is the last.
    """
    from . import backend, gloo, interface, one_for_all

    interface.use_loopback()
    importing.after_import("torch.distributed", lambda _: backend.install(settings))
    importing.after_import("torch.distributed", lambda _: gloo.install())
    importing.after_import("torch.distributed", lambda _: one_for_all.replace_groups(settings))
