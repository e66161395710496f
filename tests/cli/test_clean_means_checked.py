"""Whatever was not checked is said: "nothing found" must not be read off a file that nobody looked at."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import DEVICE_MAP, FIXED, ROOT, Call

BROKEN = DEVICE_MAP + "values = (1,\n"
"""RS201 on line 5, and a bracket on line 7 that nothing closes."""


def notebook(*cells: str | tuple[str, str], **metadata: Any) -> str:
    """The file of a notebook; a cell is Python, or its kind with its text."""
    listed = []
    for cell in cells:
        kind, source = cell if isinstance(cell, tuple) else ("code", cell)
        listed.append({"cell_type": kind, "source": source.splitlines(keepends=True)})
    return json.dumps({"cells": listed, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})


IMPORTS, REST = DEVICE_MAP.split("\n\n")
NOTEBOOK = notebook(("markdown", "# Training"), "%pip install torch\n" + IMPORTS, REST)


# -- files that do not parse


def test_a_file_that_does_not_parse_is_an_error(project: Path, call: Call) -> None:
    (project / "train.py").write_text(BROKEN, encoding="utf-8")
    answer = call("check")
    assert answer.status == 1
    assert "train.py:7:10: error[syntax-error] does not parse: '(' was never closed" in answer.out
    assert "the file was checked without these statements" in answer.out
    assert "train.py:5:70: warning[RS201]" in answer.out
    assert "Found 2 in 1 of 1 file (1 error, 1 warning, 0 information)." in answer.out


def test_it_is_one_when_nothing_else_is_found_and_out_of_the_cache(
    project: Path, call: Call
) -> None:
    for number in range(9):
        (project / f"m{number}.py").write_text(FIXED, encoding="utf-8")
    text = FIXED + "def f(device_map:\n    pass\n"
    (project / "train.py").write_text(text, encoding="utf-8")
    for _ in range(2):
        answer = call("check", "--select", "RS201")
        assert answer.status == 1
        assert "train.py:7:6: error[syntax-error]" in answer.out


@pytest.mark.parametrize("kind", ["json", "github", "gitlab", "sarif"])
def test_programs_are_told_too(project: Path, call: Call, kind: str) -> None:
    (project / "train.py").write_text(BROKEN, encoding="utf-8")
    answer = call("check", "--output-format", kind, "--lang", "zh-cn")
    assert answer.status == 1
    assert "syntax-error" in answer.out
    assert "无法解析：" in answer.out


def test_text_of_which_nothing_can_be_read(project: Path, call: Call) -> None:
    (project / "train.py").write_text(
        "from torch import distributed\n" + "    (\n" * 40, encoding="utf-8"
    )
    answer = call("check")
    assert answer.status == 1
    assert "error[syntax-error]" in answer.out


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="Python 3.14 has these strings")
def test_syntax_of_a_newer_python_accuses_nobody(project: Path, call: Call) -> None:
    (project / "train.py").write_text(DEVICE_MAP + 'greeting = t"{model}"\n', encoding="utf-8")
    answer = call("check", "--ignore", "RS201")
    assert answer.status == 0
    assert "information[syntax-error] newer syntax than that of Python" in answer.out


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="Python 3.14 has these strings")
@pytest.mark.parametrize(
    "deep",
    ["if a:\n    pass\n" + "elif b:\n    pass\n" * 10_000, f"x = {'(' * 5_000}1{')' * 5_000}\n"],
    ids=["branches", "brackets"],
)
def test_newer_syntax_and_depth(project: Path, call: Call, deep: str) -> None:
    text = 'import torch.distributed\ngreeting = t"{model}"\n'
    (project / "train.py").write_text(text + deep, encoding="utf-8")
    answer = call("check")
    assert answer.status == 1
    assert "error[syntax-error] does not parse" in answer.out


def test_add_ignore_leaves_it_alone(project: Path, call: Call) -> None:
    (project / "train.py").write_text(BROKEN, encoding="utf-8")
    assert "Suppressions added: 1" in call("check", "--add-ignore").out
    assert "values = (1,\n" in (project / "train.py").read_text(encoding="utf-8")


def test_fix_tells_of_it(project: Path, call: Call) -> None:
    (project / "train.py").write_text(FIXED + "values = (1,\n", encoding="utf-8")
    answer = call("fix")
    assert answer.status == 1
    assert "train.py:7: left syntax-error: does not parse" in answer.error


# -- notebooks


def test_a_notebook_by_name_is_checked_by_cells(project: Path, call: Call) -> None:
    (project / "train.ipynb").write_text(NOTEBOOK, encoding="utf-8")
    answer = call("check", "train.ipynb")
    assert answer.status == 1
    assert "train.ipynb:cell 3:2:70: warning[RS201]" in answer.out
    assert '\n 2 | model = AutoModelForCausalLM.from_pretrained("org/model"' in answer.out
    assert "train.ipynb:cell 3:3:9: " in answer.out


def test_the_cell_for_programs(project: Path, call: Call) -> None:
    (project / "train.ipynb").write_text(NOTEBOOK, encoding="utf-8")
    (found,) = json.loads(call("check", "train.ipynb", "--output-format", "json").out)
    assert (found["cell"], found["location"]) == (3, {"row": 2, "column": 70})
    assert found["related"][0]["cell"] == 3
    assert {edit["location"]["row"] for edit in found["fix"]["edits"]} == {2}
    annotation = call("check", "train.ipynb", "--output-format", "github").out
    assert annotation.startswith("::warning title=ranksafe (RS201),file=train.ipynb::cell 3:2:70: ")
    (entry,) = json.loads(call("check", "train.ipynb", "--output-format", "gitlab").out)
    assert entry["description"].startswith("cell 3:2:70: RS201 ")
    assert entry["location"] == {"path": "train.ipynb", "lines": {"begin": 1}}
    log = json.loads(call("check", "train.ipynb", "--output-format", "sarif").out)
    (result,) = log["runs"][0]["results"]
    assert result["message"]["text"].startswith("cell 3:2:70: ")
    assert "region" not in result["locations"][0]["physicalLocation"]


def test_a_notebook_on_standard_input(call: Call) -> None:
    answer = call("check", "-", "--stdin-filename", "train.ipynb", given=NOTEBOOK)
    assert "train.ipynb:cell 3:2:70: warning[RS201]" in answer.out


def test_a_broken_cell(project: Path, call: Call) -> None:
    text = notebook(IMPORTS, "def f(:\n    pass", REST)
    (project / "train.ipynb").write_text(text, encoding="utf-8")
    out = call("check", "train.ipynb").out
    assert "train.ipynb:cell 2:1:7: error[syntax-error]" in out
    assert "train.ipynb:cell 3:2:70: warning[RS201]" in out


def test_notebooks_below_a_folder_are_counted(project: Path, call: Call) -> None:
    (project / "train.ipynb").write_text(NOTEBOOK, encoding="utf-8")
    (project / "train.py").write_text(FIXED, encoding="utf-8")
    answer = call("check")
    assert answer.status == 0
    assert answer.out == (
        "Nothing found in 1 file. Not checked: 1 notebook (name a notebook to check it).\n"
    )
    assert "未检查：1 个笔记本" in call("check", "--lang", "zh-cn").out


@pytest.mark.parametrize("words", [("fix",), ("fix", "--unsafe"), ("check", "--add-ignore")])
def test_notebooks_are_never_written(project: Path, call: Call, words: tuple[str, ...]) -> None:
    file = project / "train.ipynb"
    file.write_text(NOTEBOOK, encoding="utf-8")
    answer = call(*words, "train.ipynb")
    assert "train.ipynb: notebooks are not written" in answer.error
    assert file.read_text(encoding="utf-8") == NOTEBOOK


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "Expecting property name"),
        ("[]", "no `cells`"),
        ('{"worksheets": [], "nbformat": 3}', "no `cells`"),
        (notebook("x <- 1", kernelspec={"language": "R"}), "its language is r"),
    ],
    ids=["not JSON", "a list", "nbformat 3", "R"],
)
def test_what_is_no_python_notebook(project: Path, call: Call, content: str, said: str) -> None:
    (project / "a.ipynb").write_text(content, encoding="utf-8")
    answer = call("check", "a.ipynb")
    assert answer.status == 2
    assert "a.ipynb: not checked: it is no notebook" in answer.error
    assert said in answer.error
    assert "Not checked: 1 file named above." in answer.out


@pytest.mark.parametrize("command", ["run", "rehearse"])
def test_a_notebook_cannot_be_run(project: Path, call: Call, command: str) -> None:
    (project / "train.ipynb").write_text(NOTEBOOK, encoding="utf-8")
    answer = call(command, "train.ipynb")
    assert answer.status == 2
    assert "jupyter nbconvert --to script" in answer.error
    assert "notebook_launcher" in answer.error


def test_a_notebook_has_no_lines_to_explain(project: Path, call: Call) -> None:
    (project / "train.ipynb").write_text(NOTEBOOK, encoding="utf-8")
    answer = call("explain", "train.ipynb:3")
    assert answer.status == 2
    assert "`ranksafe check train.ipynb`" in answer.error


# -- configurations


@pytest.mark.parametrize("command", ["check", "fix"])
@pytest.mark.parametrize(
    "line", ['select = ["RS77"]', 'ignore = ["no-such-rule"]', 'per-file-ignores = {"*" = ["RZ"]}']
)
def test_a_misspelt_rule_stops(project: Path, call: Call, command: str, line: str) -> None:
    (project / "ranksafe.toml").write_text(line, encoding="utf-8")
    (project / "train.py").write_text(DEVICE_MAP, encoding="utf-8")
    answer = call(command)
    assert (answer.status, answer.out) == (2, "")
    assert "ranksafe.toml: no rule fits `" in answer.error
    assert (project / "train.py").read_text(encoding="utf-8") == DEVICE_MAP


def test_what_a_build_has_copied_is_left_out(project: Path, call: Call) -> None:
    (project / "build/lib").mkdir(parents=True)
    (project / "build/lib/train.py").write_text(DEVICE_MAP, encoding="utf-8")
    assert "Nothing found" in call("check").out
    assert "build/lib/train.py" in call("check", "build").out, "a folder that is named is checked"


# -- what git ignores


def test_gitignore(project: Path, call: Call) -> None:
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    (project / ".gitignore").write_text("made/\n*_made.py\n!kept_made.py\n", encoding="utf-8")
    (project / ".git/info/exclude").write_text("mine.py\n", encoding="utf-8")
    (project / "src").mkdir()
    (project / "src/.gitignore").write_text("/here.py\n[\n!a_made.py\n", encoding="utf-8")
    (project / "made").mkdir()
    files = ["made/x.py", "x_made.py", "kept_made.py", "mine.py", "src/here.py", "src/a_made.py"]
    for file in files:
        (project / file).write_text(DEVICE_MAP, encoding="utf-8")

    def found(*words: str) -> set[str]:
        out = call("check", *words).out
        return {line.split(":")[0] for line in out.splitlines() if "[RS201]" in line}

    assert found() == {"kept_made.py", "src/a_made.py"}
    assert found("src") == {"src/a_made.py"}
    assert "Not checked: 4 files and folders that .gitignore names" in call("check").out
    assert found("--no-respect-gitignore") == set(files)
    assert found("made") == {"made/x.py"}, "a folder that is named is checked"
    assert found("x_made.py") == {"x_made.py"}


def test_gitignore_means_nothing_outside_of_a_repository(project: Path, call: Call) -> None:
    (project / ".gitignore").write_text("*.py\n", encoding="utf-8")
    (project / "train.py").write_text(DEVICE_MAP, encoding="utf-8")
    assert call("check").status == 1


# -- what fix leaves


def test_fix_says_why_something_is_left(project: Path, call: Call) -> None:
    (project / "train.py").write_text(
        "import torch.distributed as dist\n\n\ndef f(x):\n"
        "    if dist.get_rank() == 0:\n        dist.all_reduce(x)\n",
        encoding="utf-8",
    )
    for words in (("fix",), ("fix", "--diff")):
        answer = call(*words)
        assert answer.status == 1
        assert "train.py:6: left RS401: " in answer.error


def test_fix_says_how_to_see_an_unsafe_one(project: Path, call: Call) -> None:
    (project / "train.py").write_text(DEVICE_MAP, encoding="utf-8")
    left = call("fix", "--diff").error
    applied = call("fix", "--diff", "--unsafe").error
    assert ("left RS201" in left) == ("`--unsafe`" in left)
    assert "would fix RS201" in applied


# -- logs


@pytest.mark.parametrize(
    "content",
    [gzip.compress(b"Traceback\n"), bytes(range(256)) * 40, b"\x7fELF\x02\x01\x01" + b"\0" * 9],
    ids=["gzip", "bytes", "program"],
)
def test_a_binary_file_is_no_log(project: Path, call: Call, content: bytes) -> None:
    (project / "log").write_bytes(content)
    for name, given in (("log", b""), ("-", content)):
        answer = call("diagnose", name, given=given)
        assert (answer.status, answer.out) == (2, "")
        shown = "standard input" if name == "-" else name
        assert f"{shown} is no log: it is a binary or packed file" in answer.error


def test_a_stream_that_is_left_in_the_middle_ends_as_told(tmp_path: Path) -> None:
    """Whoever writes it still has it open, and somebody waits for more of it."""
    command = [sys.executable, "-m", "ranksafe", "diagnose", "-"]
    paths = [str(ROOT / "server"), str(ROOT / "rules")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    with subprocess.Popen(
        command, env=environment, cwd=tmp_path, stdin=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(bytes(range(256)) * 40)
        process.stdin.flush()
        error = process.stderr.read().decode()
        assert (process.wait(), error.count("\n")) == (2, 1), error


@pytest.mark.parametrize(
    ("name", "reason"),
    [(".", "Is a directory"), ("none", "No such file or directory"), ("mem", "Input/output error")],
    ids=["folder", "missing", "broken"],
)
def test_a_log_that_cannot_be_read(project: Path, call: Call, name: str, reason: str) -> None:
    (project / "mem").symlink_to("/proc/self/mem")  # nothing is mapped at its beginning
    answer = call("diagnose", name)
    assert (answer.status, answer.out) == (2, "")
    assert answer.error == f"ranksafe: {name} cannot be read: {reason}\n"


HEALTHY = "".join(f"[rank{{rank}}] step {number} loss 0.{9 - number}\n" for number in range(9))
FAILED = """\
[rank1]: Traceback (most recent call last):
[rank1]:   File "/home/a/train.py", line 9, in <module>
[rank1]:     main()
[rank1]: KeyError: 'text'
"""


@pytest.mark.parametrize("name", ["log", "-"])
@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        ("".join(HEALTHY.format(rank=rank) for rank in range(2)), 0, "No failure was recognised"),
        (HEALTHY.format(rank=1), 0, "No failure was recognised"),
        (HEALTHY.format(rank=1) + FAILED, 1, "/home/a/train.py:9: failure rank 1: KeyError"),
        ("", 0, "This log is empty."),
    ],
    ids=["passed", "one rank passed", "one rank failed", "empty"],
)
def test_what_a_log_says_is_the_status(
    project: Path, call: Call, name: str, text: str, status: int, said: str
) -> None:
    (project / "log").write_text(text, encoding="utf-8")
    answer = call("diagnose", name, given=text if name == "-" else "")
    assert (answer.status, answer.error) == (status, "")
    assert answer.out.startswith(said)


@pytest.mark.parametrize(
    "content",
    [
        b"step 1\n" + b"\0" * 5000,
        "训练开始，第一步。\n".encode("utf-16"),
        "训练开始，第一步。\n".encode("gb18030"),
        b"\x1b[32mstep\x1b[0m 1\r\x1b[Kstep 2\x08\x08\n",
    ],
    ids=["torn", "UTF-16", "GB 18030", "colours"],
)
def test_odd_logs_are_logs(project: Path, call: Call, content: bytes) -> None:
    (project / "log").write_bytes(content)
    answer = call("diagnose", "log")
    assert answer.status == 0
    assert "No failure was recognised" in answer.out


@pytest.mark.parametrize(
    ("end", "status"),
    [
        ("ERROR: the frobnicator has no more juice", 4),
        ("frobnicator.JuiceError: none left\nsee the manual", 4),
        ("ERROR: the frobnicator has no more juice\nepoch 2 loss 0.2", 0),
        ("ERROR: no juice, going on without\nTraining completed.", 0),
        ("3 passed, 0 failed", 0),
    ],
    ids=["error", "exception", "went on", "came to an end", "speaks of failures"],
)
def test_errors_that_nobody_knows(project: Path, call: Call, end: str, status: int) -> None:
    (project / "log").write_text(f"epoch 1 loss 0.3\n{end}\n", encoding="utf-8")
    answer = call("diagnose", "log")
    assert answer.status == status
    assert ("ends in an error that is not recognised" in answer.out) == (status == 4)
    assert end.splitlines()[-1] in answer.out


# -- copies of other projects


@pytest.fixture
def copy(project: Path) -> Path:
    """A folder with a faulty file and a licence, in a project with another one."""
    (project / "LICENSE").write_text("Permission is granted. Copyright A\n", encoding="utf-8")
    copy = project / "third" / "copy"
    copy.mkdir(parents=True)
    (copy / "train.py").write_text(DEVICE_MAP, encoding="utf-8")
    (copy / "COPYING.txt").write_text("Copyright B", encoding="utf-8")
    (project / "own.py").write_text(FIXED, encoding="utf-8")
    return copy


def test_a_copy_of_another_project_is_left_out_and_counted(copy: Path, call: Call) -> None:
    answer = call("check")
    assert answer.status == 0
    assert answer.out == (
        "Nothing found in 1 file. Not checked: 1 folder with a licence of another project "
        "(name a folder to check it).\n"
    )
    assert "未检查：1 个文件夹，其许可证属于其他项目" in call("check", "--lang", "zh-cn").out
    assert call("fix", "--diff").out == ""


@pytest.mark.parametrize("named", ["third/copy", "third/copy/train.py"])
def test_a_copy_that_is_named_is_checked(copy: Path, call: Call, named: str) -> None:
    assert "RS201" in call("check", named).out


def test_from_a_folder_within_the_repository(copy: Path, call: Call) -> None:
    (copy.parent.parent / ".git").mkdir()
    assert "1 folder with a licence" in call("check", "third").out


@pytest.mark.parametrize(
    ("own", "other"),
    [("Copyright B", "Copyright  B\r\n"), (None, "Copyright B")],
    ids=["the same licence", "a project without one"],
)
def test_what_is_no_copy(copy: Path, call: Call, own: str | None, other: str) -> None:
    licence = copy.parent.parent / "LICENSE"
    licence.write_text(own, encoding="utf-8") if own else licence.unlink()
    (copy / "COPYING.txt").write_text(other, encoding="utf-8", newline="")
    assert "RS201" in call("check").out
