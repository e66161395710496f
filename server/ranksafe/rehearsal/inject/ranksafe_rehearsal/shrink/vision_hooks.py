"""torchvision: small stand-ins for its downloadable datasets, and its Python half where its library does not load."""

from __future__ import annotations

import functools
import inspect
import os
from typing import Any

from .. import importing, journal, limits, provenance
from . import pictures

_DIGITS = ("MNIST", "FashionMNIST", "KMNIST")
_PICTURES = {"CIFAR10": 10, "CIFAR100": 100}
_SETS: dict[str, tuple[int, dict[str, int]]] = {
    "Flowers102": (102, {"train": 1020, "val": 1020, "test": 6149}),
    "OxfordIIITPet": (37, {"trainval": 3680, "test": 3669}),
    "Food101": (101, {"train": 75_750, "test": 25_250}),
    "StanfordCars": (196, {"train": 8144, "test": 8041}),
    "DTD": (47, {"train": 1880, "val": 1880, "test": 1880}),
    "GTSRB": (43, {"train": 26_640, "test": 12_630}),
    "FGVCAircraft": (100, {"train": 3334, "val": 3333, "trainval": 6667, "test": 3333}),
    "Imagenette": (10, {"train": 9469, "val": 3925}),
    "EuroSAT": (10, {"": 27_000}),
    "Caltech101": (101, {"": 8677}),
    "Caltech256": (257, {"": 30_607}),
    "ImageNet": (1000, {"train": 1_281_167, "val": 50_000}),
}
"""Classes, and the pictures of each split, as the data sets' own pages have them."""
_ARRAYS = {
    "SVHN": ((3, 32, 32), {"train": 73_257, "test": 26_032, "extra": 531_131}),
    "STL10": ((3, 96, 96), {"train": 5000, "test": 8000, "unlabeled": 100_000}),
}
"""Those that keep their pictures in one array, ten classes each."""
_FOLDER_CLASSES = 10
_FOLDER_LENGTH = 2000
_FOLDER_LABELS = 2
"""Of a folder that is not there nobody knows how many classes it has; two are valid in every classifier."""
_OPERATORS = {
    "nms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
}
"""The operators that ``import torchvision`` itself asks for (0.16 to 0.28)."""


def install() -> None:
    """Hook torchvision's modules as they are imported."""
    importing.after_import("torchvision.extension", _declare_operators)
    importing.after_import("torchvision.datasets.mnist", _hook_digits)
    importing.after_import("torchvision.datasets.cifar", _hook_pictures)
    importing.after_import("torchvision.datasets.folder", _hook_folder)
    importing.after_import("torchvision.datasets", _hook_sets)


_libraries: list[Any] = []
"""Declarations last as long as these objects."""


def _declare_operators(module: Any) -> None:
    """Without its compiled library torchvision cannot even be imported since 0.16; most scripts need only the rest."""
    if module._has_ops():
        return
    import torch

    library = torch.library.Library("torchvision", "DEF")
    _libraries.append(library)
    for name, schema in _OPERATORS.items():
        library.define(name + schema)
        library.impl(name, functools.partial(_refuse_operator, name), "CompositeExplicitAutograd")


def _refuse_operator(name: str, *_arguments: Any) -> Any:
    limits.refuse(
        "missing-kernel",
        f"torchvision::{name}",
        f"torchvision's compiled library does not load here, so torchvision::{name} cannot run",
        f"torchvision 的编译库在此无法加载，因此无法运行 torchvision::{name}",
    )


def _hook_digits(module: Any) -> None:
    for name in _DIGITS:
        _wrap(module, getattr(module, name, None), name, "_check_exists", _digits)


def _hook_pictures(module: Any) -> None:
    for name, classes in _PICTURES.items():
        _wrap(
            module,
            getattr(module, name, None),
            name,
            "_check_integrity",
            functools.partial(_pictures, classes),
        )


def _wrap(module: Any, owner: Any, name: str, check: str, fill: Any) -> None:
    if owner is None:
        return
    original = owner.__init__

    @functools.wraps(original)
    def initialize(
        self: Any,
        root: Any = None,
        train: bool = True,
        transform: Any = None,
        target_transform: Any = None,
        download: bool = False,
    ) -> None:
        module.VisionDataset.__init__(
            self, root, transform=transform, target_transform=target_transform
        )
        self.train = train
        if getattr(self, check)() or _is_another(self, owner, module):
            original(self, root, train, transform, target_transform, download)
            return
        count = (60_000 if train else 10_000) if fill is _digits else 50_000 if train else 10_000
        _say(self, name, count, "pictures")
        fill(self, count)

    owner.__init__ = initialize


def _is_another(dataset: Any, owner: Any, module: Any) -> bool:
    """Whether it is another data set of torchvision's (EMNIST) that only shares the code; a script's own may."""
    known = next(each for each in type(dataset).__mro__ if each.__module__ == module.__name__)
    return known is not owner


