"""The interpreter with torch; see ``tools/environments.py torch``."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def torch_python() -> Path:
    chosen = os.environ.get("RANKSAFE_TEST_TORCH_PYTHON")
    if not chosen:
        pytest.skip("needs torch: RANKSAFE_TEST_TORCH_PYTHON=$(python tools/environments.py torch)")
    return Path(chosen)
