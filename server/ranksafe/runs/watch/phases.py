"""What a rank does before its first step, for whoever waits: told from the stack of its main thread."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from ranksafe.localization import Translated
from ranksafe.runs.model import Frame

_IMPORT = "<frozen importlib._bootstrap>"
_INSTALLED = ("site-packages", "dist-packages")
_IMPORTING = Translated(en="importing {package}", zh_cn="正在导入 {package}")
_BY_FUNCTION = {
    "from_pretrained": Translated(
        en="loading a model, tokenizer or configuration", zh_cn="正在加载模型、分词器或配置"
    ),
    "from_config": Translated(en="building the model", zh_cn="正在构建模型"),
    "load_dataset": Translated(en="loading the data", zh_cn="正在加载数据"),
    "map": Translated(en="preparing the data", zh_cn="正在处理数据"),
    "init_process_group": Translated(
        en="meeting the other ranks", zh_cn="正在与其他 rank 建立连接"
    ),
    "_inner_training_loop": Translated(en="training", zh_cn="正在训练"),
}
"""Functions of transformers, datasets and torch.distributed that a rank may be in for seconds."""
_PACKAGES = frozenset({"transformers", "datasets", "torch", "trl", "diffusers", "peft"})


def phase_of(frames: Sequence[Frame]) -> Translated | None:
    """``frames``: outermost first. None where nothing is known that is worth a line."""
    is_importing = False
    for frame in frames:
        is_importing = is_importing or frame.filename == _IMPORT
        package = _package_of(frame.filename)
        if package is None:
            continue
        if is_importing:
            return _IMPORTING.filled(package=package)
        if package in _PACKAGES and frame.function in _BY_FUNCTION:
            return _BY_FUNCTION[frame.function]
    return None


def _package_of(filename: str) -> str | None:
    """The installed package that a file belongs to."""
    parts = PurePath(filename).parts
    for folder in _INSTALLED:
        if folder in parts[:-1]:
            return parts[parts.index(folder) + 1].removesuffix(".py")
    return None
