"""The simulated devices' memory: the caching allocator's rules, and what a real device told of the same programs."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from .conftest import Rehearse
from .one_device import PROGRAMS, SETTINGS_OF_TORCH_2_11, last_line, measured, settings_of

PROGRAM = PROGRAMS / "memory.py"
ALLOCATOR = ("allocated", "reserved", "peak_allocated", "peak_reserved")
MEBIBYTE = 2**20
DEVICES = ("h100", "h200")
EXACT = ("blocks", "fragments", "first_product", "multilayer_perceptron")
SHARES = {
    # cuDNN's workspaces are not known.
    "convolutions": (0.976, 0.871),
    "language_model": (1.0, 1.0),
    # Layers are composed of ordinary operators, which take workspaces of cuBLAS that cuDNN does not.
    "long_short_term_memory": (2.588, 1.542),
    # The workspace of attention's backward pass is not known.
    "transformer": (0.984, 1.0),
    "transformer_in_bfloat16": (0.992, 1.0),
}
"""Of the others, the peaks as shares of the device's: allocated and reserved."""


def readings_of(device: str) -> dict[str, list[dict[str, int]]]:
    """What a device told after each step of a program."""
    return {
        program: real["answers"]["answer"] for program, real in measured(device, "memory").items()
    }


def on_h100(rehearse: Rehearse, script: str | Path, *arguments: str, **options: Any) -> Any:
    """The last line that a script prints on one simulated H100, read as JSON."""
    return last_line(rehearse(script, *arguments, **{**settings_of("h100"), **options}))


def taken(readings: Sequence[dict[str, int]], kinds: Sequence[str]) -> list[list[int]]:
    return [[reading[kind] for kind in kinds] for reading in readings]


@pytest.mark.parametrize("program", EXACT)
def test_blocks_and_segments_are_those_of_a_device(rehearse: Rehearse, program: str) -> None:
    told = [readings[program] for device in DEVICES if program in (readings := readings_of(device))]
    simulated = on_h100(rehearse, PROGRAM, program, environment=SETTINGS_OF_TORCH_2_11)["answer"]
    for real in told:
        assert taken(simulated, ALLOCATOR) == taken(real, ALLOCATOR)
        # What the first product loads of cuBLAS's code is beside the allocator, and not known.
        assert simulated[0]["used"] == real[0]["used"]
    assert told


@pytest.mark.parametrize("program", SHARES)
def test_models_take_nearly_what_they_take_on_a_device(rehearse: Rehearse, program: str) -> None:
    real = readings_of("h200")[program]
    simulated = on_h100(rehearse, PROGRAM, program, environment=SETTINGS_OF_TORCH_2_11)["answer"]
    shares = [simulated[-1][kind] / real[-1][kind] for kind in ("peak_allocated", "peak_reserved")]
    assert shares == pytest.approx(SHARES[program], abs=0.01)
    assert simulated[0]["allocated"] == real[0]["allocated"]
    if program != "long_short_term_memory":
        # After a step only parameters, states and two workspaces of cuBLAS and one of cuBLASLt are left.
        assert simulated[-1]["allocated"] == real[-1]["allocated"]


def test_workspaces_belong_to_thread_and_stream(rehearse: Rehearse) -> None:
    script = textwrap.dedent(
        """
        import json, os, threading, time, torch
        value = torch.ones(64, 64, device="cuda")
        held = torch.cuda.memory_allocated()
        told = []
        def product():
            value @ value
            told.append(torch.cuda.memory_allocated() - held)
        product(); product()
        with torch.cuda.stream(torch.cuda.Stream()):
            product()
        threads = len(os.listdir("/proc/self/task"))
        for _ in range(2):  # the second thread gets the handle of the first, once that is gone
            thread = threading.Thread(target=product); thread.start(); thread.join()
            while len(os.listdir("/proc/self/task")) > threads: time.sleep(0.01)
        torch._C._cuda_clearCublasWorkspaces()
        told.append(torch.cuda.memory_allocated() - held)
        print(json.dumps(told))
        """
    )
    chosen = on_h100(rehearse, script, environment={"CUBLAS_WORKSPACE_CONFIG": ":1024:2:16:8"})
    size = 2 * MEBIBYTE + 128 * 1024
    assert chosen == [size, size, 2 * size, 3 * size, 3 * size, 0]
    older = on_h100(rehearse, script, capability=(8, 6))
    size = 8 * MEBIBYTE + 128 * 1024
    assert older == [size, size, 2 * size, 3 * size, 3 * size, 0]


