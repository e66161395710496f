"""Leads transformers' ``from_pretrained`` methods to the stand-ins, and every other argument past them untouched."""

from __future__ import annotations

import copy
import functools
import importlib.util
import inspect
from typing import Any, Callable

from .. import importing, journal, limits, lookups, provenance
from . import spread
from .repositories import Repositories

_OF_THE_HUB = (
    "revision",
    "subfolder",
    "variant",
    "code_revision",
    "force_download",
    "use_safetensors",
    "from_tf",
    "from_flax",
    "trust_remote_code",
    "cache_dir",
    "proxies",
    "local_files_only",
    "token",
    "use_auth_token",
    "resume_download",
)
"""Arguments that say where and how files are found; a stand-in is a plain folder."""
_CONFIGURATION = "transformers.configuration_utils"
_LOADERS: dict[str, tuple[tuple[str, ...], bool]] = {
    "transformers.modeling_utils": (("PreTrainedModel",), True),
    "transformers.models.auto.auto_factory": (("_BaseAutoModelClass",), True),
    _CONFIGURATION: (("PretrainedConfig", "PreTrainedConfig"), True),
    "transformers.models.auto.configuration_auto": (("AutoConfig",), True),
    "transformers.tokenization_utils_base": (("PreTrainedTokenizerBase",), False),
    "transformers.models.auto.tokenization_auto": (("AutoTokenizer",), False),
    "transformers.models.auto.processing_auto": (("AutoProcessor",), False),
    "transformers.models.auto.image_processing_auto": (("AutoImageProcessor",), False),
    "transformers.models.auto.feature_extraction_auto": (("AutoFeatureExtractor",), False),
    "transformers.models.auto.video_processing_auto": (("AutoVideoProcessor",), False),
    "transformers.processing_utils": (("ProcessorMixin",), False),
    "transformers.image_processing_base": (("ImageProcessingMixin",), False),
    "transformers.feature_extraction_utils": (("FeatureExtractionMixin",), False),
    "transformers.generation.configuration_utils": (("GenerationConfig",), True),
}
"""Module, its classes with ``from_pretrained``, and whether they need the model itself (transformers 4.35 to 5.23)."""


_ENCODED = frozenset(
    """input_ids token_type_ids attention_mask special_tokens_mask length labels overflowing_tokens
num_truncated_tokens overflow_to_sample_mapping offset_mapping""".split()
)
"""What tokenizers return, by their settings and arguments (transformers 5.23, ``PreTrainedTokenizerBase``); what some
classes have besides, the stand-in of the same class has, too."""


def install(repositories: Repositories) -> None:
    """Wrap the classes as their modules are imported."""
    lookups.recognise(_lacks)
    for module_name, (class_names, weights) in _LOADERS.items():
        importing.after_import(
            module_name, functools.partial(_wrap_classes, repositories, class_names, weights)
        )
    importing.after_import(
        "transformers.models.auto.modeling_auto", functools.partial(_wrap_auto_models, repositories)
    )
    importing.after_import(
        "transformers.pipelines", functools.partial(_wrap_pipeline, repositories)
    )


def _lacks(thing: Any, key: str) -> bool:
    """Whether it is what a tokenizer made of a text, and the real one would not have such a key, either."""
    kind = type(thing)
    is_encoding = kind.__name__ == "BatchEncoding" and kind.__module__.startswith("transformers.")
    return is_encoding and bool(thing.encodings) and key not in _ENCODED


def _wrap_classes(
    repositories: Repositories, names: tuple[str, ...], weights: bool, module: Any
) -> None:
    for name in names:
        owner = getattr(module, name, None)
        if owner is not None:
            _wrap(repositories, owner, "from_pretrained", weights)
            if weights and "get_config_dict" in vars(owner):
                _wrap(repositories, owner, "get_config_dict", weights)


def _wrap_auto_models(repositories: Repositories, module: Any) -> None:
    """Every ``AutoModelFor…`` has a copy of the method of its own."""
    for value in list(vars(module).values()):
        if isinstance(value, type) and "from_pretrained" in vars(value):
            _wrap(repositories, value, "from_pretrained", True)


