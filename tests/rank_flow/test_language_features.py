"""Programs that are right are not reported, whatever constructs of Python and of the libraries they use.

Which of their wrong twins are found is reported, never gated: ``python -m tests.rank_flow.test_language_features``.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from ranksafe.checker.analysis import Analyzer
from ranksafe.checker.configuration import Configuration
from ranksafe.checker.finding import Finding
from ranksafe.checker.registry import Registry
from ranksafe.launch.context import LaunchContext, Launcher
from ranksafe.semantics.project.index import ProjectIndex

from tests.rank_flow.feature_programs import OTHER_FILE, Feature, features

FEATURES = list(features())


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry.load(entry_points=False)


@pytest.mark.parametrize("feature", FEATURES, ids=[feature.name for feature in FEATURES])
def test_right_program_is_clean(feature: Feature, registry: Registry, tmp_path: Path) -> None:
    assert _reported(_analyzer(registry, tmp_path), tmp_path / "right.py", feature.right) == []


@pytest.mark.parametrize("feature", FEATURES, ids=[feature.name for feature in FEATURES])
def test_what_is_reported_says_why(feature: Feature, registry: Registry, tmp_path: Path) -> None:
    found = _reported(_analyzer(registry, tmp_path), tmp_path / "wrong.py", feature.wrong)
    assert all("`" in item.message.en or item.related for item in found)


def _analyzer(registry: Registry, folder: Path) -> Analyzer:
    (folder / "shared_settings.py").write_text(OTHER_FILE, encoding="utf-8")
    launch = LaunchContext(gpus=2, launcher=Launcher.TORCHRUN)
    return Analyzer(registry, Configuration(preview=True), launch, ProjectIndex(folder))


def _reported(analyzer: Analyzer, path: Path, text: str) -> list[Finding]:
    path.write_text(text, encoding="utf-8")
    analysis = analyzer.open(path, text)
    assert not analysis.rule_errors, "\n".join(analysis.rule_errors.values())
    return [item for item in analysis.findings if item.code.startswith("RS4")]


def main() -> None:
    """Print which wrong programs are found."""
    registry = Registry.load(entry_points=False)
    missed = []
    for feature in FEATURES:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name).resolve()
            if not _reported(_analyzer(registry, folder), folder / "wrong.py", feature.wrong):
                missed.append(feature.name)
    print(f"found in {len(FEATURES) - len(missed)} of {len(FEATURES)} wrong programs; not in:")
    print("\n".join(missed))


if __name__ == "__main__":
    main()
