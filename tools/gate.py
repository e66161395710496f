"""The gate: everything that must hold before a change is taken. ``make test`` runs it, ``make test-full`` all of it.

Quick checks first. A step that fails does not stop the later ones of its stage, so one run shows all there is to mend;
the next stage is not begun. The last line counts every test and check: ``N passed, N failed``.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from environments import (
    ROOT,
    SetUpError,
    other_environment,
    project_environment,
    say,
    torch_environment,
)
from interpreters import find_python, supported_versions
from system_packages import install_missing

TORCH_PYTHON = "RANKSAFE_TEST_TORCH_PYTHON"
"""Tells the tests where the interpreter with torch is."""
WITHOUT_TORCH = ["-m", "not long and not torch"]
NODE_MINIMUM = 20
MOST_UNSTABLE = 2
"""So many failed tests are run once more: they start real launchers, ranks and servers, which a busy machine can upset.
Whatever passes only then is named at the end, and is a failure of the full gate; more than these are no accident."""
MOST_WORKERS = 8
"""The tests start ranks, launchers and servers of their own."""
NO_NODE = f"Node {NODE_MINIMUM} or newer with npm is needed (nodejs.org)"


@dataclass
class Counts:
    """What a step found."""

    passed: int = 0
    failed: int = 0
    skipped: list[str] = field(default_factory=list)

    def add(self, other: Counts) -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped


@dataclass(frozen=True)
class Step:
    """One thing to do; it returns what it found."""

    name: str
    stage: str
    run: Callable[[], Counts]


class Gate:
    """One run of the gate."""

    def __init__(self, *, full: bool, pytest_arguments: list[str]) -> None:
        self.full = full
        self.pytest_arguments = pytest_arguments
        self.environment = dict(os.environ)
        self.python = Path(sys.executable)
        self.summaries: list[str] = []
        self.unstable: list[str] = []

    def steps(self) -> list[Step]:
        others = [Step("pytest on other Pythons", "tests", self.pytest_on_others)]
        return [
            Step("ruff check", "lint", lambda: self.check(["-m", "ruff", "check", "."])),
            Step(
                "ruff format", "lint", lambda: self.check(["-m", "ruff", "format", "--check", "."])
            ),
            Step("mypy", "lint", lambda: self.check(["-m", "mypy"])),
            Step("import contracts", "lint", lambda: self.check_program("lint-imports")),
            Step("commit subjects", "lint", lambda: self.check(["tools/commit_subjects.py"])),
            Step("npm ci", "client", lambda: self.npm("ci", "--no-audit", "--no-fund")),
            Step("tsc", "client", lambda: self.npm("run", "lint")),
            Step("client unit tests", "client", self.client_tests),
            Step("pytest", "tests", self.pytest),
            *(others if self.full else []),
            Step("VS Code journeys", "editors", self.journeys),
        ]

    def prepare(self, stages: set[str]) -> None:
        """Environments; raises SetUpError."""
        self.python = project_environment(development=True)
        self.environment |= tested(self.python, self.environment)
        # The tests find their own interpreters; the one the contributor has activated is none of theirs.
        # Without bytecode each of the thousand starts of ranksafe compiles it anew, a second every time.
        for variable in ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE"):
            self.environment.pop(variable, None)
        if "tests" in stages and in_ci():
            install_missing()
        if stages & {"tests", "editors"}:
            torch = self.environment.get(TORCH_PYTHON) or str(torch_environment())
            self.environment[TORCH_PYTHON] = torch

    def check(self, arguments: list[str]) -> Counts:
        return self._as_check(self._call([str(self.python), *arguments]))

    def check_program(self, name: str) -> Counts:
        return self._as_check(self._call([str(self.python.parent / name)]))

    def npm(self, *arguments: str) -> Counts:
        npm = shutil.which("npm")
        if npm is None or node_version() < NODE_MINIMUM:
            return Counts(skipped=[NO_NODE])
        attempts = 2 if arguments[0] == "ci" else 1
        status = 1
        for _ in range(attempts):
            status = self._call([npm, *arguments])
            if status == 0:
                break
        return self._as_check(status)

    def client_tests(self) -> Counts:
        return self._node_tests("npm", "run", "--silent", "test:client")

    def journeys(self) -> Counts:
        if not self.full:
            self.environment["RANKSAFE_JOURNEYS"] = "short"
        # Not through npm: the set-up of code-server calls npm itself, and the outer one's environment leads it astray.
        return self._node_tests("node", "tests/editors/vscode/run.mjs")

    def pytest(self) -> Counts:
        return self._pytest(self.python, [] if self.full else ["-m", "not long"])

    def pytest_on_others(self) -> Counts:
        """The lowest and the newest supported Python that are here; torch stays on its own."""
        counts = Counts()
        supported = supported_versions()
        found = {version: find_python(version) for version in supported}
        here = [version for version in supported if found[version] is not None]
        for version in (supported[0], supported[-1]):
            if version not in here:
                counts.skipped.append(f"Python {version} is needed: uv python install {version}")
        own = f"{sys.version_info.major}.{sys.version_info.minor}"
        for version in dict.fromkeys([*here[:1], *here[-1:]]):
            base = found[version]
            if base is not None and version != own:
                say(f"pytest on Python {version}")
                counts.add(self._pytest(other_environment(base, version), WITHOUT_TORCH))
        return counts

    def _pytest(self, python: Path, selection: list[str]) -> Counts:
        environment = {**self.environment, **tested(python, self.environment)}
        workers = ["-n", str(worker_count()), "--dist", "loadfile"]
        with TemporaryDirectory() as folder:
            report = Path(folder) / "report.xml"
            command = [str(python), "-m", "pytest", *selection, f"--junitxml={report}"]
            command += self.pytest_arguments
            status, output = self._watch([*command, *workers], environment)
            counts = read_junit(report)
            failed = failed_tests(report)
            self.summaries.append("\n".join(summary_of(output)))
            if counts.failed == len(failed) and 0 < len(failed) <= MOST_UNSTABLE:
                say("once more, by themselves: " + ", ".join(failed))
                only = ["--last-failed", "--last-failed-no-failures", "none"]
                status, _ = self._watch([*command, *only], environment)
                again = read_junit(report)
                if status == 0 and (again.passed, again.failed) == (counts.failed, 0):
                    self.unstable += failed
                    if not self.full:
                        counts.passed, counts.failed = counts.passed + counts.failed, 0
        if status != 0 and counts.failed == 0:
            counts.failed = 1
        return counts

    def _node_tests(self, *command: str) -> Counts:
        if node_version() < NODE_MINIMUM or shutil.which("npm") is None:
            return Counts(skipped=[NO_NODE])
        status, output = self._watch([shutil.which(command[0]) or command[0], *command[1:]])
        counts = read_node_tests(output)
        if status != 0 and counts.failed == 0:
            counts.failed = 1
        return counts

    def _call(self, command: list[str]) -> int:
        return subprocess.run(command, cwd=ROOT, env=self.environment, check=False).returncode

    def _watch(
        self, command: list[str], environment: dict[str, str] | None = None
    ) -> tuple[int, str]:
        """Run, showing the output as it comes and keeping it."""
        lines = []
        with subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment or self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                lines.append(line)
                print(line, end="", flush=True)
        return process.returncode, "".join(lines)

    @staticmethod
    def _as_check(status: int) -> Counts:
        return Counts(passed=1) if status == 0 else Counts(failed=1)


def tested(python: Path, environment: dict[str, str]) -> dict[str, str]:
    """What tells the tests, and all they start, which Python ranksafe runs on."""
    path = os.pathsep.join([str(python.parent), environment.get("PATH", "")])
    return {"PATH": path, "RANKSAFE_TEST_PYTHON": str(python)}


def worker_count() -> int:
    """How many tests run at once: one more than the cores that are ours, since some wait for most of their time."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return min(cores + 1, MOST_WORKERS)


