"""Compile the simulated devices for torch releases into ``native/prebuilt``, which the wheel and the .vsix then carry.

    python tools/prebuild_rehearsal.py                 the releases below
    python tools/prebuild_rehearsal.py 2.15.0 2.14.1   these
    python tools/prebuild_rehearsal.py --python P ...  with P's torch, whatever it is

Each release is installed without its dependencies into the development cache (1 to 2 GB each) and removed afterwards;
``--keep`` leaves it there. The Python that runs this decides the ABI: start it once per Python to support. Nothing else
needs the result: without it, a rehearsal compiles for itself.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path

import environments

sys.path.insert(0, str(environments.ROOT / "server"))

from ranksafe.rehearsal.errors import RehearsalNotPossible
from ranksafe.rehearsal.native.build import Builder
from ranksafe.rehearsal.native.cache import BuildCache
from ranksafe.rehearsal.native.prebuilt import PREBUILT_FOLDER, prebuilt_name
from ranksafe.rehearsal.torch_build import torch_build

RELEASES = ("2.15.0", "2.14.1", "2.13.0", "2.13.0+cpu", "2.12.1", "2.11.0", "2.10.0")


def prebuild(python: Path, environment: dict[str, str]) -> Path:
    """Compile for the torch of ``python`` and return the new folder. Raises RehearsalNotPossible."""
    build = torch_build(python, environment)
    cache = BuildCache.of_user()
    builder = Builder(build, cache, lambda step: environments.say(step.en), lambda: False)
    finished = Path(builder.files().devices).parent
    place = PREBUILT_FOLDER / prebuilt_name(build)
    shutil.rmtree(place, ignore_errors=True)
    place.parent.mkdir(exist_ok=True)
    shutil.copytree(finished, place)
    return place


def installed(release: str) -> Path:
    """A folder with torch ``release`` and nothing else. Raises SetUpError."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    folder = environments.cache_folder() / f"prebuild-torch-{release}-python{version}"
    if not (folder / "torch" / "version.py").is_file():
        environments.say(f"downloading torch {release}")
        goal = ["--no-deps", "--no-cache-dir", "--target", str(folder), f"torch=={release}"]
        environments.pip(Path(sys.executable), ["install", "--quiet", *goal])
    return folder


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("releases", nargs="*", default=RELEASES)
    parser.add_argument("--python", type=Path, help="an interpreter that has torch")
    parser.add_argument("--keep", action="store_true", help="do not remove what was downloaded")
    options = parser.parse_args(words)
    try:
        if options.python is not None:
            print(prebuild(options.python, dict(os.environ)))
            return 0
        for release in options.releases:
            folder = installed(release)
            print(prebuild(Path(sys.executable), {**os.environ, "PYTHONPATH": str(folder)}))
            if not options.keep:
                shutil.rmtree(folder)
    except (environments.SetUpError, RehearsalNotPossible) as error:
        environments.say(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
