"""The device models, and which of a node's devices a process sees."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from ranksafe.rehearsal import device_models
from ranksafe.rehearsal.errors import RehearsalNotPossible
from ranksafe.rehearsal.inject.ranksafe_rehearsal import packages, visible_devices
from ranksafe.rehearsal.settings import (
    DEFAULT_DEVICE_MODEL,
    SETTINGS_VARIABLE,
    NativeFiles,
    ProcessSettings,
)

INJECTED = Path(device_models.__file__).parent / "inject"
UUIDS = [uuid.UUID(int=number << 96) for number in (1, 2, 0x2F)]


def test_default_model_exists() -> None:
    model = device_models.device_model(DEFAULT_DEVICE_MODEL)
    assert model.capability == (8, 0)
    assert model.memory_bytes == model.memory_mebibytes * 2**20


@pytest.mark.parametrize("key", ["a100-40g", "h100", "h200", "l4", "t4", "v100-32g", "rtx4090"])
def test_documented_models_exist(key: str) -> None:
    model = device_models.device_model(key.upper())
    assert model.key == key
    assert model.name.startswith(("NVIDIA ", "Tesla "))


def test_unknown_model_is_refused_with_the_known_ones() -> None:
    with pytest.raises(RehearsalNotPossible) as caught:
        device_models.device_model("h900")
    for message in (caught.value.message.en, caught.value.message.zh_cn):
        assert "h900" in message
        assert "rtx3090" in message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, [0, 1, 2]),
        ("", []),
        ("-1", []),
        ("1", [1]),
        ("2,0", [2, 0]),
        (" 1 , 0 ", [1, 0]),
        ("0,7,1", [0]),
        ("0,0", []),
        ("none", []),
        ("1,x", [1]),
        (f"GPU-{UUIDS[1]}", [1]),
        ("GPU-00000001,GPU-0000002f", [0, 2]),
        ("GPU-00000002,GPU-ffff", [1]),
        ("GPU-0000000", []),
    ],
)
def test_visible_devices(text: str | None, expected: list[int]) -> None:
    assert visible_devices.chosen(text, UUIDS) == expected


def test_devices_of_nodes_differ_and_stay_the_same() -> None:
    assert visible_devices.device_uuid(0, 1) == visible_devices.device_uuid(0, 1)
    assert len({visible_devices.device_uuid(node, 0) for node in range(4)}) == 4


@pytest.mark.parametrize(
    ("module", "text", "expected"),
    [
        ("flash_attn", "No module named 'flash_attn'", "flash_attn"),
        ("flash_attn_2_cuda", "libcudart.so.12: cannot open shared object file", "flash_attn"),
        (None, "FlashAttention2 has been toggled on, but it cannot be used", "flash_attn"),
        (None, "requires bitsandbytes: `pip install -U bitsandbytes`", "bitsandbytes"),
        ("yaml", "No module named 'yaml'", None),
        ("my_kernels", "No module named 'my_kernels'", None),
    ],
)
def test_package_with_kernels_is_found_in_an_import_error(
    module: str | None, text: str, expected: str | None
) -> None:
    assert packages.named_in(module, text) == expected


def nvidia_smi(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the stand-in for three devices, without torch."""
    settings = ProcessSettings(
        run_directory=str(folder),
        script="",
        agent_directory="",
        devices=3,
        nodes=1,
        device_name="NVIDIA L4",
        capability=(8, 9),
        multi_processor_count=58,
        memory_bytes=22563 * 2**20,
        driver_memory_bytes=0,
        context_memory_bytes=0,
        host_memory_bytes=None,
        shrink="off",
        short_epochs=False,
        forecast=False,
        unbounded=False,
        stands_for=1,
        every_block=False,
        offline=False,
        reads_network=False,
        native=NativeFiles((), "", ""),
    )
    return subprocess.run(
        [sys.executable, str(INJECTED / "bin" / "nvidia-smi"), *arguments],
        env={**os.environ, SETTINGS_VARIABLE: str(settings.write(folder))},
        capture_output=True,
        text=True,
        check=False,
    )


def test_nvidia_smi_answers_queries(tmp_path: Path) -> None:
    fields = "--query-gpu=index,name,memory.total,compute_cap"
    asked = nvidia_smi(tmp_path, fields, "--format=csv")
    assert asked.stdout.splitlines() == [
        "index, name, memory.total [MiB], compute_cap",
        *(f"{index}, NVIDIA L4, 22563 MiB, 8.9" for index in range(3)),
    ]
    bare = nvidia_smi(tmp_path, fields, "--format=csv,noheader,nounits", "-i", "1")
    assert bare.stdout == "1, NVIDIA L4, 22563, 8.9\n"


def test_nvidia_smi_lists_devices_and_prints_a_table(tmp_path: Path) -> None:
    listed = nvidia_smi(tmp_path, "-L").stdout.splitlines()
    expected = visible_devices.device_uuid(0, 2)
    assert listed[2] == f"GPU 2: NVIDIA L4 (UUID: GPU-{expected})"
    table = nvidia_smi(tmp_path).stdout
    assert "Driver Version: " in table
    assert "CUDA Version: " in table


def test_nvidia_smi_refuses_what_it_does_not_know(tmp_path: Path) -> None:
    unknown = nvidia_smi(tmp_path, "--query-gpu=name,shoe_size", "--format=csv")
    assert unknown.returncode == 2
    assert unknown.stdout == 'Field "shoe_size" is not a valid field to query.\n'


def test_pynvml_needs_no_torch(tmp_path: Path) -> None:
    nvidia_smi(tmp_path)
    program = (
        "import json, sys, pynvml\n"
        "pynvml.nvmlInit()\n"
        "handle = pynvml.nvmlDeviceGetHandleByIndex(2)\n"
        "answers = [pynvml.nvmlDeviceGetCount(), pynvml.nvmlDeviceGetName(handle),\n"
        "           pynvml.nvmlDeviceGetMemoryInfo(handle).total]\n"
        "try: pynvml.nvmlDeviceGetFanSpeed(handle)\n"
        "except pynvml.NVMLError as error: answers.append(str(error))\n"
        "try: pynvml.nvmlDeviceGetHandleByIndex(3)\n"
        "except pynvml.NVMLError_InvalidArgument: answers.append('no such device')\n"
        "print(json.dumps([*answers, 'torch' in sys.modules]))\n"
    )
    finished = subprocess.run(
        [sys.executable, "-c", program],
        env={
            **os.environ,
            SETTINGS_VARIABLE: str(tmp_path / "rehearsal.json"),
            "PYTHONPATH": str(INJECTED),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(finished.stdout) == [
        3,
        "NVIDIA L4",
        22563 * 2**20,
        "Not Supported",
        "no such device",
        False,
    ]


def test_a_shadowed_sitecustomize_still_runs(tmp_path: Path) -> None:
    nvidia_smi(tmp_path)
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("print('the user\\'s own')\n")
    finished = subprocess.run(
        [sys.executable, "-c", "import sys; print('ranksafe_rehearsal.activation' in sys.modules)"],
        env={
            **os.environ,
            SETTINGS_VARIABLE: str(tmp_path / "rehearsal.json"),
            "PYTHONPATH": os.pathsep.join([str(INJECTED), str(own)]),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert finished.stdout.splitlines() == ["the user's own", "True"]
