"""Where the set-up keeps things."""

from __future__ import annotations

from pathlib import Path

import environments
import pytest


def test_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in ("RANKSAFE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert environments.cache_folder() == tmp_path / ".cache" / "ranksafe"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert environments.cache_folder() == tmp_path / "xdg" / "ranksafe"
    monkeypatch.setenv("RANKSAFE_CACHE", str(tmp_path / "own"))
    assert environments.cache_folder() == tmp_path / "own"


def test_torch_is_pinned_to_one_version() -> None:
    assert f"torch=={environments.TORCH}" in environments.RUN_PACKAGES
    assert set(environments.RUN_PACKAGES) <= set(environments.TEST_PACKAGES)
