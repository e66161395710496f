"""Tracebacks as Python prints them, read back: whatever was in the exception must come out again."""

from __future__ import annotations

import traceback
from collections.abc import Callable

import pytest
from ranksafe.runs.explain.evidence import Raised
from ranksafe.runs.explain.traceback_text import parse_tracebacks


def _plain() -> None:
    raise ValueError("one")


def _several_lines() -> None:
    raise RuntimeError("first:\nsecond\nthird")


def _without_text() -> None:
    raise AssertionError


def _caused() -> None:
    try:
        _plain()
    except ValueError as error:
        raise KeyError("two") from error


def _while_handling() -> None:
    try:
        _caused()
    except KeyError:
        raise OSError("three")  # noqa: B904 - the implicit context is what is tested


def _deep(depth: int = 300) -> None:
    if depth == 0:
        raise IndexError("deep")
    _deep(depth - 1)


def _printed(action: Callable[[], None]) -> tuple[BaseException, str]:
    try:
        action()
    except Exception as error:
        return error, "".join(traceback.format_exception(error))
    raise AssertionError("nothing was raised")


def _compare(error: BaseException, raised: Raised) -> None:
    assert raised.type == type(error).__name__
    assert raised.message == str(error)
    own = traceback.extract_tb(error.__traceback__)
    assert (raised.frames[-1].line, raised.frames[-1].function) == (own[-1].lineno, own[-1].name)
    assert raised.frames[-1].source == own[-1].line
    for found, original in ((raised.cause, error.__cause__), (raised.context, error.__context__)):
        if original is not None and not (
            original is error.__context__ and error.__suppress_context__
        ):
            assert found is not None
            _compare(original, found)


@pytest.mark.parametrize(
    "action", [_plain, _several_lines, _without_text, _caused, _while_handling, _deep]
)
def test_what_was_printed_is_read_back(action: Callable[[], None]) -> None:
    error, text = _printed(action)
    found = parse_tracebacks(f"epoch 1\nloss 0.5\n{text}")
    assert len(found) == 1
    _compare(error, found[0])


@pytest.mark.since_python(11)
def test_members_of_a_group_are_read() -> None:
    text = """\
  + Exception Group Traceback (most recent call last):
  |   File "/home/user/a.py", line 9, in <module>
  |     raise ExceptionGroup("both", errors)
  | ExceptionGroup: both (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/home/user/a.py", line 3, in one
    |     raise TypeError("t")
    | TypeError: t
    +---------------- 2 ----------------
    | Traceback (most recent call last):
    |   File "/home/user/a.py", line 6, in two
    |     raise ValueError("v")
    | ValueError: v
    +------------------------------------
"""
    (group,) = parse_tracebacks(text)
    assert group.type == "ExceptionGroup"
    assert [(member.type, member.frames[-1].line) for member in group.group] == [
        ("TypeError", 3),
        ("ValueError", 6),
    ]


def test_a_syntax_error_in_the_script_has_no_header() -> None:
    text = "  File \"/home/user/a.py\", line 2\n    if x\n        ^\nSyntaxError: expected ':'\n"
    (found,) = parse_tracebacks(text)
    assert (found.type, found.frames[-1].line) == ("SyntaxError", 2)


def test_log_lines_after_a_message_do_not_belong_to_it() -> None:
    _, text = _printed(_plain)
    (found,) = parse_tracebacks(text + "W1120 21:14:20.003000 1 api.py:1028] Sending process\n")
    assert found.message == "one"


def test_what_three_processes_wrote_into_one_stream_is_one_message() -> None:
    head = 'Traceback (most recent call last):\n  File "train.py", line 4, in <module>\n'
    end = '    print("on " + device)\nTypeError: can only concatenate str\nto the end\n'
    (raised,) = parse_tracebacks(head * 3 + end * 3)
    assert raised.message == "can only concatenate str\nto the end"
    assert raised.frames[-1].source == 'print("on " + device)'
