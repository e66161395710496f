"""A text that cannot be downloaded is stood in for; nothing else is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ranksafe import rehearsal

_INJECT = Path(rehearsal.__file__).parent / "inject"
_PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
from ranksafe_rehearsal import importing
from ranksafe_rehearsal.shrink import downloads

importing.install()
downloads.install()
import urllib.request

nobody = "http://127.0.0.1:9/"
with urllib.request.urlopen(nobody + "input.txt?raw=1") as answer:
    text = answer.read().decode()
    assert answer.status == 200
assert len(text) == 1_100_000 and len(text.split()) > 100_000
urllib.request.urlretrieve(nobody + "input.txt?raw=1", sys.argv[2])
assert open(sys.argv[2]).read() == text
try:
    urllib.request.urlopen(nobody + "weights.bin")
except OSError:
    print("refused")
tokens = downloads._tokens(50_280, 50_256)
assert len(tokens) == 50_280 and 50_256 not in tokens.values() and max(tokens.values()) == 50_280
assert [tokens[bytes([byte])] for byte in range(256)] == list(range(256))
"""


def test_texts_are_made_up_and_the_rest_is_refused(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(_INJECT), str(tmp_path / "text")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "refused\n", done.stderr
