"""The texts of RS502."""

from __future__ import annotations

from ranksafe.localization import Translated

NOT_A_TENSOR = Translated(
    "transformers {version} gives `num_items_in_batch` as a Python int, which has no `.item()`: "
    "AttributeError on any number of GPUs",
    "transformers {version} 传入的 `num_items_in_batch` 是 Python int，没有 `.item()`：无论使用几个 GPU "
    "都会抛出 AttributeError",
)
SEVERAL_ELEMENTS = Translated(
    "transformers {version} gives `num_items_in_batch` one entry per GPU when one process sees several: "
    "RuntimeError: a Tensor with {gpus} elements cannot be converted to Scalar",
    "单个进程可见多个 GPU 时，transformers {version} 传入的 `num_items_in_batch` 每个 GPU 对应一个元素："
    "RuntimeError: a Tensor with {gpus} elements cannot be converted to Scalar",
)
SMALL_LOSS = Translated(
    "`.item()` stops the crash under nn.DataParallel, but every replica then divides by the count of the "
    "whole batch: with transformers {version} loss and gradients are 1/{gpus} of the right value",
    "`.item()` 避免了 nn.DataParallel 下的崩溃，但每个副本都除以整个批次的计数：在 transformers "
    "{version} 下，损失和梯度只有正确值的 1/{gpus}",
)
UNKNOWN = Translated(
    "`.item()` on `num_items_in_batch` depends on the transformers version: AttributeError where it is an int "
    "(4.46.0-4.46.1, 4.47.1-4.49), a loss of 1/{gpus} of the right value under nn.DataParallel (4.46.2-4.47.0, "
    "4.50-4.56.2), RuntimeError with {gpus} GPUs in one process (from 4.57 on)",
    "对 `num_items_in_batch` 调用 `.item()` 的后果取决于 transformers 版本：计数为 int 的版本（4.46.0-4.46.1、"
    "4.47.1-4.49）抛出 AttributeError；4.46.2-4.47.0 与 4.50-4.56.2 在 nn.DataParallel 下损失只有正确值的 1/{gpus}；"
    "4.57 起，单个进程使用 {gpus} 个 GPU 时抛出 RuntimeError",
)
