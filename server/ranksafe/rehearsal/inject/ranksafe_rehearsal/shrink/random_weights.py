"""Weights that a script downloads without a configuration: torch.hub's files, torchvision's, timm's.

The model is built by the script at its own size; only the file is missing. Every rank gets the same random numbers,
as it would get the same file.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from .. import importing, journal, limits

_SEED = 20_252


class MissingWeights(dict):  # type: ignore[type-arg]
    """What a download returns: ``load_state_dict`` accepts it for every module."""


def install() -> None:
    """Hook torch.hub, ``Module.load_state_dict`` and timm as they are imported."""
    importing.after_import("torch.hub", _hook_hub)
    importing.after_import("torch.nn.modules.module", _hook_module)
    importing.after_import("timm.models._builder", _hook_timm)


def fill(module: Any) -> None:
    """Give every parameter of ``module`` the same numbers in every process, in the ranges that models start with."""
    import torch

    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.random.default_generator.manual_seed(_SEED)
        for parameter in module.parameters():
            if (
                parameter.device.type != "meta"
                and parameter.is_floating_point()
                and parameter.dim() > 1
            ):
                numbers = torch.empty(parameter.shape, device="cpu").normal_(std=0.02)
                parameter.copy_(numbers)


def _report(what: str) -> None:
    journal.modified(f"weights {what} → random", f"权重 {what} → 随机值", object="model", name=what)


def _hook_hub(module: Any) -> None:
    from_url, load = module.load_state_dict_from_url, module.load

    @functools.wraps(from_url)
    def load_state_dict_from_url(
        url: str, model_dir: Any = None, *arguments: Any, **keywords: Any
    ) -> Any:
        folder = model_dir or os.path.join(module.get_dir(), "checkpoints")
        name = keywords.get("file_name") or os.path.basename(url.split("?")[0])
        if os.path.isfile(os.path.join(folder, name)):
            return from_url(url, model_dir, *arguments, **keywords)
        _report(name)
        return MissingWeights()

    @functools.wraps(load)
    def hub_load(repo_or_dir: Any, *arguments: Any, **keywords: Any) -> Any:
        if keywords.get("source") == "local" or os.path.isdir(str(repo_or_dir)):
            return load(repo_or_dir, *arguments, **keywords)
        cached = str(repo_or_dir).replace("/", "_").replace(":", "_")
        folder = module.get_dir()
        if os.path.isdir(folder) and any(entry.startswith(cached) for entry in os.listdir(folder)):
            return load(repo_or_dir, *arguments, **keywords)
        return limits.refuse(
            "unavailable",
            str(repo_or_dir),
            f"torch.hub.load needs the code of {repo_or_dir}, which is not on disk",
            f"torch.hub.load 需要 {repo_or_dir} 的代码，但它不在磁盘上",
        )

    module.load_state_dict_from_url, module.load = load_state_dict_from_url, hub_load


def _hook_module(module: Any) -> None:
    original: Callable[..., Any] = module.Module.load_state_dict

    @functools.wraps(original)
    def load_state_dict(self: Any, state_dict: Any, *arguments: Any, **keywords: Any) -> Any:
        if isinstance(state_dict, MissingWeights):
            fill(self)
            return module._IncompatibleKeys([], [])
        return original(self, state_dict, *arguments, **keywords)

    module.Module.load_state_dict = load_state_dict


def _hook_timm(module: Any) -> None:
    original: Callable[..., Any] = module.load_pretrained

    @functools.wraps(original)
    def load_pretrained(model: Any, *arguments: Any, **keywords: Any) -> Any:
        try:
            return original(model, *arguments, **keywords)
        except Exception as problem:
            if not _is_unreachable(problem):
                raise
            _report(
                str(getattr(model, "default_cfg", {}).get("architecture") or type(model).__name__)
            )
            fill(model)
            return None

    module.load_pretrained = load_pretrained


def _is_unreachable(problem: BaseException) -> bool:
    kinds = {kind.__name__ for kind in type(problem).__mro__}
    return bool(
        kinds
        & {
            "OSError",
            "URLError",
            "HTTPError",
            "ConnectionError",
            "LocalEntryNotFoundError",
            "SimulationLimit",
        }
    )
