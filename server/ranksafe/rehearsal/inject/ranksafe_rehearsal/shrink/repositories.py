"""Decides, for every name that a script loads, whether a stand-in takes its place, and says so in the journal."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from .. import journal, limits
from ..settings import Settings
from . import small_model, small_repository
from .families import family_for_task
from .on_disk import CONFIG, Repository

_LEAST_VOCABULARY = 1024
"""More than any of our tokenizers has."""
_ALREADY_TINY = 5_000_000
"""Parameters of a model that even ``--shrink on`` leaves alone, such as one that the script itself has just saved."""


class Repositories:
    """The stand-ins of one process; the folders are shared by all processes of the run."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.mode = "on" if settings.shrink == "work" else settings.shrink
        self._decided: dict[str, str | None] = {}
        self._facts: dict[str, Mapping[str, Any]] = {}
        self._vocabulary = _LEAST_VOCABULARY
        self._building = False

    @property
    def root(self) -> str:
        """The folder of them all."""
        return os.path.join(self._settings.run_directory, "stand-ins")

    def is_stand_in(self, name: object) -> bool:
        """Whether a path lies in one of our folders."""
        return isinstance(name, str) and os.path.abspath(name).startswith(self.root + os.sep)

    def replaced(self, name: object) -> bool:
        """Whether this process loaded a stand-in under ``name``."""
        return isinstance(name, str) and self._decided.get(name) is not None

    def folder_for(
        self, name: object, loader: type | None, keywords: Mapping[str, Any], weights: bool
    ) -> str | None:
        """Folder of the stand-in for ``name``, or None where the real one is to be loaded.

        ``loader``: the class that loads. ``weights``: whether it needs the model itself and not only a
        configuration or tokenizer. Raises SimulationLimit where nothing can stand in.
        """
        if self.mode == "off" or self._building or not isinstance(name, (str, os.PathLike)):
            return None
        text = os.fspath(name)
        if not text or self.is_stand_in(text) or os.path.isfile(text):
            return None
        repository = Repository(
            text,
            keywords.get("cache_dir"),
            keywords.get("revision"),
            str(keywords.get("subfolder") or ""),
        )
        key = repository.name
        if key not in self._decided:
            if self._is_left_alone(repository, weights):
                if weights:
                    self._decided[key] = None
                return None
            self._decided[key] = self._stand_in(repository, loader)
        folder = self._decided[key]
        if folder is not None and weights:
            _report_model(key, self._facts[key])
        return folder

    def loaded(self, name: object, result: object) -> None:
        """Called with what a tokenizer or processor class has loaded under ``name``, replaced or not."""
        if hasattr(result, "vocab_size") and hasattr(result, "__len__"):
            self._vocabulary = max(self._vocabulary, len(result))
        facts = self._facts.get(str(name))
        if facts is not None:
            _report_tokenizer(str(name), facts, result)

    def _is_left_alone(self, repository: Repository, weights: bool) -> bool:
        if repository.find(CONFIG) is None:
            # A local folder without a configuration holds an adapter, a tokenizer or nothing: the library says what.
            return repository.is_local or (not weights and repository.has_tokenizer())
        values = repository.config()
        if values is None or "model_type" not in values:
            return True
        if not small_model.is_known(values) and "auto_map" not in values:
            return True
        count = repository.parameters()
        if count is None:
            return False
        return count <= (_ALREADY_TINY if self.mode == "on" else small_model.LARGEST)

    def _stand_in(self, repository: Repository, loader: type | None) -> str | None:
        values = repository.config()
        if values is not None and not small_model.is_known(values):
            self._refuse_remote_code(repository.name)
        family = small_repository.family_for(repository, loader)
        if family is None:
            if self.mode != "on":
                self._refuse_unknown(repository.name)
            family = family_for_task(loader.__name__ if loader is not None else "")
        chosen = family
        self._building = True
        try:
            folder, facts = small_repository.folder(
                self.root,
                repository.name,
                lambda directory: small_repository.build(
                    directory, repository, chosen, self._vocabulary
                ),
            )
        except small_model.CannotShrink as problem:
            limits.refuse(
                "unavailable",
                repository.name,
                f"no small version of {repository.name} can be built: {problem}",
                f"无法为 {repository.name} 构建小型版本：{problem}",
            )
        finally:
            self._building = False
        self._facts[repository.name] = facts
        return folder

    def _refuse_remote_code(self, name: str) -> None:
        limits.refuse(
            "unavailable",
            name,
            f"{name} brings its own code, which a rehearsal does not execute, and its weights are not on disk",
            f"{name} 自带代码，演练不会执行这些代码；而它的权重又不在磁盘上",
        )

    def _refuse_unknown(self, name: str) -> None:
        english = (
            f"neither the network nor the cache has {CONFIG} of {name}, and its name is not known: download it once, "
            f"give a local folder, or accept a synthetic model with --shrink on"
        )
        chinese = (
            f"网络和缓存中都没有 {name} 的 {CONFIG}，且该名称未知：请先下载一次、改用本地文件夹，"
            f"或用 --shrink on 接受合成模型"
        )
        journal.write("unavailable", what=name, message={"en": english, "zh_cn": chinese})
        limits.refuse("unavailable", name, english, chinese)


def _report_model(name: str, facts: Mapping[str, Any]) -> None:
    layers, hidden = facts.get("layers"), facts.get("hidden")
    sizes = [f"{layers} layers" if layers else "", f"hidden {hidden}" if hidden else ""]
    sizes_chinese = [f"{layers} 层" if layers else "", f"隐藏宽度 {hidden}" if hidden else ""]
    guessed = facts.get("source") == "name"
    english = ", ".join([part for part in sizes if part] + ["random weights"])
    chinese = "，".join([part for part in sizes_chinese if part] + ["随机权重"])
    journal.modified(
        f"model {name} → {english}"
        + (f" ({facts['model_type']}, known by its name)" if guessed else ""),
        f"模型 {name} → {chinese}" + (f"（{facts['model_type']}，按名称识别）" if guessed else ""),
        object="model",
        name=name,
    )


def _report_tokenizer(name: str, facts: Mapping[str, Any], loaded: object) -> None:
    if getattr(loaded, "tokenizer", loaded).__class__.__name__.endswith(
        ("Extractor", "ImageProcessor")
    ):
        if facts.get("processor") == "default":
            journal.modified(
                f"processor of {name} → the default settings of its kind",
                f"{name} 的处理器 → 同类的默认设置",
                object="processor",
                name=name,
            )
    elif facts.get("tokenizer") == "made":
        journal.modified(
            f"tokenizer of {name} → a small one of the same kind",
            f"{name} 的分词器 → 同类的小型分词器",
            object="tokenizer",
            name=name,
        )
