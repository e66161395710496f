"""Cold and warm rehearsals of five programs, in one run: what a user waits for the first and for the second time.

    python tests/bench/warm_start.py [PROGRAM]...

RANKSAFE_TEST_TORCH_PYTHON names the Python that has torch, transformers, accelerate, datasets and trl. The devices are
compiled before, or by the first rehearsal of all. Each program has a cache of its own, so that the first rehearsal finds
nothing ready. The load stands beside each figure: on a busy machine both take longer.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from compared_tools import LANGUAGE_SERVER_PATH, ranksafe_command, torch_python
from ranksafe.rehearsal.native.cache import BuildCache

_READY_SECONDS = 120.0
_OF_TESTS = Path(__file__).resolve().parents[1] / "rehearsal"
_SFT = """
from datasets import Dataset
from trl import SFTConfig, SFTTrainer

rows = [{"prompt": f"{number} plus one is", "completion": f" {number + 1}"} for number in range(64)]
SFTTrainer(
    model="Qwen/Qwen2.5-0.5B",
    args=SFTConfig(output_dir="out", max_steps=2, report_to=[]),
    train_dataset=Dataset.from_list(rows),
).train()
"""


@dataclass(frozen=True)
class Waited:
    """Seconds of two rehearsals, and the load of the machine before each."""

    cold: float
    cold_load: float
    warm: float
    warm_load: float
    was_warm: bool


def programs(folder: Path) -> dict[str, Path]:
    """By name; trl's is written into ``folder``."""
    sft = folder / "sft.py"
    sft.write_text(_SFT, encoding="utf-8")
    return {
        "ddp": _OF_TESTS / "programs" / "ddp.py",
        "data-parallel": _OF_TESTS / "programs" / "data_parallel.py",
        "fsdp2": _OF_TESTS / "programs" / "fsdp2.py",
        "trainer": _OF_TESTS / "public_scripts" / "documented" / "transformers_trainer.py",
        "sft": sft,
    }


def measure(script: Path, folder: Path) -> Waited:
    """Rehearse twice, the second time once something is ready."""
    cache = folder / "cache" / "ranksafe"
    cache.mkdir(parents=True, mode=0o700)
    native = BuildCache.of_user().folder
    native.mkdir(parents=True, exist_ok=True)
    (cache / "native").symlink_to(native)
    cold_load, (cold, _) = os.getloadavg()[0], _rehearse(script, folder)
    end = time.monotonic() + _READY_SECONDS
    while not list(cache.glob("warm/*/socket")) and time.monotonic() < end:
        if list(cache.glob("warm/*/refused")):
            break
        time.sleep(0.2)
    warm_load, (warm, said) = os.getloadavg()[0], _rehearse(script, folder)
    for socket in cache.glob("warm/*/socket"):
        socket.unlink()  # tells the template to end
    return Waited(cold, cold_load, warm, warm_load, "started warm" in said)


def _rehearse(script: Path, folder: Path) -> tuple[float, str]:
    left_out = ("CI", "RANKSAFE_WARM")
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    options = ["--lang", "en", "--yes", "--python", str(torch_python()), str(script)]
    start = time.monotonic()
    ended = subprocess.run(
        ranksafe_command("rehearse", *options),
        cwd=folder,
        env={**environment, **LANGUAGE_SERVER_PATH, "XDG_CACHE_HOME": str(folder / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - start
    if ended.returncode:
        raise SystemExit(f"{script} ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}")
    return seconds, ended.stderr


def main(words: list[str]) -> int:
    """Print a line for each program; 1 where one was not started warm."""
    all_warm = True
    print(f"{'program':14} {'cold':>8} {'warm':>8}   load before each")
    with tempfile.TemporaryDirectory(prefix="ranksafe-bench-") as name:
        for program, script in programs(Path(name)).items():
            if words and program not in words:
                continue
            folder = Path(name).resolve() / program
            folder.mkdir()
            found = measure(script, folder)
            all_warm = all_warm and found.was_warm
            note = "" if found.was_warm else "   NOT WARM"
            loads = f"{found.cold_load:.1f} and {found.warm_load:.1f}"
            print(
                f"{program:14} {found.cold:6.1f} s {found.warm:6.1f} s   {loads}{note}", flush=True
            )
    return 0 if all_warm else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
