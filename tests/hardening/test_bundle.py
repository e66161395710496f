"""Promise: the extension brings only wheels whose hashes are written down."""

from __future__ import annotations

import json
import re

from tests.hardening.measured import ROOT

BUNDLE = ROOT / "client" / "bundle"


def test_every_pinned_library_has_hashes() -> None:
    hashes = json.loads((BUNDLE / "hashes.json").read_text())
    lines = (BUNDLE / "requirements.txt").read_text().splitlines()
    wanted = {line for line in lines if line and not line.startswith("#")}
    program = (BUNDLE / "libraries.mjs").read_text()
    otherwise = re.search(r"PINNED_OTHERWISE = (.*);", program)
    assert otherwise is not None
    wanted |= {
        f"{name}=={version}" for name, version in re.findall(r'(\w+): "([\d.]+)"', otherwise[1])
    }
    assert hashes.keys() == wanted
    assert all(re.fullmatch(r"[0-9a-f]{64}", each) for found in hashes.values() for each in found)
    assert all(hashes.values())
    assert "--require-hashes" in program
