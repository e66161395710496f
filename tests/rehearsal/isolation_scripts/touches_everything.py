"""Writes, removes and renames wherever a training script could, and looks whether it took effect.

The workspace is the working directory; its first argument is an absolute path that is not there yet.
"""

import mmap
import os
import shutil
import sys
from pathlib import Path

absolute = Path(sys.argv[1])
here, home = Path.cwd(), Path.home()
assert here.name == "workspace", here
assert Path("data.txt").read_text() == "workspace/data.txt as it was\n"

absolute.write_text("absolute")
Path("/var/tmp", f"{absolute.name}.too").write_text("elsewhere")
(here / "new.txt").write_text("new")
Path("../sibling/notes.txt").write_text("changed from the workspace")
Path("../beside").mkdir()
(home / "written.txt").write_text("home")
(home / ".bashrc").unlink()
(home / ".cache/hub/weights.bin").write_bytes(b"others")

shutil.rmtree("outputs")
Path("outputs").mkdir()
Path("outputs/model.bin").write_text("trained")
Path("latest").unlink()
Path("latest").symlink_to("outputs")
os.rename("data.txt", "renamed.txt")
os.chmod("train.py", 0o600)
os.utime("train.py", (1, 1))
os.link("train.py", "linked.py")
with open("renamed.txt", "r+b") as file, mmap.mmap(file.fileno(), 0) as view:
    view[:4] = b"WORK"
shutil.move("../sibling", "moved")

assert absolute.read_text() == "absolute"
assert os.listdir("outputs") == ["model.bin"]
assert Path("latest/model.bin").read_text() == "trained"
assert Path("renamed.txt").read_text().startswith("WORKspace")
assert Path("moved/notes.txt").read_text() == "changed from the workspace"
assert os.stat("linked.py").st_nlink == 2
assert sorted(os.listdir(home)) == [".cache", "written.txt"]
shutil.rmtree(home / ".cache")
assert not Path("../sibling").exists()
print("saw all of its own changes")
