"""What may be imported before a script begins: only what it would import first, in its order."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from ranksafe.runs.warm.first_imports import first_imports


def _names(folder: Path, train: str, files: Mapping[str, str] | None = None) -> list[str]:
    for name, text in {"train.py": train, **(files or {})}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return [name for name, _ in first_imports(folder / "train.py").statements]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("import os, torch\nfrom transformers import Trainer\n", ["os", "torch", "transformers"]),
        ('"""What it does."""\nfrom __future__ import annotations\nimport torch\n', ["torch"]),
        (
            "import torch\nSIZE = 8\n\ndef f():\n    import numpy\n\nimport json\n",
            ["torch", "json"],
        ),
        ("import os\nos.environ['TOKENIZERS_PARALLELISM'] = '0'\nimport torch\n", ["os"]),
        ("import sys\nsys.path.insert(0, 'src')\nimport torch\n", ["sys"]),
        ("import torch\ntry:\n    import apex\nexcept ImportError:\n    apex = None\n", ["torch"]),
        ("import torch\nlog = print('x')\nimport json\n", ["torch"]),
        ("def broken(:\n", []),
    ],
)
def test_what_comes_before_anything_else(tmp_path: Path, text: str, names: list[str]) -> None:
    assert [each for each in _names(tmp_path, text) if each != "torch._dynamo"] == names


def test_modules_of_the_project_are_read_where_they_stand(tmp_path: Path) -> None:
    files = {
        "helpers/__init__.py": "import numpy\n",
        "helpers/tool.py": "from . import other\nimport yaml\n",
        "helpers/other.py": "import csv\n",
    }
    train = "import json\nfrom helpers import tool\nimport torch\n"
    assert _names(tmp_path, train, files) == ["json", "numpy", "csv", "yaml", "torch"]


@pytest.mark.parametrize(
    "first", ["", "import early\n"], ids=["read at once", "read before, for a function"]
)
def test_a_module_of_the_project_that_does_something_ends_the_list(
    tmp_path: Path, first: str
) -> None:
    files = {
        "setup.py": "import os\nos.environ['OMP_NUM_THREADS'] = '1'\n",
        "early.py": "def f():\n    import setup\n",
    }
    assert "torch" not in _names(
        tmp_path, f"import json\n{first}import setup\nimport torch\n", files
    )


@pytest.mark.parametrize(
    ("text", "compiles"),
    [("import torch\ntorch.optim.SGD\n", True), ("import torch\ntorch.ones(1)\n", False)],
)
def test_the_compiler_comes_with_an_optimizer(tmp_path: Path, text: str, compiles: bool) -> None:
    assert ("torch._dynamo" in _names(tmp_path, text)) is compiles


@pytest.mark.parametrize(
    ("text", "orders"),
    [
        ("for name in {'a', 'b'}:\n    print(name)\n", True),
        ("def f(names):\n    return list(set(names))\n", True),
        ("print(hash('a'))\n", True),
        ("print({'a': 1}, sorted(['b']))\n", False),
        ("import used\n", True),
    ],
)
def test_whether_the_order_of_a_set_may_matter(tmp_path: Path, text: str, orders: bool) -> None:
    _names(tmp_path, text, {"used.py": "NAMES = {name for name in 'ab'}\n"})
    assert first_imports(tmp_path / "train.py").orders_by_hash is orders
