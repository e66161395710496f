"""What a client says of itself is read key by key: what has the wrong type counts as not given."""

from __future__ import annotations

from pathlib import Path

from ranksafe.checker.configuration import AnalysisKeys
from ranksafe.launch.context import Launcher
from ranksafe.lsp.options import ClientOptions, read_options, read_settings


def test_reads_every_option() -> None:
    given = {
        "locale": "zh-cn",
        "trusted": True,
        "python": "~/env/bin/python",
        "stateDirectory": "/state",
        "runEnvironment": {"A": "b"},
        "sshConfigFile": "/ssh/config",
        "settings": {"gpus": 4, "launcher": "torchrun", "preview": False, "assume": ["trl==1.0"]},
    }
    assert read_options(given) == ClientOptions(
        locale="zh-cn",
        trusted=True,
        python=Path.home() / "env/bin/python",
        state_directory=Path("/state"),
        run_environment={"A": "b"},
        ssh_config_file=Path("/ssh/config"),
        settings=AnalysisKeys(
            gpus=4, launcher=Launcher.TORCHRUN, preview=False, assume=(("trl", "1.0"),)
        ),
    )


def test_what_has_the_wrong_type_counts_as_not_given() -> None:
    given = {
        "locale": 3,
        "trusted": 1,
        "python": "",
        "stateDirectory": None,
        "runEnvironment": {"A": "b", "C": 1},
        "sshConfigFile": "~nobody-at-all/config",
        "settings": {"gpus": True, "select": ["RS2", 3], "launcher": None, "python": "/evil"},
        "unknown": {},
    }
    assert read_options(given) == ClientOptions(
        run_environment={"A": "b"}, settings=AnalysisKeys(select=("RS2",))
    )


def test_the_chosen_language_counts_where_no_locale_is_given() -> None:
    assert read_options({"settings": {"language": "zh-cn"}}).locale == "zh-cn"


def test_an_empty_list_leaves_the_projects_own_alone() -> None:
    assert read_settings({"select": [], "ignore": [], "assume": []}) == AnalysisKeys()
