"""Inside the processes: uploads, trackers and connections do nothing outside, in the libraries' own words and types."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from ranksafe.rehearsal.isolation import plan_isolation
from ranksafe.rehearsal.isolation.environment import NOTHING_SENT
from ranksafe.rehearsal.settings import Isolation

from .conftest import STANDS_OUTSIDE, needs_isolation, settings_without_devices

TRACKERS = (
    "wandb==0.31.0",
    "neptune==1.14.0.post2",
    "clearml==2.1.12",
    "comet_ml==3.58.8",
    "swanlab==0.10.3",
    "trackio==0.43.0",
    "mlflow-skinny==3.17.2",
)
Run = Callable[..., "Ended"]


class Ended:
    """How a program ended, and what the rehearsal wrote of it."""

    def __init__(self, process: subprocess.CompletedProcess[str], directory: Path) -> None:
        assert process.returncode == 0, process.stderr
        self.lines = process.stdout.splitlines()
        self.journal = [
            json.loads(line)
            for file in sorted(directory.glob("rehearsal-[0-9]*.jsonl"))
            for line in file.read_text(encoding="utf-8").splitlines()
        ]

    def said(self, event: str) -> list[str]:
        """The events' sentences, each of which is there in both languages."""
        found = [each["message"] for each in self.journal if each["event"] == event]
        assert all(message["zh_cn"] for message in found)
        return [message["en"] for message in found]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def run(
        code: str,
        interpreter: Path = Path(sys.executable),
        wrap: Callable[[list[str]], Any] = list,
        offline: bool = True,
        environment: Mapping[str, str] | None = None,
        before: str = "",
    ) -> Ended:
        directory = tmp_path / "run"
        directory.mkdir(exist_ok=True)
        settings = settings_without_devices(directory, offline=offline)
        script = tmp_path / "script.py"
        script.write_text(before + STANDS_OUTSIDE + code)
        process = subprocess.run(
            wrap([str(interpreter), str(script)]),
            env={**os.environ, "RANKSAFE_REHEARSAL": str(settings), **(environment or {})},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
        return Ended(process, directory)

    return run


def test_connections_outside_are_refused_as_limits(run: Run) -> None:
    ended = run(
        """
import asyncio, errno, socket, urllib.request
from ranksafe_rehearsal.limits import SimulationLimit

def ask(what, *arguments, **keywords):
    try:
        what(*arguments, **keywords)
        print("reached")
    except OSError as error:
        error = getattr(error, "reason", error)
        print(type(error).__name__, error.errno, isinstance(error, SimulationLimit), str(error).split("] ")[1][:28])

ask(urllib.request.urlopen, "http://192.0.2.1/", timeout=5)
ask(urllib.request.urlopen, "https://huggingface.co/", timeout=5)
ask(socket.create_connection, ("2001:db8::1", 80), timeout=5)
ask(socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto, b"x", ("198.51.100.7", 8125))
ask(lambda: asyncio.run(asyncio.wait_for(asyncio.open_connection("203.0.113.5", 443), 5)))
ask(socket.gethostbyname, "huggingface.co")
"""
    )
    refused = "True ranksafe simulation limit: t"
    unreachable, no_name = f"NoNetwork 101 {refused}", f"NoNames -3 {refused}"
    assert ended.lines == [unreachable, no_name, unreachable, unreachable, unreachable, no_name]
    asked = [each["what"] for each in ended.journal if each["event"] == "unavailable"]
    assert asked == ["192.0.2.1", "huggingface.co", "2001:db8::1", "198.51.100.7", "203.0.113.5"]
    assert len(ended.said("unavailable")) == 5


def test_connections_inside_work(run: Run) -> None:
    ended = run(
        """
import socket, multiprocessing.connection
for host in ("127.0.0.1", "localhost", socket.gethostname(), "::1"):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        address = socket.getaddrinfo(host, 0, family)[0][4][0]
    except socket.gaierror as error:  # this machine's own trouble
        print(type(error).__name__)
        continue
    print("resolved")
with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
    print("connected")
left, right = socket.socketpair()
left.send(b"pair")
print(right.recv(4).decode())
"""
    )
    assert set(ended.lines) <= {"resolved", "gaierror", "connected", "pair"}
    assert ended.lines[-2:] == ["connected", "pair"]
    assert ended.lines.count("resolved") >= 2
    assert not ended.journal


def test_a_rehearsal_that_may_use_the_network_is_left_alone(run: Run) -> None:
    code = """
import socket
try:
    socket.create_connection(("192.0.2.1", 9), timeout=0.2)
except OSError as error:
    print(type(error).__name__)
"""
    ended = run(code, offline=False)
    assert ended.lines[0] != "NoNetwork"
    assert not ended.journal


HUB = """
login("hf_secret")
print(whoami()["name"])
print(create_repo("someone/model", private=True, exist_ok=True).repo_id, create_repo("model").repo_id)
commit = HfApi().upload_folder(repo_id="someone/model", folder_path=".", commit_message="all of it")
print(type(commit).__name__, commit.commit_message, commit.repo_url.repo_id)
print(upload_folder(repo_id="a/b", folder_path=".", run_as_future=True).result().oid)
print(HfApi().create_tag("a/b", tag="v1"))
try:
    HfApi().upload_file(path="wrong")
except TypeError as error:
    print(error)
import datasets
print(datasets.Dataset.from_dict({"text": ["a"]}).push_to_hub("someone/data"))
"""


@pytest.mark.parametrize("imported", ["before", "after"])
def test_uploads_to_the_hub_do_nothing(run: Run, torch_python: Path, imported: str) -> None:
    """Also where the library was imported before us, and others hold its functions by name."""
    names = "from huggingface_hub import HfApi, create_repo, login, upload_folder, whoami\n"
    before = f"{names}import datasets\n" if imported == "before" else ""
    ended = run(
        HUB if before else names + HUB,
        torch_python,
        before=before,
        environment={"HF_HUB_OFFLINE": "1"},
    )
    assert ended.lines[:5] == [
        "rehearsal",
        "someone/model rehearsal/model",
        "CommitInfo all of it someone/model",
        "0" * 40,
        "None",
    ]
    assert "unexpected keyword argument 'path'" in ended.lines[5]
    assert ended.lines[6].startswith("https://huggingface.co/datasets/someone/data/commit/")
    told = ended.said("modified")
    assert len(told) == len(set(told)) == 7
    for name in ("login", "create_repo", "upload_folder", "create_tag", "Dataset.push_to_hub"):
        assert any(f"`{name}`" in sentence for sentence in told)


def isolating(folder: Path) -> Callable[[list[str]], Any]:
    needs_isolation()
    (folder / "run").mkdir()
    plan = plan_isolation(
        Isolation.REQUIRED,
        run_directory=folder / "run",
        working_directory=folder / "place",
        environment=os.environ,
    )
    changes = [f"{name}={value}" for name, value in plan.environment.items() if value is not None]
    return lambda command: [*plan.prefix, "env", *changes, *command]


def test_folders_that_were_there_can_be_renamed(run: Run, tmp_path: Path) -> None:
    """Linux refuses that for overlays made without root; a script must not see it."""
    place = tmp_path / "place"
    (place / "old" / "deep").mkdir(parents=True)
    (place / "old" / "deep" / "file").write_text("content")
    (place / "old" / "link").symlink_to("deep/file")
    (place / "empty").mkdir()
    (place / "full" / "x").mkdir(parents=True)
    ended = run(
        """
import os, pathlib
os.rename("old", "new")
print(os.path.exists("old"), open("new/link").read(), os.readlink("new/link"))
pathlib.Path("new").rename("empty")
print(sorted(os.listdir(".")), open("empty/deep/file").read())
for target, kind in (("full", OSError), ("empty/deep/file", NotADirectoryError)):
    try:
        os.replace("empty/deep" if target == "full" else "full", target)
    except kind as error:
        print(os.strerror(error.errno))
""",
        wrap=isolating(tmp_path),
    )
    assert ended.lines == [
        "False content deep/file",
        "['empty', 'full'] content",
        "Directory not empty",
        "Not a directory",
    ]
    assert sorted(os.listdir(place)) == ["empty", "full", "old"]


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="others may not rename these folders"
)
def test_folders_where_an_overlay_begins_are_a_limit(run: Run, tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    ended = run(
        """
import os
from ranksafe_rehearsal.limits import SimulationLimit
for action in (lambda: os.rename("/usr", "/usr2"), lambda: os.rmdir("/usr")):
    try:
        action()
    except SimulationLimit as error:
        print(isinstance(error, OSError), error.errno, error.filename)
""",
        wrap=isolating(tmp_path),
    )
    assert ended.lines == ["True 16 /usr"] * 2
    assert [each["kind"] for each in ended.journal if each["event"] == "limit"] == [
        "file-system"
    ] * 2


TRACKER_RUNS = {
    "wandb": """
import wandb
wandb.login(key="0" * 40)
run = wandb.init(project="p", mode="online", config={"a": 1})
wandb.log({"loss": 1.0})
run.log_artifact(wandb.Artifact("n", "model"))
run.summary["x"] = 1
wandb.finish()
""",
    "neptune": """
import neptune
run = neptune.init_run(project="a/b", api_token="x", mode="async")
run["losses"].append(1.0)
run.stop()
""",
    "clearml": """
from clearml import Task
task = Task.init(project_name="p", task_name="t")
task.get_logger().report_scalar("a", "b", 1.0, 1)
task.close()
""",
    "comet_ml": """
import comet_ml
for start in (comet_ml.Experiment, comet_ml.start):
    experiment = start(api_key="x" * 20, project_name="p")
    experiment.log_metric("a", 1)
    experiment.end()
""",
    "swanlab": """
import swanlab
swanlab.login(api_key="x")
swanlab.init(project="p", mode="online")
swanlab.log({"a": 1})
swanlab.finish()
""",
    "trackio": """
import trackio
trackio.init(project="p", space_id="a/b")
trackio.log({"a": 1})
trackio.finish()
""",
    "mlflow": """
import mlflow
mlflow.set_tracking_uri("https://mlflow.example.com")
mlflow.set_experiment("e")
with mlflow.start_run():
    mlflow.log_metric("a", 1)
assert mlflow.get_tracking_uri().startswith("file:"), mlflow.get_tracking_uri()
""",
}


@pytest.fixture(scope="module")
def trackers_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with every tracker, each as its users install it."""
    folder = tmp_path_factory.mktemp("trackers")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    install = [python, "-m", "pip", "install", "--quiet", "setuptools", *TRACKERS]
    subprocess.run(install, check=True, capture_output=True, timeout=900)
    return python


@pytest.mark.long
@pytest.mark.parametrize("tracker", TRACKER_RUNS)
def test_a_tracker_contacts_nobody(
    run: Run, trackers_python: Path, tmp_path: Path, tracker: str
) -> None:
    """Each goes on to its end although its run was started with the online mode and a key; no file is left."""
    for folder in ("home", "place"):
        (tmp_path / folder).mkdir()
    ended = run(
        TRACKER_RUNS[tracker] + "print('came to its end')",
        trackers_python,
        wrap=isolating(tmp_path),
        environment={**NOTHING_SENT, "HOME": str(tmp_path / "home")},
    )
    assert "came to its end" in ended.lines
    assert not os.listdir(tmp_path / "home")
    assert not os.listdir(tmp_path / "place")
    assert [said for said in ended.said("modified") if said.startswith(f"{tracker} was told")]
