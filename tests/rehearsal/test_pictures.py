"""Synthetic pictures: any number of them, different, in little memory, and such that a worker can be given them."""

from __future__ import annotations

import subprocess
from pathlib import Path

from ranksafe import rehearsal

_INJECT = Path(rehearsal.__file__).parent / "inject"
_PROGRAM = """
import pickle, sys
sys.path.insert(0, sys.argv[1])
from ranksafe_rehearsal.shrink import pictures

many = pictures.windows(60_000, (28, 28), 1)
assert many.shape == (60_000, 28, 28) and many.dtype == "uint8"
assert many.reshape(60_000, 784).strides[1] == 1
assert (many[0] != many[1]).any() and (many[0] != many[59_999]).any()
assert many.strides[0] == 7
assert set(pictures.labels(1000, 10, 1)) == set(range(10))

listed = pickle.loads(pickle.dumps(pictures.Samples(1_281_167, 1000, "train")))
assert len(listed) == 1_281_167
assert listed[-1] == ("train/class 166/1281166.jpg", 166)
assert listed[2:4] == [("train/class 2/2.jpg", 2), ("train/class 3/3.jpg", 3)]
assert list(pictures.Labels(4, 2)) == [0, 1, 0, 1]
try:
    listed[1_281_167]
except IndexError:
    print("ends")
"""


def test_pictures_are_many_and_take_little(torch_python: Path) -> None:
    done = subprocess.run(
        [str(torch_python), "-c", _PROGRAM, str(_INJECT)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "ends\n", done.stderr
