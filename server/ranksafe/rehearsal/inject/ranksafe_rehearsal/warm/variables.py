"""The environment: which variables imports have looked at, and which may differ in a process that is forked later."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

RUN = ("RANKSAFE_RUN_", "RANKSAFE_REHEARSAL")
"""Ours, read by ours."""
_OF_LAUNCHERS = frozenset(
    {
        "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK",
        "ROLE_NAME", "ROLE_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCH_NCCL_ASYNC_ERROR_HANDLING",
        "NCCL_P2P_DISABLE", "NCCL_IB_DISABLE",
    }
)  # fmt: skip
"""What torchrun (torch 2.13.0, ``local_elastic_agent.py``) and accelerate (1.15.0, ``utils/launch.py``) set for ranks,
and C++ code looks at only when a process group is made."""
_GROUPS_OF_LAUNCHERS = ("TORCHELASTIC_", "ACCELERATE_", "FSDP_", "PARALLELISM_CONFIG_")
HARMLESS = ("_", "SHLVL", "OLDPWD", "PYTEST_CURRENT_TEST")
"""They differ from one command to the next, and no library goes by them."""


class Watched:
    """Notes which variables Python code looks at, until `stop`."""

    def __init__(self) -> None:
        self.asked: set[str] = set()
        kind: Any = type(os.environ)
        self._get = get = kind.__getitem__

        def getitem(environ: Any, name: Any) -> Any:
            self.asked.add(str(name))
            return get(environ, name)

        kind.__getitem__ = getitem

    def stop(self) -> None:
        """Note no more."""
        kind: Any = type(os.environ)
        kind.__getitem__ = self._get


def at_start() -> dict[str, str]:
    """The environment that this process was started with."""
    with open("/proc/self/environ", "rb") as file:
        entries = file.read().split(b"\0")
    pairs = (os.fsdecode(entry).partition("=") for entry in entries if entry)
    started = {name: value for name, _, value in pairs}
    if "LC_CTYPE" in os.environ:  # Python adds it in the C locale (PEP 538)
        started.setdefault("LC_CTYPE", os.environ["LC_CTYPE"])
    return started


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str | None]:
    """What turns ``before`` into ``after``; None: the variable goes."""
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return {name: after.get(name) for name in names}


def matter(differing: Mapping[str, Any], asked: set[str]) -> Iterator[str]:
    """Those of the variables that differ which an import has seen, or may have."""
    for name in differing:
        if name.startswith(RUN) or name in HARMLESS:
            continue
        set_by_launcher = name in _OF_LAUNCHERS or name.startswith(_GROUPS_OF_LAUNCHERS)
        if not set_by_launcher or name in asked:
            yield name
