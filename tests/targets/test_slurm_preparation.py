"""What is decided, written and believed of a cluster without one."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.model import RunRequest
from ranksafe.runs.targets import target_named
from ranksafe.runs.targets.slurm.batch import Size, batch_script, sbatch_options, size_of
from ranksafe.runs.targets.slurm.compute_node import node as node_program
from ranksafe.runs.targets.slurm.mirror import Mirror
from ranksafe.runs.targets.slurm.settings import Cluster, clusters_file, read_clusters

_NASTY = "/a b/'c' \"d\" $(touch pwned) `touch pwned` %j \\ 名前\n-x"


@pytest.fixture(autouse=True)
def configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    clusters_file().parent.mkdir(parents=True)
    return clusters_file()


def test_a_cluster_is_described_in_the_users_own_file(configuration: Path) -> None:
    configuration.write_text('[big]\nlogin = "login1"\ngpus-per-node = 4\ntime = "2:00:00"\n')
    found = read_clusters()["big"]
    assert (found.login, found.gpus_per_node, found.time) == ("login1", 4, "2:00:00")
    assert target_named("slurm:big").name == "slurm:big"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[big]\nlogn = 'x'\n", "logn"),
        ("[big]\nconda = 'a'\ninterpreter = 'b'\n", "conda"),
        ("[big]\nconda = '-n'\n", "conda"),
        ("[big]\nnodes = '2'\n", "nodes"),
        ("[big]\nnodes = 0\n", "nodes"),
        ("[big]\ngpus-per-node = -1\n", "gpus-per-node"),
        ("[big]\nnodes = true\n", "nodes"),
        ("['-x']\n", "-x"),
        ("big = 1\n", "big"),
        ("[big\n", "clusters.toml"),
    ],
)
def test_a_mistake_in_the_file_is_named(configuration: Path, text: str, complaint: str) -> None:
    configuration.write_text(text)
    with pytest.raises(RunNotPossible) as caught:
        read_clusters()
    assert complaint in caught.value.message.en
    assert complaint in caught.value.message.zh_cn


def test_a_cluster_that_is_not_described_is_refused_with_the_way_out() -> None:
    with pytest.raises(RunNotPossible) as caught:
        target_named("slurm:big")
    assert "clusters.toml" in caught.value.message.en


def test_a_login_host_never_becomes_an_option_of_ssh(configuration: Path) -> None:
    configuration.write_text("[big]\nlogin = '-oProxyCommand=touch pwned'\n")
    with pytest.raises(RunNotPossible):
        target_named("slurm:big")


_BIG = Cluster("big", nodes=3, gpus_per_node=4)


@pytest.mark.parametrize(
    ("cluster", "gpus", "cpu_ranks", "expected"),
    [
        (_BIG, None, False, Size(3, 4, 4)),
        (_BIG, 1, False, Size(1, 1, 1)),
        (_BIG, 4, False, Size(1, 4, 4)),
        (_BIG, 6, False, Size(2, 3, 3)),
        (_BIG, 8, False, Size(2, 4, 4)),
        (Cluster("cpu", nodes=2, gpus_per_node=0), None, False, Size(2, 1, 0)),
        (Cluster("cpu", nodes=2, gpus_per_node=0, ranks_per_node=3), None, False, Size(2, 3, 0)),
        (Cluster("mixed", gpus_per_node=4, ranks_per_node=2), None, True, Size(1, 2, 2)),
    ],
)
def test_as_few_nodes_as_the_ranks_need_and_the_same_on_each(
    cluster: Cluster, gpus: int | None, cpu_ranks: bool, expected: Size
) -> None:
    request = RunRequest(Path("train.py"), gpus=gpus, cpu_ranks=cpu_ranks)
    assert size_of(request, cluster) == expected


@pytest.mark.parametrize("gpus", [5, 13])
def test_ranks_that_do_not_fit_are_refused(gpus: int) -> None:
    with pytest.raises(RunNotPossible) as caught:
        size_of(RunRequest(Path("train.py"), gpus=gpus), _BIG)
    assert str(gpus) in caught.value.message.en


def test_what_is_asked_of_sbatch_is_one_word_each() -> None:
    cluster = Cluster("big", partition="--wrap=touch pwned", account="a b", gpu_type="a100")
    options = sbatch_options(cluster, Size(2, 4, 4), "run")
    assert "--partition=--wrap=touch pwned" in options
    assert "--account=a b" in options
    assert "--gres=gpu:a100:4" in options
    assert "--nodes=2" in options
    assert all(option.startswith("--") for option in options)


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_the_batch_script_starts_what_it_names_and_nothing_else(tmp_path: Path, shell: str) -> None:
    folder = tmp_path / _NASTY.strip("/")
    folder.mkdir(parents=True)
    (folder / "job.py").write_text("import sys\nprint(sys.argv, sys.flags.isolated)\n")
    interpreter = folder / "py thon"
    interpreter.symlink_to(sys.executable)
    script = batch_script(str(interpreter), str(folder))
    subprocess.run([shell], input=script.encode(), check=True, cwd=tmp_path)
    assert (folder / "batch.log").read_text() == f"{[str(folder / 'job.py')]} 1\n"
    assert not list(tmp_path.rglob("pwned"))


def test_a_node_fills_in_what_it_alone_knows_and_only_in_the_launchers_words(
    tmp_path: Path,
) -> None:
    tell = tmp_path / "tell.py"
    tell.write_text(
        "import json, os, sys\n"
        "print(json.dumps([sys.argv[1:], os.getcwd(), os.environ['PYTHONPATH'], os.environ['A']]))\n"
    )
    plan: dict[str, Any] = {
        "launcher": [sys.executable, str(tell), "--rank", "$SLURM_NODEID", "--at=$MASTER_ADDR"],
        "script": [_NASTY, "$SLURM_NODEID"],
        "environment": {"A": "$MASTER_PORT"},
        "inject": "/inject",
        "working_directory": str(tmp_path),
    }
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    program = tmp_path / "node.py"
    program.write_text(Path(node_program.__file__).read_text())
    subprocess.run(
        [sys.executable, "-I", str(program), "10.0.0.1", "29500"],
        env={"SLURM_NODEID": "7", "PYTHONPATH": "/mine"},
        check=True,
    )
    told = json.loads((tmp_path / "node.7.log").read_text())
    words = ["--rank", "7", "--at=10.0.0.1", _NASTY, "$SLURM_NODEID"]
    assert told == [words, str(tmp_path), "/inject:/mine", "$MASTER_PORT"]


def _part(name: str, data: bytes, at: int = 0) -> dict[str, Any]:
    return {"file": name, "at": at, "data": base64.b64encode(data).decode()}


def test_files_of_the_run_are_copied_as_they_grow(tmp_path: Path) -> None:
    mirror = Mirror(tmp_path)
    mirror.take(_part("rank0.stdout", b"one\n"))
    mirror.take(_part("rank0.stdout", b"one\ntwo\n"))
    mirror.take(_part("rank0.stdout", b"four\n", at=13))
    mirror.take(_part("node.1.log", b"x"))
    mirror.take({"whole": "rank0.beat", "data": base64.b64encode(b"{}").decode()})
    mirror.take({"whole": "rank0.beat", "data": base64.b64encode(b"[]").decode()})
    assert (tmp_path / "rank0.stdout").read_bytes() == b"one\ntwo\n"
    assert (tmp_path / "rank0.beat").read_bytes() == b"[]"
    assert mirror.sizes() == {"rank0.stdout": 8, "node.1.log": 1, "rank0.beat": 2}


@pytest.mark.parametrize(
    "name",
    ["../x", "rank0.stdout/../x", "/etc/x", "target.json", "log.txt", "rank0.stdout\n", "rank٣.x"],
)
def test_a_cluster_cannot_name_other_files(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    Mirror(folder).take(_part(name, b"bad"))
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not Path("/etc/x").exists()


def test_what_is_damaged_is_left_out(tmp_path: Path) -> None:
    mirror = Mirror(tmp_path)
    for entry in ({}, {"file": "rank0.stdout"}, {"file": "rank0.stdout", "data": "?"}, {"file": 1}):
        mirror.take(entry)
    assert mirror.sizes() == {}
