"""What a dry run of a release has checked, and what was wrong."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from environments import SetUpError, say


@dataclass
class Report:
    """Every check says itself as it is made."""

    passed: int = 0
    failures: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def check(self, name: str, complaints: Iterable[str]) -> None:
        """Note one check; it passes without complaints."""
        found = [f"{name}: {complaint}" for complaint in complaints]
        self.passed += not found
        self.failures += found
        for line in found or [name]:
            print(f"{'FAILED' if found else 'ok'} {line}", flush=True)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Name what comes, and tell how long it took; a program that fails in it is a failure."""
        say(name)
        began = time.monotonic()
        try:
            yield
        except (SetUpError, subprocess.CalledProcessError) as error:
            said = getattr(error, "stderr", None) or ""
            self.check(name, [f"{error} {said}".rstrip()])
        say(f"{name}: {time.monotonic() - began:.0f} s")

    def end(self) -> int:
        """The last words; the exit status."""
        for reason in self.skipped:
            print(f"SKIPPED {reason}")
        for failure in self.failures:
            print(f"FAILED {failure}")
        print(f"{self.passed} passed, {len(self.failures)} failed", flush=True)
        return 1 if self.failures else 0
