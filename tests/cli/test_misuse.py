"""What is used wrongly, or cannot work, ends in one sentence and an exit status; nothing of the user's is lost."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ranksafe.cli.reading import read_source

from tests.cli.conftest import DEVICE_MAP, ROOT, Call

ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "PYTHONPATH": f"{ROOT / 'server'}:{ROOT / 'rules'}",
    "LANG": "C.UTF-8",
}
SHELL = f"{sys.executable} -m ranksafe"


def hears_interrupts() -> None:
    """In a child: whoever starts the tests in the background has interrupts ignored, and children inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line}"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**ENVIRONMENT, "HOME": str(folder / "home")},
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["check", "--gpus", "x"], "'x' is no whole number"),
        (["check", "--frob"], "unrecognized arguments: --frob"),
        (["check", "--fail-on", "never"], "invalid choice: 'never'"),
        (["check", "--python", "nowhere/python"], "nowhere/python: no such interpreter"),
        (["check", ""], "an empty word is no path"),
        (["fix", ""], "an empty word is no path"),
        (["run", "train.py", "--steps", "0"], "0 is less than 1"),
        (["run", "train.py", "--timeout", "nan"], "nan is no time above 0"),
        (["run", "train.py", "--timeout", "-5"], "-5 is no time above 0"),
        (["rehearse", "train.py", "--gpu-memory", "9" * 400], "is no size"),
        (["explain"], "the following arguments are required: RULE|FILE:LINE"),
        (["explain", "train.py"], "which line? Name it as in train.py:12"),
        (["explain", "train.py:x"], "which line? Name it as in train.py:12"),
        (["lsp", "--tcp", "localhost:65536"], "localhost:65536 is not HOST:PORT"),
        (["chekc"], "there is no command `chekc`; `ranksafe --help` lists them (`check`?)"),
        (["--lang", "zh-cn", "chekc"], "没有命令 `chekc`"),
        (["--lang", "zh-cn", "check", "--frob"], "（见 `ranksafe check --help`）"),
    ],
)
def test_one_sentence(call: Call, project: Path, words: list[str], said: str) -> None:
    (project / "train.py").write_text(DEVICE_MAP)
    answer = call(*words)
    assert answer.status == 2
    assert said in answer.error
    assert answer.error.startswith("ranksafe: ")
    assert answer.error.count("\n") == 1
    assert answer.out == ""


def test_a_named_pipe_in_the_project_is_not_waited_for(call: Call, project: Path) -> None:
    (project / "train.py").write_text(f"from notes import path\n{DEVICE_MAP}")
    os.mkfifo(project / "notes.py")
    answer = call("check", "train.py", "--launcher", "accelerate")
    assert answer.status == 1
    assert "RS201" in answer.out


@pytest.mark.parametrize("command", ["check --help", "--help", "check --frob 2>&1", "rules"])
def test_readers_that_go_away(tmp_path: Path, command: str) -> None:
    done = shell(f"{SHELL} {command} | true", tmp_path)
    assert done.stderr == ""


@pytest.mark.parametrize("command", ["rules", "check --help", "--version"])
def test_a_full_disk_below_the_output(tmp_path: Path, command: str) -> None:
    done = shell(f"{SHELL} {command} > /dev/full", tmp_path)
    assert (done.returncode, done.stderr) == (2, "ranksafe: No space left on device\n")


