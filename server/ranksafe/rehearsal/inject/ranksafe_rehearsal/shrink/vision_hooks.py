"""torchvision: small stand-ins for its downloadable datasets, and its Python half where its library does not load."""

from __future__ import annotations

import functools
from typing import Any

from .. import importing, journal, limits, provenance
from .datasets_hooks import ROWS

_DIGITS = ("MNIST", "FashionMNIST", "KMNIST")
_PICTURES = {"CIFAR10": 10, "CIFAR100": 100}
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
        if getattr(self, check)() or type(self).__name__ != name:
            original(self, root, train, transform, target_transform, download)
            return
        journal.modified(
            f"dataset {name} → {ROWS} synthetic pictures",
            f"数据集 {name} → {ROWS} 张合成图片",
            object="dataset",
            name=name,
        )
        fill(self)
        provenance.made(self, "dataset")

    owner.__init__ = initialize


def _digits(dataset: Any) -> None:
    import torch

    generator = torch.Generator(device="cpu").manual_seed(1 if dataset.train else 2)
    with torch.device("cpu"):
        dataset.data = torch.randint(0, 256, (ROWS, 28, 28), generator=generator, dtype=torch.uint8)
        dataset.targets = torch.randint(0, 10, (ROWS,), generator=generator)


def _pictures(classes: int, dataset: Any) -> None:
    import numpy as np  # type: ignore[import-not-found]

    source = np.random.default_rng(1 if dataset.train else 2)
    dataset.data = source.integers(0, 256, (ROWS, 32, 32, 3), dtype=np.uint8)
    dataset.targets = [int(value) for value in source.integers(0, classes, ROWS)]
    dataset.classes = [f"class {number}" for number in range(classes)]
    dataset.class_to_idx = {name: number for number, name in enumerate(dataset.classes)}
