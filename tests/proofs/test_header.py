"""Proof headers: what is read from them, and what is refused."""

from __future__ import annotations

import pytest
from ranksafe.runs.proofs.header import (
    ExpectedException,
    ExpectedOutput,
    ExpectedSuccess,
    Launch,
    ProofHeaderError,
    RunsOn,
    parse_header,
)

FULL = '''"""The count is passed on.

It needs an old version: see the table.

runs-on: emulated-dp
ranks: 3
requires: transformers==4.51.3
    trl==0.17.0
expect: exception torch.cuda.OutOfMemoryError: out of
    memory: now
frame: loss = model(batch)
"""
'''


def header(*lines: str) -> str:
    return '"""A sentence.\n\n' + "\n".join(lines) + '\n"""\n'


def test_everything_is_read() -> None:
    read = parse_header(FULL)
    assert read.sentence == "The count is passed on. It needs an old version: see the table."
    assert read.runs_on is RunsOn.EMULATED_DP
    assert read.ranks == 3
    assert read.requires == ("transformers==4.51.3", "trl==0.17.0")
    assert read.launch is Launch.PYTHON
    assert read.expectations == (
        ExpectedException("torch.cuda.OutOfMemoryError", "out of memory: now"),
    )
    assert read.frame == "loss = model(batch)"


def test_what_may_be_left_out() -> None:
    read = parse_header(header("runs-on: cpu-ranks", "expect: success"))
    assert (read.ranks, read.requires, read.frame) == (2, (), None)
    assert read.expectations == (ExpectedSuccess(),)


def test_several_outputs() -> None:
    read = parse_header(header("runs-on: jax-host", "expect: output a+", "expect: output b"))
    assert read.expectations == (ExpectedOutput("a+"), ExpectedOutput("b"))


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        (["expect: success"], "runs-on is missing"),
        (["runs-on: gpu", "expect: success"], "runs-on must be one of cpu-ranks"),
        (["runs-on: cuda"], "expect is missing"),
        (["runs-on: cuda", "ranks: two", "expect: success"], "ranks must be"),
        (["runs-on: cuda", "expect: failure"], "expect must be"),
        (["runs-on: cuda", "expect: output ("], "not a regular expression"),
        (["runs-on: cuda", "expect: exception E: x"], "needs a frame"),
        (["runs-on: cuda", "expect: success", "frame: f()"], "frame belongs to"),
        (["runs-on: cuda", "expect: success", "wants: torch"], "unknown line"),
        (["runs-on: cuda", "runs-on: cuda", "expect: success"], "given twice"),
        (["runs-on: cuda", "expect: success", "expect: exception E: x", "frame: f"], "the only"),
    ],
)
def test_refused(lines: list[str], complaint: str) -> None:
    with pytest.raises(ProofHeaderError, match=complaint.replace("(", r"\(")) as error:
        parse_header(header(*lines))
    assert error.value.explanation.zh_cn


def test_no_docstring() -> None:
    with pytest.raises(ProofHeaderError, match="no docstring"):
        parse_header("x = 1\n")
