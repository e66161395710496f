"""What a class's own source says of how it changes its attributes."""

from __future__ import annotations

import functools
import inspect
import re
from typing import Any


@functools.lru_cache(maxsize=256)
def builds_on_itself(kind: Any, name: str) -> bool:
    """Whether the class computes the attribute from its old value, in place or not.

    One that is merely set, and then read within the same call, carries nothing from call to call.
    """
    source = inspect.getsource(kind)
    attribute = rf"\bself\.{re.escape(name)}\b"
    forms = (
        rf"{attribute}(?:\[[^\n]*\])?\s*(?:\+|-|\*|/)=",
        rf"{attribute}\s*=[^=\n][^\n]*{attribute}",
        rf"{attribute}(?:\.data)?\.(?:add_|sub_|mul_|div_|lerp_|addcmul_|index_add_|scatter_add_)\b",
    )
    return any(re.search(form, source) for form in forms)
