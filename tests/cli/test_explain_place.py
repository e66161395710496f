"""``ranksafe explain FILE:LINE``: the findings on a line, and what two ranks do in the function around it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Call

HELPERS = """\
import torch.distributed as dist


def share(x):
    dist.all_reduce(x)
"""
TRAIN = """\
import torch.distributed as dist
from helpers import share


def early(x):
    dist.all_reduce(x)
    if dist.get_rank() != 0:
        return
    dist.barrier()


def steps(x, batches):
    share(x)
    for batch in batches:
        if x.flag:
            dist.all_reduce(x)
        if dist.get_rank() == 0:
            dist.broadcast(x, src=0)
    dist.barrier()


def fine(x):
    dist.all_reduce(x)


def nothing(x):
    return x + 1


class Worker:
    def both(self, x):
        if dist.get_rank() == 0:
            dist.broadcast(x, src=0)
        else:
            dist.all_reduce(x)

    def root(self, x):
        dist.broadcast(x, src=dist.get_rank())

    def talk(self, x):
        if dist.get_rank() == 0:
            dist.send(x, dst=1)
        elif dist.get_rank() == 1:
            dist.recv(x, src=0)
        dist.all_reduce(x)
"""


@pytest.fixture
def train(project: Path) -> Path:
    (project / "helpers.py").write_text(HELPERS, encoding="utf-8")
    (project / "train.py").write_text(TRAIN, encoding="utf-8")
    return project / "train.py"


def line_of(text: str, nth: int = 0) -> int:
    """The 1-based line of TRAIN on which the text stands for the nth time."""
    return [number for number, line in enumerate(TRAIN.splitlines(), 1) if text in line][nth]


def rows_after(out: str) -> list[tuple[str, str, str]]:
    """The marks and the two columns of the diagram in an output."""
    found = []
    for line in out[out.index("What two ranks do") :].splitlines():
        left, bar, right = line[2:].partition(" | ")
        if bar:
            found.append((line[0].strip(), left.rstrip(), right))
    return found


@pytest.mark.usefixtures("train")
def test_a_finding_with_its_diagram(call: Call) -> None:
    answer = call("explain", "train.py:9")
    assert (answer.status, answer.error) == (0, "")
    assert answer.out.startswith("train.py:9:5: warning[RS401] rank 0 will wait in barrier")
    assert "train.py:7:8: the ranks separate here" in answer.out
    assert "What two ranks do in `early` (train.py:5):" in answer.out
    assert rows_after(answer.out) == [
        ("", "all_reduce (line 6)", "all_reduce (line 6)"),
        (">", "if dist.get_rank() != 0 (line 7): no", "if dist.get_rank() != 0 (line 7): yes"),
        ("", "barrier (line 9)", "return (line 8)"),
    ]
    assert "> here the ranks part" in answer.out


@pytest.mark.usefixtures("train")
def test_calls_loops_and_branches(call: Call) -> None:
    line = line_of("dist.broadcast(x, src=0)")
    answer = call("explain", f"train.py:{line}:13")
    assert answer.status == 0
    assert [(mark, left) for mark, left, _ in rows_after(answer.out)] == [
        ("", f"calls share (line {line_of('share(x)')})"),
        ("", "  all_reduce (helpers.py:5)"),
        ("", f"repeated (line {line_of('for batch')})"),
        ("", f"  if x.flag (line {line_of('x.flag')})"),
        ("", f"    all_reduce (line {line_of('all_reduce', 1)})"),
        (">", f"  if dist.get_rank() == 0 (line {line - 1}): yes"),
        ("", f"  broadcast (line {line})"),
        ("", f"barrier (line {line_of('barrier', 1)})"),
    ]
    assert [right for _, _, right in rows_after(answer.out)][-2:] == [
        "-", f"barrier (line {line_of('barrier', 1)})",
    ]  # fmt: skip


@pytest.mark.usefixtures("train")
def test_chinese(call: Call) -> None:
    answer = call("explain", "train.py:9", "--lang", "zh-cn")
    assert answer.status == 0
    assert "警告[RS401]" in answer.out
    assert "两个 rank 在 `early`（train.py:5）中的行为：" in answer.out
    assert "> 如果 dist.get_rank() != 0（第 7 行）：否" in answer.out
    assert "> 各 rank 在此处分开" in answer.out


@pytest.mark.usefixtures("train")
def test_what_ranks_do_instead_stands_beside_it(call: Call) -> None:
    line = line_of("dist.broadcast(x, src=0)", 1)
    answer = call("explain", f"train.py:{line}")
    assert answer.status == 0
    first, second = rows_after(answer.out)
    assert first[0] == ">"
    assert second == ("", f"broadcast (line {line})", f"all_reduce (line {line + 2})")


@pytest.mark.usefixtures("train")
def test_arguments_that_do_not_fit_are_marked(call: Call) -> None:
    line = line_of("src=dist.get_rank()")
    answer = call("explain", f"train.py:{line}")
    assert "[RS415]" in answer.out
    assert rows_after(answer.out) == [(">", *[f"broadcast (line {line})"] * 2)]


@pytest.mark.usefixtures("train")
def test_a_line_without_a_finding(call: Call) -> None:
    line = line_of("dist.send")
    answer = call("explain", f"train.py:{line}")
    assert (answer.status, answer.error) == (0, "")
    nearest = line_of("src=dist.get_rank()")
    assert answer.out.startswith(
        f"Nothing is found on line {line}; the nearest finding is on line "
    )
    assert f"train.py:{nearest}:9: " in answer.out
    rows = rows_after(answer.out)
    assert all(not mark for mark, _, _ in rows)
    assert rows[1][1:] == (f"send (line {line})", f"recv (line {line + 2})")
    assert "here the ranks part" not in answer.out


@pytest.mark.usefixtures("train")
@pytest.mark.parametrize(
    ("language", "nothing", "sentence"),
    [
        ("en", "Nothing is found on line", "performs no collective"),
        ("zh-cn", "没有提示；最近的提示在第", "没有执行可跟踪的集合通信"),
    ],
)
def test_code_without_collectives(call: Call, language: str, nothing: str, sentence: str) -> None:
    answer = call("explain", f"train.py:{line_of('return x + 1')}", "--lang", language)
    assert (answer.status, answer.error) == (0, "")
    assert nothing in answer.out
    assert sentence in answer.out
    assert "rank 1" not in answer.out


@pytest.mark.usefixtures("train")
@pytest.mark.parametrize(
    ("place", "language", "message"),
    [
        ("gone.py:1", "en", "gone.py: no such file"),
        ("gone.py:1", "zh-cn", "gone.py：文件不存在"),
        ("helpers.py:99", "en", "helpers.py: there is no line 99; the file has 5"),
        ("helpers.py:0", "zh-cn", "helpers.py：没有第 0 行；该文件共 5 行"),
        ("folder.py:1", "en", "folder.py: not checked: it is not a regular file"),
        ("broken.py:4", "en", "broken.py:4: cannot be explained, because it does not parse"),
    ],
)
def test_what_cannot_be_explained(
    project: Path, call: Call, place: str, language: str, message: str
) -> None:
    (project / "folder.py").mkdir()
    broken = "import torch.distributed as dist\n" + "dist.barrier((\n" * 5
    (project / "broken.py").write_text(broken, encoding="utf-8")
    answer = call("explain", place, "--lang", language)
    assert (answer.status, answer.out) == (2, "")
    assert message in answer.error


def test_statements_outside_functions_and_a_file_of_another_kind(project: Path, call: Call) -> None:
    text = "import torch.distributed as dist\n\nif dist.get_rank() == 0:\n    dist.barrier()\n"
    (project / "script.py").write_text(text, encoding="utf-8")
    (project / "plain.py").write_text("print(1)\n", encoding="utf-8")
    answer = call("explain", "script.py:4")
    assert answer.status == 0
    assert "What two ranks do in script.py, outside its functions:" in answer.out
    assert rows_after(answer.out)[1] == ("", "barrier (line 4)", "-")
    assert "performs no collective" in call("explain", "plain.py:1").out
    alone = call("explain", "script.py:4", "--gpus", "1")
    assert alone.out.startswith("Nothing is found in script.py.\n")


def test_a_nested_function_that_the_outer_one_does_not_call(project: Path, call: Call) -> None:
    text = (
        "import torch.distributed as dist\n\n\ndef outer(x):\n    def inner(y):\n"
        "        dist.all_reduce(y)\n\n    return inner\n"
    )
    (project / "script.py").write_text(text, encoding="utf-8")
    answer = call("explain", "script.py:6")
    assert "What two ranks do in `inner` (script.py:5):" in answer.out
