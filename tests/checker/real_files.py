"""Real code to edit."""

from __future__ import annotations

import os
import random
from pathlib import Path

import ranksafe

PACKAGE = Path(ranksafe.__file__).parent
OWN_FILES = sorted(PACKAGE.rglob("*.py"))


def real_files(limit: int, largest: int = 90_000) -> list[Path]:
    """Files of the training libraries where they are installed, else ranksafe's own; ``largest`` in bytes."""
    folder = os.environ.get("RANKSAFE_TEST_TORCH_PYTHON")
    names = [
        "accelerate/**/*.py", "trl/trainer/*.py", "trl/scripts/*.py", "transformers/trainer*.py",
        "transformers/integrations/*.py", "torch/distributed/*.py", "torch/nn/parallel/*.py",
    ]  # fmt: skip
    found: list[Path] = []
    if folder:
        for site in sorted(Path(folder).parent.parent.glob("lib/python3*/site-packages")):
            for name in names:
                found += sorted(site.glob(name))
    found = [path for path in found if 2_000 < path.stat().st_size < largest]
    rng = random.Random(20261120)
    return sorted(rng.sample(found, min(limit, len(found)))) or OWN_FILES[:limit]