def test_statistics_are_torchs(rehearse: Rehearse) -> None:
    told = on_h100(
        rehearse,
        textwrap.dedent(
            """
            import json, torch
            def take(size): return torch.empty(size, dtype=torch.uint8, device="cuda")
            first, second, large = take(1000), take(2**19), take(3 * 2**20)
            with torch.cuda.stream(torch.cuda.Stream()):
                other = take(1)
            del second
            stats, segments = torch.cuda.memory_stats(), torch.cuda.memory_snapshot()
            torch.cuda.empty_cache()
            kept = torch.cuda.memory_reserved()
            del first, large, other
            torch.cuda.empty_cache()
            print(json.dumps([stats, segments, kept, torch.cuda.memory_reserved(), torch.cuda.memory_stats()]))
            """
        ),
    )
    stats, segments, kept, left, last = told
    expected = {
        "allocation.all.current": 3,
        "allocation.small_pool.freed": 1,
        "segment.small_pool.current": 2,
        "segment.large_pool.current": 1,
        "allocated_bytes.all.current": 1024 + 512 + 3 * MEBIBYTE,
        "allocated_bytes.small_pool.peak": 2**19 + 1024 + 512,
        "requested_bytes.all.current": 1000 + 1 + 3 * MEBIBYTE,
        "reserved_bytes.all.current": 24 * MEBIBYTE,
        # One free rest in each segment.
        "inactive_split.all.current": 3,
        "inactive_split_bytes.all.current": 24 * MEBIBYTE - (1024 + 512 + 3 * MEBIBYTE),
        "inactive_split_bytes.large_pool.current": 17 * MEBIBYTE,
        "num_device_alloc": 3,
        "num_alloc_retries": 0,
    }
    assert {name: stats[name] for name in expected} == expected
    assert [segment["total_size"] // MEBIBYTE for segment in segments] == [2, 20, 2]
    sizes = [
        [(block["size"], block["state"] == "inactive") for block in each["blocks"]]
        for each in segments
    ]
    assert sizes == [
        [(1024, False), (2 * MEBIBYTE - 1024, True)],
        [(3 * MEBIBYTE, False), (17 * MEBIBYTE, True)],
        [(512, False), (2 * MEBIBYTE - 512, True)],
    ]
    assert (kept, left) == (24 * MEBIBYTE, 0)
    assert (last["inactive_split.all.current"], last["num_device_free"]) == (0, 3)


def test_a_full_device_gives_its_cache_back_and_tells_true_numbers(rehearse: Rehearse) -> None:
    told = on_h100(
        rehearse,
        textwrap.dedent(
            """
            import json, torch
            def take(mebibytes): return torch.empty(mebibytes * 2**20, dtype=torch.uint8, device="cuda")
            kept, cached = take(3), take(50)
            del cached
            told = [torch.cuda.memory_reserved(), torch.cuda.mem_get_info()[0]]
            larger = take(70)
            told += [torch.cuda.memory_reserved(), torch.cuda.memory_stats()["num_alloc_retries"]]
            try:
                take(18)
            except torch.OutOfMemoryError as error:
                told.append(str(error))
            torch.cuda.set_per_process_memory_fraction(0.8)
            try:
                take(18)
            except torch.OutOfMemoryError as error:
                told.append(str(error))
            print(json.dumps([*told, torch.cuda.memory_stats()["num_ooms"]]))
            """
        ),
        memory_bytes=120 * MEBIBYTE,
        driver_memory_bytes=4 * MEBIBYTE,
        context_memory_bytes=16 * MEBIBYTE,
    )
    reserved, free, after, retries, full, part, refused = told
    assert (reserved, free) == (70 * MEBIBYTE, 30 * MEBIBYTE)
    assert (after, retries, refused) == (90 * MEBIBYTE, 1, 2)
    assert full.startswith(
        "CUDA out of memory. Tried to allocate 18.00 MiB. GPU 0 has a total capacity of 120.00 MiB of which 10.00 MiB is "
        "free. Including non-PyTorch memory, this process has 106.00 MiB memory in use. Of the allocated memory "
        "73.00 MiB is allocated by PyTorch, and 17.00 MiB is reserved by PyTorch but unallocated. If reserved but "
    )
    assert part.startswith("CUDA out of memory. Tried to allocate 18.00 MiB. GPU 0 has")
    assert "106.00 MiB memory in use. 96.00 MiB allowed; Of the allocated memory 73.00 MiB" in part
