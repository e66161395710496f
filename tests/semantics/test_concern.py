"""What may make ranks part is known before anything is walked, across files, and forgotten when they change."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from ranksafe.semantics.mentions import RankWords
from ranksafe.semantics.module import Module
from ranksafe.semantics.project.index import ProjectIndex
from ranksafe.source.text import SourceText

WORDS = RankWords(frozenset({"all_reduce", "rank"}), frozenset({"step"}), "Accelerator")


def write(root: Path, name: str, text: str) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def concerns(index: ProjectIndex, path: Path) -> bool:
    text = path.read_text("utf-8")
    module = Module(SourceText(text), index.module_name(path), str(path), index)
    module.fill(ast.parse(text))
    function = module.definition(["work"]) or module.definition(["A", "work"])
    assert function is not None
    return module.may_concern_ranks(function, WORDS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def work(x):\n    return x + 1\n", False),
        ("def work(x):\n    dist.all_reduce(x)\n", True),
        ("def work(rank):\n    pass\n", True),
        ("from torch.distributed import all_reduce as join\ndef work(x):\n    join(x)\n", True),
        ("def help(x):\n    x.all_reduce()\ndef work(x):\n    help(x)\n", True),
        ("def help(x):\n    x.all_reduce()\ndef work(x):\n    return x\n", False),
        ("class A:\n    def go(self):\n        rank\ndef work(x):\n    x.go()\n", True),
        ("class A:\n    def go(self):\n        rank\ndef work(x):\n    A()\n", True),
        ("class A:\n    def go(self):\n        rank\ndef work(x):\n    getattr(x, 'go')()\n", True),
        (
            "class A:\n    def __init__(self):\n        self.b = B()\n    def work(self):\n        self.b(1)\n"
            "class B:\n    def forward(self):\n        rank\n",
            True,
        ),
        ("first = rank == 0\ndef work(x):\n    if first:\n        x()\n", True),
        ("def work(x):\n    x.step()\n", False),
        ("from accelerate import Accelerator\ndef work(x):\n    x.step()\n", True),
    ],
)
def test_what_a_function_mentions_and_refers_to(tmp_path: Path, text: str, expected: bool) -> None:
    path = write(tmp_path, "user.py", text)
    assert concerns(ProjectIndex(tmp_path), path) is expected


@pytest.mark.parametrize("store", [None, "store"])
def test_through_other_files_until_they_change(tmp_path: Path, store: str | None) -> None:
    root = tmp_path / "project"
    user = write(root, "user.py", "from pkg import Engine\ndef work():\n    Engine().run()\n")
    write(root, "pkg/__init__.py", "from .engine import Engine\n")
    write(root, "pkg/engine.py", "from .base import Base\nclass Engine(Base):\n    pass\n")
    base = write(root, "pkg/base.py", "class Base:\n    def run(self):\n        pass\n")
    folder = None if store is None else tmp_path / store
    index = ProjectIndex(root, store_folder=folder)
    index.closure(user)
    assert not concerns(index, user)

    before = base.read_text("utf-8")
    change = index.update(base, before.replace("pass", "self.all_reduce()"))
    assert index.affected([change], [user]) == {user}
    assert concerns(index, user)
    index.update(base, before)
    assert not concerns(index, user)
    index.store.flush()
    assert not concerns(ProjectIndex(root, store_folder=folder), user)


def test_what_was_read_is_noted(tmp_path: Path) -> None:
    user = "from other import thing\nclass A:\n    def go(self):\n        self.x\ndef help():\n    thing()\ndef work(x):\n    x.go()\n    help()\n"
    path = write(tmp_path, "user.py", user)
    write(tmp_path, "other.py", "def thing():\n    pass\n")
    index = ProjectIndex(tmp_path)
    module = Module(SourceText(user), "user", str(path), index)
    module.fill(ast.parse(user))
    function = module.definition(["work"])
    assert function is not None
    with module.reading() as reads:
        assert not module.may_concern_ranks(function, WORDS)
    assert {("method", "go"), ("binding", "help"), ("project", "other.thing")} <= reads
    units = [key for key in reads if key[0] == "unit"]
    assert len(units) == 3
    assert any(key[0] == "text" for key in reads)
    assert module.asked_project
    assert re.search(WORDS.wrappers, user) is None