def _wrap(repositories: Repositories, owner: type, attribute: str, weights: bool) -> None:
    found = inspect.getattr_static(owner, attribute)
    if not isinstance(found, classmethod) or getattr(found.__func__, "_ranksafe_wrapped", False):
        return
    original: Callable[..., Any] = found.__func__

    @functools.wraps(original)
    def load(cls: Any, *arguments: Any, **keywords: Any) -> Any:
        first = _first_parameter(arguments, keywords)
        if weights:
            _adapt_to_simulation(keywords)
        folder = repositories.folder_for(first, cls, keywords, weights)
        if folder is None:
            if keywords.get("device_map") in spread.BALANCED and repositories.is_stand_in(first):
                _spread(cls, str(first), keywords)
            result = original(cls, *arguments, **keywords)
            if not weights:
                repositories.loaded(first, result)
            return result
        for name in _OF_THE_HUB:
            keywords.pop(name, None)
        keywords.pop("pretrained_model_name_or_path", None)
        keywords.pop("pretrained_model_name", None)
        result = original(cls, folder, *arguments[1:], **keywords)
        _give_name_back(result, str(first), folder)
        if not weights:
            repositories.loaded(first, result)
        for part in result if isinstance(result, tuple) else (result,):
            provenance.made(part, "model" if weights else "tokenizer")
        return result

    load._ranksafe_wrapped = True  # type: ignore[attr-defined]
    setattr(owner, attribute, classmethod(load))


def _first_parameter(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    if arguments:
        return arguments[0]
    return keywords.get("pretrained_model_name_or_path", keywords.get("pretrained_model_name"))


def _give_name_back(result: Any, name: str, folder: str) -> None:
    """Scripts and model cards read the name from what they loaded, and load by it again."""
    for part in result if isinstance(result, tuple) else (result,):
        if isinstance(part, dict) and part.get("_name_or_path") == folder:
            part["_name_or_path"] = name
        for holder in (part, getattr(part, "config", None), getattr(part, "tokenizer", None)):
            for attribute in ("_name_or_path", "name_or_path"):
                if holder is not None and getattr(holder, attribute, None) == folder:
                    setattr(holder, attribute, name)
            started_with = getattr(holder, "init_kwargs", None)
            if isinstance(started_with, dict) and started_with.get("name_or_path") == folder:
                started_with["name_or_path"] = name


def _adapt_to_simulation(keywords: dict[str, Any]) -> None:
    """Kernels for real devices: attention has an equal in torch, quantized matrices have none."""
    for key in ("attn_implementation", "_attn_implementation"):
        wanted = keywords.get(key)
        if isinstance(wanted, str) and _needs_kernels(wanted):
            keywords[key] = "sdpa"
            journal.modified(
                f"attention {wanted} → sdpa", f"注意力实现 {wanted} → sdpa", object="attention"
            )
    if keywords.pop("use_flash_attention_2", False):
        journal.modified(
            "attention flash_attention_2 → sdpa",
            "注意力实现 flash_attention_2 → sdpa",
            object="attention",
        )
    if _wants_bitsandbytes(keywords) and importlib.util.find_spec("bitsandbytes") is None:
        limits.refuse(
            "missing-package",
            "bitsandbytes",
            "4-bit and 8-bit weights need bitsandbytes, which is not installed here",
            "4 位和 8 位权重需要 bitsandbytes，此处未安装",
        )


def _spread(model_class: Any, folder: str, keywords: dict[str, Any]) -> None:
    """Place a stand-in as its original would be placed. The concrete class is known only in the innermost call."""
    import torch
    import transformers

    devices = torch.cuda.device_count()
    configuration = keywords.get("config")
    concrete = getattr(model_class, "config_class", None) is not None
    if devices < 2 or not concrete or keywords.get("max_memory") is not None:
        return
    if spread.is_tensor_parallel_instead(transformers.__version__):
        return
    if not hasattr(configuration, "to_dict"):
        configuration = model_class.config_class.from_pretrained(folder)
    found = spread.device_map(model_class, copy.deepcopy(configuration), devices)
    if found is not None:
        keywords["device_map"] = found


def _needs_kernels(implementation: str) -> bool:
    if "/" in implementation:  # a kernel of the Hub
        return True
    return (
        implementation.startswith("flash_attention")
        and importlib.util.find_spec("flash_attn") is None
    )


def _wants_bitsandbytes(keywords: dict[str, Any]) -> bool:
    if keywords.get("load_in_4bit") or keywords.get("load_in_8bit"):
        return True
    configuration = keywords.get("quantization_config")
    method = getattr(configuration, "quant_method", None)
    return "bitsandbytes" in str(getattr(method, "value", method))


def _wrap_pipeline(repositories: Repositories, module: Any) -> None:
    original = module.pipeline

    @functools.wraps(original)
    def pipeline(*arguments: Any, **keywords: Any) -> Any:
        values = list(arguments)
        model = values[1] if len(values) > 1 else keywords.get("model")
        folder = repositories.folder_for(model, None, {}, True)
        if folder is not None:
            for name in ("revision", "trust_remote_code", "token"):
                keywords.pop(name, None)
            if len(values) > 1:
                values[1] = folder
            else:
                keywords["model"] = folder
        return original(*values, **keywords)

    module.pipeline = pipeline
