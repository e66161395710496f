"""Keeps a rehearsal from talking to anybody: the network, the Hugging Face hub, experiment trackers.

Works in any Python process, isolated by the system or not. What is replaced keeps its functions, so that the script
goes on as it would have done, and is named in the outcome.
"""

from __future__ import annotations

from typing import Any

from . import folders, hub, network, programs, reading, trackers


def install(chosen: Any) -> None:
    """Stand between this process and the outside, before or after the libraries are imported.

    ``chosen``: the rehearsal's settings; only where it is ``offline`` or ``reads_network`` the network is refused.
    """
    if chosen.reads_network:
        reading.install()
    if chosen.offline or chosen.reads_network:
        network.install()
    folders.install()
    programs.install()
    hub.install()
    trackers.install()
