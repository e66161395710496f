"""Commands that are refused, and choices that are remembered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import DEVICE_MAP, StartEditor


async def test_nothing_runs_until_the_workspace_is_trusted(start_editor: StartEditor) -> None:
    editor = await start_editor(options={"trusted": False})
    uri = editor.open("train.py", DEVICE_MAP)
    starters = ("ranksafe.run", "ranksafe.smokeRun", "ranksafe.rehearse", "ranksafe.debugRank")
    for command in starters:
        answer = await editor.execute(command, uri)
        assert "trusted" in answer["refused"]
    assert "trusted" in (await editor.execute("ranksafe.prove", "RS201"))["refused"]
    assert "trusted" in (await editor.execute("ranksafe.setArguments", uri, ["-x"]))["refused"]
    assert "trusted" in (await editor.execute("ranksafe.addTarget", "ssh:host"))["refused"]
    assert len(editor.messages) == 7

    assert await editor.execute("ranksafe.trustWorkspace") == {"trusted": True}
    answer = await editor.execute("ranksafe.setArguments", uri, ["--epochs", "1"])
    assert answer == {"arguments": ["--epochs", "1"]}


async def test_trust_can_be_taken_back(start_editor: StartEditor) -> None:
    editor = await start_editor()
    uri = editor.open("train.py", DEVICE_MAP)
    editor.client.protocol.notify("ranksafe/trust", {"trusted": False})
    assert "trusted" in (await editor.execute("ranksafe.run", uri))["refused"]


async def test_only_python_files_under_an_open_folder_run(
    start_editor: StartEditor, tmp_path: Path
) -> None:
    editor = await start_editor()
    outside = tmp_path / "outside.py"
    outside.write_text(DEVICE_MAP)
    (editor.folder / "link.py").symlink_to(outside)
    for uri in (
        outside.as_uri(),
        editor.uri("link.py"),
        editor.uri("missing.py"),
        editor.write("notes.txt", "").as_uri(),
        editor.folder.as_uri() + "/../outside.py",
        "untitled:Untitled-1",
    ):
        answer = await editor.execute("ranksafe.run", uri)
        assert "open folder" in answer["refused"], uri


async def test_a_buffer_that_differs_from_the_disk_is_to_be_saved_first(
    start_editor: StartEditor,
) -> None:
    editor = await start_editor()
    uri = editor.open("train.py", DEVICE_MAP)
    editor.type(uri, 0, 0, "# not saved\n")
    answer = await editor.execute("ranksafe.run", uri)
    assert "Save first" in answer["refused"]
    assert "train.py" in answer["refused"]


async def test_an_unsaved_neighbour_counts_too(start_editor: StartEditor) -> None:
    editor = await start_editor()
    uri = editor.open("train.py", DEVICE_MAP)
    other = editor.open("layers.py", "import torch\n")
    editor.type(other, 0, 0, "# not saved\n")
    assert "layers.py" in (await editor.execute("ranksafe.run", uri))["refused"]


@pytest.mark.parametrize("target", ["rm -rf /", "ssh:host; reboot", "", "local extra"])
async def test_a_target_is_a_name_never_a_command_line(
    start_editor: StartEditor, target: str
) -> None:
    editor = await start_editor()
    uri = editor.open("train.py", DEVICE_MAP)
    assert "refused" in await editor.execute("ranksafe.setTarget", uri, target)
    assert "refused" in await editor.execute("ranksafe.run", uri, {"target": target or " "})


async def test_the_targets_are_those_of_the_users_own_files(
    start_editor: StartEditor, tmp_path: Path
) -> None:
    own = tmp_path / "own" / "ranksafe"
    own.mkdir(parents=True)
    (own / "hosts.toml").write_text("[gpu-box]\n")
    (own / "clusters.toml").write_text("[big]\nnodes = 2\n[small]\n")
    ssh = tmp_path / "ssh"
    ssh.write_text(
        f"Include {tmp_path}/more-*\nHost *\n  User me\nHost a100 gpu-box *.lab\nHost=github.com\n  User git\n"
    )
    (tmp_path / "more-hosts").write_text('host "v100"\nMatch host v100\n  User git\n')
    environment = {"XDG_CONFIG_HOME": str(own.parent), "RANKSAFE_SSH_CONFIG": str(ssh)}
    editor = await start_editor(environment=environment)
    uri = editor.open("train.py", DEVICE_MAP)
    (editor.folder / "clusters.toml").write_text("[evil]\n")
    for name in ("ssh:elsewhere", "slurm:evil"):
        answer = await editor.execute("ranksafe.run", uri, {"target": name})
        assert f"no target named {name}" in answer["refused"]
    answer = await editor.execute("ranksafe.setTarget", uri)
    hosts = ["ssh:gpu-box", "ssh:v100", "ssh:a100"]
    assert answer == {"targets": ["local", *hosts, "slurm:big", "slurm:small"]}


async def test_a_host_or_cluster_is_added_to_the_users_own_file(
    start_editor: StartEditor, tmp_path: Path
) -> None:
    own = tmp_path / "own" / "ranksafe"
    kept = tmp_path / "dotfiles.toml"
    own.mkdir(parents=True)
    (own / "hosts.toml").symlink_to(kept)
    kept.write_text("[gpu-box] # mine\nlease-hours = 3\n")
    environment = {"XDG_CONFIG_HOME": str(own.parent), "RANKSAFE_SSH_CONFIG": "/dev/null"}
    editor = await start_editor(environment=environment)
    uri = editor.open("train.py", DEVICE_MAP)
    for name in ("ssh:me@new-box", "ssh:gpu-box"):
        assert (await editor.execute("ranksafe.addTarget", name))["target"] == name
    assert (own / "hosts.toml").is_symlink()
    assert kept.read_text().startswith("[gpu-box] # mine\nlease-hours = 3\n")
    await editor.execute("ranksafe.addTarget", "slurm:big", {"login": "me@login"})
    clusters = own / "clusters.toml"
    assert editor.client.shown_documents[-1].uri == clusters.as_uri()
    assert 'login = "me@login"' in clusters.read_text()
    answer = await editor.execute("ranksafe.setTarget", uri)
    assert answer == {"targets": ["local", "ssh:gpu-box", "ssh:me@new-box", "slurm:big"]}

    refused = [
        ("ssh:-oProxyCommand=x",),
        ("ssh:主机",),
        ("simulated:2",),
        ("slurm:other", {"login": "-F/evil"}),
    ]
    for arguments in refused:
        assert "refused" in await editor.execute("ranksafe.addTarget", *arguments), arguments
    assert "other" not in clusters.read_text()
    kept.write_text("[broken")
    answer = await editor.execute("ranksafe.addTarget", "ssh:third")
    assert "cannot be understood" in answer["refused"]
    assert kept.read_text() == "[broken"


async def test_a_debugger_is_asked_which_rank_and_only_of_this_machine(
    start_editor: StartEditor,
) -> None:
    editor = await start_editor()
    uri = editor.open("train.py", DEVICE_MAP)
    ranks = (await editor.execute("ranksafe.debugRank", uri))["ranks"]
    assert ranks >= 1
    editor.write("accelerate.yaml", "num_processes: 7\n")
    await editor.execute("ranksafe.setConfigFile", uri, "accelerate.yaml")
    assert await editor.execute("ranksafe.debugRank", uri) == {"ranks": 7}
    alone = editor.open(
        "alone.py", "import torch\n\ntorch.nn.DataParallel(torch.nn.Linear(1, 1))\n"
    )
    assert await editor.execute("ranksafe.debugRank", alone) == {"ranks": 1}
    await editor.execute("ranksafe.setTarget", uri, "simulated:2")
    answer = await editor.execute("ranksafe.debugRank", uri, 0)
    assert "on this machine only" in answer["refused"]
    assert "simulated:2" in answer["refused"]


async def test_choices_are_remembered_per_script_in_user_state(
    start_editor: StartEditor, tmp_path: Path
) -> None:
    editor = await start_editor()
    uri = editor.open("train.py", DEVICE_MAP)
    await editor.execute("ranksafe.setArguments", uri, ["--name", "训练"])
    await editor.execute("ranksafe.setTarget", uri, "local")
    await editor.execute("ranksafe.setConfigFile", uri, "accelerate.yaml")
    remembered = json.loads((tmp_path / "state" / "scripts.json").read_text())
    assert remembered == {
        str(editor.folder / "train.py"): {
            "arguments": ["--name", "训练"],
            "target": "local",
            "configFile": str(editor.folder / "accelerate.yaml"),
        }
    }
    await editor.execute("ranksafe.setConfigFile", uri, None)
    remembered = json.loads((tmp_path / "state" / "scripts.json").read_text())
    assert remembered[str(editor.folder / "train.py")]["configFile"] is None


IMPOSSIBLE: list[tuple[str, list[object]]] = [
    ("ranksafe.run", []),
    ("ranksafe.run", [3]),
    ("ranksafe.setArguments", ["URI", "--not-a-list"]),
    ("ranksafe.setArguments", ["URI", [1]]),
    ("ranksafe.openRule", ["RS000"]),
    ("ranksafe.prove", ["RS000"]),
    ("ranksafe.prove", ["RS001"]),
    ("ranksafe.openLog", []),
    ("ranksafe.openReport", ["no-such-run"]),
    ("ranksafe.annotateFromLog", []),
    ("ranksafe.launchCommand", ["URI", "nowhere"]),
    ("ranksafe.debugRank", ["URI", "first"]),
    ("ranksafe.debugRank", ["URI", -1]),
    ("ranksafe.cancelRun", []),
    ("ranksafe.cancelRun", ["no-such-run"]),
    ("ranksafe.run", ["file:///x%00.py"]),
    ("ranksafe.run", ["file:///" + "x" * 5000 + ".py"]),
    ("ranksafe.setTarget", ["URI", {"a": 1}]),
    ("ranksafe.setConfigFile", ["URI", 5]),
    ("ranksafe.openReport", ["x\0y"]),
    ("ranksafe.openReport", ["../../.."]),
    ("ranksafe.annotateFromLog", ["file:///dev/zero"]),
    ("ranksafe.annotateFromLog", ["file:///x%00"]),
    ("ranksafe.launchCommand", ["URI", ["x"]]),
]


async def test_what_cannot_be_done_is_said(start_editor: StartEditor) -> None:
    editor = await start_editor()
    uri = editor.open("train.py", DEVICE_MAP)
    refused = []
    for command, arguments in IMPOSSIBLE:
        given = [uri if argument == "URI" else argument for argument in arguments]
        answer = await editor.execute(command, *given)
        assert answer["refused"], command
        refused.append(answer["refused"])
        assert editor.messages == refused, command


async def test_every_command_is_registered(start_editor: StartEditor) -> None:
    editor = await start_editor()
    provider = editor.answer.capabilities.execute_command_provider
    assert provider is not None
    assert sorted(provider.commands) == sorted(
        f"ranksafe.{name}"
        for name in (
            "run",
            "smokeRun",
            "rehearse",
            "debugRank",
            "fit",
            "setFitDevices",
            "prove",
            "cancelRun",
            "setArguments",
            "setTarget",
            "addTarget",
            "setConfigFile",
            "trustWorkspace",
            "openLog",
            "openRule",
            "openReport",
            "showRuns",
            "showStacks",
            "annotateFromLog",
            "launchCommand",
        )
    )
