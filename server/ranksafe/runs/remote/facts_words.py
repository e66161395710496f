"""A host in words, for ``ranksafe doctor --target ssh:HOST``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ranksafe.localization import Translated
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.interpreter import find_interpreter, inspect_interpreter
from ranksafe.runs.model import RunRequest
from ranksafe.runs.remote.facts import HostFacts

_SMALL_SHARED_MEMORY = 1 << 30
_COMPARED = ("torch", "accelerate", "transformers")


def described(facts: HostFacts, local: Mapping[str, str] | None = None) -> list[Translated]:
    """One sentence each; ``local``: the versions installed here. Raises RunNotPossible as `HostFacts.interpreter`."""
    interpreter = facts.interpreter()
    answer = facts.answer
    found = [
        _HOST.filled(host=facts.host, name=answer["host"], user=answer["user"] or "?"),
        _PYTHON.filled(python=interpreter.python, path=interpreter.path),
    ]
    for name, version in interpreter.versions.items():
        found.append(version_in_words(name, version, (local or {}).get(name)))
    if "torch" in interpreter.versions:
        cuda = interpreter.torch_cuda
        found.append(_NO_CUDA if cuda is None else _CUDA.filled(cuda=cuda))
    found += _devices(facts)
    found += _room(answer)
    found.append(_RSYNC if answer["rsync"] else _NO_RSYNC)
    found.append(_INTERFACES.filled(names=", ".join(map(_interface, answer["interfaces"])) or "-"))
    if answer["slurm"]["node"]:
        found.append(_SLURM_NODE)
    elif answer["slurm"]["sbatch"]:
        found.append(_SLURM)
    return found


def local_versions(request: RunRequest) -> Mapping[str, str]:
    """What the project's interpreter here has installed; empty where there is none."""
    try:
        path = find_interpreter(request)
        return inspect_interpreter(path, {}).versions
    except RunNotPossible:
        return {}


def version_in_words(name: str, there: str, here: str | None) -> Translated:
    """What is installed there, beside what is here where that is another version of what matters most."""
    plain = Translated(f"{name} {there}", f"{name} {there}")
    if name not in _COMPARED or here is None or here.split("+")[0] == there.split("+")[0]:
        return plain
    return _OTHER_VERSION.filled(name=name, there=there, here=here)


def _devices(facts: HostFacts) -> list[Translated]:
    gpus = facts.gpus()
    if not gpus:
        reason = facts.answer["devices_failed"]
        return [_NVIDIA_FAILS.filled(reason=reason)] if reason else [_NO_DEVICES]
    found = [_DRIVER.filled(version=facts.answer["driver"] or "?")]
    for gpu in gpus:
        reason = facts.reason_against(gpu)
        memory = "?" if gpu.free_mib is None else gpu.free_mib
        found.append(
            _DEVICE.filled(
                index=gpu.index,
                name=gpu.name,
                memory=memory,
                state=_FREE if reason is None else reason,
            )
        )
    return found


def _room(answer: Mapping[str, Any]) -> list[Translated]:
    found = [_DISK.filled(folder=answer["base"], free=_gib(answer["free_bytes"]))]
    shared = answer["shared_memory_bytes"]
    found.append(_SHARED.filled(size=_gib(shared)))
    if shared is not None and shared < _SMALL_SHARED_MEMORY:
        found.append(_SMALL_SHARED)
    memory = _gib(answer["available_memory_bytes"])
    found.append(_MEMORY.filled(size=memory, cores=answer["cores"]))
    return found


def _gib(size: int | None) -> str:
    return "?" if size is None else f"{size / 2**30:.1f}"


def _interface(entry: Mapping[str, Any]) -> str:
    speed = entry.get("mbit")
    known = isinstance(speed, str) and speed.isdigit() and int(speed) > 0
    words = [str(entry["name"]), str(entry.get("state") or "?"), f"{speed} Mbit/s" if known else ""]
    return " ".join(word for word in words if word)


_HOST = Translated(en="{host}: {name}, as user {user}", zh_cn="{host}：{name}，用户 {user}")
_PYTHON = Translated(en="Python {python}: {path}", zh_cn="Python {python}：{path}")
_OTHER_VERSION = Translated(
    en="{name} {there} (here: {here})", zh_cn="{name} {there}（本机：{here}）"
)
_CUDA = Translated(en="torch built for CUDA {cuda}", zh_cn="torch 针对 CUDA {cuda} 构建")
_NO_CUDA = Translated(en="torch built without CUDA", zh_cn="torch 不带 CUDA 支持")
_DRIVER = Translated(en="NVIDIA driver {version}", zh_cn="NVIDIA 驱动 {version}")
_DEVICE = Translated(
    en="GPU {index} ({name}, {memory} MiB free): {state}",
    zh_cn="GPU {index}（{name}，空闲显存 {memory} MiB）：{state}",
)
_FREE = Translated(en="free", zh_cn="空闲")
_NO_DEVICES = Translated(en="no CUDA device", zh_cn="没有 CUDA 设备")
_NVIDIA_FAILS = Translated(en="nvidia-smi fails: {reason}", zh_cn="nvidia-smi 报错：{reason}")
_DISK = Translated(
    en="disk at {folder}: {free} GiB free", zh_cn="{folder} 所在磁盘：剩余 {free} GiB"
)
_SHARED = Translated(
    en="shared memory (/dev/shm): {size} GiB", zh_cn="共享内存（/dev/shm）：{size} GiB"
)
_SMALL_SHARED = Translated(
    en="/dev/shm is small: DataLoader workers and NCCL may fail with bus errors",
    zh_cn="/dev/shm 较小：DataLoader worker 和 NCCL 可能因总线错误失败",
)
_MEMORY = Translated(
    en="memory: {size} GiB available, {cores} cores", zh_cn="内存：可用 {size} GiB，{cores} 个核心"
)
_RSYNC = Translated(en="rsync is there", zh_cn="有 rsync")
_NO_RSYNC = Translated(
    en="no rsync there: large files that changed are sent as a whole",
    zh_cn="没有 rsync：有改动的大文件将整个发送",
)
_INTERFACES = Translated(en="network: {names}", zh_cn="网络：{names}")
_SLURM_NODE = Translated(
    en="a node of a Slurm cluster: use the target slurm:NAME",
    zh_cn="Slurm 集群的节点：请使用目标 slurm:NAME",
)
_SLURM = Translated(
    en="Slurm is there: for the GPUs of its nodes use the target slurm:NAME",
    zh_cn="有 Slurm：要使用其节点的 GPU，请使用目标 slurm:NAME",
)
