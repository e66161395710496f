"""diffusers: pipelines have no small stand-in, so what is not on disk is named as such."""

from __future__ import annotations

import functools
import inspect
import os
from typing import Any

from .. import importing, journal, limits

_LOADERS = {
    "diffusers.models.modeling_utils": ("ModelMixin", "from_pretrained"),
    "diffusers.pipelines.pipeline_utils": ("DiffusionPipeline", "from_pretrained"),
    "diffusers.configuration_utils": ("ConfigMixin", "load_config"),
}
_NOT_FOUND = {
    "OSError",
    "ConnectionError",
    "HTTPError",
    "LocalEntryNotFoundError",
    "EnvironmentError",
}


def install() -> None:
    """Wrap the classes as their modules are imported."""
    for module_name, (class_name, method) in _LOADERS.items():
        importing.after_import(module_name, functools.partial(_wrap, class_name, method))


def _wrap(class_name: str, method: str, module: Any) -> None:
    owner = getattr(module, class_name)
    original = inspect.getattr_static(owner, method).__func__

    @functools.wraps(original)
    def load(cls: Any, name: Any, *arguments: Any, **keywords: Any) -> Any:
        try:
            return original(cls, name, *arguments, **keywords)
        except Exception as problem:
            kinds = {kind.__name__ for kind in type(problem).__mro__}
            if os.path.isdir(str(name)) or not kinds & _NOT_FOUND:
                raise
            english = f"{name} is not on disk, and a model of diffusers has no small stand-in: download it once"
            chinese = f"{name} 不在磁盘上，而 diffusers 的模型没有小型替身：请先下载一次"
            journal.write("unavailable", what=str(name), message={"en": english, "zh_cn": chinese})
            return limits.refuse("unavailable", str(name), english, chinese)

    setattr(owner, method, classmethod(load))
