"""Which Python of a host a run takes: a conda environment by name, or a command such as ``uv run python``.

The tools themselves are stand-ins: small scripts that start a real Python the way the tool does.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ranksafe.cli.main import main
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.model import Outcome

from .far_host import TARGET, Far, processes_with, until
from .ssh_server import HOST, SshServer, ssh_server

_SHOW = (
    "import os, sys\nprint('prefix', sys.prefix)\nprint('path', os.environ['PATH'].split(':')[0])\n"
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the user there."""
    return tmp_path_factory.mktemp("home there")


@pytest.fixture(scope="module")
def ssh_host(tmp_path_factory: pytest.TempPathFactory, home: Path) -> Iterator[SshServer]:
    folder = tmp_path_factory.mktemp("sshd")
    with ssh_server(folder, environment={"HOME": str(home)}) as running:
        yield running


def _environment(prefix: Path) -> Path:
    """As conda lays it out."""
    (prefix / "conda-meta").mkdir(parents=True)
    subprocess.run(
        ["/usr/bin/env", "python3", "-m", "venv", "--without-pip", str(prefix)], check=True
    )
    return prefix


@pytest.fixture(scope="module")
def conda(home: Path) -> Path:
    """A root with environments, and one elsewhere that conda has noted."""
    root = _environment(home / "miniforge3")
    _environment(root / "envs" / "a $(touch x) 数据")
    _environment(root / "envs" / "twice")
    (root / "envs" / "no environment").mkdir()
    elsewhere = _environment(home / "my envs" / "train")
    twice = _environment(home / "my envs" / "twice")
    (home / ".conda").mkdir()
    noted = f"{elsewhere}\n{twice}\n{home}/gone\n{root}\n"
    (home / ".conda" / "environments.txt").write_text(noted)
    return root


def _settle(far: Far, line: str) -> None:
    own = [f"[{HOST}]", f'folder = "{far.base}"', "despite-slurm = true", line]
    far.settings.write_text("\n".join(own) + "\n", encoding="utf-8")


def _tool(far: Far, name: str, *lines: str) -> Path:
    """A program on the host's PATH."""
    path = far.server.programs / name
    path.write_text("\n".join(["#!/bin/sh", *lines]) + "\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("chosen", "prefix"),
    [
        ("train", "my envs/train"),
        pytest.param("~/my envs/twice", "my envs/twice", marks=pytest.mark.long),
        pytest.param("base", "miniforge3", marks=pytest.mark.long),
        ("a $(touch x) 数据", "miniforge3/envs/a $(touch x) 数据"),
    ],
)
def test_a_conda_environment_is_named(
    far: Far, conda: Path, home: Path, chosen: str, prefix: str
) -> None:
    _settle(far, f"conda = '{chosen}'")
    far.run(far.write("train.py", _SHOW))
    assert far.said("output") == [f"prefix {home / prefix}", f"path {home / prefix / 'bin'}"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("conda = 'trian'", "trian on gpu-box does not run: no conda environment"),
        ("conda = '/no/such'", "/no/such on gpu-box does not run: no conda environment"),
        ("interpreter = '/no/python'", "/no/python on gpu-box does not run: no such program"),
        ("command = ['no-such-tool', 'python']", "no-such-tool on gpu-box does not run"),
    ],
)
def test_what_is_not_there_is_said_with_what_is(
    far: Far, conda: Path, home: Path, line: str, reason: str
) -> None:
    _settle(far, line)
    with pytest.raises(RunNotPossible) as raised:
        far.run(far.write("train.py", "pass\n"))
    text = raised.value.message.en
    assert reason in text
    assert f"{home / 'my envs' / 'train'}, " in text
    assert "no environment," not in text
    assert str(home / "my envs" / "train") in raised.value.message.zh_cn


def test_a_name_that_several_environments_have(far: Far, conda: Path, home: Path) -> None:
    _settle(far, "conda = 'twice'")
    with pytest.raises(RunNotPossible, match="several environments") as raised:
        far.run(far.write("train.py", "pass\n"))
    both = f"{home / 'my envs' / 'twice'}, {conda / 'envs' / 'twice'}."
    assert f"Conda environments there: {both}" in raised.value.message.en


def test_uv_run_finds_the_project_it_belongs_to(far: Far) -> None:
    _tool(
        far,
        "uv",
        '[ "$1 $2" = "run python" ] && [ -f pyproject.toml ] || exit 9',
        "shift 2",
        "[ -d .venv ] || python3 -m venv --without-pip .venv",
        'exec .venv/bin/python "$@"',
    )
    far.write("pyproject.toml", "[project]\nname = 'x'\nversion = '1'\n")
    far.write(".gitignore", ".venv\n")
    _settle(far, 'command = ["uv", "run", "python"]')
    nasty = ("a b", "$(touch x)", "'\"", "new\nline", "-x")
    result = far.run(
        far.write("train.py", "import sys\nprint(sys.prefix, sys.argv[1:])\n1 / 0\n"),
        arguments=nasty,
    )
    folder = next((far.base / "projects").glob("*/my project"))
    assert f"{folder / '.venv'} {list(nasty)!r}" in far.said("output")
    assert (result.failures[0].line, result.failures[0].filename) == (
        3,
        str(far.project / "train.py"),
    )
    assert any("asking `uv run python` on gpu-box" in each for each in far.said("status"))


