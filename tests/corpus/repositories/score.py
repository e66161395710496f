"""What became of the judged findings: which are reported still.

    python -m tests.corpus.repositories.score CLONES [--still wrong]

CLONES holds a clone of each repository, as for `tests.corpus.recall.score`. What is reported now and was not then is
counted, and not judged.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.corpus.recall.score import check, check_out

HERE = Path(__file__).parent
ANY_RULE = ""
"""Of a place that was missed."""
Row = dict[str, Any]


def judged(file: Path) -> list[Row]:
    """The rows of one set, those of places that were missed included."""
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def reported_now(clones: Path, rows: list[Row]) -> Iterator[tuple[str, list[tuple[str, int, str]]]]:
    """Each repository with the findings that are there now: path, line and rule."""
    for repository, commit in dict.fromkeys((row["repository"], row["commit"]) for row in rows):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name).resolve()
            check_out(clones, repository, commit, folder)
            yield (
                repository,
                [
                    (
                        Path(finding["filename"]).relative_to(folder).as_posix(),
                        finding["location"]["row"],
                        finding["code"],
                    )
                    for finding in check(folder)
                ],
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clones", type=Path)
    parser.add_argument("--still", metavar="VERDICT", help="name those that are reported still")
    options = parser.parse_args()
    for file in sorted(HERE.glob("*.jsonl")):
        rows = judged(file)
        then: dict[str, list[Row]] = defaultdict(list)
        for row in rows:
            then[row["repository"]].append(row)
        counts: Counter[str] = Counter(row["verdict"] for row in rows)
        still: Counter[str] = Counter()
        new = 0
        for repository, now in reported_now(options.clones, rows):
            known = {(row["path"], row["line"], row["rule"]) for row in then[repository]}
            new += sum(finding not in known for finding in now)
            reported = {*now, *((path, line, ANY_RULE) for path, line, _ in now)}
            for row in then[repository]:
                if (row["path"], row["line"], row["rule"]) in reported:
                    still[row["verdict"]] += 1
                    if row["verdict"] == options.still:
                        where = f"{repository} {row['path']}:{row['line']}"
                        print(f"{row['rule']} {where}\n    {row['why']}")
        told = ", ".join(f"{verdict} {still[verdict]} of {counts[verdict]}" for verdict in counts)
        print(f"{file.stem}: reported now: {told}; not judged {new}")


if __name__ == "__main__":
    main()
