"""A DataLoader worker that died between sending a batch and its being read.

A batch is sent as a file descriptor that the rank fetches from the worker itself (``multiprocessing.resource_sharer``,
through ``rebuild_storage_fd`` in torch 2.13.0's ``torch/multiprocessing/reductions.py``). When the worker is gone by
then, the rank meets a lost connection before the DataLoader gets to say that a worker died; the words are those of a
lost peer, the frames are not.
"""

from __future__ import annotations

import re

from ranksafe.localization import Translated
from ranksafe.runs.explain.evidence import Raised
from ranksafe.runs.explain.signatures.signature import Signature

_FETCHING = "/multiprocessing/resource_sharer.py"
_LOADING = "/torch/utils/data/"


def lost_worker(raised: Raised) -> tuple[Signature, Translated] | None:
    """What to say of ``raised`` where it only tells of a worker's end."""
    paths = [frame.filename.replace("\\", "/") for frame in raised.frames]
    fetched = any(path.endswith(_FETCHING) for path in paths)
    loaded = any(_LOADING in path for path in paths)
    if not (fetched and loaded) or _SIGNATURE.pattern.search(raised.text) is None:
        return None
    return _SIGNATURE, _SIGNATURE.explanation


_SIGNATURE = Signature(
    kind="worker-died",
    pattern=re.compile(r"\A(?:Connection\w+|BrokenPipe|FileNotFound|EOF|OS)Error"),
    explanation=Translated(
        en="The DataLoader worker that had sent this batch is gone: killed, most often because the machine ran out of "
        "memory, or crashed in compiled code of the dataset. Use fewer workers and load lazily; with num_workers=0 an "
        "error of the dataset appears in the rank itself.",
        zh_cn="发送该批次的 DataLoader worker 已不存在：多半因机器内存不足而被终止，或在数据集的编译代码中崩溃。"
        "请减少 worker 数并惰性加载；用 num_workers=0 运行时，数据集的错误会出现在该 rank 自身。",
    ),
)
