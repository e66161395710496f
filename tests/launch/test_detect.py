"""The launch context: who wins, and where each fact is said to come from."""

from __future__ import annotations

from packaging.version import Version
from ranksafe.launch.context import DEFAULT_GPUS, Fact, LaunchContext, Launcher
from ranksafe.launch.detect import Statement, build_launch_context


def test_nothing_known() -> None:
    launch = build_launch_context(Statement("command line"))
    assert launch == LaunchContext()
    assert launch.assumed_gpus == DEFAULT_GPUS
    assert launch.version("torch") is None


def test_earlier_statements_win_and_all_win_over_what_is_installed() -> None:
    launch = build_launch_context(
        Statement("command line", gpus=4, versions={"torch": "2.0"}),
        Statement("pyproject.toml", 8, Launcher.TORCHRUN, {"torch": "1.0", "trl": "0.17.0"}),
        installed={
            "trl": Fact("1.0", "/a"),
            "accelerate": Fact("1.15.0", "/site/accelerate.dist-info"),
        },
    )
    assert (launch.gpus, launch.launcher) == (4, Launcher.TORCHRUN)
    assert launch.versions == {"torch": "2.0", "trl": "0.17.0", "accelerate": "1.15.0"}
    assert launch.sources == {
        "gpus": "command line",
        "launcher": "pyproject.toml",
        "torch": "command line",
        "trl": "pyproject.toml",
        "accelerate": "/site/accelerate.dist-info",
    }


def test_an_unknown_launcher_says_nothing() -> None:
    launch = build_launch_context(
        Statement("command line", launcher=Launcher.UNKNOWN),
        Statement("pyproject.toml", launcher=Launcher.PYTHON),
    )
    assert launch.launcher is Launcher.PYTHON


def test_versions_that_are_none() -> None:
    launch = build_launch_context(Statement("a", versions={"torch": "2.13.0+cpu", "trl": "dev"}))
    assert launch.version("torch") == Version("2.13.0+cpu")
    assert launch.version("trl") is None


def test_a_version_or_a_python_that_is_too_old_for_it() -> None:
    limit = Version("2.0")
    assert LaunchContext(versions={"torch": "1.13.1"}).is_before("torch", limit)
    assert LaunchContext(versions={"python": "3.7"}).is_before("torch", limit)
    for versions in ({}, {"torch": "2.0.0", "python": "3.7"}, {"python": "3.8"}):
        assert not LaunchContext(versions=versions).is_before("torch", limit)
    assert not LaunchContext(versions={"python": "3.7"}).is_before("torch", Version("1.13"))
    assert not LaunchContext(versions={"python": "2.7"}).is_before("trl", limit)
