"""How the tests are dealt out where several workers run them (pytest-xdist); a test by itself needs nothing of this."""

from __future__ import annotations

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
FIRST = ("tests/targets/", "tests/rehearsal/", "tests/proofs/", "tests/runs/", "tests/rank_bench/")
"""Folders whose tests start ranks, hosts and clusters: begun last, the longest of them would run alone at the end."""


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
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: rank_of(item.nodeid, FIRST))


def rank_of(test: str, folders: Sequence[str]) -> int:
    return next((at for at, each in enumerate(folders) if test.startswith(each)), len(folders))
