"""Promise: what a file computes is never computed here where the result would be large.

Each attack stands in front of a function with a true RS401; the file must cost about as much as without the attack, and
the finding must survive.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hardening.measured import MIB, Measured, ranksafe, sampled

HEAD = "import torch\nimport torch.distributed as dist\n"
PROGRAM = """
def main():
{attack}
    if dist.get_rank() == 0:
        dist.barrier()


def other():
    if dist.get_rank() == 0:
        dist.barrier()
"""


def doublings(start: str, step: str, times: int = 28) -> str:
    return "\n".join([start, *[step] * times])


LAMBDAS = "\n".join(
    [
        "f0 = lambda: r",
        *(f"f{n} = lambda: [{', '.join([f'f{n - 1}()'] * 40)}]" for n in range(1, 8)),
    ]
)
ASSIGNED_ANEW = "\n".join(
    [
        *("import os", 's = os.path.join(os.sep, "a")', "loss = torch.nn.DataParallel(net())(s)"),
        *(
            f"if {name}{n}(): {name} = pick({name}, {name}) + {name} * {name} if other() else {name}"
            for n in range(20)
            for name in ("s", "loss")
        ),
        *("os.makedirs(s)", "torch.load(s)", "loss.backward()"),
    ]
)
ATTACKS = {
    "text doubled": doublings('s = "ab"', "s = s + s"),
    "text doubled in place": doublings('s = "ab"', "s += s"),
    "bytes doubled": doublings('s = b"ab"', "s = s + s"),
    "list doubled": doublings("r = dist.get_rank()\ns = [r]", "s = s + s"),
    "list doubled in place": doublings("r = dist.get_rank()\ns = [r]", "s += s"),
    "list repeated": doublings("s = [0]", "s = s * 60", 8),
    "list extended by itself": doublings("s = [0]", "s.extend(s)"),
    "list in itself twice": doublings("s = [dist.get_rank()]", "s = [s, s]", 60),
    "tuple in itself, compared": doublings("s = (1, 2)\nt = (1, 2)", "s = (s, s)\nt = (t, t)", 60)
    + "\nif s == t: pass",
    "tuple in itself, chosen": doublings("s = (1, 2)\nt = (1, 2)", "s = (s, s)\nt = (t, t)", 60)
    + "\nx = s if unknown() else t",
    "width of a format": 's = "%1500000000d" % 1',
    "width of a format given": 's = "%*d" % (1500000000, 1)',
    "width of a format of bytes": 's = b"%1500000000d" % 1',
    "precision of a format": 's = "%.1500000000f" % 1.0',
    "text repeated": 's = "a" * 1500000000',
    "text repeated, turned round": 's = 1500000000 * "a"',
    "bytes repeated, turned round": 's = 1500000000 * b"a"',
    "comprehensions in each other": "s = "
    + "[" * 6
    + "dist.get_rank()"
    + "".join(f" for i{n} in range(60)]" for n in range(6)),
    "functions that call each other": LAMBDAS + "\nf7()",
    "number that is no whole one": "s = int(float('inf'))",
    "number without a float": "s = float(0x" + "f" * 2000 + ")",
    "long numbers multiplied": doublings("s = 0x" + "f" * 140_000, "s = (s * s) and s", 40),
    "zipped with itself": doublings("s = [1, 2]", "s = list(zip(s, s))", 60),
    "unpacked": doublings("s = [1, 2]", "s = [*s, *s]", 40),
    "dictionaries in each other": doublings("s = {1: 2}", "s = {1: s, 2: s}", 60),
}

SAMPLE = {
    "text doubled",
    "list doubled",
    "list in itself twice",
    "width of a format",
    "text repeated, turned round",
    "functions that call each other",
    "number that is no whole one",
}
GIVEN_UP = {"comprehensions in each other", "functions that call each other"}


def checked(folder: Path, attack: str) -> Measured:
    folder.mkdir(exist_ok=True)
    inner = "\n".join(f"    {line}" for line in attack.splitlines())
    (folder / "train.py").write_text(HEAD + PROGRAM.format(attack=inner))
    return ranksafe("check", "--no-cache", "--gpus=2", "train.py", folder=folder)


@pytest.fixture
def harmless(tmp_path: Path) -> Measured:
    found = checked(tmp_path / "harmless", "pass")
    assert found.out.count("warning[RS401]") == 2
    return found


@pytest.mark.parametrize("name", sampled(ATTACKS, SAMPLE))
def test_costs_no_more_than_it_is_long(tmp_path: Path, harmless: Measured, name: str) -> None:
    attacked = checked(tmp_path / "project", ATTACKS[name])
    assert attacked.peak < harmless.peak + 24 * MIB + 20 * len(ATTACKS[name])
    assert attacked.work < harmless.work * 3
    given_up = name in GIVEN_UP
    assert ("`main` does too much to be followed" in attacked.error) is given_up
    assert attacked.out.count("warning[RS401]") == 2 - given_up


def test_variables_that_are_assigned_under_many_conditions_are_followed_once(
    tmp_path: Path, harmless: Measured
) -> None:
    attacked = checked(tmp_path / "project", ASSIGNED_ANEW)
    assert attacked.work < harmless.work * 3
    assert attacked.out.count("warning[RS401]") >= 1
