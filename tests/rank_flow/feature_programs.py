"""Small training programs, each of which hands a value through one feature of Python to a branch around a collective.

A file of `features/` holds sections ``### name | kind``: what stands at the top of the program, a line ``---``, and what
stands in its training function, where ``VALUE`` is the value that is handed through. The kind says which values that are,
one that differs between ranks and one that does not. Kind X writes both programs: the second one after ``===``, its two
parts parted by ``+++``; other kinds may write another training function for the second one after ``===``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent

FEATURES = Path(__file__).parent / "features"
_HEAD = """import argparse, asyncio, collections, contextlib, functools, glob, itertools, json, logging, os
import random, shutil, tempfile, threading, time
from abc import ABC, abstractmethod
from collections import Counter, OrderedDict, defaultdict, deque
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from functools import partial, wraps
from pathlib import Path
from typing import NamedTuple
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler

logger = logging.getLogger(__name__)

"""
_LOOP = """    tensor = torch.zeros(1)
    loader = DataLoader(dataset, sampler=DistributedSampler(dataset))
    for batch in loader:
        loss = model(batch).mean()
"""
OTHER_FILE = """import os
import torch.distributed as dist
RANK = int(os.environ.get("RANK", 0))


def first():
    return dist.get_rank() == 0


def several():
    return dist.get_world_size() > 1
"""
"""Of `shared_settings.py`, which some programs import."""


@dataclass(frozen=True)
class Values:
    """What is handed through: to the wrong program and to the right one."""

    label: str
    wrong: str
    right: str
    agreed: str = ""
    """What the right program does first."""


_RANK = Values("rank", "dist.get_rank() == 0", "dist.get_world_size() > 1")
_DATA = Values("data", "loss.item() > 4.0", "loss.item() > 4.0", "dist.all_reduce(loss)\n")
KINDS = {
    "F": [_RANK, _DATA],
    "FR": [_RANK],
    "FD": [_DATA],
    "N": [Values("rank", "dist.get_rank()", "dist.get_world_size()")],
    "D": [Values("data", "loss.item()", "loss.item()", "dist.all_reduce(loss)\n")],
    "S": [Values("shard", "items[dist.get_rank()::dist.get_world_size()]", "items")],
}


@dataclass(frozen=True)
class Feature:
    """Two programs that differ in what is handed through."""

    name: str
    wrong: str
    right: str


def features() -> Iterator[Feature]:
    """All of them."""
    for path in sorted(FEATURES.glob("*.txt")):
        text = path.read_text(encoding="utf-8")
        for section in re.split(r"^### ", text, flags=re.MULTILINE)[1:]:
            head, _, rest = section.partition("\n")
            name, kind = head.split(" | ")
            yield from _of_section(name, kind, rest)


def _of_section(name: str, kind: str, rest: str) -> Iterator[Feature]:
    top, body = rest.split("---\n", 1) if "---\n" in rest else ("", rest)
    body, _, other = body.partition("===\n")
    if kind == "X":
        right_top, right = f"\n{other}".split("\n+++\n", 1)
        yield Feature(name, _own(top, body), _own(right_top, right))
        return
    for values in KINDS[kind]:
        yield Feature(
            f"{name}, {values.label}",
            _handed(top, body, values.wrong, ""),
            _handed(top, other or body, values.right, values.agreed),
        )


def _own(top: str, body: str) -> str:
    return f"{_HEAD}{top}\n\ndef train(model, dataset, items, args):\n{indent(body, '    ')}"


def _handed(top: str, body: str, value: str, agreed: str) -> str:
    inner = indent(agreed + body.replace("VALUE", value), "        ")
    return (
        f"{_HEAD}{top.replace('VALUE', value)}\n\ndef train(model, dataset, items, args):\n"
        f"{_LOOP}{inner}"
    )