def node_version() -> int:
    """The major version of Node on PATH; 0 without one."""
    node = shutil.which("node")
    if node is None:
        return 0
    answer = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    found = re.match(r"v(\d+)", answer.stdout)
    return int(found[1]) if found else 0


def read_junit(report: Path) -> Counts:
    """Counts from pytest's XML report; one failure when there is none."""
    try:
        suites = ET.parse(report).getroot().iter("testsuite")
    except (OSError, ET.ParseError):
        return Counts(failed=1)
    counts = Counts()
    for suite in suites:
        total, failed = int(suite.get("tests", 0)), 0
        for case in suite.iter("testcase"):
            skipped = case.find("skipped")
            if case.find("failure") is not None or case.find("error") is not None:
                failed += 1
            elif skipped is not None:
                counts.skipped.append(f"{case.get('name')}: {skipped.get('message')}")
        counts.failed += failed
        counts.passed += total - failed
    counts.passed -= len(counts.skipped)
    return counts


def failed_tests(report: Path) -> list[str]:
    """The names of the tests that pytest's XML report calls failed."""
    try:
        cases = list(ET.parse(report).getroot().iter("testcase"))
    except (OSError, ET.ParseError):
        return []
    return [
        f"{case.get('classname')}.{case.get('name')}"
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    ]


