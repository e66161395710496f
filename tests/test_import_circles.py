"""No modules of ours import each other in a circle, not even for type checking or inside a function."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "ranksafe": ROOT / "server",
    "ranksafe_rules": ROOT / "rules",
    "ranksafe_agent": ROOT / "server/ranksafe/runs/agent/inject",
    "ranksafe_rehearsal": ROOT / "server/ranksafe/rehearsal/inject",
}
"""Each package and the folder it is imported from; the last two in the user's process."""
PROGRAMS = {"proof", "inject", "injected"}
"""Folders whose own files are started or put on the path one by one: nothing imports them."""


@pytest.fixture
def graph(monkeypatch: pytest.MonkeyPatch) -> grimp.ImportGraph:
    for folder in PACKAGES.values():
        monkeypatch.syspath_prepend(str(folder))
    return grimp.build_graph(*PACKAGES, exclude_type_checking_imports=False, cache_dir=None)


def test_no_modules_import_each_other_in_a_circle(graph: grimp.ImportGraph) -> None:
    circle = found_circle(graph)
    assert not circle, "a circle of imports: " + " -> ".join(circle)


def test_the_graph_has_every_module(graph: grimp.ImportGraph) -> None:
    """grimp passes over a folder without ``__init__.py`` in silence."""
    files = {
        path
        for package in ("ranksafe", "ranksafe_rules")
        for path in (PACKAGES[package] / package).rglob("*.py")
        if path.parent.name not in PROGRAMS
    }
    assert files <= {file for module in graph.modules for file in files_of(module)}


def found_circle(graph: grimp.ImportGraph) -> list[str]:
    """One circle of imports, each module importing the next; empty if there is none."""
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        module = error.args[1][0]
        ways = [
            [module, *(graph.find_shortest_chain(imported, module) or ())]
            for imported in sorted(imports[module])
            if graph.chain_exists(imported, module)
        ]
        return min(ways, key=len)
    return []


def files_of(module: str) -> tuple[Path, Path]:
    """The two files that a module may be."""
    package, *rest = module.split(".")
    path = PACKAGES[package].joinpath(package, *rest)
    return path.with_suffix(".py"), path / "__init__.py"
