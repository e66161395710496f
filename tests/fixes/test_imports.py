"""Imports: used where they are, extended where they can be, added where imports belong."""

from __future__ import annotations

import pytest
from ranksafe.fixes.imports import add_import, import_name

from tests.fixes.conftest import Edited, module_of


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1\n", "from accelerate import PartialState\nx = 1\n"),
        ('"""Doc."""\nx = 1\n', '"""Doc."""\n\nfrom accelerate import PartialState\nx = 1\n'),
        (
            "#!/usr/bin/python\n# c\nx = 1\n",
            "#!/usr/bin/python\n# c\nfrom accelerate import PartialState\nx = 1\n",
        ),
        (
            "from accelerate import Accelerator\n",
            "from accelerate import Accelerator, PartialState\n",
        ),
        (
            "from accelerate import (\n    Accelerator,\n    logging,\n)\n",
            "from accelerate import (\n    Accelerator,\n    logging,\n    PartialState,\n)\n",
        ),
        (
            "import os\n\nimport torch\n\n\ndef f():\n    import x\n",
            "import os\n\nimport torch\nfrom accelerate import PartialState\n\n\ndef f():\n    import x\n",
        ),
        (
            "from __future__ import annotations\nx = 1\n",
            "from __future__ import annotations\n\nfrom accelerate import PartialState\nx = 1\n",
        ),
        (
            "from accelerate import *\n",
            "from accelerate import *\nfrom accelerate import PartialState\n",
        ),
        ("import os", "import os\nfrom accelerate import PartialState\n"),
        (
            "import os\nos.environ['A'] = '1'\nx = 1\nimport torch\n",
            "import os\nfrom accelerate import PartialState\nos.environ['A'] = '1'\nx = 1\nimport torch\n",
        ),
        (
            "from .accelerate import A\n",
            "from .accelerate import A\nfrom accelerate import PartialState\n",
        ),
    ],
)
def test_added(edited: Edited, before: str, after: str) -> None:
    assert edited(before, lambda module: add_import(module, "accelerate.PartialState")) == after


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("from accelerate import PartialState\n", "PartialState"),
        ("from accelerate import PartialState as P\n", "P"),
        ("import accelerate\n", "accelerate.PartialState"),
        ("import accelerate as acc\n", "acc.PartialState"),
    ],
)
def test_already_there(text: str, written: str) -> None:
    assert import_name(module_of(text), "accelerate.PartialState") == (written, [])


def test_an_import_inside_a_function_does_not_count(edited: Edited) -> None:
    text = "def f():\n    from accelerate import PartialState\n"
    after = edited(text, lambda module: add_import(module, "accelerate.PartialState"))
    assert after == "from accelerate import PartialState\n" + text


def test_a_plain_module(edited: Edited) -> None:
    assert (
        edited("import sys\n", lambda module: add_import(module, "os")) == "import sys\nimport os\n"
    )
    assert import_name(module_of("import os\n"), "os") == ("os", [])
