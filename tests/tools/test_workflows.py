"""The definitions for CI: what their formats allow, and that every command in them exists here."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gate
import pytest
import release_check
import yaml
from environments import ROOT

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
SCHEMAS = {
    "vendor.github-workflows": WORKFLOWS,
    "vendor.github-actions": [ROOT / "action.yml"],
    "vendor.gitlab-ci": [ROOT / "ci/gitlab.yml"],
}
PUBLISHES = {
    "build": {"contents": "read"},
    "attest": {"attestations": "write", "id-token": "write"},
    "github": {"contents": "write"},
    "pypi": {"id-token": "write"},
    "marketplace": {},
    "open-vsx": {},
}
"""What each job of a release may do, and no more."""


def loaded(file: Path) -> dict[Any, Any]:
    return yaml.safe_load(file.read_text(encoding="utf-8"))


def steps(file: Path) -> Iterator[dict[str, Any]]:
    definition = loaded(file)
    if "runs" in definition:
        yield from definition["runs"]["steps"]
    for job in definition.get("jobs", {}).values():
        yield from job["steps"]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_what_the_format_allows(schema: str) -> None:
    words = ["-m", "check_jsonschema", "--builtin-schema", schema, *map(str, SCHEMAS[schema])]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_every_command_exists(file: Path) -> None:
    texts = [step["run"] for step in steps(file) if "run" in step]
    assert texts
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for text in texts:
        for script in re.findall(r"\b(?:tools|tests|client)/\S+", text):
            assert (ROOT / script.rstrip("/)")).exists(), script
        for target in re.findall(r"\bmake ([\w-]+)", text):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
        stages = {step.stage for step in gate.Gate(full=True, pytest_arguments=[]).steps()}
        assert set(re.findall(r"--only (\w+)", text)) <= stages
        if "release_check.py" in text:
            said = release_check.arguments_of(
                re.findall(r"release_check\.py (.*)", text)[0].split()
            )
            assert said.tag


@pytest.mark.parametrize("file", [*WORKFLOWS, ROOT / "action.yml"], ids=lambda file: file.name)
def test_nothing_from_outside_is_pasted_into_a_script(file: Path) -> None:
    assert not [step["run"] for step in steps(file) if "${{" in step.get("run", "")]


def test_a_release_asks_for_no_more_rights_than_it_needs() -> None:
    definition = loaded(ROOT / ".github/workflows/release.yml")
    assert definition["permissions"] == {}
    jobs = definition["jobs"]
    assert {name: job["permissions"] for name, job in jobs.items()} == PUBLISHES
    # YAML 1.1 reads the key `on` as true.
    assert definition[True] == {"push": {"tags": ["v*"]}}
    for name, job in jobs.items():
        assert name == "build" or job["needs"] in ("build", "attest")
        checks_out = any("checkout" in step.get("uses", "") for step in job["steps"])
        assert checks_out == (name == "build"), "what publishes runs no code of the repository"


def test_the_same_tools_publish_as_are_tried() -> None:
    manifest = loaded(ROOT / "package.json")
    text = (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")
    assert f"@vscode/vsce@{manifest['devDependencies']['@vscode/vsce']}" in text
