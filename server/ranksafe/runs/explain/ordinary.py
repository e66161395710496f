"""Errors of plain Python code: not known by their text, and yet not about several GPUs by what they say."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ranksafe.runs.explain.evidence import Raised
from ranksafe.runs.explain.locate import innermost_user_frame
from ranksafe.runs.model import Frame

PYTHONS_OWN = re.compile(
    r"(?:Key|Index|Attribute|Type|Name|UnboundLocal|ZeroDivision|Recursion|Overflow|Import|ModuleNotFound)Error"
)
"""What Python itself raises in a line; anything else may come from compiled code that the line calls."""
_CHECKED = re.compile(
    r"(?:UnicodeDecode|JSONDecode|Assertion|Value|Syntax|Indentation|Tab|FileNotFound|NotADirectory|IsADirectory"
    r"|Permission)Error"
)
"""What a line also raises of its own, by what it is given."""
_SEVERAL = re.compile(
    r"rank|world|process|device|cuda|gpu|nccl|gloo|distribut|replica|shard|parallel|gather|reduce|broadcast|barrier"
    r"|batch.?size|divisib|module\.|accelerat|deepspeed|fsdp|ddp|state_dict",
    re.IGNORECASE,
)


def may_be_about_ranks(message: str, frames: Sequence[Frame]) -> bool:
    """Whether an error may have to do with several ranks: by its words, or by what the user's line called."""
    own = next((at for at in range(len(frames) - 1, -1, -1) if frames[at].in_user_code), -1)
    called = "\n".join(frame.filename for frame in frames[own + 1 :])
    return _SEVERAL.search(message) is not None or _PARALLEL_CODE.search(called) is not None


def is_in_parallel_code(frames: Sequence[Frame]) -> bool:
    """Whether a wrapper of several GPUs (DataParallel, FSDP, DeepSpeed's engine) is anywhere in the call chain."""
    return any(_WRAPPERS.search(frame.filename.replace("\\", "/")) for frame in frames)


def has_empty_size(message: str) -> bool:
    """Whether a shape or size of 0 is told of: sharded training leaves such weights outside of their own forward."""
    return _EMPTY.search(message) is not None


def is_ordinary(raised: Raised) -> bool:
    """Whether the user's own line raised the exception itself, and nothing in it is about several ranks.

    Only types of Python's own count, only where no library raised it (a key that the line itself looks up may be
    missing in a library's table), and only where neither the message nor the line has a word that could be about
    ranks, devices or batches. That one GPU would show it too follows only where every rank met it.
    """
    types = (PYTHONS_OWN, _CHECKED)
    if not raised.frames or not any(each.fullmatch(raised.type) for each in types):
        return False
    own = innermost_user_frame(raised.frames)
    if (
        own is None
        or _SEVERAL.search(f"{raised.message}\n{own.source}")
        or "ensor" in raised.message
    ):
        return False
    looked_up = raised.type == "KeyError" and raised.message.strip("'\"") in own.source
    return raised.frames[-1] is own or looked_up


_EMPTY = re.compile(
    r"\bsize:? 0\b|(?:tensor(?: [ab])?|size|vec) \(0\)|\band 0x\d+\)|\b\d+x0\b"
    r"|(?:[Ss]hapes?|[Ss]izes?)[ '(:]{0,3}\[(?:-?[1-9]\d*, ?)*0(?:, ?-?\d+)*\]"
)
_PARALLEL_CODE = re.compile(
    r"torch/(?:distributed|nn/parallel)/|/deepspeed/|/accelerate/|/megatron/"
)
_WRAPPERS = re.compile(
    r"torch/(?:distributed/(?!elastic/|run\.py|launch)|nn/parallel/)|/deepspeed/(?!launcher/)|/megatron/"
)
"""Not the launchers, whose frames are around every script that they start in their own process."""
