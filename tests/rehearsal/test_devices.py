"""The simulated devices: device checks in torch's words, memory, random numbers, streams, threads, forks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .conftest import RehearsalEnvironment, Rehearse, run_rehearsal

SCRIPT = Path(__file__).parent / "device_scripts" / "devices.py"
MEBIBYTE = 2**20
SAME_DEVICE = "RuntimeError: Expected all tensors to be on the same device, but "
TWO_DEVICES = SAME_DEVICE + "found at least two devices, "


@pytest.fixture(scope="module")
def answers(
    rehearsal_environment: RehearsalEnvironment, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """What the devices answer to each question of the script."""
    done = run_rehearsal(
        rehearsal_environment,
        tmp_path_factory.mktemp("devices"),
        SCRIPT,
        memory_bytes=64 * MEBIBYTE,
    )
    assert done.returncode == 0, done.stderr
    entries = [json.loads(line) for line in done.lines if line.startswith('{"name"')]
    return {entry["name"]: entry["answer"] for entry in entries}


@pytest.mark.parametrize(
    ("question", "argument", "wrapper"),
    [
        ("mm", "mat2 is on cuda:1, different from other tensors on cuda:0", "wrapper_CUDA_mm"),
        ("addmm", "mat1 is on cuda:1, different from other tensors on cuda:0", "wrapper_CUDA_addmm"),
        ("embedding", "index is on cuda:1, different from other tensors on cuda:0", "wrapper_CUDA__index_select"),
        ("cross_entropy", "target is on cuda:1, different from other tensors on cuda:0", "wrapper_CUDA_nll_loss_forward"),
        ("conv device", "weight is on cuda:1, different from other tensors on cuda:0", "wrapper_CUDA__cudnn_convolution"),
        ("solve", "B is on cuda:1, different from other tensors on cuda:0", "wrapper_CUDA__linalg_solve_ex"),
        ("softmax backward", "output is on cuda:1, different from other tensors on cuda:0", "wrapper_CUDA__softmax_backward_data"),
        ("cat", "tensors is on cuda:1, different from other tensors on cuda:0", "wrapper_CUDA_cat"),
    ],
)  # fmt: skip
def test_the_device_check_names_argument_and_wrapper(
    answers: dict[str, Any], question: str, argument: str, wrapper: str
) -> None:
    # The wording of torch 2.13; the names are those of libtorch_cuda.
    assert answers[question] == (
        f"{SAME_DEVICE}got {argument} (when checking argument in method {wrapper})"
    )


def test_operators_of_the_tensor_iterator_check_in_its_words(answers: dict[str, Any]) -> None:
    assert answers["add"] == TWO_DEVICES + "cuda:0 and cuda:1!"
    assert answers["add cpu"] == TWO_DEVICES + "cuda:0 and cpu!"
    assert answers["add cpu scalar"] == "cuda:1"


def test_other_checks_have_their_own_words(answers: dict[str, Any]) -> None:
    assert answers["index"] == (
        "RuntimeError: indices should be either on cpu or on the same device as the indexed tensor (cuda:0)"
    )
    assert answers["index from cpu"] == "cuda:1"
    assert answers["conv type"] == (
        "RuntimeError: Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same"
    )
    assert answers["masked_fill"] == (
        "RuntimeError: expected self and mask to be on the same device, but got mask on cuda:1 and self on cuda:0"
    )
    assert answers["copy"] == 12.0
    assert answers["no kernel"].startswith(
        "NotImplementedError: Could not run 'aten::histogram.bin_ct' with arguments from the 'CUDA' backend."
    )
    assert "invalid device ordinal" in answers["ordinal"]
    assert answers["numpy"].startswith(
        "TypeError: can't convert cuda:0 device type tensor to numpy."
    )


def test_products_of_whole_numbers_are_refused(answers: dict[str, Any]) -> None:
    # The CPU computes them; cuBLAS cannot.
    assert answers["whole numbers"] == (
        "NotImplementedError: \"addmm_cuda\" not implemented for 'Long'"
    )


def test_memory_is_counted_in_blocks(answers: dict[str, Any]) -> None:
    assert answers["allocated"][0] >= 512
    assert answers["allocated"][0] % 512 == 0
    assert answers["peak"] == [4 * MEBIBYTE, 0, 4 * MEBIBYTE]


@pytest.mark.parametrize("question", ["out of memory", "out of memory in a result"])
def test_a_full_device_speaks_as_cuda(answers: dict[str, Any], question: str) -> None:
    text = answers[question]
    assert text.startswith("OutOfMemoryError: CUDA out of memory. Tried to allocate ")
    assert "GPU 0 has a total capacity of 64.00 MiB of which" in text
    assert "is allocated by PyTorch, and" in text
    assert answers["memory after"] is True


def test_host_memory_runs_out_as_a_limit(rehearse: Rehearse) -> None:
    script = "import torch\nkept = [torch.ones(2**28, device='cuda') for _ in range(16)]"
    done = rehearse(script, host_memory_bytes=2 * 1024 * MEBIBYTE)
    assert done.returncode == 1
    assert "ranksafe simulation limit: host memory: " in done.stderr
    assert "CUDA out of memory" not in done.stderr


def test_pinned_memory(answers: dict[str, Any]) -> None:
    assert answers["pinned"] == [True, False]
    assert "only dense CPU tensors can be pinned" in answers["pin a device tensor"]


def test_every_device_has_its_own_random_numbers(answers: dict[str, Any]) -> None:
    # The same seed gives the same numbers on every device, and drawing on one does not touch another.
    assert answers["reproducible"] == [True, True, True, False]
    assert answers["state"] == [[16], True]
    assert answers["dropout"] == [True, True, True]
    assert answers["fork_rng"] is True
    assert answers["own generator"] is True
    assert answers["generator of the cpu"] == (
        "RuntimeError: Expected a 'cuda' device type for generator but found 'cpu'"
    )


def test_streams_and_events(answers: dict[str, Any]) -> None:
    assert answers["events"] == [True, True, False, False]
    assert "recorded" in answers["not recorded"]


def test_tensors_are_saved_with_their_device(answers: dict[str, Any]) -> None:
    assert answers["saved"] == [
        "cuda:1",
        "cuda:0",
        "cpu",
        "cpu",
        "cuda:0",
        "cuda:0",
        "cuda:1",
        "cuda:1",
    ]


def test_threads_have_a_device_each(answers: dict[str, Any]) -> None:
    assert answers["threads"] == [["cuda:0", 6400.0], ["cuda:1", 6400.0]] * 2


def test_a_forked_process_may_not_use_the_devices(answers: dict[str, Any]) -> None:
    assert answers["forked allocation"].startswith(
        "RuntimeError: Cannot re-initialize CUDA in forked subprocess."
    )
    assert "CUDA error: initialization error" in answers["forked tensor"]


def test_nested_tensors(answers: dict[str, Any]) -> None:
    assert answers["nested"] == ["cuda:1", [2, 3, 2]]


def test_what_is_not_simulated_says_so(answers: dict[str, Any]) -> None:
    assert answers["cudnn"].startswith(
        "NotImplementedError: ranksafe simulation limit: operator aten::cudnn_convolution"
    )
