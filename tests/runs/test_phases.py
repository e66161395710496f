"""What a rank is said to do before its first step."""

from __future__ import annotations

import pytest
from ranksafe.runs.model import Frame
from ranksafe.runs.watch.phases import phase_of

_SCRIPT = ("/home/a/train.py", "<module>")
_IMPORT = ("<frozen importlib._bootstrap>", "_find_and_load")
_LIBRARIES = "/home/a/env/lib/python3.12/site-packages"


@pytest.mark.parametrize(
    ("stack", "told"),
    [
        ([_SCRIPT, _IMPORT, (f"{_LIBRARIES}/torch/__init__.py", "<module>")], "importing torch"),
        (
            [
                _SCRIPT,
                _IMPORT,
                (f"{_LIBRARIES}/trl/__init__.py", "<module>"),
                _IMPORT,
                (f"{_LIBRARIES}/torch/_C.py", "<module>"),
            ],
            "importing trl",
        ),
        (
            [
                _SCRIPT,
                (f"{_LIBRARIES}/transformers/models/auto/auto_factory.py", "from_pretrained"),
                _IMPORT,
                (f"{_LIBRARIES}/torch/_dynamo/__init__.py", "<module>"),
            ],
            "loading a model, tokenizer or configuration",
        ),
        ([_SCRIPT, ("/home/a/model.py", "from_pretrained")], None),
        ([_SCRIPT, (f"{_LIBRARIES}/numpy/core.py", "map")], None),
        ([], None),
    ],
)
def test_the_outermost_thing_that_is_known_is_told(
    stack: list[tuple[str, str]], told: str | None
) -> None:
    phase = phase_of([Frame(name, 1, function) for name, function in stack])
    assert (phase and phase.en) == told
