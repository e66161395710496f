"""sentence-transformers, which loads whole pipelines of modules, and peft, which loads adapters over a base model."""

from __future__ import annotations

import functools
import os
import time
from typing import Any

from .. import importing, journal, limits
from .on_disk import Repository
from .repositories import Repositories

_STARTED = time.time()


def install(repositories: Repositories) -> None:
    """Hook both libraries as they are imported."""
    importing.after_import(
        "sentence_transformers", functools.partial(_hook_sentences, repositories)
    )
    importing.after_import("peft.peft_model", functools.partial(_hook_peft, repositories))


def _hook_sentences(repositories: Repositories, module: Any) -> None:
    for name in ("SentenceTransformer", "CrossEncoder", "SparseEncoder"):
        owner = getattr(module, name, None)
        if owner is not None and "__init__" in vars(owner):
            _wrap_initializer(repositories, owner)


def _wrap_initializer(repositories: Repositories, owner: Any) -> None:
    original = owner.__init__

    @functools.wraps(original)
    def initialize(self: Any, *arguments: Any, **keywords: Any) -> None:
        first = next((key for key in ("model_name_or_path", "model_name") if key in keywords), None)
        name = arguments[0] if arguments else keywords.get(first or "")
        folder = repositories.folder_for(name, owner, {}, True)
        if folder is not None:
            for key in (
                "revision",
                "trust_remote_code",
                "token",
                "use_auth_token",
                "local_files_only",
            ):
                keywords.pop(key, None)
            if arguments:
                arguments = (folder, *arguments[1:])
            else:
                keywords[str(first)] = folder
        original(self, *arguments, **keywords)

    owner.__init__ = initialize


def _hook_peft(repositories: Repositories, module: Any) -> None:
    original = module.PeftModel.from_pretrained.__func__

    @functools.wraps(original)
    def from_pretrained(
        cls: Any,
        model: Any,
        model_id: Any,
        adapter_name: str = "default",
        is_trainable: bool = False,
        config: Any = None,
        **keywords: Any,
    ) -> Any:
        base = getattr(getattr(model, "config", None), "_name_or_path", None)
        if not repositories.replaced(base) or _was_made_by_this_run(str(model_id)):
            return original(cls, model, model_id, adapter_name, is_trainable, config, **keywords)
        chosen = config or _configuration(repositories, str(model_id))
        chosen.inference_mode = not is_trainable
        journal.modified(
            f"adapter {model_id} → a new one of the same kind, random weights",
            f"适配器 {model_id} → 同类的新适配器，随机权重",
            object="adapter",
            name=str(model_id),
        )
        import peft

        return peft.get_peft_model(model, chosen, adapter_name)

    module.PeftModel.from_pretrained = classmethod(from_pretrained)  # type: ignore[arg-type]


def _was_made_by_this_run(folder: str) -> bool:
    """An adapter that the script saved before fits the stand-in it was trained over."""
    path = os.path.join(folder, "adapter_config.json")
    return os.path.isfile(path) and os.path.getmtime(path) >= _STARTED


def _configuration(repositories: Repositories, name: str) -> Any:
    import peft

    path = Repository(name).find("adapter_config.json")
    if path is not None:
        return peft.PeftConfig.from_pretrained(os.path.dirname(path))
    if repositories.mode == "on":
        return peft.LoraConfig(target_modules="all-linear")
    english = f"the adapter {name} is not on disk: download it once, or accept a synthetic one with --shrink on"
    chinese = f"适配器 {name} 不在磁盘上：请先下载一次，或用 --shrink on 接受合成适配器"
    journal.write("unavailable", what=name, message={"en": english, "zh_cn": chinese})
    return limits.refuse("unavailable", name, english, chinese)