def read_node_tests(output: str) -> Counts:
    """Counts from the summary of ``node --test`` (``# pass 3`` or ``ℹ pass 3``) and from lines ``SKIPPED: why``."""

    def number(word: str) -> int:
        return sum(
            int(found) for found in re.findall(rf"^(?:#|ℹ) {word} (\d+)$", output, re.MULTILINE)
        )

    skipped = re.findall(r"^SKIPPED: (.+)$", output, re.MULTILINE)
    return Counts(number("pass"), number("fail") + number("cancelled"), skipped)


def summary_of(output: str) -> list[str]:
    """The end of pytest's output: its short summary and its last line."""
    lines = output.splitlines()
    starts = [number for number, line in enumerate(lines) if "short test summary" in line]
    return lines[starts[-1] :] if starts else lines[-1:]


def run(gate: Gate, steps: list[Step]) -> int:
    total = Counts()
    failed_stage: str | None = None
    failures: list[str] = []
    for step in steps:
        if failed_stage is not None and step.stage != failed_stage:
            break
        say(step.name)
        began = time.monotonic()
        try:
            counts = step.run()
        except SetUpError as error:
            say(str(error))
            counts = Counts(failed=1)
        say(
            f"{step.name}: {counts.passed} passed, {counts.failed} failed ({time.monotonic() - began:.0f} s)"
        )
        total.passed += counts.passed
        total.failed += counts.failed
        for reason in counts.skipped:
            total.skipped.append(f"{step.name}: {reason}")
        unwanted_skip = in_ci() and bool(counts.skipped)
        if unwanted_skip:
            total.failed += len(counts.skipped)
        if counts.failed or unwanted_skip:
            failures.append(step.name)
            failed_stage = step.stage
    report(gate, total, failures)
    return 1 if failures else 0


def in_ci() -> bool:
    """Whether continuous integration runs this: nothing may be skipped there."""
    return os.environ.get("CI", "").lower() in ("true", "1")


def report(gate: Gate, total: Counts, failures: list[str]) -> None:
    """The end of the output, in the order in which a hurried reader wants it: last line first."""
    print()
    for reason in total.skipped:
        print(f"SKIPPED{' (a failure with CI=true)' if in_ci() else ''} {reason}")
    for name in failures:
        print(f"FAILED {name}")
    for name in gate.unstable:
        print(f"UNSTABLE {name}: failed, then passed by itself")
    for summary in gate.summaries:
        print(summary)
    print(f"{total.passed} passed, {total.failed} failed", flush=True)


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="the long tests too")
    parser.add_argument("--only", action="append", help="a stage: lint, client, tests, editors")
    parser.add_argument("pytest", nargs="*", help="arguments for pytest, after --")
    arguments = parser.parse_args(words)
    gate = Gate(full=arguments.full, pytest_arguments=arguments.pytest)
    steps = [step for step in gate.steps() if not arguments.only or step.stage in arguments.only]
    try:
        gate.prepare({step.stage for step in steps})
    except SetUpError as error:
        say(str(error))
        print("0 passed, 1 failed")
        return 1
    return run(gate, steps)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
