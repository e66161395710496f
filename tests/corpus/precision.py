"""How many of ranksafe's findings in other people's packages are right.

    make corpus
    python -m tests.corpus.precision [--only NAME...] [--write PAGE] [--json FILE] [--without-verdict FILE]

Checks the packages of packages.jsonl with the default rules and compares with verdicts.jsonl. Exit status 1 where a
finding has no verdict or a limit is passed. Installed packages are read from RANKSAFE_TEST_TORCH_PYTHON's environment,
all others are downloaded once into the cache. docs/precision.md says what the verdicts mean.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from tests.bench.compared_tools import cache_folder
from tests.corpus.findings import check, judged, read_verdicts, write_findings
from tests.corpus.packages import Package, copy_installed, count_lines, download, read_packages
from tests.corpus.report import Results, page_figures, report, within_limits

BEGIN, END = "<!-- figures -->\n", "<!-- end of figures -->\n"
"""What stands between them in a page is written by ``--write``."""


def run(packages: list[Package], downloads: Path, torch_python: Path | None) -> Results:
    """Get and check each package on its own."""
    results = Results(packages)
    verdicts = read_verdicts()
    for package in packages:
        with tempfile.TemporaryDirectory() as name:
            folder = downloads / package.requirement
            if package.installed and torch_python is not None:
                folder = Path(name)
                copy_installed(package, torch_python, folder)
            else:
                download(package, folder)
            start = time.monotonic()
            found = judged(check([package], folder), verdicts)
            results.seconds[package.requirement] = time.monotonic() - start
            results.lines[package.requirement] = count_lines(folder)
        results.findings += found
        print(f"{package.requirement}: {len(found)}", file=sys.stderr, flush=True)
    names = {package.requirement for package in packages}
    places = {finding.place for finding in results.findings if finding.verdict}
    results.gone = [
        verdict for verdict in verdicts if verdict.package in names and verdict.place not in places
    ]
    return results


def write_figures(results: Results, page: Path) -> None:
    """Put the figures of this run into a page of the documentation."""
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}{page_figures(results)}{END}{after}", encoding="utf-8")


def main(words: list[str]) -> int:
    """Run, print, and say whether all is well."""
    parser = argparse.ArgumentParser(description="how many findings in real packages are right")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these packages")
    parser.add_argument(
        "--downloads", type=Path, default=cache_folder() / "corpus", help="where packages are kept"
    )
    parser.add_argument("--json", type=Path, help="write sizes and findings to this file")
    parser.add_argument("--without-verdict", type=Path, help="write findings to be judged here")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="write the figures into a page")
    chosen = parser.parse_args(words)
    packages = read_packages()
    if chosen.only:
        packages = [item for item in packages if {item.name, item.requirement} & set(chosen.only)]
    torch_python = os.environ.get("RANKSAFE_TEST_TORCH_PYTHON")
    results = run(packages, chosen.downloads, Path(torch_python) if torch_python else None)
    print(report(results))
    if chosen.without_verdict:
        write_findings(results.without_verdict(), chosen.without_verdict)
    if chosen.write:
        write_figures(results, chosen.write)
    if chosen.json:
        found = [asdict(finding) for finding in results.findings]
        content = {"lines": results.lines, "seconds": results.seconds, "findings": found}
        chosen.json.write_text(json.dumps(content, indent=1), encoding="utf-8")
    return 0 if not results.without_verdict() and within_limits(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
