"""Programs to rewrite, each with the launch under which it is analysed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ranksafe.launch.context import LaunchContext, Launcher

from tests.corpus.findings import read_verdicts
from tests.corpus.packages import Package, copy_installed, read_packages
from tests.rank_bench.header import Program as BenchProgram
from tests.rank_bench.header import read_idioms, read_pairs
from tests.rules.case_file import read_cases
from tests.rules.conftest import REGISTRY

LIBRARIES = ("accelerate", "trl")


@dataclass(frozen=True)
class Program:
    """Files of one project."""

    name: str
    files: Mapping[str, str]
    launch: LaunchContext

    def write(self, folder: Path) -> None:
        for name, text in self.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")


def case_programs(code: str) -> Iterator[Program]:
    """The cases of a rule."""
    for folder in REGISTRY.rules:
        if folder.metadata.code == code:
            for case in read_cases(folder.cases_path):
                files = {source.name: source.text for source in case.sources}
                yield Program(case.heading, files, case.launch)


def benchmark_programs(area: str) -> Iterator[Program]:
    """The programs of an area of the benchmark."""
    programs = [program for pair in read_pairs() for program in (pair.incorrect, pair.corrected)]
    for program in [*programs, *read_idioms()]:
        if program.name.startswith(f"{area}/"):
            launch = LaunchContext(gpus=program.ranks, launcher=Launcher.TORCHRUN)
            yield Program(program.name, _files(program), launch)


def benchmark_areas() -> list[str]:
    names = {program.name for pair in read_pairs() for program in (pair.incorrect,)}
    return sorted({name.partition("/")[0] for name in names} | {"idioms"})


def _files(program: BenchProgram) -> dict[str, str]:
    folder = program.path.parent
    return {
        file.relative_to(folder).as_posix(): file.read_text(encoding="utf-8")
        for file in program.files
    }


def library_files_with_findings() -> list[str]:
    """The files of accelerate and trl in which something is known to be found."""
    installed = {package.requirement for package in _libraries()}
    return sorted({item.file for item in read_verdicts() if item.package in installed})


def copy_libraries(torch_python: Path, folder: Path) -> None:
    """Copy accelerate and trl."""
    for package in _libraries():
        copy_installed(package, torch_python, folder)


def _libraries() -> list[Package]:
    return [item for item in read_packages() if item.installed and item.name in LIBRARIES]
