"""Random damage to texts and to JSON values."""

from __future__ import annotations

import random
from typing import Any

LONGEST_TEXT = 60_000
ODD = (
    *(
        "\0",
        "\r",
        "\r\n",
        "\f",
        "\ufeff",
        "\ud800",
        "\u2028",
        "\U0001f525",
        "\x1b[31m",
        "\t",
        "\\\n",
    ),
    *(
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        '"""',
        "'",
        "#",
        ":",
        "=",
        ",",
        "@",
        "*",
        "-1",
        "9" * 400,
        "1e999",
    ),
    *(
        "lambda: ",
        "await ",
        "yield ",
        "async ",
        "match x:\n",
        "else:\n",
        "if dist.get_rank() == 0:\n",
    ),
    *(
        "[rank0]: ",
        "[rank 7] ",
        "Traceback (most recent call last):\n",
        "Root Cause",
        "null",
        "NaN",
        "[[[",
    ),
)


def damaged(text: str, others: list[str], choose: random.Random) -> str:
    """A text after a few random changes."""
    for _ in range(choose.randint(1, 5)):
        start = choose.randrange(len(text) + 1)
        stop = min(len(text), start + choose.choice([0, 1, 3, 30, 400]))
        other = choose.choice(others)
        at = choose.randrange(len(other) + 1)
        new = choose.choice(
            [
                "",
                choose.choice(ODD),
                choose.choice(ODD) * choose.choice([2, 50, 3_000]),
                text[start:stop] * choose.choice([2, 40]),
                other[at : at + choose.choice([10, 300, 5_000])],
            ]
        )
        text = text[:start] + new + text[stop:]
    return text[:LONGEST_TEXT]


def odd_value(value: Any, choose: random.Random, share: float = 0.06) -> Any:
    """A JSON value in which some are of another kind."""
    if choose.random() < share:
        odd = [
            None,
            True,
            -1,
            10**400,
            1e308,
            float("nan"),
            "",
            "\ud800<b>",
            [],
            {},
            [[]],
            {"a": [1]},
        ]
        return choose.choice(odd)
    if isinstance(value, dict):
        return {name: odd_value(each, choose, share) for name, each in value.items()}
    return [odd_value(each, choose, share) for each in value] if isinstance(value, list) else value