@pytest.mark.torch
@pytest.mark.long
def test_two_ranks_in_what_a_command_starts(far: Far, torch_python: Path, home: Path) -> None:
    (home / "image.sif").write_text("an image")
    _tool(
        far,
        "apptainer",
        f'[ "$1 $2 $3" = "exec {home}/image.sif python" ] || exit 9',
        "shift 3",
        f'exec {torch_python} "$@"',
    )
    _settle(far, 'command = ["apptainer", "exec", "~/image.sif", "python"]')
    script = far.write(
        "train.py",
        "import torch.distributed as dist\ndist.init_process_group('gloo')\n"
        "dist.barrier()\nif dist.get_rank() == 1:\n    raise KeyError('labels')\ndist.barrier()\n",
    )
    result = far.run(script, launcher="torchrun", gpus=2)
    assert result.outcome is Outcome.FAILED
    assert (result.failures[0].rank, result.failures[0].line) == (1, 5), result
    assert result.command[:4] == (
        str(far.server.programs / "apptainer"),
        "exec",
        f"{home}/image.sif",
        "python",
    )


@pytest.mark.long
def test_a_container_that_does_not_see_the_folder(far: Far) -> None:
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
        pytest.skip("needs the right to make mount namespaces: sudo")
    far.base.mkdir()
    _tool(
        far, "narrow", f'exec unshare --mount sh -c \'umount -l "{far.base}"; exec "$@"\' sh "$@"'
    )
    _settle(far, 'command = ["narrow", "python3"]')
    subprocess.run(["mount", "-t", "tmpfs", "none", str(far.base)], check=True)
    try:
        with pytest.raises(RunNotPossible) as raised:
            far.run(far.write("train.py", "pass\n"))
    finally:
        subprocess.run(["umount", "-l", str(far.base)], check=True)
    assert f"does not see {far.base}" in raised.value.message.en
    assert "`" in raised.value.message.zh_cn


@pytest.mark.long
def test_a_wrapper_that_stays_goes_with_its_run(far: Far) -> None:
    mark = f"ranksafe-test-wrapper-{os.getpid()}-{time.monotonic_ns()}"
    nasty = 'a $(touch x) `y` "b"'
    _tool(
        far,
        "micromamba",
        f"[ \"$1 $2 $3\" = 'run -n {nasty}' ] || exit 9",
        "shift 3",
        "trap '' TERM",
        '"$@" &',
        "wait",
        "wait",
    )
    _settle(far, f"command = ['micromamba', 'run', '-n', '{nasty}', 'python3']")
    script = far.write("train.py", "import time\nprint('started', flush=True)\ntime.sleep(300)\n")
    run = far.start(script, arguments=(mark,))
    until(lambda: "started" in far.said("output"))
    assert len(processes_with(mark)) >= 2
    run.cancel()
    result = run.wait(60)
    assert result is not None
    assert result.outcome is Outcome.CANCELLED
    assert processes_with(mark) == []


def test_a_command_that_fails_says_why(far: Far) -> None:
    _tool(far, "broken", "echo 'FATAL: could not open image' >&2", "exit 255")
    _settle(far, 'command = ["broken", "python"]')
    with pytest.raises(RunNotPossible, match="FATAL: could not open image"):
        far.run(far.write("train.py", "pass\n"))


@pytest.mark.long
def test_the_choice_for_once_replaces_the_command(far: Far) -> None:
    _settle(far, 'command = ["no-such-tool", "python"]')
    result = far.run(far.write("train.py", "print('yes')\n"), interpreter=Path("/usr/bin/python3"))
    assert result.outcome is Outcome.SUCCEEDED
    assert far.said("output") == ["yes"]


def test_doctor_looks_through_the_command(
    far: Far, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = _tool(far, "wrapper", 'exec "$@"')
    _settle(far, 'command = ["wrapper", "python3"]')
    monkeypatch.chdir(far.project)
    assert main(["doctor", "--target", TARGET]) == 2  # no torch there
    told = capsys.readouterr().out
    assert f": {tool} python3" in told
    assert "has not been sent there yet" in told


@pytest.mark.parametrize(
    "lines",
    [
        'command = "uv run python"',
        "command = []",
        'command = ["python"]',
        'command = ["-m", "x"]',
        'command = ["uv", 3]',
        'conda = "-n"',
        'conda = ""',
        'conda = "a"\ninterpreter = "b"',
        'conda = "a"\ncommand = ["b", "c"]',
    ],
)
def test_choices_that_cannot_be_understood(far: Far, lines: str) -> None:
    _settle(far, lines)
    with pytest.raises(RunNotPossible, match=r"hosts\.toml cannot be understood"):
        far.run(far.write("train.py", "pass\n"))
