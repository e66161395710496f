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


@pytest.mark.long
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


TAKE = """
import json, torch
def take(mebibytes): return torch.empty(int(mebibytes * 2**20), dtype=torch.uint8, device="cuda")
told = []
def tell():
    sizes = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    told.append([size / 2**20 for size in sizes])
"""


def told_under(
    rehearse: Rehearse, settings: str, script: str, *, variable: str = "PYTORCH_CUDA_ALLOC_CONF"
) -> Any:
    """What a script of takes tells under a text of PYTORCH_CUDA_ALLOC_CONF."""
    text = TAKE + textwrap.dedent(script) + "print(json.dumps(told))"
    options = {**settings_of("h100"), "memory_bytes": 400 * MEBIBYTE, "driver_memory_bytes": 0}
    options["context_memory_bytes"] = 0
    return last_line(rehearse(text, environment={variable: settings}, **options))


GROWS = """
held = [take(3)]; tell()
held.append(take(18)); tell()
held.append(take(30)); tell()
held.clear(); held.append(take(59)); tell()
small = take(0.25); tell()
segments = torch.cuda.memory_snapshot()
told.append([[each["total_size"] // 2**20, each["is_expandable"]] for each in segments])
held.clear(); torch.cuda.empty_cache(); tell()
"""


@pytest.mark.parametrize("variable", ["PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"])
def test_expandable_segments_grow_by_pages(rehearse: Rehearse, variable: str) -> None:
    told = told_under(rehearse, "expandable_segments:True", GROWS, variable=variable)
    # Pages of 20 MiB and, of the small pool, of 2 MiB; what is free at the end is used before more is mapped.
    assert told == [
        [3, 20],
        [21, 40],
        [51, 60],
        [59, 60],
        [59.25, 62],
        [[60, True], [2, True]],
        [0.25, 2],
    ]


def test_without_expandable_segments_each_size_has_its_own(rehearse: Rehearse) -> None:
    told = told_under(rehearse, "expandable_segments:False", GROWS)
    # A rest of 1 MiB is not worth splitting.
    assert told[:4] == [[3, 20], [21, 38], [51, 68], [60, 128]]


def test_pages_without_a_block_are_unmapped_and_filled_again(rehearse: Rehearse) -> None:
    told = told_under(
        rehearse,
        "expandable_segments:True",
        """
        first, second, third = take(20), take(20), take(20)
        del second; torch.cuda.empty_cache(); tell()
        larger = take(25); tell()  # not in the gap: at the end
        again = take(20); tell()
        del larger; last = take(310); tell()  # 40 MiB at the end grow
        try: take(31)  # 10 MiB are left at the end, and one page
        except torch.OutOfMemoryError: told.append(torch.cuda.memory_stats()["num_ooms"])
        """,
    )
    assert told == [[40, 40], [65, 80], [80 + 5, 100], [60 + 310, 380], 1]


def test_settings_change_while_the_program_runs(rehearse: Rehearse) -> None:
    told = told_under(
        rehearse,
        "",
        """
        torch._C._accelerator_setAllocatorSettings("expandable_segments:True")
        first = take(25); tell()
        torch.cuda.memory._set_allocator_settings("expandable_segments:False")
        second = take(12); tell()  # not in what is free there
        told.append(torch._C._accelerator_getAllocatorSettings())
        """,
    )
    assert told == [[25, 40], [37, 52], "expandable_segments:False"]


def test_large_blocks_stay_whole_and_sizes_are_rounded(rehearse: Rehearse) -> None:
    told = told_under(
        rehearse,
        "max_split_size_mb:20, roundup_power2_divisions:[16:1,64:4,128:2,>:8]",
        """
        cached = take(30); del cached; tell()
        first = take(14.5); tell()  # 30 may not be split
        second = take(25); tell()  # takes all of it
        del second
        third = take(65); tell()  # 64 and a quarter
        fourth = take(130); tell()  # 128 and an eighth
        told.append(torch.cuda.memory_stats()["max_split_size"])
        """,
    )
    assert told == [[0, 30], [14.5, 46], [44.5, 46], [94.5, 126], [238.5, 270], 20 * MEBIBYTE]


def test_unused_segments_are_collected_above_the_threshold(rehearse: Rehearse) -> None:
    script = """
    torch.cuda.set_per_process_memory_fraction(0.5)
    first, second = take(60), take(50)
    del first, second
    third = take(70); tell()
    """
    assert told_under(rehearse, "garbage_collection_threshold:0.5", script) == [[70, 70]]
    assert told_under(rehearse, "garbage_collection_threshold:0.6", script) == [[70, 180]]


def test_what_is_not_modelled_is_named_and_what_is_wrong_fails(rehearse: Rehearse) -> None:
    done = rehearse(
        TAKE + "take(1)",
        environment={"PYTORCH_CUDA_ALLOC_CONF": "pinned_use_background_threads:True,tides:high"},
        **settings_of("h100"),
    )
    assert done.returncode == 0, done.stderr
    named = [each["message"]["en"] for each in done.events("modified")]
    assert [text for text in named if "ALLOC_CONF" in text] == [
        "tides:high of PYTORCH_CUDA_ALLOC_CONF is not modelled: memory is given out as without it"
    ]
    wrong = {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:4"}
    done = rehearse(TAKE + "take(1)", environment=wrong, **settings_of("h100"))
    assert "max_split_size_mb too small, must be >= 20" in done.stderr
