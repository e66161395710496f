"""Configuration files: found, read, merged; and what in them cannot be used is said, not raised."""

from __future__ import annotations

from pathlib import Path

import configuration_schema
import pytest
from ranksafe.checker.configuration import (
    AnalysisKeys,
    Configuration,
    LoadedConfiguration,
    load_configuration,
    parse_assumption,
)
from ranksafe.checker.finding import Level
from ranksafe.checker.rule import RuleMetadata, Stability
from ranksafe.launch.context import Launcher
from ranksafe.localization import Translated
from ranksafe.settings import keys_of


def rule(code: str, name: str = "some-rule", *, preview: bool = False) -> RuleMetadata:
    stability = Stability.PREVIEW if preview else Stability.STABLE
    return RuleMetadata(code, name, Translated("s", "摘要"), Level.WARNING, "0.1.0", stability)


def write(folder: Path, name: str, text: str) -> LoadedConfiguration:
    (folder / name).write_text(text, encoding="utf-8")
    return load_configuration(folder / "train.py")


def test_reads_every_key(tmp_path: Path) -> None:
    loaded = write(
        tmp_path,
        "pyproject.toml",
        """
        [tool.ranksafe]
        select = ["RS2"]
        ignore = ["RS201"]
        per-file-ignores = { "tests/*" = ["ALL"] }
        gpus = 4
        launcher = "torchrun"
        assume = ["Transformers == 4.51.3", "pytorch_lightning==2.5"]
        exclude = ["generated"]
        preview = true
        """,
    )
    assert loaded.problems == ()
    assert loaded.source == tmp_path / "pyproject.toml"
    assert loaded.configuration == Configuration(
        select=("RS2",),
        ignore=("RS201",),
        per_file_ignores=(("tests/*", ("ALL",)),),
        gpus=4,
        launcher=Launcher.TORCHRUN,
        assume=(("pytorch-lightning", "2.5"), ("transformers", "4.51.3")),
        exclude=("generated",),
        preview=True,
        root=tmp_path,
    )


def test_nearest_file_wins_and_a_silent_pyproject_is_passed_by(tmp_path: Path) -> None:
    (tmp_path / "ranksafe.toml").write_text("gpus = 8", encoding="utf-8")
    inner = tmp_path / "package" / "inner"
    inner.mkdir(parents=True)
    (inner / "pyproject.toml").write_text("[tool.other]\nx = 1", encoding="utf-8")
    assert load_configuration(inner / "a.py").configuration.gpus == 8
    (tmp_path / "package" / "ranksafe.toml").write_text("gpus = 2", encoding="utf-8")
    assert load_configuration(inner / "a.py").configuration.gpus == 2


def test_ranksafe_toml_wins_over_pyproject_beside_it(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.ranksafe]\ngpus = 2", encoding="utf-8")
    assert write(tmp_path, "ranksafe.toml", "gpus = 3").configuration.gpus == 3


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("gpu = 2", "unknown key `gpu`"),
        ("gpus = 0", "`gpus` must be a whole number"),
        ("gpus = true", "`gpus` must be a whole number"),
        ('launcher = "slurm"', "`launcher` must be one of"),
        ('select = "RS201"', "`select` must be a list of strings"),
        ('assume = ["transformers>=4"]', "`assume` must be a list such as"),
        ("per-file-ignores = { a = 1 }", "`per-file-ignores` must be a table"),
        ('preview = "yes"', "`preview` must be true or false"),
    ],
)
def test_unusable_values_are_named_and_the_rest_is_kept(
    tmp_path: Path, line: str, part: str
) -> None:
    loaded = write(tmp_path, "ranksafe.toml", f'ignore = ["RS501"]\n{line}\n')
    assert [part in problem.message.en for problem in loaded.problems] == [True]
    assert loaded.configuration.ignore == ("RS501",)


def test_of_a_list_the_items_that_can_be_used_are_kept(tmp_path: Path) -> None:
    loaded = write(tmp_path, "ranksafe.toml", 'assume = ["trl", "torch==2.8"]\nignore = ["RS5", 3]')
    assert loaded.configuration.assume == (("torch", "2.8"),)
    assert loaded.configuration.ignore == ("RS5",)
    assert [problem.message.en.split("`")[1] for problem in loaded.problems] == ["assume", "ignore"]


