"""Look at a host: interpreter and versions, devices and who uses them, room, network. Nothing of the user's is run.

Request: ``{"interpreter": choice or null, "candidates": [paths below the base], "base": folder or null, "look":
program, "distributions": [names], "project": folder below the base, "without_python": bool}``; a choice is as
`environments.resolve` reads it, ``look`` prints the versions of ``distributions``. Answers with one JSON object of
plain facts; what cannot be found out is null.
"""

from __future__ import annotations

import glob
import json
import os
import pwd
import re
import shlex
import shutil
import socket
import subprocess
import sys
from typing import Any

from ranksafe.runs.on_host import environments
from ranksafe.runs.on_host.request import read_line

_TIMEOUT_SECONDS = 30
_COMMAND_SECONDS = 100
"""A container has to be unpacked, perhaps; the whole answer may take two minutes."""
_UNSEEN_STATUS = 96
_SEES = f"import os, sys\nif not os.path.isdir(sys.argv.pop(1)): sys.exit({_UNSEEN_STATUS})\n"
_DEVICES = "--query-gpu=index,uuid,name,memory.used,memory.free,utilization.gpu,compute_mode,mig.mode.current"
_PROCESSES = "--query-compute-apps=gpu_uuid,pid,used_memory"
_FORMAT = "--format=csv,noheader,nounits"


def main() -> None:
    """Answer."""
    request = json.loads(read_line())
    base = base_folder(request["base"])
    devices, failed = ask_nvidia(_DEVICES)
    processes, _ = ask_nvidia(_PROCESSES)
    facts = {
        "host": socket.gethostname(),
        "user": _user(os.getuid()),
        "home": os.path.expanduser("~"),
        "base": base,
        "cache": base_folder(None),
        "python": None if request["without_python"] else look_at_python(request, base),
        "devices": devices,
        "devices_failed": failed,
        "processes": processes,
        "owners": _owners(processes),
        "visible": os.environ.get("CUDA_VISIBLE_DEVICES"),
        "driver": ask_nvidia("--query-gpu=driver_version")[0].split("\n")[0].strip()
        if devices
        else None,
        "free_bytes": _free_bytes(base),
        "shared_memory_bytes": _size("/dev/shm"),
        "available_memory_bytes": _available_memory(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "rsync": shutil.which("rsync") is not None,
        "slurm": {"sbatch": shutil.which("sbatch") is not None, "node": _is_slurm_node()},
        "interfaces": _interfaces(),
        "free_port": _free_port(),
        "accelerate_configured": os.path.isfile(_accelerate_configuration()),
    }
    print(json.dumps(facts))


def base_folder(chosen: str | None) -> str:
    """Where ranksafe keeps its files there: what the user chose, else the cache folder as everywhere."""
    if chosen:
        return os.path.realpath(os.path.expanduser(chosen))
    cache = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(cache):
        cache = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.realpath(os.path.join(cache, "ranksafe"))


def look_at_python(request: Any, base: str) -> Any:
    """The interpreter of the run and what it has installed; ``error`` where it cannot be used."""
    chosen = request["interpreter"]
    if chosen is not None:
        found = environments.resolve(chosen)
        if "error" in found:
            return dict(found, path=found["shown"])
        words = found["words"]
        return _ask_command(words, request, base) if words[1:] else _ask_python(words[0], request)
    active = [os.environ.get(name) for name in ("VIRTUAL_ENV", "CONDA_PREFIX")]
    candidates = [os.path.join(each, "bin", "python") for each in active if each]
    candidates += [os.path.join(base, each) for each in request["candidates"]]
    for path in candidates:
        if os.access(path, os.X_OK):
            return _ask_python(path, request)
    return _ask_python(shutil.which("python3") or sys.executable, request)


def _ask_python(path: str, request: Any) -> Any:
    command = [path, "-c", request["look"], *request["distributions"]]
    return dict(_ask(command, "/", _TIMEOUT_SECONDS), path=path)


def _ask_command(words: Any, request: Any, base: str) -> Any:
    """Where a run will start it, for ``uv run`` looks around itself; a container must see what a run needs."""
    project = os.path.join(base, request["project"])
    sent = os.path.isdir(project)
    place = project if sent else os.path.expanduser("~")
    seen = project if sent else "/"
    command = [*words, "-c", _SEES + request["look"], seen, *request["distributions"]]
    found = _ask(command, place, _COMMAND_SECONDS)
    if found.get("status") == _UNSEEN_STATUS:
        found["unseen"] = base
    return dict(found, path=shlex.join(words), words=words, sent=sent)


def _ask(command: Any, place: str, seconds: float) -> Any:
    try:
        answer = subprocess.run(
            command, cwd=place, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds
        )
        if answer.returncode != 0:
            said = answer.stderr.decode("utf-8", "replace").strip().splitlines()
            reason = said[-1] if said else f"status {answer.returncode}"
            return {"error": reason, "status": answer.returncode}
        facts: Any = json.loads(answer.stdout.decode().splitlines()[-1])
        return facts
    except subprocess.TimeoutExpired:
        return {"error": f"no answer in {seconds:g} s"}
    except (OSError, ValueError, IndexError) as error:
        return {"error": str(error)}


def ask_nvidia(what: str) -> Any:
    """nvidia-smi's answer as CSV lines, and what it complained of; both empty where it is not there."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return "", ""
    try:
        answer = subprocess.run(
            [program, what, _FORMAT],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_SECONDS,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return "", str(error)
    text = answer.stdout.decode("utf-8", "replace")
    if answer.returncode == 0:
        return text, ""
    said = (answer.stderr.decode("utf-8", "replace") or text).strip().splitlines()
    return "", said[-1] if said else f"status {answer.returncode}"


def _owners(processes: str) -> Any:
    """The user of each process in nvidia-smi's list."""
    owners = {}
    for line in processes.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) > 1 and cells[1].isdigit():
            try:
                owners[cells[1]] = _user(os.stat("/proc/" + cells[1]).st_uid)
            except OSError:
                owners[cells[1]] = None
    return owners


