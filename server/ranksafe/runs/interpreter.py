"""The Python that runs the user's script: which one it is, and what it has installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ranksafe.launch.interpreter import find_interpreter as project_interpreter
from ranksafe.launch.interpreter import site_packages
from ranksafe.localization import Translated
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.model import RunRequest

_PROBE_TIMEOUT_SECONDS = 60
DISTRIBUTIONS = (
    *("torch", "accelerate", "transformers", "trl", "deepspeed", "adapters", "peft"),
    *("debugpy", "lightning", "lightning-fabric"),
)

# torch's CUDA build is read from the text of torch/version.py: importing torch takes seconds.
PROBE = """
import json, re, sys
from importlib import metadata, util
versions = {}
for name in sys.argv[1:]:
    try:
        versions[name] = metadata.version(name)
    except Exception:
        pass
cuda = None
try:
    spec = util.find_spec("torch")
    text = open(re.sub(r"__init__[.]py$", "version.py", spec.origin), encoding="utf-8").read()
    found = re.search(r"^cuda[^=\\n]*=\\s*['\\"]([^'\\"]+)", text, re.M)
    cuda = found and found.group(1)
except Exception:
    pass
print(json.dumps({"python": sys.version.split()[0], "versions": versions, "cuda": cuda}))
"""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python and what matters of its packages."""

    path: Path
    python: str
    versions: Mapping[str, str]
    torch_cuda: str | None
    """The CUDA version torch was built for; None: a CPU build, or no torch."""
    command: tuple[str, ...] = ()
    """What starts it where that is no single program (``apptainer exec IMAGE python``); `path` then only names it."""

    @property
    def words(self) -> tuple[str, ...]:
        """The beginning of every command line that runs it."""
        return self.command or (str(self.path),)


def find_interpreter(request: RunRequest) -> Path:
    """The interpreter the user chose, else the active environment's, the project's, or the one on PATH.

    Raises RunNotPossible when there is none.
    """
    if request.interpreter is not None:
        # Not resolved: a virtual environment's python is a link, and following it leaves the environment.
        chosen = request.interpreter.absolute()
        if not os.access(chosen, os.X_OK):
            raise RunNotPossible(_VANISHED.filled(path=chosen))
        return chosen
    environment = {**os.environ, **request.environment}
    found = project_interpreter(request.script.absolute().parent, environment)
    if found is None and sys.prefix != sys.base_prefix:
        # Installed into the project's own environment and started from there without activating it.
        found = Path(sys.executable)
    for name in ("python3", "python"):
        on_path = shutil.which(name, path=environment.get("PATH"))
        if found is None and on_path:
            found = Path(on_path)
    if found is None:
        raise RunNotPossible(_NO_PYTHON)
    return found


def inspect_interpreter(path: Path, environment: Mapping[str, str]) -> Interpreter:
    """Ask ``path`` for the versions of what it has installed; nothing of the user's is imported.

    Raises RunNotPossible when it cannot be run.
    """
    try:
        answer = subprocess.run(
            [str(path), "-c", PROBE, *DISTRIBUTIONS],
            env=dict(environment),
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_TIMEOUT_SECONDS,
            check=True,
        )
        facts = json.loads(answer.stdout.decode().splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        raise RunNotPossible(_BROKEN.filled(path=path, reason=_reason(error))) from error
    return Interpreter(path, facts["python"], facts["versions"], facts["cuda"])


def folder_of_torch(interpreter: Path) -> Path | None:
    """Where ``interpreter`` has torch; read from its folders, without starting it."""
    folders = (folder / "torch" for folder in site_packages(interpreter))
    return next((folder for folder in folders if (folder / "version.py").is_file()), None)


def _reason(error: Exception) -> Translated | str:
    if isinstance(error, subprocess.CalledProcessError):
        lines = error.stderr.decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else _STATUS.filled(status=error.returncode)
    if isinstance(error, subprocess.TimeoutExpired):
        return _SILENT.filled(seconds=round(error.timeout))
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return _NO_ANSWER


_VANISHED = Translated(
    en="The chosen Python interpreter {path} does not exist or cannot be executed. Choose another one.",
    zh_cn="所选的 Python 解释器 {path} 不存在或无法执行，请另选一个。",
)
_NO_PYTHON = Translated(
    en="No Python interpreter was found: activate an environment, or choose an interpreter.",
    zh_cn="找不到 Python 解释器：请激活一个环境，或选择一个解释器。",
)
_BROKEN = Translated(
    en="The Python interpreter {path} does not run: {reason}",
    zh_cn="Python 解释器 {path} 无法运行：{reason}",
)
_STATUS = Translated(
    en="it ended with status {status} and no word", zh_cn="以状态 {status} 退出，没有任何输出"
)
_SILENT = Translated(en="no answer in {seconds} s", zh_cn="{seconds} 秒内没有应答")
_NO_ANSWER = Translated(
    en="what it answers is not what a Python answers", zh_cn="它的应答不是 Python 的应答"
)
