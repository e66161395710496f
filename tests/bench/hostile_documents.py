"""What a hostile document in the editor costs the others: a key to its diagnostics in a file of 1,000 lines, in one
server with the document open and just opened or edited, in another without it, key by key in turn.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compared_tools import LANGUAGE_SERVER_PATH, ROOT, ranksafe_command
from lsp_driver import Server, Shown
from report import Figure
from sources import SourceFile

sys.path.append(str(ROOT))  # The attacks are those of the tests.
from tests.hardening.shapes import FOUND, HEAD, text_of
from tests.hardening.test_computed_values import ATTACKS, PROGRAM
from tests.hardening.test_large_files import RINGS

TARGET_MILLISECONDS = 200.0
DELAYS = (0.0, 0.03, 0.1, 0.25, 0.5, 1.0)
"""Seconds from the event in the hostile document to the key in the other one."""
RING_FILES = 1_500


def _attacked(names: list[str]) -> str:
    """A file with these attacks, a function for each."""
    functions = (
        PROGRAM.replace("main", f"main{number}").format(
            attack="\n".join(f"    {line}" for line in ATTACKS[name].splitlines())
        )
        for number, name in enumerate(names)
    )
    return HEAD + "".join(functions)


def _ring(folder: Path) -> str:
    """Modules that import each other in a ring, written beside the document, which is one of them."""
    texts = []
    for number in range(RING_FILES):
        form = HEAD + RINGS["classes"] + "def f{n}(a):\n    f{next}(a)\n    dist.all_reduce(a)\n"
        text = form.format(n=number, next=(number + 1) % RING_FILES) + FOUND
        (folder / f"m{number}.py").write_text(text)
        texts.append(text)
    (folder / "m0.py").unlink()
    (folder / "hostile.py").write_text(texts[0])
    (folder / f"m{RING_FILES - 1}.py").write_text(texts[-1].replace("m0", "hostile"))
    return texts[0]


DOCUMENTS: dict[str, Callable[[Path], str]] = {
    "5 MB": lambda _: HEAD + "x = 'some text of a file of five megabytes'\n" * 120_000 + FOUND,
    "200,000 lines": lambda _: text_of("plain lines", 200_000),
    "20,000 classes": lambda _: text_of("classes", 20_000),
    "50,000 ignore comments": lambda _: text_of("ignore comments", 50_000),
    "6,000 classes": lambda _: text_of("classes", 6_000),
    "24,000 ignore comments": lambda _: text_of("ignore comments", 24_000),
    "cycle of 2,000 functions": lambda _: text_of("functions in a ring", 2_000),
    "cycle of 4,800 functions": lambda _: text_of("functions in a ring", 4_800),
    "8,000 methods": lambda _: text_of("methods", 8_000),
    "a function of 24,000 lines": lambda _: text_of("one function with branches", 12_000),
    "classes that derive in a row": lambda _: text_of(
        "classes that derive from each other", 12_000
    ),
    "a list of 14,000 calls": lambda _: text_of("one list of calls", 14_000),
    "a list of 130,000 calls": lambda _: text_of("one list of calls", 130_000),
    "with statements": lambda _: text_of("with", 12_000),
    "24,000 findings": lambda _: text_of("save", 24_000),
    "half of it broken": lambda _: text_of("half of them broken", 12_000),
    "values that double": lambda _: _attacked(list(ATTACKS)),
    "ring of 1,500 files": _ring,
}
"""By name: the text, given the folder where it will lie."""


@dataclass
class Typed:
    """Milliseconds of keys in the other file."""

    without: list[float] = field(default_factory=list)
    opened: list[float] = field(default_factory=list)
    edited: list[float] = field(default_factory=list)

    def later(self, times: list[float]) -> float:
        """By how much the median is later."""
        return statistics.median(times) - statistics.median(self.without)


def measure(file: SourceFile, scratch: Path, names: list[str] | None = None) -> list[Figure]:
    figures = []
    print(f"{'ms to diagnostics (median/most)':32}  without    just opened  just edited")
    for name in names or DOCUMENTS:
        typed = beside(name, file, scratch / name.replace(" ", "-"))
        columns = (typed.without, typed.opened, typed.edited)
        cells = (f"{statistics.median(times):.0f}/{max(times):.0f}" for times in columns)
        print(f"{name:32}  " + "  ".join(f"{cell:11}" for cell in cells), flush=True)
        later = max(typed.later(typed.opened), typed.later(typed.edited))
        figures.append(Figure(f"later beside {name}", later, TARGET_MILLISECONDS, unit="ms"))
    return figures


def beside(name: str, file: SourceFile, folder: Path) -> Typed:
    """Keys in a file beside a hostile document and without it."""
    folder.mkdir(parents=True)
    hostile, other = folder / "hostile.py", folder / "other.py"
    text = DOCUMENTS[name](folder)
    hostile.write_text(text)
    other.write_text(file.text + FOUND)
    typed = Typed()
    with server(folder) as alone, server(folder) as attacked:
        for each in (alone, attacked):
            each.open(other, file.text + FOUND)
            for key in range(6):
                each.type(file.line, file.column, key % 2, "" if key % 2 else "z")
        for number, delay in enumerate(DELAYS):
            events: list[tuple[list[float], Callable[[], Shown]]] = [
                (typed.opened, lambda: attacked.begin_open(hostile, text)),
                # The statement at its head is half typed, then whole again: all of it is parsed.
                (typed.edited, lambda: attacked.begin_type(hostile, 0, 0, 0, "(")),
                (typed.edited, lambda: attacked.begin_type(hostile, 0, 0, 1, "")),
            ]
            for count, (times, event) in enumerate(events):
                key = 3 * number + count
                milliseconds, expected = typed_key(alone, other, file, key)
                typed.without.append(milliseconds)
                wanted = event()
                time.sleep(delay)
                milliseconds, found = typed_key(attacked, other, file, key)
                times.append(milliseconds)
                if found != expected or not any(item["code"] == "RS401" for item in found):
                    raise AssertionError(f"findings were lost beside {name}")
                attacked.shown(wanted)
                time.sleep(0.5)
            attacked.close_file(hostile)
    return typed


def typed_key(
    to: Server, path: Path, file: SourceFile, key: int
) -> tuple[float, list[dict[str, Any]]]:
    """Milliseconds from a key to the diagnostics, and these."""
    sent = time.perf_counter()
    wanted = to.begin_type(path, file.line, file.column, key % 2, "" if key % 2 else "z")
    moment, found = to.shown(wanted)
    return 1000 * (moment - sent), found


@contextmanager
def server(folder: Path) -> Iterator[Server]:
    started = Server("ranksafe", ranksafe_command("lsp"), folder, LANGUAGE_SERVER_PATH)
    try:
        started.initialize()
        yield started
    finally:
        started.close()