def test_no_key_of_a_workspaces_file_reaches_a_process() -> None:
    assert set(keys_of(Configuration)) == {
        "select",
        "ignore",
        "preview",
        "gpus",
        "launcher",
        "assume",
        "per-file-ignores",
        "exclude",
    }


def test_the_json_schema_is_current() -> None:
    kept = configuration_schema.SCHEMA.read_text(encoding="utf-8")
    assert kept == configuration_schema.schema(), "run `make docs`"


def test_broken_toml_names_its_line(tmp_path: Path) -> None:
    loaded = write(tmp_path, "pyproject.toml", "[tool.ranksafe]\ngpus = = 2\n")
    assert [problem.line for problem in loaded.problems] == [2]


def test_broken_pyproject_without_ranksafe_is_not_our_concern(tmp_path: Path) -> None:
    assert write(tmp_path, "pyproject.toml", "[tool.other\n").problems == ()


@pytest.mark.parametrize(
    ("select", "ignore", "enabled"),
    [
        ((), (), True),
        (("RS2",), (), True),
        (("RS3",), (), False),
        (("ALL",), ("RS2",), False),
        (("RS201",), ("RS2",), True),
        (("RS2",), ("RS201",), False),
        (("some-rule",), ("RS2",), True),
        ((), ("some-rule",), False),
        (("rs201",), (), True),
        (("RS2",), ("RS2",), False),
    ],
)
def test_the_longer_selector_wins(
    select: tuple[str, ...], ignore: tuple[str, ...], enabled: bool
) -> None:
    assert Configuration(select=select, ignore=ignore).enables(rule("RS201")) is enabled


def test_preview_rules_run_only_when_asked_for() -> None:
    preview = rule("RS201", preview=True)
    assert not Configuration().enables(preview)
    assert not Configuration(select=("RS2",)).enables(preview)
    assert Configuration(preview=True).enables(preview)
    assert Configuration(select=("RS201",)).enables(preview)


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("tests/*", "tests/unit/test_a.py", True),
        ("tests/*", "src/tests/test_a.py", False),
        ("**/tests/*", "src/tests/test_a.py", True),
        ("**/tests/*", "tests/test_a.py", True),
        ("conftest.py", "a/b/conftest.py", True),
        ("src/*.py", "src/a.py", True),
        ("generated", "generated/a.py", True),
        ("./src/", "src/a/b.py", True),
    ],
)
def test_patterns(tmp_path: Path, pattern: str, path: str, matches: bool) -> None:
    configuration = Configuration(per_file_ignores=((pattern, ("RS2",)),), root=tmp_path)
    assert configuration.ignored_in(tmp_path / path, rule("RS201")) is matches
    assert not configuration.ignored_in(tmp_path / path, rule("RS301"))


def test_excluded_folders(tmp_path: Path) -> None:
    configuration = Configuration(exclude=("generated",), root=tmp_path)
    assert configuration.excludes(tmp_path / "a" / ".venv")
    assert configuration.excludes(tmp_path / "generated" / "a.py")
    assert not configuration.excludes(tmp_path / "src")


def test_settings_win_and_none_leaves_alone() -> None:
    base = Configuration(select=("RS2",), gpus=4, assume=(("torch", "2.0"),))
    merged = base.with_settings(AnalysisKeys(gpus=8, assume=(("trl", "1.0"),)))
    assert merged.select == ("RS2",)
    assert merged.gpus == 8
    assert merged.assume == (("torch", "2.0"), ("trl", "1.0"))


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("transformers==4.51.3", ("transformers", "4.51.3")),
        ("PyTorch_Lightning == 2.5.0", ("pytorch-lightning", "2.5.0")),
        ("transformers>=4", None),
        ("transformers", None),
        ("", None),
    ],
)
def test_assumptions(text: str, parsed: tuple[str, str] | None) -> None:
    assert parse_assumption(text) == parsed
