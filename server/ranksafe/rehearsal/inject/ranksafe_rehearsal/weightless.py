"""Models whose weights are not on disk: in a forecast their configuration says all that memory depends on.

transformers builds them itself, with all weights missing, as it does when it is given a configuration and an empty
state (``PreTrainedModel.from_pretrained``, read and run with 5.23). diffusers has ``from_config`` for it; what its
``from_pretrained`` does after that (type, parts that stay in float32, evaluation) is done here (read with 0.42).
"""

from __future__ import annotations

import copy
import functools
import inspect
import logging
import sys
from typing import Any

from . import importing, journal
from .settings import Settings

_MODULE = "transformers.modeling_utils"
_DIFFUSERS = "diffusers.models.modeling_utils"
_OTHERWISE_BUILT = ("quantization_config", "device_map", "parallel_config")
_OF_FILES = ("cache_dir", "revision", "subfolder", "token", "trust_remote_code", "local_files_only")


def install(settings: Settings) -> None:
    """Wrap the loading of models, in a forecast."""
    if settings.forecast:
        importing.after_import(_MODULE, _hook)
        importing.after_import(_DIFFUSERS, _hook_diffusers)


def _hook(module: Any) -> None:
    owner = module.PreTrainedModel
    found = inspect.getattr_static(owner, "from_pretrained")
    original = found.__func__

    @functools.wraps(original)
    def load(cls: Any, name: Any = None, *arguments: Any, **keywords: Any) -> Any:
        try:
            return original(cls, name, *arguments, **keywords)
        except (OSError, AttributeError):  # 4.57 asks a file that is not there for its ending
            if name is None or keywords.get("state_dict") is not None:
                raise
            configuration = _configuration(cls, name, keywords)
            if configuration is None:
                raise
        state = _to_quantize(cls, configuration) if keywords.get("quantization_config") else {}
        given = {**keywords, "config": configuration, "state_dict": state}
        logger = logging.getLogger(_MODULE)
        level = logger.level
        logger.setLevel(logging.ERROR)  # it would list every weight as missing
        # Under FSDP, ranks other than the first leave what is missing on the meta device; what is on disk all of them
        # read (5.23, ``_move_missing_keys_from_meta_to_device``).
        asked = getattr(module, "is_fsdp_enabled", None)
        module.is_fsdp_enabled = lambda: False
        try:
            model = original(cls, None, *arguments, **given)
        finally:
            logger.setLevel(level)
            module.is_fsdp_enabled = asked
        # Where it came from: trainers load the tokenizer by it.
        model.config.name_or_path = model.name_or_path = str(name)
        _told(name)
        return model

    owner.from_pretrained = classmethod(load)


def _to_quantize(cls: Any, configuration: Any) -> dict[str, Any]:
    """Weights as a checkpoint has them: what is missing would be made as it is in full precision, not quantized."""
    torch: Any = sys.modules["torch"]
    with torch.device("meta"):
        model = cls(copy.deepcopy(configuration))
    kind = getattr(configuration, "dtype", None) or torch.float32
    return {
        name: torch.ones(parameter.shape, dtype=kind)
        for name, parameter in model.named_parameters()
    }


def _hook_diffusers(module: Any) -> None:
    owner = module.ModelMixin
    original = inspect.getattr_static(owner, "from_pretrained").__func__

    @functools.wraps(original)
    def load(cls: Any, name: Any, *arguments: Any, **keywords: Any) -> Any:
        try:
            return original(cls, name, *arguments, **keywords)
        except OSError:
            if any(keywords.get(key) is not None for key in _OTHERWISE_BUILT):
                raise
            of_files = {key: keywords[key] for key in _OF_FILES if key in keywords}
            try:
                configuration = cls.load_config(name, **of_files)
            except Exception:  # the first error says what is missing
                configuration = None
            if configuration is None:
                raise
        model = cls.from_config(configuration)
        kept = cls._keep_in_fp32_modules or ()
        for key, parameter in model.named_parameters():
            if keywords.get("torch_dtype") is not None and not set(key.split(".")) & set(kept):
                parameter.data = parameter.data.to(keywords["torch_dtype"])
        _told("/".join(filter(None, (str(name), keywords.get("subfolder")))))
        return model.eval()

    owner.from_pretrained = classmethod(load)


def _told(name: Any) -> None:
    journal.modified(
        f"{name}: built from its configuration, its weights are not on disk",
        f"{name}：由其配置构建，权重不在磁盘上",
        object="model",
        name=str(name),
    )


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
