"""Ranks of a rehearsal reach each other over the loopback interface, wherever they run."""

from __future__ import annotations

import os
import sys

_VARIABLE = "GLOO_SOCKET_IFNAME"


def use_loopback() -> None:
    """Tell gloo, unless the user did.

    Without the variable gloo binds to the address of the machine's host name (torch 2.13,
    ProcessGroupGloo::createDefaultDevice), which a network namespace with nothing but a loopback interface lacks.
    """
    name = "lo0" if sys.platform == "darwin" else "lo"
    os.environ.setdefault(_VARIABLE, name)
