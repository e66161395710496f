"""Scripts that others published, unchanged, end in a true pass or a true failure, and say what was replaced."""

from __future__ import annotations

from pathlib import Path

import pytest

from .public_scripts.published import (
    NotFetched,
    PublishedScript,
    Rehearsal,
    fetched,
    installed,
    rehearse,
    scripts,
)

_QUICK = {"trl-sft-python", "transformers-trainer"}
"""Need nothing that the test environment does not have."""
_LIMITS = {"opacus-cifar10"}
"""Known simulation limits, explained in the documentation."""


def _rehearsed(script: PublishedScript, python: Path, packages: Path | None) -> Rehearsal:
    try:
        return rehearse(script, fetched(script, python), python, packages)
    except NotFetched as problem:
        pytest.skip(str(problem))


@pytest.mark.long
def test_the_published_trl_script_fails_as_it_does_on_two_real_gpus(torch_python: Path) -> None:
    script = next(script for script in scripts() if script.name == "trl-sft-python")
    installed_script = next(
        torch_python.parents[1].glob("lib/python*/site-packages/trl/scripts/sft.py")
    )
    import hashlib

    if hashlib.sha256(installed_script.read_bytes()).hexdigest() != script.sha256:
        pytest.skip("another trl is installed than the manifest names")
    done = rehearse(script, installed_script, torch_python, None)
    assert done.outcome == "failed", done.stderr
    assert "DataParallel" in done.note
    replaced = " ".join(done.replaced)
    assert "model Qwen/Qwen2.5-0.5B" in replaced
    assert "dataset trl-lib/Capybara" in replaced


@pytest.mark.long
def test_the_documented_trainer_script_passes(torch_python: Path) -> None:
    script = next(script for script in scripts() if script.name == "transformers-trainer")
    done = rehearse(script, fetched(script, torch_python), torch_python, None)
    assert done.outcome == "succeeded", done.stderr
    assert len(done.replaced) == 3, done.replaced


def test_every_script_of_the_manifest_has_a_name_of_its_own() -> None:
    entries = scripts()
    assert len({script.name for script in entries}) == len(entries)
    assert len({script.sha256 for script in entries}) >= 20


@pytest.mark.long
@pytest.mark.parametrize("script", scripts(), ids=lambda script: script.name)
def test_published_scripts_end_truly(script: PublishedScript, torch_python: Path) -> None:
    done = _rehearsed(script, torch_python, installed(torch_python))
    if script.name in _LIMITS:
        assert done.outcome == "simulation-limit", done.note
    else:
        assert done.is_true, f"{done.outcome}: {done.note}\n{done.stderr[-3000:]}"
