"""Promise: of a kept result one bit of which has changed nothing is used."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from ranksafe.checker.finding import Finding, Level
from ranksafe.cli.cache import ResultCache
from ranksafe.cli.results import FileResult, Reported
from ranksafe.localization import Translated
from ranksafe.semantics.project.store_file import Stamp
from ranksafe.semantics.project.summary_store import Batch, SummaryStore
from ranksafe.source.position import Position, Range


def test_every_flipped_bit_of_the_results_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text("x = 1\n")
    place = Range(Position(0, 0), Position(0, 1))
    said = Translated("said", "说")
    finding = Finding("RS201", "a-rule", Level.WARNING, said, place)
    result = FileResult(path, (Reported(finding),))
    cache = ResultCache.open(tmp_path / "cache", "key", "state")
    cache.keep(result, path.stat(), "hash", alone=False)
    cache.save()
    whole = cache.file.read_bytes()
    assert (
        ResultCache.open(tmp_path / "cache", "key", "state").result_of(path, path.stat()) == result
    )
    for bit in range(len(whole) * 8):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        cache.file.write_bytes(damaged)
        kept = ResultCache.open(tmp_path / "cache", "key", "state").result_of(path, path.stat())
        assert kept is None, (bit, damaged)


def test_a_changed_fact_of_a_file_is_no_fact(tmp_path: Path) -> None:
    root = tmp_path / "project"
    stamps = {f"m{number}.py": Stamp(number, 1, "hash", number % 2 == 0) for number in range(4)}
    store = SummaryStore(tmp_path / "store", root)
    assert store.write(Batch(stamps, {"hash": "summary"}, {})) == "written"
    store = SummaryStore(tmp_path / "store", root)
    assert [store.stamp(root / name) for name in stamps] == list(stamps.values())
    assert store.summary("hash") == "summary"
    store.close()
    assert store.file is not None
    with closing(sqlite3.connect(store.file)) as connection:
        connection.execute("UPDATE files SET may_train = 1 - may_train WHERE path = 'm1.py'")
        connection.execute("UPDATE files SET hash = 'other' WHERE path = 'm2.py'")
        connection.execute("UPDATE files SET path = 'm9.py' WHERE path = 'm3.py'")
        connection.execute("UPDATE summaries SET text = 'summary of another'")
        connection.commit()
    store = SummaryStore(tmp_path / "store", root)
    assert store.stamp(root / "m0.py") == stamps["m0.py"]
    assert not any(store.stamp(root / f"m{number}.py") for number in (1, 2, 9))
    assert store.summary("hash") is None
    store.close()
