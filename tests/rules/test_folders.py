"""A rule's folder is complete: documents in both languages, cases, metadata, a proof that its rule sees."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
from ranksafe.checker.finding import Finding
from ranksafe.checker.registry import Registry
from ranksafe.checker.rule_folder import README_NAMES, RuleFolder
from ranksafe.launch.context import LaunchContext, Launcher
from ranksafe.localization import LANGUAGES, Language
from ranksafe.runs.proofs.header import Launch, ProofHeader, RunsOn, read_header

from tests.rules.case_file import read_cases
from tests.rules.checking import CaseProject

HEADINGS: Final[dict[Language, list[str]]] = {
    "en": [
        "What it does",
        "Why it fails",
        "Example",
        "Use instead",
        "Fix safety",
        "When not to use it",
        "Evidence",
    ],
    "zh-cn": ["作用", "为什么会失败", "示例", "应改为", "修复的安全性", "何时不适用", "证据"],
}
AREAS = {
    "1": "launch",
    "2": "devices",
    "3": "data",
    "4": "collectives",
    "5": "model",
    "6": "checkpoints",
    "7": "metrics",
}
CHINESE = re.compile(r"[\u4e00-\u9fff]")
SUPPRESSION = "RS001"
EXPECTED_CODES = {
    "launch": ["RS101", "RS102", "RS103", *(f"RS11{digit}" for digit in range(8))],
    "devices": ["RS201", "RS202", "RS203", "RS210", "RS211", "RS220", "RS221", "RS222", "RS223"],
    "data": [f"RS30{digit}" for digit in range(1, 6)] + [f"RS31{digit}" for digit in range(8)],
    "collectives": [f"RS4{number:02d}" for number in range(1, 17)],
    "model": [f"RS50{digit}" for digit in range(1, 7)],
    "model under DataParallel": [f"RS51{digit}" for digit in range(6)],
    "models in wrappers": [f"RS52{digit}" for digit in range(9)],
    "gradients": [f"RS53{digit}" for digit in range(7)],
    "models in parts": ["RS540"],
    "checkpoints": [f"RS60{digit}" for digit in range(1, 7)],
    "metrics": ["RS701", "RS702", "RS703"],
}


def test_every_rule_of_the_plan_is_there(registry: Registry) -> None:
    assert not registry.problems
    expected = [code for codes in EXPECTED_CODES.values() for code in codes]
    assert [folder.metadata.code for folder in registry.rules] == [SUPPRESSION, *expected]


def test_metadata(folder: RuleFolder) -> None:
    metadata = folder.metadata
    assert re.fullmatch(r"RS\d{3}", metadata.code)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", metadata.name)
    assert folder.path.name == metadata.name.replace("-", "_")
    if metadata.code != SUPPRESSION:
        assert folder.area == AREAS[metadata.code[2]]
    assert (metadata.symptom is None) == (metadata.code == SUPPRESSION)
    assert metadata.summary.en
    assert CHINESE.search(metadata.summary.zh_cn)
    for pattern in metadata.run_signatures:
        re.compile(pattern)


def test_is_a_package(folder: RuleFolder) -> None:
    """The import contracts look at packages only."""
    assert (folder.path / "__init__.py").is_file()
    assert (folder.path.parent / "__init__.py").is_file()


@pytest.mark.parametrize("language", LANGUAGES)
def test_document(folder: RuleFolder, language: Language) -> None:
    text = (folder.path / README_NAMES[language]).read_text(encoding="utf-8")
    title, sections = _sections(text)
    assert title == f"{folder.metadata.name} ({folder.metadata.code})"
    assert list(sections) == HEADINGS[language]
    for heading, body in sections.items():
        assert body.strip(), f"nothing under {heading}"
        if language == "zh-cn" and "```" not in body:
            assert CHINESE.search(body), f"no Chinese under {heading}"
    example, instead = HEADINGS[language][2:4]
    for heading in (example, instead):
        assert "```" in sections[heading], f"no code under {heading}"


def test_cases_show_both_sides(folder: RuleFolder) -> None:
    cases = read_cases(folder.cases_path)
    codes = [
        {expected.code for source in case.sources for expected in source.expected} for case in cases
    ]
    assert any(folder.metadata.code in found for found in codes), "no case with a finding"
    assert any(not found for found in codes), "no correct twin"


def test_fix_has_a_case(folder: RuleFolder) -> None:
    if (folder.path / "fix.py").is_file() and folder.metadata.code != SUPPRESSION:
        cases = read_cases(folder.cases_path)
        assert any(source.fixes for case in cases for source in case.sources), "no diff fence"


def test_has_proof(folder: RuleFolder) -> None:
    assert folder.has_proof or folder.metadata.code == SUPPRESSION


def test_proof_headers(proved_folder: RuleFolder) -> None:
    for path in sorted((proved_folder.path / "proof").glob("*.py")):
        header = read_header(path)
        assert header.expectations, path
        if header.frame is not None:
            assert header.frame in _code(path), f"{path}: no such line as {header.frame!r}"


def test_failing_proof_is_flagged(
    proved_folder: RuleFolder, registry: Registry, tmp_path: Path
) -> None:
    findings = _findings(proved_folder.failing_proof, registry, tmp_path)
    assert proved_folder.metadata.code in [finding.code for finding in findings]


def test_fixed_proof_is_clean(
    proved_folder: RuleFolder, registry: Registry, tmp_path: Path
) -> None:
    """Nothing goes wrong; that nn.DataParallel is slower than it has to be may be said of programs about it."""
    findings = _findings(proved_folder.fixed_proof, registry, tmp_path)
    allowed = {"RS103"} - {proved_folder.metadata.code}
    assert [finding for finding in findings if finding.code not in allowed] == []


def _findings(program: Path, registry: Registry, folder: Path) -> Sequence[Finding]:
    text = program.read_text(encoding="utf-8")
    launch = launch_of(read_header(program))
    project = CaseProject(folder, {"train.py": text}, registry, launch)
    return project.analyse("train.py", text).findings


def launch_of(header: ProofHeader) -> LaunchContext:
    """The launch context that a proof's header describes."""
    by_machine = {
        RunsOn.CPU_RANKS: Launcher.ACCELERATE,
        RunsOn.EMULATED_DP: Launcher.PYTHON,
        RunsOn.JAX_HOST: Launcher.PYTHON,
        RunsOn.CUDA: Launcher.ACCELERATE if header.launch is Launch.ACCELERATE else Launcher.PYTHON,
    }
    pinned = dict(re.findall(r"([A-Za-z0-9_.-]+)==(\S+)", " ".join(header.requires)))
    return LaunchContext(
        gpus=header.ranks,
        launcher=by_machine[header.runs_on],
        versions={"torch": "2.13.0", **pinned},
    )


def _code(path: Path) -> str:
    """The program without its docstring, where the header repeats the frame."""
    text = path.read_text(encoding="utf-8")
    first = ast.parse(text).body[0]
    return "\n".join(text.splitlines()[first.end_lineno or 0 :])


def _sections(text: str) -> tuple[str, dict[str, str]]:
    title, sections = "", {}
    heading: str | None = None
    in_fence = False
    for line in text.splitlines():
        if line.startswith("```"):
            in_fence = not in_fence
        if not in_fence and line.startswith("# "):
            title = line[2:].strip()
        elif not in_fence and line.startswith("## "):
            heading = line[3:].strip()
            sections[heading] = ""
        elif heading is not None:
            sections[heading] += line + "\n"
    return title, sections