def _say(dataset: Any, name: str, count: int, kind: str = "dataset") -> None:
    """``kind`` "pictures": their number, sizes and classes are those of the real ones."""
    journal.modified(
        f"dataset {name} → {count} synthetic pictures",
        f"数据集 {name} → {count} 张合成图片",
        object=kind,
        name=name,
    )
    provenance.made(dataset, kind)


def _digits(dataset: Any, count: int) -> None:
    import torch

    seed = 1 if dataset.train else 2
    dataset.data = torch.from_numpy(pictures.windows(count, (28, 28), seed))
    with torch.device("cpu"):
        dataset.targets = torch.tensor(pictures.labels(count, 10, seed))


def _pictures(classes: int, dataset: Any, count: int) -> None:
    seed = 1 if dataset.train else 2
    dataset.data = pictures.windows(count, (32, 32, 3), seed)
    dataset.targets = pictures.labels(count, classes, seed)
    _name_classes(dataset, classes)


def _name_classes(dataset: Any, classes: int) -> None:
    dataset.classes = [f"class {number}" for number in range(classes)]
    dataset.class_to_idx = {name: number for number, name in enumerate(dataset.classes)}


def _hook_folder(module: Any) -> None:
    """A folder of pictures that does not exist."""
    owner = module.ImageFolder
    original = owner.__init__

    @functools.wraps(original)
    def initialize(
        self: Any,
        root: Any,
        transform: Any = None,
        target_transform: Any = None,
        *arguments: Any,
        **keywords: Any,
    ) -> None:
        path = os.path.expanduser(os.fspath(root))
        if os.path.lexists(path) or type(self) is not owner:
            original(self, root, transform, target_transform, *arguments, **keywords)
            return
        module.VisionDataset.__init__(
            self, root, transform=transform, target_transform=target_transform
        )
        _say(self, f"{path}, which is not there", _FOLDER_LENGTH)
        _list_folder(self, path, _FOLDER_LENGTH, _FOLDER_CLASSES, _FOLDER_LABELS)

    owner.__init__ = initialize


def _list_folder(dataset: Any, path: str, count: int, classes: int, used: int) -> None:
    _name_classes(dataset, classes)
    dataset.loader = pictures.load
    dataset.extensions = None
    dataset.samples = dataset.imgs = pictures.Samples(count, used, path)
    dataset.targets = pictures.Labels(count, used)


def _hook_sets(module: Any) -> None:
    for name, (classes, lengths) in _SETS.items():
        if hasattr(module, name):
            _replace_absent(
                getattr(module, name), name, lengths, functools.partial(_as_folder, classes)
            )
    for name, (shape, lengths) in _ARRAYS.items():
        if hasattr(module, name):
            _replace_absent(
                getattr(module, name), name, lengths, functools.partial(_as_arrays, shape)
            )


def _replace_absent(owner: Any, name: str, lengths: dict[str, int], fill: Any) -> None:
    original = owner.__init__
    signature = inspect.signature(original)

    @functools.wraps(original)
    def initialize(self: Any, *arguments: Any, **keywords: Any) -> None:
        given = signature.bind(self, *arguments, **keywords)
        given.apply_defaults()
        if "download" in given.arguments:
            given.arguments["download"] = False
        try:
            original(*given.args, **given.kwargs)
            return
        except Exception:
            split = str(given.arguments.get("split", ""))
            if split not in lengths:
                raise
        extra = {**given.arguments.get("kwargs", {}), **given.arguments}
        base = next(each for each in owner.__mro__ if each.__name__ == "VisionDataset")
        base.__init__(
            self,
            given.arguments["root"],
            transform=extra.get("transform"),
            target_transform=extra.get("target_transform"),
        )
        self.split = self._split = split
        _say(self, name, lengths[split], "pictures" if fill.func is _as_arrays else "dataset")
        fill(self, lengths[split], extra)

    owner.__init__ = initialize


def _as_folder(classes: int, dataset: Any, count: int, _given: dict[str, Any]) -> None:
    """A folder of pictures from now on, whatever it was: its own ways need its files."""
    from torchvision.datasets.folder import ImageFolder  # type: ignore[import-not-found]

    _list_folder(dataset, os.fspath(dataset.root), count, classes, classes)
    dataset._labels = dataset.targets
    dataset.__class__ = ImageFolder


def _as_arrays(shape: tuple[int, ...], dataset: Any, count: int, _given: dict[str, Any]) -> None:
    import numpy as np  # type: ignore[import-not-found]

    seed = 1 if dataset.split == "train" else 2
    dataset.data = pictures.windows(count, shape, seed)
    dataset.labels = np.array(pictures.labels(count, 10, seed))
