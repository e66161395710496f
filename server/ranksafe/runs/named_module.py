"""The file of a module that is started by its name (``python -m``)."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from ranksafe.localization import Translated
from ranksafe.runs.errors import RunNotPossible

_SECONDS = 60

# Only the first package is looked up by Python: to look up what is inside of it would import it.
_PROBE = """
import sys
from importlib.util import find_spec
from os.path import isfile, join
first, *rest = sys.argv[1].split(".")
spec = find_spec(first)
places = list(spec.submodule_search_locations or []) if spec else []
files = [] if rest or not spec or places else [spec.origin]
for name in rest[:-1]:
    places = [join(place, name) for place in places]
for place in places:
    inside = join(place, rest[-1]) if rest else place
    files += [inside + ".py"] if rest else []
    files.append(join(inside, "__main__.py"))
print(next((file for file in files if file and isfile(file)), ""))
"""


def module_file(
    module: str, interpreter: Path, working_directory: Path, environment: Mapping[str, str]
) -> Path:
    """What ``interpreter -m module`` would start there; nothing of it is imported. Raises RunNotPossible."""
    try:
        answer = subprocess.run(
            [str(interpreter), "-c", _PROBE, module],
            cwd=working_directory,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=True,
        )
        file = answer.stdout.splitlines()[-1]
    except (OSError, subprocess.SubprocessError, IndexError):
        file = ""
    if not file:
        raise RunNotPossible(_NO_MODULE.filled(module=module, path=interpreter))
    return Path(working_directory, file)


_NO_MODULE = Translated(
    en="{path} finds no module {module} that can be started. Start in the folder that has it, or install it there.",
    zh_cn="{path} 找不到可启动的模块 {module}。请在包含它的文件夹中启动，或在该环境中安装它。",
)
