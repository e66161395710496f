"""Whether this system lets us isolate a rehearsal: found out by doing it once."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path

from ranksafe.localization import Translated
from ranksafe.rehearsal.isolation.specification import NOT_ENTERED, Specification

PROGRAM = Path(__file__).parent / "enter.py"
_SECONDS = 20.0
_TRY_BYTES = 1 << 20


@lru_cache(maxsize=1)
def probe() -> Translated | None:
    """Why nothing can be isolated here, and what would help; None: it can. Takes about 0.2 s once per process."""
    if not sys.platform.startswith("linux"):
        return _NOT_LINUX.filled(system=sys.platform)
    with tempfile.TemporaryDirectory(prefix="ranksafe-") as folder:
        run = os.path.realpath(folder)
        specification = Specification(
            run_directory=run,
            working_directory=run,
            writable_folders=(run,),
            host_names=(),
            namespaces=True,
            disk_bytes=_TRY_BYTES,
            shared_memory_bytes=_TRY_BYTES,
            host_memory_bytes=None,
        )
        try:
            path = specification.write(Path(run))
            command = [sys.executable, "-I", str(PROGRAM), str(path), "--", "true"]
            ended = subprocess.run(
                command, capture_output=True, text=True, timeout=_SECONDS, check=False
            )
        except (OSError, subprocess.SubprocessError) as error:
            return _FAILED.filled(reason=error)
    return None if ended.returncode == 0 else _reason(ended.returncode, ended.stderr)


def outlook() -> Translated:
    """In a sentence whether rehearsals are isolated here."""
    why_not = probe()
    return _CAN_ISOLATE if why_not is None else _CANNOT_ISOLATE.filled(reason=why_not)


def _reason(status: int, errors: str) -> Translated:
    last = errors.strip().splitlines()[-1:] or [""]
    try:
        told = json.loads(last[0])
        step, number, text = str(told["step"]), int(told["errno"] or 0), str(told["text"])
    except (ValueError, KeyError, TypeError):
        return _FAILED.filled(reason=last[0] or f"exit status {status}")
    if status != NOT_ENTERED:
        return _FAILED.filled(reason=text)
    if _is_set("/proc/sys/user/max_user_namespaces", "0"):
        return _TURNED_OFF.filled(reason=text, setting="user.max_user_namespaces=10000")
    if _is_set("/proc/sys/kernel/unprivileged_userns_clone", "0"):
        return _TURNED_OFF.filled(reason=text, setting="kernel.unprivileged_userns_clone=1")
    if _is_set("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"):
        setting = "kernel.apparmor_restrict_unprivileged_userns=0"
        return _TURNED_OFF.filled(reason=text, setting=setting)
    if "overlay" in step and number in (errno.EPERM, errno.ENODEV, errno.EINVAL):
        return _OLD_KERNEL.filled(reason=text, release=os.uname().release)
    if number in (errno.EPERM, errno.EACCES, errno.ENOSYS):
        return _CONTAINER.filled(reason=text)
    return _FAILED.filled(reason=text)


def _is_set(path: str, value: str) -> bool:
    try:
        return Path(path).read_text().strip() == value
    except OSError:
        return False


_CAN_ISOLATE = Translated(
    en="rehearsals are isolated here: the script's files and network are kept apart",
    zh_cn="可以在此隔离预演：脚本的文件和网络与系统分开",
)
_CANNOT_ISOLATE = Translated(
    en="rehearsals are not isolated here: {reason}", zh_cn="无法在此隔离预演：{reason}"
)
_NOT_LINUX = Translated(
    en="isolation needs Linux namespaces, which {system} does not have",
    zh_cn="隔离需要 Linux 命名空间，而 {system} 没有该功能",
)
_FAILED = Translated(
    en="isolation does not work on this machine: {reason}", zh_cn="本机无法进行隔离：{reason}"
)
_TURNED_OFF = Translated(
    en="this system does not allow user namespaces ({reason}); an administrator can: sudo sysctl -w {setting}",
    zh_cn="本系统不允许使用用户命名空间（{reason}）；管理员可执行：sudo sysctl -w {setting}",
)
_OLD_KERNEL = Translated(
    en="Linux {release} has no overlay file system for users ({reason}); Linux 5.11 and newer have it",
    zh_cn="Linux {release} 不支持普通用户使用 overlay 文件系统（{reason}）；需要 Linux 5.11 或更新版本",
)
_CONTAINER = Translated(
    en="this system, perhaps a container, does not allow namespaces ({reason}); Docker and Podman do with "
    "--security-opt seccomp=unconfined --security-opt systempaths=unconfined --security-opt apparmor=unconfined",
    zh_cn="本系统（可能是容器）不允许使用命名空间（{reason}）；Docker 和 Podman 可通过以下选项允许："
    "--security-opt seccomp=unconfined --security-opt systempaths=unconfined --security-opt apparmor=unconfined",
)
