"""Calls that download or unpack files under a name that all ranks share, without a lock."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from ranksafe.launch.context import LaunchContext
from ranksafe.semantics.module import Module

from ranksafe_rules._shared.every_rank import callers, runs_on_every_rank
from ranksafe_rules._shared.rank_turns import ranks_take_turns
from ranksafe_rules._shared.rank_words import names_behind
from ranksafe_rules._shared.same_path import is_same_on_all_ranks
from ranksafe_rules.checkpoints.fetching_commands import COMMAND_CALLS, fetching_tool

_MAXIMUM_DEPTH: Final = 4
_DATASETS: Final = {
    "CIFAR10": 4, "CIFAR100": 4, "CLEVRClassification": 4, "Caltech101": 4, "Caltech256": 3, "CelebA": 5,
    "Country211": 4, "DTD": 5, "EMNIST": None, "EuroSAT": 3, "FGVCAircraft": 5, "FashionMNIST": 4, "Flowers102": 4,
    "Food101": 4, "GTSRB": 4, "INaturalist": 5, "Imagenette": 3, "KMNIST": 4, "Kinetics": 8, "Kitti": 5,
    "LFWPairs": 5, "LFWPeople": 5, "MNIST": 4, "Middlebury2014Stereo": 5, "MovingMNIST": 3, "Omniglot": 4,
    "OxfordIIITPet": 6, "PCAM": 4, "PhotoTour": 4, "Places365": 3, "QMNIST": None, "RenderedSST2": 4,
    "SBDataset": 3, "SBU": 3, "SEMEION": 3, "STL10": 5, "SUN397": 3, "SVHN": 4, "USPS": 4, "VOCDetection": 3,
    "VOCSegmentation": 3, "WIDERFace": 4,
}  # fmt: skip
"""Classes of torchvision.datasets with ``download``, and where it stands (read in torchvision 0.29.2)."""
_PREFIX: Final = "torchvision.datasets."
_DATASET_CALLS: Final = tuple(_PREFIX + name for name in _DATASETS)
_UTILITIES: Final = _PREFIX + "utils."
_FILES: Final = {
    "urllib.request.urlretrieve": ("filename", 1),
    _UTILITIES + "download_url": ("root", 1),
    _UTILITIES + "download_and_extract_archive": ("download_root", 1),
}
"""Functions that write what they download straight into its place (Python 3.11, torchvision 0.29.2); those that write
beside it and move it there, such as torch.hub.download_url_to_file, are no danger."""
_ARCHIVES: Final = {
    "shutil.unpack_archive": (("extract_dir", 1), ("filename", 0)),
    _UTILITIES + "extract_archive": (("to_path", 1), ("from_path", 0)),
}
"""Functions that unpack, with the parameters that say where to: the first that is given."""
_OPENERS: Final = frozenset({"zipfile.ZipFile", "tarfile.open", "tarfile.TarFile"})
_HUB: Final = "torch.hub.load"
_HUB_QUESTIONS: Final = ("torch.hub.list", "torch.hub.help")
"""Functions that have to fetch a repository to answer (torch 2.13.0, `hub.py`)."""
_HUB_FOLDER: Final = "torch.hub.set_dir"
MENTIONS: Final = frozenset(
    {"download", "urlretrieve", "unpack_archive", "extractall", "extract_archive", "hub.load"}
    | {"wget", "curl", "unzip", "tar -", "tar x", '"tar"', "'tar'", "git clone", '"git"', "'git'"}
)


class Kind(Enum):
    """What a call fetches."""

    DATASET = "dataset"
    HUB = "hub"
    FILE = "file"
    ARCHIVE = "archive"
    COMMAND = "command"


@dataclass(frozen=True, slots=True)
class Fetch:
    """One call that downloads or unpacks files."""

    call: ast.Call
    kind: Kind
    what: str
    """The name of the data set, the program or the path."""
    places: tuple[ast.expr, ...]
    """What says where the files go."""


def fetches_on_every_rank(module: Module, launch: LaunchContext) -> Iterator[Fetch]:
    """The calls that fetch the same files on all ranks, in source order: of the calls for one data set, only the
    first, and none where another call in the file sees to it that the files are there, or a question about the
    repository has fetched it before."""
    found = sorted(_fetches(module), key=lambda fetch: module.order_of(fetch.call))
    seen: set[tuple[Kind, str]] = set()
    for fetch in found:
        key = fetch.kind, fetch.what
        if key in seen:
            continue
        seen.add(key)
        of_all = [item for item in found if (item.kind, item.what) == key]
        if all(_is_on_every_rank(module, item, launch) for item in of_all):
            if not _is_asked_about_before(module, fetch):
                yield fetch


def _is_asked_about_before(module: Module, fetch: Fetch) -> bool:
    if fetch.kind is not Kind.HUB:
        return False
    for call in module.calls(*_HUB_QUESTIONS):
        repository = module.argument_node(call, "github", 0)
        if repository is not None and module.order_of(call) < module.order_of(fetch.call):
            if module.values(repository).only_constant() == fetch.what:
                return True
    return False


def _is_on_every_rank(module: Module, fetch: Fetch, launch: LaunchContext) -> bool:
    return (
        runs_on_every_rank(module, fetch.call, launch)
        and not _is_asked_for(module, fetch.call)
        and not ranks_take_turns(module, fetch.call)
    )


def _is_asked_for(module: Module, node: ast.AST, depth: int = _MAXIMUM_DEPTH) -> bool:
    """``if args.download:``: a step that is run by itself, perhaps with one process."""
    if any(
        "download" in word or "prepare" in word
        for guard in module.guards(node)
        for word in names_behind(module, guard.test)
    ):
        return True
    function = module.enclosing_function(node)
    if function is None or depth == 0:
        return False
    found = list(callers(module, function, certain=True))
    return bool(found) and all(_is_asked_for(module, call, depth - 1) for call in found)


def _fetches(module: Module) -> Iterator[Fetch]:
    for fetch in (
        *_datasets(module),
        *_from_hub(module),
        *_files(module),
        *_archives(module),
        *_commands(module),
    ):
        if all(is_same_on_all_ranks(module, place) for place in fetch.places):
            yield fetch


def _datasets(module: Module) -> Iterator[Fetch]:
    for call in module.calls(*_DATASET_CALLS):
        name = module.qualified_name(call.func) or ""
        position = _DATASETS.get(name.removeprefix(_PREFIX))
        download = module.argument(call, "download", position)
        root = module.argument_node(call, "root", 0)
        if root is not None and download is not None and download.only_constant() is True:
            yield Fetch(call, Kind.DATASET, name.rpartition(".")[2], (root,))


def _from_hub(module: Module) -> Iterator[Fetch]:
    folders = [
        folder
        for call in module.calls(_HUB_FOLDER)
        if (folder := module.argument_node(call, "d", 0)) is not None
    ]
    for call in module.calls(_HUB):
        repository = module.argument_node(call, "repo_or_dir", 0)
        if repository is None or module.argument(call, "source", None) is not None:
            continue
        named = module.values(repository).only_constant()
        if isinstance(named, str):
            yield Fetch(call, Kind.HUB, named, (repository, *folders))


def _files(module: Module) -> Iterator[Fetch]:
    for name, (parameter, position) in _FILES.items():
        for call in module.calls(name):
            place = module.argument_node(call, parameter, position)
            if place is not None:
                yield Fetch(call, Kind.FILE, module.text_of(place), (place,))


def _archives(module: Module) -> Iterator[Fetch]:
    for name, parameters in _ARCHIVES.items():
        for call in module.calls(name):
            given = [module.argument_node(call, *parameter) for parameter in parameters]
            place = next((item for item in given if item is not None), None)
            if place is not None:
                yield Fetch(call, Kind.ARCHIVE, module.text_of(place), (place,))
    for call in module.calls_written("extractall"):
        opened = _opened(module, call)
        archive = None if opened is None else next(iter(opened.args), None)
        place = module.argument_node(call, "path", 0) or archive
        if archive is not None and place is not None:
            yield Fetch(call, Kind.ARCHIVE, module.text_of(place), (place, archive))


def _opened(module: Module, call: ast.Call) -> ast.Call | None:
    """The call that opens the archive on which ``call`` is a method."""
    if not isinstance(call.func, ast.Attribute):
        return None
    opened: ast.AST | None = call.func.value
    if isinstance(opened, ast.Name):
        _, bindings = module.bindings(opened)
        if len(bindings) != 1 or not isinstance(bindings[0], ast.Name):
            return None
        holder = module.parent(bindings[0])
        if isinstance(holder, ast.withitem):
            opened = holder.context_expr
        else:
            opened = module.assigned_value(bindings[0])
    if isinstance(opened, ast.Call) and module.qualified_name(opened.func) in _OPENERS:
        return opened
    return None


def _commands(module: Module) -> Iterator[Fetch]:
    for call in module.calls(*COMMAND_CALLS):
        written = call.args[0] if call.args else None
        command = None if written is None else module.values(written).only_expression()
        tool = None if command is None else fetching_tool(command)
        if command is not None and tool is not None:
            yield Fetch(call, Kind.COMMAND, tool, (command,))
