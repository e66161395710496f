"""Uploads to the Hugging Face hub do nothing and return what an upload returns.

Read from huggingface_hub 0.36.0 and 2.4.0 (``hf_api.py``, ``_login.py``) and datasets 5.2.0 (``arrow_dataset.py``,
``dataset_dict.py``, ``iterable_dataset.py``).
"""

from __future__ import annotations

import functools
import inspect
import sys
from concurrent.futures import Future
from importlib import import_module
from types import ModuleType
from typing import Any, Callable

from .. import importing, journal, provenance, settings

_COMMITS = (
    "create_commit",
    "upload_file",
    "upload_folder",
    "delete_file",
    "delete_files",
    "delete_folder",
)
_SILENT = (
    "upload_large_folder",
    "preupload_lfs_files",
    "delete_repo",
    "update_repo_settings",
    "update_repo_visibility",
    "move_repo",
    "create_branch",
    "delete_branch",
    "create_tag",
    "delete_tag",
    "super_squash_history",
    "add_space_secret",
    "add_space_variable",
    "restart_space",
    "auth_check",
)
_OFFLINE = ("OfflineModeIsEnabled", "LocalEntryNotFoundError")
_NO_HUB = {
    "en": "there is no network in a rehearsal: a file of the Hugging Face hub is not on disk",
    "zh_cn": "预演中没有网络：Hugging Face hub 的一个文件不在磁盘上",
}
_USER = "rehearsal"
_NO_COMMIT = "0" * 40


def install() -> None:
    """Replace the hub's writing functions once their modules are imported."""
    importing.after_import("huggingface_hub.hf_api", _replace_uploads)
    importing.after_import("huggingface_hub._login", _replace_logins)
    importing.after_import("huggingface_hub.errors", _note_offline)
    for module, names in (
        ("datasets.arrow_dataset", ("Dataset",)),
        ("datasets.dataset_dict", ("DatasetDict", "IterableDatasetDict")),
        ("datasets.iterable_dataset", ("IterableDataset",)),
    ):
        importing.after_import(module, functools.partial(_replace_dataset_pushes, names))


def _note_offline(module: ModuleType) -> None:
    """Offline it asks nobody, so its refusals are heard of where they are made (``errors.py``, 0.36.0 and 2.4.0)."""
    for name in _OFFLINE:
        kind: Any = getattr(module, name, None)
        if kind is not None:
            _tell_of(kind)


def _tell_of(kind: Any) -> None:
    before = kind.__init__

    @functools.wraps(before)
    def initialize(self: Any, *arguments: Any, **keywords: Any) -> None:
        chosen = settings.current()
        if chosen is not None and chosen.offline:
            provenance.met("network", "huggingface.co", _NO_HUB)
        before(self, *arguments, **keywords)

    kind.__init__ = initialize


def _replace_uploads(module: ModuleType) -> None:
    answers: dict[str, Callable[[dict[str, Any]], Any]] = {
        "create_repo": functools.partial(_repository, module),
        "whoami": _who,
        **dict.fromkeys(_COMMITS, functools.partial(_commit, module)),
        **dict.fromkeys(_SILENT, lambda _: None),
    }
    api = getattr(module, "api", None)
    for name, answer in answers.items():
        original = getattr(module.HfApi, name, None)
        if original is None:
            continue
        setattr(module.HfApi, name, _stand_in(name, original, answer))
        if api is not None:
            _replace_everywhere(name, getattr(module, name, None), getattr(api, name))


def _stand_in(name: str, original: Any, answer: Callable[[dict[str, Any]], Any]) -> Any:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def instead(*arguments: Any, **keywords: Any) -> Any:
        try:
            given = signature.bind(*arguments, **keywords).arguments
        except TypeError:  # the user's error, in the library's own words
            return original(*arguments, **keywords)
        given = {**given.pop("kwargs", {}), **given}
        if name != "whoami":
            _note(name, given.get("repo_id"))
        result = answer(given)
        return _done(result) if given.get("run_as_future") else result

    return instead


def _note(name: str, where: Any) -> None:
    target = f" ({where})" if where else ""
    journal.modified(
        f"nothing was sent to the Hugging Face hub: `{name}`{target} did nothing",
        f"没有向 Hugging Face hub 发送任何内容：`{name}`{target} 未执行",
        object="hub",
        name=name,
    )


def _repository(module: Any, given: dict[str, Any]) -> Any:
    return module.RepoUrl(_url(given))


def _url(given: dict[str, Any]) -> str:
    name = str(given.get("repo_id") or "model")
    kind = {"dataset": "datasets/", "space": "spaces/"}.get(str(given.get("repo_type")), "")
    return f"https://huggingface.co/{kind}{name if '/' in name else f'{_USER}/{name}'}"


def _commit(module: Any, given: dict[str, Any]) -> Any:
    return module.CommitInfo(
        commit_url=f"{_url(given)}/commit/{_NO_COMMIT}",
        commit_message=str(given.get("commit_message") or ""),
        commit_description=str(given.get("commit_description") or ""),
        oid=_NO_COMMIT,
    )


def _who(_: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "user",
        "id": _USER,
        "name": _USER,
        "fullname": _USER,
        "isPro": False,
        "orgs": [],
        "auth": {},
    }


def _done(result: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(result)
    return future


def _replace_everywhere(name: str, original: Any, replacement: Any) -> None:
    """Modules that were imported before us hold the original under its name."""
    if original is None:
        return
    for module in list(sys.modules.values()):
        if getattr(module, "__dict__", {}).get(name) == original:
            setattr(module, name, replacement)


def _replace_logins(module: ModuleType) -> None:
    for name in ("login", "logout", "notebook_login", "interpreter_login"):
        original = getattr(module, name, None)
        if original is not None:
            instead = _no_login(name, original)
            setattr(module, name, instead)
            _replace_everywhere(name, original, instead)


def _no_login(name: str, original: Any) -> Any:
    @functools.wraps(original)
    def instead(*_arguments: Any, **_keywords: Any) -> None:
        _note(name, None)

    return instead


def _replace_dataset_pushes(names: tuple[str, ...], module: ModuleType) -> None:
    for class_name in names:
        kind = getattr(module, class_name, None)
        original = getattr(kind, "push_to_hub", None)
        if kind is not None and original is not None:
            kind.push_to_hub = _stand_in(f"{class_name}.push_to_hub", original, _pushed)


def _pushed(given: dict[str, Any]) -> Any:
    return _commit(import_module("huggingface_hub.hf_api"), {**given, "repo_type": "dataset"})
