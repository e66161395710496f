"""What differs between ranks is seen through Python's constructs and standard library, and what does not is not."""

from __future__ import annotations

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
def test_feature(feature: Feature, registry: Registry, tmp_path: Path) -> None:
    (tmp_path / "shared_settings.py").write_text(OTHER_FILE, encoding="utf-8")
    project = ProjectIndex(tmp_path)
    launch = LaunchContext(gpus=2, launcher=Launcher.TORCHRUN)
    analyzer = Analyzer(registry, Configuration(preview=True), launch, project)
    found = _reported(analyzer, tmp_path / "wrong.py", feature.wrong)
    assert found, "nothing is reported of what differs"
    # Each says why: what differs is quoted, or the place is shown where it comes from.
    assert all("`" in item.message.en or item.related for item in found)
    assert _reported(analyzer, tmp_path / "right.py", feature.right) == []


def _reported(analyzer: Analyzer, path: Path, text: str) -> list[Finding]:
    path.write_text(text, encoding="utf-8")
    analysis = analyzer.open(path, text)
    assert not analysis.rule_errors, "\n".join(analysis.rule_errors.values())
    return [item for item in analysis.findings if item.code.startswith("RS4")]