def _user(number: int) -> str | None:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return None


def _free_bytes(folder: str) -> int | None:
    while not os.path.isdir(folder) and folder != "/":
        folder = os.path.dirname(folder)
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None


def _size(folder: str) -> int | None:
    try:
        return shutil.disk_usage(folder).total
    except OSError:
        return None


def _available_memory() -> int | None:
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            found = re.search(r"MemAvailable:\s+(\d+)", file.read())
    except OSError:
        return None
    return int(found.group(1)) * 1024 if found else None


def _is_slurm_node() -> bool:
    for path in glob.glob("/proc/[0-9]*/comm"):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                if file.read().strip() == "slurmd":
                    return True
        except OSError:
            continue
    return False


def _interfaces() -> Any:
    """What NCCL could use: network interfaces with their state, and InfiniBand devices."""
    found = []
    for path in sorted(glob.glob("/sys/class/net/*")):
        name = os.path.basename(path)
        if name != "lo":
            found.append(
                {"name": name, "state": _read(path + "/operstate"), "mbit": _read(path + "/speed")}
            )
    for path in sorted(glob.glob("/sys/class/infiniband/*/ports/*")):
        parts = path.split("/")
        found.append(
            {"name": parts[4], "state": _read(path + "/state"), "mbit": None, "kind": "infiniband"}
        )
    return found


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _accelerate_configuration() -> str:
    """Where accelerate 1.15.0 looks (``commands/config/config_args.py``)."""
    home = os.path.expanduser("~")
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    hub = os.environ.get("HF_HOME") or os.path.join(cache, "huggingface")
    return os.path.join(hub, "accelerate", "default_config.yaml")


if __name__ == "__main__":
    main()
