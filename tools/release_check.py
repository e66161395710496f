"""``make release-check``: build every artefact of a release, look into it, install it, start it. Publishes nothing.

    python tools/release_check.py                   what is checked out, as if it were released
    python tools/release_check.py --tag v0.1.0      the tag fits, too; the workflow `release` runs this
    python tools/release_check.py --no-editor --target universal    the quickest part of it

The artefacts lie in dist/release afterwards, with their checksums, SBOMs and provenance. Once the caches are filled
(RANKSAFE_CACHE, build/wheels, node_modules) it needs no network.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from environments import ROOT, SetUpError, cache_folder, release_environment, say
from gate import read_node_tests
from interpreters import supported_versions
from release.artefact import Artefact, Complaints, read_artefact
from release.contents import Source, git, traces_of, unwanted
from release.installation import install, lowest_and_newest, misbehaviour
from release.python_packages import check_sdist, check_wheel
from release.report import Report
from release.statements import npm, write_checksums, write_provenance, write_sboms
from release.versions import disagreements, source_version
from release.vsix import TARGETS, UNIVERSAL, check_vsix, pinned_libraries

SECRETS = '{"rules": [{"id": "@secretlint/secretlint-rule-preset-recommend"}]}'
_OF_THE_SHELL = ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE")  # fmt: skip


class Release:
    """One release, from the checkout to what would be published. Raises SetUpError."""

    def __init__(self, tag: str | None, targets: Sequence[str], out: Path, scratch: Path) -> None:
        self.tag = tag
        self.targets = targets
        self.out = out
        self.scratch = scratch
        self.version = source_version(ROOT)
        manifest = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))
        self.source = Source(ROOT, manifest["homepage"])
        self.report = Report()
        self.pythons = lowest_and_newest()
        self.tools = release_environment()
        kept = {name: value for name, value in os.environ.items() if name not in _OF_THE_SHELL}
        time = git(ROOT, "log", "-1", "--format=%ct").strip()
        own = {"SOURCE_DATE_EPOCH": time, "RANKSAFE_BUILD_PYTHON": str(self.tools)}
        self.environment = {**kept, **own}
        self.wheel = out / f"ranksafe-{self.version}-py3-none-any.whl"

    def run(self, *, editor: bool) -> int:
        """All of it; 0 when nothing was wrong. What was built is kept in any case."""
        report = self.report
        with report.step("versions"):
            report.check("one version everywhere", disagreements(ROOT, self.tag))
            report.check("what is committed", self.uncommitted())
        before = len(report.failures)
        with report.step("sdist and wheel"):
            self.build_python()
        with report.step("packages of the extension"):
            self.build_extension()
        if len(report.failures) == before:
            self.check_what_was_built(editor=editor)
        print()
        for path in sorted(self.out.iterdir()):
            print(f"{path.stat().st_size:>12,}  {path.name}")
        return report.end()

    def check_what_was_built(self, *, editor: bool) -> None:
        """Look into it, use it, describe it."""
        artefacts = sorted(self.out.iterdir())
        with self.report.step("contents"):
            for path in artefacts:
                self.inspect(read_artefact(path))
            self.find_secrets()
        folder = self.scratch
        for version, python in self.pythons.items():
            with self.report.step(f"the wheel on Python {version}"):
                folder = self.scratch / f"python{version}"
                install(self.wheel, python, folder, self.tools)
                wrong = misbehaviour(folder, self.version, self.environment)
                self.report.check(f"installed without an index, Python {version}", wrong)
        with self.report.step("checksums, SBOMs, provenance"):
            self.describe(artefacts, folder)
        here = [each for each in (self.this_target(), UNIVERSAL) if each in self.targets]
        for target in here if editor else ():
            for version, python in self.pythons.items():
                with self.report.step(f"VS Code, {target}, nothing but Python {version}"):
                    self.start_editor(target, version, python)

    def uncommitted(self) -> Complaints:
        """Why what is built is not what the commit, or the tag, says."""
        if changed := git(ROOT, "status", "--porcelain").strip():
            yield f"there are changes that are not committed:\n{changed}"
        if self.tag is not None and self.tag not in git(ROOT, "tag", "--points-at", "HEAD").split():
            yield f"the tag {self.tag} is not that of the commit that is checked out"

    def build_python(self) -> None:
        """The sdist, and the wheel from it; twice, to see that both are the same each time."""
        again = self.scratch / "again"
        for goal in (self.out, again):
            build = ["-m", "build", "--no-isolation", "--outdir", str(goal), str(ROOT)]
            self.call(str(self.tools), *build)
        for path in again.iterdir():
            self.same(path, self.out / path.name)
        self.call(
            str(self.tools), "-m", "twine", "check", "--strict", *map(str, self.out.iterdir())
        )
        self.report.check("PyPI's page can be made of both (twine)", ())

    def build_extension(self) -> None:
        """One package per platform; the universal one, which is small, twice."""
        if not (ROOT / "node_modules").is_dir():
            self.call(npm(), "ci", "--no-audit", "--no-fund")
        for target in (*self.targets, UNIVERSAL):
            script = ["client/bundle/package.mjs", "--target", target, "--ref", f"v{self.version}"]
            self.call("node", *script)
            goal = self.vsix(target)
            if goal.exists():
                self.same(ROOT / "dist" / goal.name, goal)
            shutil.copy(ROOT / "dist" / goal.name, goal)

    def inspect(self, artefact: Artefact) -> None:
        """What it holds, and what it must not."""
        name = artefact.name
        self.report.check(f"{name}: nothing unwanted", unwanted(artefact))
        machine = [ROOT, self.scratch, cache_folder(), Path.home() / ".cache"]
        self.report.check(f"{name}: no paths of this machine", traces_of(artefact, machine))
        if name.endswith(".tar.gz"):
            self.report.check(f"{name}: complete", check_sdist(artefact, self.source))
        elif name.endswith(".whl"):
            self.report.check(f"{name}: complete", check_wheel(artefact, self.source, self.version))
        else:
            target = name.removeprefix("ranksafe-").removesuffix(f"-{self.version}.vsix")
            pinned, pythons = pinned_libraries(ROOT, target), supported_versions()
            found = check_vsix(artefact, self.source, self.version, target, pinned, pythons)
            self.report.check(f"{name}: complete, for {target} alone", found)

    def find_secrets(self) -> None:
        """Keys and tokens, with secretlint. vsce looks into each .vsix itself; here all that is ours is looked into."""
        folder = self.scratch / "unpacked"
        for path in (self.wheel, self.vsix(UNIVERSAL)):
            shutil.unpack_archive(path, folder / path.suffix, "zip")
        program = str(ROOT / "node_modules/secretlint/bin/secretlint.js")
        self.call("node", program, "--secretlintrcJSON", SECRETS, "**/*", folder=folder)
        self.report.check("no secrets (secretlint)", ())

    def describe(self, artefacts: Sequence[Path], installed: Path) -> None:
        """Write what is said of them, and have the formats' own libraries read it."""
        sboms = write_sboms(self.source, self.out, self.version, self.tools, installed)
        provenance = write_provenance(self.source, self.out, [*artefacts, *sboms], self.tag)
        said = [*sboms, provenance]
        write_checksums(self.out, [*artefacts, *said])
        for path in said:
            traces = traces_of(Artefact(path, {path.name: path.read_bytes()}), [ROOT, installed])
            self.report.check(f"{path.name}: no paths of this machine", traces)
        script = str(ROOT / "tools/release/validate.py")
        problems = self.call(str(self.tools), script, *map(str, said)).splitlines()
        self.report.check("SBOMs and provenance are valid", problems)

    def start_editor(self, target: str, version: str, python: Path) -> None:
        """VS Code with the package and a PATH of one Python: squiggle, status, fix, the extension's page."""
        own = {"RANKSAFE_VSIX": str(self.vsix(target)), "RANKSAFE_ONLY_PYTHON": str(python)}
        environment = {**self.environment, **own}
        environment.pop("RANKSAFE_TEST_TORCH_PYTHON", None)
        words = ["node", "tests/editors/vscode/run.mjs"]
        done = subprocess.run(
            words, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=False
        )
        print(done.stdout, end="", flush=True)
        counts = read_node_tests(done.stdout)
        self.report.skipped += counts.skipped
        if done.returncode or not counts.skipped:
            good = done.returncode == 0 and counts.passed > 0
            complaints = [] if good else [f"status {done.returncode}"]
            self.report.check(f"{target} starts on Python {version}", complaints)

    def this_target(self) -> str:
        """The package for this machine."""
        return self.call("node", "--print", "`${process.platform}-${process.arch}`").strip()

    def vsix(self, target: str) -> Path:
        """Where the package of a platform lies."""
        return self.out / f"ranksafe-{target}-{self.version}.vsix"

    def same(self, first: Path, second: Path) -> None:
        """Two builds gave the same bytes."""
        equal = first.read_bytes() == second.read_bytes()
        complaints = [] if equal else ["two builds differ"]
        self.report.check(f"{first.name}: the same when it is built again", complaints)

    def call(self, *command: str, folder: Path = ROOT) -> str:
        """What a program prints, which is shown if it fails. Raises CalledProcessError."""
        done = subprocess.run(
            command,
            cwd=folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            print(done.stdout, flush=True)
        done.check_returncode()
        return done.stdout


def arguments_of(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--tag", help="the tag that is released: v and the version")
    parser.add_argument("--no-editor", action="store_true", help="do not start VS Code")
    parser.add_argument("--target", action="append", choices=TARGETS, help="some of the packages")
    parser.add_argument("--out", type=Path, default=ROOT / "dist" / "release", help="emptied first")
    return parser.parse_args(words)


def main(words: list[str]) -> int:
    options = arguments_of(words)
    out = options.out.absolute()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="ranksafe-release-") as scratch:
        try:
            release = Release(options.tag, options.target or TARGETS, out, Path(scratch))
            return release.run(editor=not options.no_editor)
        except SetUpError as error:
            say(str(error))
            return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
