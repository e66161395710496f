"""The pieces that read a log: bytes to lines, lines to ranks, and what is kept of them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from ranksafe.runs.diagnosis.diagnose import diagnose, diagnose_said
from ranksafe.runs.log_text.decode import Decoder
from ranksafe.runs.log_text.excerpt import Excerpt, is_telling, telling_places
from ranksafe.runs.log_text.prefixes import Prefixes, pieces
from ranksafe.runs.log_text.progress import is_bar, is_completion, is_progress
from ranksafe.runs.log_text.reader import LogReader

_LOGS = Path(__file__).parent / "logs"


def _decoded(data: bytes, piece: int) -> str:
    decoder = Decoder()
    parts = [decoder.feed(data[at : at + piece]) for at in range(0, len(data), piece)]
    return "".join([*parts, decoder.finish()])


@pytest.mark.parametrize("piece", [1, 2, 3, 1000])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_bytes_become_lines_wherever_they_are_cut(encoding: str, piece: int) -> None:
    text = "rank 0: épöch 训练 1\n" * 20 + "10%|#|\r20%|##|\rdone"
    lines = text.replace("\r", "\n").split("\n")
    assert [line for line in _decoded(text.encode(encoding), piece).split("\n") if line] == [
        line for line in lines if line
    ]


def test_line_ends_of_every_system_are_line_feeds() -> None:
    assert _decoded(b"a\r\nb\rc\n", 100) == "a\nb\nc\n"


def test_a_line_without_end_is_not_waited_for_forever() -> None:
    decoder = Decoder()
    given = sum(len(decoder.feed(b"x" * 300_000)) for _ in range(10))
    assert given > 1_000_000


def test_the_head_and_the_tail_of_a_stream_are_kept() -> None:
    excerpt = Excerpt(10_000)
    for at in range(50_000):
        excerpt.add(at, f"error {at} " + "x" * 100, telling=True)
    kept = excerpt.lines()
    assert kept[0][0] == 0
    assert kept[-1][0] == 49_999
    assert sum(len(line) for _, line in kept) < 30_000


def test_a_message_that_comes_over_and_over_is_kept_a_few_times() -> None:
    excerpt = Excerpt(100_000)
    for thread in range(1_000):
        excerpt.add(
            thread, f"x.cu:5: block: [0,0,{thread}] Assertion `a < b` failed.", telling=True
        )
    assert len(excerpt.lines()) < 10


def test_what_follows_a_telling_line_is_kept_and_no_more() -> None:
    excerpt = Excerpt(100_000)
    excerpt.add(1, "RuntimeError: first", telling=True)
    for at in range(2, 500):
        excerpt.add(at, f"line {at}", telling=False)
    assert 20 < len(excerpt.lines()) < 60


def test_telling_lines_are_found_alike_one_by_one_and_in_a_piece() -> None:
    lines = (_LOGS / "complete" / "nan_shard.log").read_text(encoding="utf-8").split("\n")
    text = "\n".join(lines)
    numbers = {text.count("\n", 0, place) for place in telling_places(text)}
    assert numbers == {number for number, line in enumerate(lines) if is_telling(line)}


@pytest.mark.parametrize(
    ("line", "rank", "text"),
    [
        ("[rank3]: hello", 3, "hello"),
        ("[default1]:[rank12]:[E817 x] [Rank 12] y", 12, "[E817 x] [Rank 12] y"),
        ("[pod/train-0/pytorch] [rank2]:   File", 2, "  File"),
        (
            "[E x] [PG ID 0 PG GUID 0(default_pg) Rank 7] stuck",
            7,
            "[E x] [PG ID 0 PG GUID 0(default_pg) Rank 7] stuck",
        ),
        ("12: an ordinary line", None, "12: an ordinary line"),
        ("INFO: an ordinary line", None, "INFO: an ordinary line"),
        (
            "wandb: Traceback (most recent call last):",
            None,
            "wandb: Traceback (most recent call last):",
        ),
    ],
)
def test_marks_are_taken_off(line: str, rank: int | None, text: str) -> None:
    origin, rest = Prefixes().split(line)
    assert (origin.rank, rest) == (rank, text)


def test_labels_count_once_they_were_seen_to_be_labels() -> None:
    prefixes = Prefixes()
    assert prefixes.split("1: one")[0].number is None
    assert prefixes.split("1: Traceback (most recent call last):")[0].number == 1
    assert prefixes.split("1: one")[0].number == 1


def test_ranks_that_wrote_into_one_line_are_cut_apart() -> None:
    assert pieces("step 1[rank1]: Traceback") == ["step 1", "[rank1]: Traceback"]
    bar = "  7%|# | 7/100 [00:01<00:10,  8.6it/s]"
    assert pieces(f"{bar}Traceback (most recent call last):")[-1].startswith("Traceback")
    assert pieces("a line about [rank1] alone") == ["a line about [rank1] alone"]


@pytest.mark.parametrize(
    ("line", "bar", "progress"),
    [
        (" 12%|█▏        | 12/100 [00:01<00:10,  8.61it/s]", True, True),
        ("Training:  12%|# | 12/100 [00:01<00:10,  8.61it/s, loss=0.3]", True, True),
        ("{'loss': 0.3, 'epoch': 1.0}", False, True),
        ("step 3 done", False, True),
        ("srun: Terminating job step 30399.0", False, False),
        ("RuntimeError: 12% of the rows | are bad", False, False),
    ],
)
def test_progress_is_told_from_messages(line: str, bar: bool, progress: bool) -> None:
    assert (is_bar(line), is_progress(line)) == (bar, progress)


@pytest.mark.parametrize("name", ["rich_box.log", "rich_box_narrow_colored_locals.log"])
def test_boxes_have_all_their_frames(name: str) -> None:
    (failure,) = diagnose((_LOGS / name).read_text(encoding="utf-8"))
    assert [(frame.function, frame.line, frame.source) for frame in failure.frames] == [
        ("<module>", 20, "prepare(range(3))"),
        ("prepare", 14, "return [load(index) for index in rows]"),
        ("<listcomp>", 14, "return [load(index) for index in rows]"),
        ("load", 9, 'return row["label"]'),
    ]


@pytest.mark.parametrize(
    ("line", "completion"),
    [
        ("Training completed.", True),
        ("rank 0: finished, 0 errors", True),
        ("{'train_runtime': 12.3, 'epoch': 3.0}", True),
        ("saved the model to out/", True),
        ("训练结束 | 2000 步", True),
        ("已保存 out/step002000.pt", True),
        ("训练数据不完整", False),
        ("RuntimeError: the batch is not finished", False),
        ("could not be saved", False),
    ],
)
def test_an_orderly_end_is_told_from_other_lines(line: str, completion: bool) -> None:
    assert is_completion(line) == completion


@pytest.mark.parametrize("mark", ["", "0: ", "(TrainWorker pid=7, ip=10.0.0.4) "])
def test_a_traceback_that_was_printed_and_survived_is_no_failure(mark: str) -> None:
    lines = [
        "Traceback (most recent call last):",
        '  File "/home/user/data.py", line 5, in read',
        "    json.loads(line)",
        "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
    ]
    text = "\n".join(mark + line for line in lines)
    assert diagnose(f"{text}\n{mark}Training completed.\n") == []
    assert diagnose(f"{text}\n")[0].line == 5
    verdict = "srun: error: n1: task 0: Exited with exit code 1"
    assert diagnose(f"{text}\n{mark}Training completed.\n{verdict}\n")[0].line == 5


@pytest.mark.parametrize(
    "line",
    [
        b"a-" * 300_000,
        b"Error " * 100_000,
        b"x.cu:1: block: [1,1,1] " * 30_000,
        b"[rank1]: " * 30_000,
        b"\x1b[3" * 200_000,
        b"1%|" * 100_000,
        b"(a pid=" + b"1" * 500_000,
        b"Traceback (most recent call last):\n" * 10_000,
    ],
    ids=lambda line: line[:8].decode().strip(),
)
def test_no_line_takes_long(line: bytes) -> None:
    """Quadratic patterns would take minutes here."""
    started = time.process_time()
    reader = LogReader()
    reader.feed(b"step 1\n" + line + b"\nstep 2\n")
    reader.finish()
    diagnose_said(reader.said())
    assert time.process_time() - started < 20


def test_the_last_lines_are_those_of_the_end_whatever_bars_come_between() -> None:
    bar = "  7%|▋         | 7/100 [00:01<00:10,  8.61it/s]\r"
    reader = LogReader()
    reader.feed(b"epoch 1 of 3\n" * 5)
    for bars in (1_000, 10_000):
        reader.feed((f"epoch {bars}\n" + bar * bars + "gone over\n").encode())
        assert "epoch 1 of 3" not in reader.last_lines(2)
        assert (reader.last_lines(1), reader.last_bar) == (["gone over"], None)
    reader.feed(bar.encode())
    assert reader.last_bar == bar.strip("\r")
    assert reader.last_lines(2) == ["gone over"]
