"""Models whose weights are not on disk: in a forecast their configuration says all that memory depends on.

transformers builds them itself, with all weights missing, as it does when it is given a configuration and an empty
state (``PreTrainedModel.from_pretrained``, read and run with 5.23).
"""

from __future__ import annotations

import functools
import inspect
import logging
from typing import Any

from . import importing, journal
from .settings import Settings

_MODULE = "transformers.modeling_utils"
_OF_FILES = ("cache_dir", "revision", "subfolder", "token", "trust_remote_code", "local_files_only")


def install(settings: Settings) -> None:
    """Wrap the loading of models, in a forecast."""
    if settings.forecast:
        importing.after_import(_MODULE, _hook)


def _hook(module: Any) -> None:
    owner = module.PreTrainedModel
    found = inspect.getattr_static(owner, "from_pretrained")
    original = found.__func__

    @functools.wraps(original)
    def load(cls: Any, name: Any = None, *arguments: Any, **keywords: Any) -> Any:
        try:
            return original(cls, name, *arguments, **keywords)
        except OSError:
            if name is None or keywords.get("state_dict") is not None:
                raise
            configuration = _configuration(cls, name, keywords)
            if configuration is None:
                raise
        given = {**keywords, "config": configuration, "state_dict": {}}
        logger = logging.getLogger(_MODULE)
        level = logger.level
        logger.setLevel(logging.ERROR)  # it would list every weight as missing
        try:
            model = original(cls, None, *arguments, **given)
        finally:
            logger.setLevel(level)
        # Where it came from: trainers load the tokenizer by it.
        model.config.name_or_path = model.name_or_path = str(name)
        journal.modified(
            f"{name}: built from its configuration, its weights are not on disk",
            f"{name}：由其配置构建，权重不在磁盘上",
            object="model",
            name=str(name),
        )
        return model

    owner.from_pretrained = classmethod(load)


def _configuration(cls: Any, name: Any, keywords: dict[str, Any]) -> Any:
    """The configuration as it was given, or as it is on disk; None where it is not."""
    given = keywords.get("config")
    if given is not None and not isinstance(given, str):
        return given
    of_files = {key: keywords[key] for key in _OF_FILES if key in keywords}
    try:
        return cls.config_class.from_pretrained(given or name, **of_files)
    except Exception:  # the first error says what is missing
        return None
