"""How the tests are dealt out where several workers run them (pytest-xdist), and what an older Python leaves out."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from fnmatch import fnmatch
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from xdist.scheduler import LoadScopeScheduling

TOGETHER = {
    "one Slurm cluster": "tests/targets/test_slurm_*.py",
    "one SSH server": "tests/targets/test_ssh_*.py",
}
"""Files whose tests share what should be there once, or be alone."""
FIRST = (
    "tests/targets/",
    "tests/rehearsal/",
    "tests/proofs/",
    "tests/runs/",
    "tests/rank_bench/",
    "tests/site/",
)
"""Folders whose tests start ranks, hosts and clusters, or build the site: begun last, the longest of them would run alone at the end."""

# Nobody would use what a rehearsal keeps ready for the next one: those that test it say so.
os.environ["RANKSAFE_WARM"] = "off"


def group_of(test: str) -> str:
    """What is done by one worker: the tests of a file, whose fixtures are made once, or of files that go together."""
    file = test.partition("::")[0]
    return next((group for group, files in TOGETHER.items() if fnmatch(file, files)), file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadScopeScheduling:
    from xdist.scheduler import LoadScopeScheduling

    class GroupScheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    # By number of tests, which says nothing about how long they take.
    config.option.loadscopereorder = False
    return GroupScheduling(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    too_new = [item for item in items if _since(item) > sys.version_info[:2]]
    if too_new:
        config.hook.pytest_deselected(items=too_new)
        items[:] = [item for item in items if item not in too_new]
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: rank_of(item.nodeid, FIRST))


def _since(item: pytest.Item) -> tuple[int, int]:
    """The first Python that has what it tests: no other lacks anything, so none skips it."""
    mark = item.get_closest_marker("since_python")
    return (3, mark.args[0] if mark else 0)


def rank_of(test: str, folders: Sequence[str]) -> int:
    return next((at for at, each in enumerate(folders) if test.startswith(each)), len(folders))
