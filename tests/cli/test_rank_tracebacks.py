"""Several ranks fail alike: one traceback is enough to read, and nothing else may be lost."""

from __future__ import annotations

from collections.abc import Iterable

from ranksafe.cli.rank_tracebacks import RankTracebacks
from ranksafe.localization import Language

TRACEBACK = """\
Traceback (most recent call last):
  File "/job/train.py", line 12, in main
    step(x)
RuntimeError: size of tensor a ({size}) on cuda:{rank}""".splitlines()


def of(rank: int, text: Iterable[str] = TRACEBACK, prefix: str = "") -> list[tuple[int, str]]:
    return [(rank, prefix + line.format(size=7, rank=rank)) for line in text]


def shown(
    said: Iterable[tuple[int, str]], language: Language = "en"
) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """What is shown while it comes, and what is left at the end."""
    screen = RankTracebacks(language)
    lines = [(rank, line) for rank, text in said for line in screen.lines(rank, text)]
    return lines, list(screen.rest())


def test_the_second_is_named() -> None:
    said = [*of(0), (0, "more of the message"), *of(1), (1, "bye")]
    same = "the same traceback as rank 0: RuntimeError: size of tensor a (7) on cuda:1"
    assert shown(said) == ([*said[:5], (1, same), (1, "bye")], [])
    assert "与 rank 0 相同的 traceback：RuntimeError" in shown(said, "zh-cn")[0][-2][1]


def test_lines_of_two_ranks_come_in_turns() -> None:
    said = [line for pair in zip(of(0), of(1), strict=True) for line in pair]
    lines, rest = shown(said)
    assert lines[:4] == of(0)
    assert len(lines) == 5
    assert rest == []


def test_what_torch_puts_before_each_line_makes_no_difference() -> None:
    said = [*of(0), *of(1, prefix="[rank1]: ")]
    assert len(shown(said)[0]) == 5


def test_others_are_shown_whole() -> None:
    other = [*TRACEBACK[:-1], "ValueError: another one"]
    said = [*of(0), *of(1, other), *of(0)]
    assert shown(said) == (said, [])


def test_a_traceback_that_breaks_off_is_not_lost() -> None:
    assert shown(of(1)[:3]) == ([], of(1)[:3])


def test_output_that_only_looks_like_one_comes_at_once() -> None:
    said = [(0, "Traceback (most recent call last): see above"), (0, ""), (0, "  indented")]
    assert shown(said) == (said, [])


def test_a_very_long_one_is_not_kept_for_ever() -> None:
    said = [(0, TRACEBACK[0]), *[(0, "  again")] * 1000]
    lines, _ = shown(said)
    assert len(lines) > 900


LIBRARY = "/venv/lib/python3.11/site-packages"
DEEP = f"""\
Traceback (most recent call last):
  File "/job/train.py", line 12, in main
    step(x)
    ^^^^^^^
  File "{LIBRARY}/torch/nn/module.py", line 1, in _call_impl
    return forward(x)
  File "/opt/ranksafe/runs/agent/inject/ranksafe_agent/wrappers.py", line 2, in watched
    return forward(x)
  File "{LIBRARY}/transformers/models/model.py", line 3, in forward
    y = hook(x)
  File "/job/hooks.py", line 4, in hook
    x.backward()
  File "{LIBRARY}/torch/tensor.py", line 5, in backward
    return run(x)
  File "{LIBRARY}/torch/autograd.py", line 6, in run
    engine(x)
  File "/usr/lib/python3.11/contextlib.py", line 7, in inner
    return function()
  File "/opt/ranksafe/runs/agent/inject/ranksafe_agent/collectives.py", line 8, in watched
    return original()
RuntimeError: no gradient"""


def test_frames_of_libraries_are_folded_and_ours_left_out() -> None:
    lines, _ = shown((0, line) for line in DEEP.splitlines())
    assert [line for _, line in lines] == [
        "Traceback (most recent call last):",
        '  File "/job/train.py", line 12, in main',
        "    step(x)",
        "    ^^^^^^^",
        "  … 2 frames in torch, transformers",
        '  File "/job/hooks.py", line 4, in hook',
        "    x.backward()",
        "  … 2 frames in torch",
        '  File "/usr/lib/python3.11/contextlib.py", line 7, in inner',
        "    return function()",
        "RuntimeError: no gradient",
    ]
    chinese, _ = shown(((0, line) for line in DEEP.splitlines()), "zh-cn")
    assert "  … torch, transformers 中的 2 个栈帧" in [line for _, line in chinese]
