"""How many of the labelled places ranksafe finds.

    python -m tests.corpus.recall.score CLONES [--places FOLDER] [--misses]

CLONES holds a clone of each repository as ``owner+name`` (or its git directory as ``owner+name/repo``). A place counts
as found where a rule for its kind reports it on the labelled line or one of the lines in ``also``; warnings and
information are counted apart. Places after their mending must be silent.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SUFFIXES = {".py", ".sh", ".slurm", ".sbatch", ".md", ".yaml", ".yml", ".toml"}
CODES = {
    "accumulation-without-no-sync": {"RS530"},
    "batch-over-world-unchecked": {"RS304"},
    "batchnorm-small-batch": {"RS302", "RS303"},
    "collective-in-rank-branch": {"RS401"},
    "backward-without-accelerator": {"RS524"},
    "data-parallel": {
        *("RS101", "RS102", "RS103", "RS210", "RS211", "RS223", "RS302", "RS303", "RS501", "RS505", "RS506"),
        *("RS510", "RS511", "RS512", "RS513", "RS514", "RS515", "RS532"),
    },
    "ddp-without-sampler": {"RS312"},
    "device-not-set": {"RS220"},
    "device-map-auto": {"RS101", "RS201"},
    "download-race": {"RS605"},
    "file-on-every-rank": {"RS602"},
    "fixed-port": {"RS115"},
    "forward-on-some-ranks": {"RS403"},
    "forward-past-wrapper": {"RS521"},
    "global-rank-device": {"RS221"},
    "load-without-map-location": {"RS601"},
    "local-metric": {"RS702"},
    "local-rank-option": {"RS110"},
    "loss-scaled-by-world": {"RS528"},
    "makedirs-race": {"RS603"},
    "next-parameters-in-forward": {"RS514"},
    "no-set-epoch": {"RS310"},
    "no-sync-after-forward": {"RS534"},
    "none-on-other-ranks": {"RS409"},
    "plain-tensor-attribute": {"RS513"},
    "rank-local-break": {"RS404"},
    "removal-race": {"RS606"},
    "same-random-stream": {"RS317"},
    "sampler-seed": {"RS314"},
    "scheduler-stepped-n-times": {"RS527"},
    "spawn-without-main": {"RS112"},
    "tracker-on-every-rank": {"RS701"},
    "uneven-batches": {"RS406"},
    "unseeded-split": {"RS315"},
    "unused-parameters": {"RS531"},
    "visible-devices-late": {"RS111"},
    "wrapped-state-loaded": {"RS604"},
    "wrapped-state-saved": {"RS604"},
    "wrapper-attribute": {"RS520"},
    "zero3-state-not-gathered": {"RS402"},
}
"""The rules for each kind; a kind that is not here has none."""


@dataclass(frozen=True)
class Place:
    """A labelled place."""

    repository: str
    commit: str
    path: str
    lines: frozenset[int]
    kind: str
    level: str


def places(file: Path) -> list[Place]:
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    return [
        Place(
            row["repository"],
            row["commit"],
            row["path"],
            frozenset([row["line"], *row.get("also", ())]),
            row["kind"],
            row.get("level", ""),
        )
        for row in rows
    ]


def found_in(clones: Path, labelled: list[Place]) -> Iterator[tuple[Place, str]]:
    """Every place with the level at which it is found; empty where it is not."""
    by_commit: dict[tuple[str, str], list[Place]] = defaultdict(list)
    for place in labelled:
        by_commit[place.repository, place.commit].append(place)
    for (repository, commit), here in by_commit.items():
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            check_out(clones, repository, commit, folder)
            findings = check(folder)
            for place in here:
                yield place, _level(place, findings, folder)


def check_out(clones: Path, repository: str, commit: str, folder: Path) -> None:
    """Code, and what may say how it is started; what a clone lacks (large files) is left out."""
    clone = clones / repository.replace("/", "+")
    git = ["git", "-C", str(clone / "repo" if (clone / "repo").is_dir() else clone)]
    listed = subprocess.run([*git, "ls-tree", "-r", "-z", commit], capture_output=True, check=True)
    with subprocess.Popen(
        [*git, "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as reader:
        assert reader.stdin is not None
        assert reader.stdout is not None
        for entry in filter(None, listed.stdout.decode().split("\0")):
            description, _, path = entry.partition("\t")
            _, kind, name = description.split()
            is_wanted = Path(path).suffix in SUFFIXES or Path(path).name.startswith("requirements")
            if kind != "blob" or not is_wanted:
                continue
            reader.stdin.write(f"{name}\n".encode())
            reader.stdin.flush()
            answer = reader.stdout.readline().split()
            if answer[1:2] == [b"blob"]:
                content = reader.stdout.read(int(answer[2]) + 1)[:-1]
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_bytes(content)


def check(folder: Path) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "ranksafe", "check", "--no-cache", "--exit-zero"]
    done = subprocess.run(
        [*command, "--output-format", "json", str(folder)],
        capture_output=True,
        text=True,
        check=True,
    )
    findings: list[dict[str, Any]] = json.loads(done.stdout)
    return findings


def _level(place: Place, findings: list[dict[str, Any]], folder: Path) -> str:
    file = str(folder / place.path)
    levels = {
        finding["level"]
        for finding in findings
        if finding["filename"] == file
        and finding["code"] in CODES.get(place.kind, ())
        and finding["location"]["row"] in place.lines
    }
    return "information" if levels == {"information"} else max(levels, default="")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clones", type=Path)
    parser.add_argument("--places", type=Path, default=HERE, help="the folder of the labels")
    parser.add_argument("--misses", action="store_true", help="name what is not found")
    options = parser.parse_args()
    rows: dict[str, list[str]] = defaultdict(list)
    for place, level in found_in(options.clones, places(options.places / "labels.jsonl")):
        for row in ("all", place.level, f"  {place.kind}"):
            rows[row].append(level)
        if options.misses and not level:
            where = f"{place.repository} {place.path}:{min(place.lines)}"
            print(f"not found: {place.kind:30} {where}")
    for name, levels in sorted(rows.items()):
        warned = sum(level in ("warning", "error") for level in levels)
        told = levels.count("information")
        share = f"{100 * warned / len(levels):3.0f} %"
        print(
            f"{name:34} {len(levels):4} places  {warned:4} found {share}  {told:3} as information"
        )
    mended = places(options.places / "fixed.jsonl")
    said = [place for place, level in found_in(options.clones, mended) if level]
    print(f"{len(said)} findings on places that are mended")
    for place in said:
        print(f"  {place.kind:30} {place.repository} {place.path}:{min(place.lines)}")


if __name__ == "__main__":
    main()