def test_closed_streams(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(DEVICE_MAP)
    done = shell(f"{SHELL} check train.py --launcher accelerate <&- >&-", tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert shell(f"{SHELL} rules 2>&-", tmp_path).returncode == 0


def test_a_working_directory_that_is_gone(tmp_path: Path) -> None:
    done = shell(f"mkdir gone; cd gone; rmdir ../gone; {SHELL} check", tmp_path)
    assert done.returncode == 2
    assert done.stderr == "ranksafe: the working directory is no longer there\n"


BROKEN = {
    "no table": "[tool]\nranksafe = 3\n",
    "several tables": "[[tool.ranksafe]]\ngpus = 1\n",
    "brackets without end": f"[tool.ranksafe]\nselect = {'[' * 3000}{']' * 3000}\n",
    "cut off": "[tool.ranksafe\nignore = ['RS201']\n",
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_configuration_stops_before_anything_is_written(
    call: Call, project: Path, text: str
) -> None:
    (project / "pyproject.toml").write_text(text)
    (project / "train.py").write_text(DEVICE_MAP)
    for command in ("check", "fix"):
        answer = call(command, "train.py", "--launcher", "accelerate")
        assert answer.status == 2
        assert "pyproject.toml" in answer.error
        assert "the configuration cannot be used" in answer.error
    assert call("fix", "-", given=DEVICE_MAP, PYTHONUTF8="1").out == ""
    assert (project / "train.py").read_text() == DEVICE_MAP


def test_a_named_file_that_cannot_be_repaired_is_no_success(call: Call, project: Path) -> None:
    (project / "binary.py").write_bytes(b"\0\1\2")
    answer = call("fix", "binary.py")
    assert answer.status == 2
    assert "binary.py: not checked: it is not a text file" in answer.error
    assert call("fix", ".").status == 0


def test_a_repaired_file_stays_the_one_it_was(call: Call, project: Path) -> None:
    real = project / "real.py"
    real.write_text(DEVICE_MAP)
    real.chmod(0o750)
    (project / "train.py").symlink_to("real.py")
    call("fix", "--unsafe", "train.py", "--launcher", "accelerate")
    assert "device_map" not in real.read_text()
    assert (project / "train.py").is_symlink()
    assert real.stat().st_mode & 0o777 == 0o750


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    """The limit on the size of files fails a write in the middle, as a full disk does."""
    path = tmp_path / "train.py"
    path.write_text(DEVICE_MAP)
    program = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from ranksafe.cli.reading import read_source\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "source = read_source(Path(sys.argv[1]))\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({len(DEVICE_MAP) + 100},) * 2)\n"
        "try: source.write('#' * 5000)\n"
        "except OSError as error: sys.exit(error.errno)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], env=ENVIRONMENT, check=False)
    assert done.returncode == errno.EFBIG
    assert path.read_text() == DEVICE_MAP
    read_source(path).write("short\n")
    assert path.read_text() == "short\n"


def test_ctrl_c_ends_all_processes_of_a_check_in_silence(tmp_path: Path) -> None:
    long = "\n".join(
        f"def part_{number}(model):\n    return model.to('cuda')\n" for number in range(400)
    )
    for number in range(200):
        (tmp_path / f"train_{number}.py").write_text(f"{DEVICE_MAP}\n{long}")
    process = subprocess.Popen(
        [sys.executable, "-m", "ranksafe", "check", "--no-cache"],
        cwd=tmp_path,
        env={**ENVIRONMENT, "HOME": str(tmp_path / "home")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=hears_interrupts,
    )
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while process.poll() is None and not children.read_text().strip():
        time.sleep(0.05)
    time.sleep(1)
    os.killpg(process.pid, signal.SIGINT)
    _, error = process.communicate(timeout=120)
    assert (process.returncode, error) == (130, "")


def test_what_could_not_be_read_is_not_counted_as_checked(call: Call, project: Path) -> None:
    (project / "binary.py").write_bytes(b"\0\1\2")
    (project / "clean.py").write_text("x = 1\n")
    answer = call("check", "binary.py", "clean.py")
    said = "Nothing found in 1 file. Not checked: 1 file named above.\n"
    assert (answer.status, answer.out) == (2, said)


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is needed (util-linux)")
def test_a_folder_that_may_not_be_read(tmp_path: Path) -> None:
    """Also for root, who may read everything until that capability is taken away."""
    (tmp_path / "locked").mkdir(mode=0)
    drop = "setpriv --bounding-set=-dac_override,-dac_read_search --inh-caps=-all"
    drop = drop if os.geteuid() == 0 else ""
    for command in ("check", "fix"):
        done = shell(f"{drop} {SHELL} {command} locked", tmp_path)
        assert (done.returncode, done.stderr) == (2, "ranksafe: locked: Permission denied\n")
    (tmp_path / "train.log").touch(mode=0)
    done = shell(f"{drop} {SHELL} diagnose train.log", tmp_path)
    said = "ranksafe: train.log cannot be read: Permission denied\n"
    assert (done.returncode, done.stderr) == (2, said)
    below = shell(f"{drop} {SHELL} check .", tmp_path)
    assert (below.returncode, below.stderr) == (
        0,
        "ranksafe: ./locked: Permission denied; left out\n",
    )


def test_ctrl_c_while_the_modules_are_loaded(tmp_path: Path) -> None:
    """The signal is raised by an import hook, just before the first module of the command line."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'ranksafe.cli.main': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
    )
    environment = {**ENVIRONMENT, "PYTHONPATH": f"{tmp_path}:{ENVIRONMENT['PYTHONPATH']}"}
    done = subprocess.run(
        [sys.executable, "-m", "ranksafe", "rules"],
        env=environment,
        capture_output=True,
        check=False,
        preexec_fn=hears_interrupts,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")
