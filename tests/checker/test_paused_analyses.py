"""Analyses that are left at any of their pause points, for edits and for the analyses of other documents, and gone on
with: every open document keeps the findings of a fresh analysis."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from ranksafe.pausing import Pausable

from tests.checker.edited_project import EditedProject, Work
from tests.checker.test_edits_over_files import PROJECTS, SMALL


@dataclass
class PausedProject(EditedProject):
    """Leaves every analysis at random pause points."""

    going_on: dict[Path, deque[tuple[Pausable, Callable[[], None]]]] = field(default_factory=dict)
    """What is to be done for each document, one after the other."""
    pauses: int = 0

    def step(self) -> None:
        super().step()
        for _ in range(self.random.randrange(8)):
            self._go_on(self.random.randrange(1, 300))

    def close(self, name: str) -> None:
        for work, _ in self.going_on.pop(self.path(name), ()):
            work.abandon()
        super().close(name)

    def finish(self) -> None:
        """Have everything done."""
        while self.going_on:
            self._go_on(1_000)

    def _do(self, path: Path, work: Work, then: Work = lambda: None) -> None:
        self.going_on.setdefault(path, deque()).append((Pausable(work), then))

    def _go_on(self, points: int) -> None:
        """Go on with one of the analyses, over so many pause points."""
        if not self.going_on:
            return
        path = self.random.choice(list(self.going_on))
        waiting = self.going_on[path]
        work, then = waiting[0]
        for _ in range(points):
            if work.go_on(0):
                waiting.popleft()
                if not waiting:
                    del self.going_on[path]
                then()
                return
            self.pauses += 1


def edit_and_compare(files: dict[str, str], root: Path, edits: int, seed: int) -> None:
    project = PausedProject(root, random.Random(seed), files)
    for number in range(edits):
        project.step()
        if number % 4 == 3:
            project.finish()
            for path, analysis in project.analyses.items():
                assert not analysis.rule_errors, (path.name, project.last, analysis.rule_errors)
            assert project.found() == project.found_afresh(), f"step {number}: {project.last}"
    assert project.pauses > edits * 10


@pytest.mark.parametrize("name", SMALL)
def test_a_paused_analysis_finds_what_a_fresh_one_does(name: str, tmp_path: Path) -> None:
    edit_and_compare(PROJECTS[name], tmp_path, edits=24, seed=len(name))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", PROJECTS)
def test_the_same_under_many_edits(name: str, seed: int, tmp_path: Path) -> None:
    edit_and_compare(PROJECTS[name], tmp_path, edits=120, seed=seed)
