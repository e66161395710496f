"""The system calls of Linux that Python before 3.12 has no word for. Numbers and flags as in Linux's own headers."""

from __future__ import annotations

import ctypes
import fcntl
import os
import platform
import socket
import struct
from pathlib import Path

NEW_MOUNTS = 0x00020000
NEW_HOST_NAME = 0x04000000
NEW_IPC = 0x08000000
NEW_USERS = 0x10000000
NEW_PROCESSES = 0x20000000
NEW_NETWORK = 0x40000000
"""``CLONE_NEW*`` of ``sched.h``."""

READ_ONLY = 0x1
NO_SET_UID = 0x2
NO_DEVICES = 0x4
NO_EXECUTION = 0x8
REMOUNT = 0x20
BIND = 0x1000
RECURSIVE = 0x4000
PRIVATE = 0x40000
"""``MS_*`` of ``sys/mount.h``."""

_DETACH = 0x2
_SET_PARENT_DEATH_SIGNAL = 1
_SET_DUMPABLE = 4
_DROP_BOUNDING_CAPABILITY = 24
_SET_CHILD_SUBREAPER = 36
_SET_NO_NEW_PRIVILEGES = 38
_MOUNT_SETATTR = 442
"""Since Linux 5.12; one number for every architecture."""
_PIVOT_ROOT = {
    "x86_64": 155,
    "aarch64": 41,
    "riscv64": 41,
    "loongarch64": 41,
    "ppc64le": 203,
    "s390x": 217,
}
_AT_RECURSIVE = 0x8000
KEPT_CAPABILITIES = frozenset({0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 18, 31})
"""Those that let root own, read and write files, switch users, bind low ports, and make a user namespace that
knows root (31, since Linux 5.12). None that mounts, and none that looks into the first process, which holds more."""

_library = ctypes.CDLL(None, use_errno=True)


class SystemCallFailed(OSError):
    """A system call said no; ``call`` is what was asked for, in the words of a manual page."""

    def __init__(self, call: str) -> None:
        number = ctypes.get_errno()
        super().__init__(number, os.strerror(number))
        self.call = call


def _checked(result: int, call: str) -> None:
    if result != 0:
        raise SystemCallFailed(call)


def unshare(flags: int) -> None:
    """Give this process namespaces of its own. Raises SystemCallFailed."""
    _checked(_library.unshare(ctypes.c_int(flags)), f"unshare(0x{flags:x})")


def mount(source: str, target: str, kind: str | None, flags: int = 0, options: str = "") -> None:
    """Mount ``source`` on ``target``. Raises SystemCallFailed."""
    result = _library.mount(
        os.fsencode(source),
        os.fsencode(target),
        kind.encode() if kind else None,
        ctypes.c_ulong(flags),
        os.fsencode(options) if options else None,
    )
    _checked(result, f"mount({kind or 'bind'}, {target})")


def bind(source: str, target: str, recursive: bool = False) -> None:
    """Show ``source`` at ``target``, too. Raises SystemCallFailed."""
    mount(source, target, None, BIND | (RECURSIVE if recursive else 0))


def make_read_only(target: str) -> None:
    """Let nothing below the mount ``target`` be written, mounts inside included. Raises SystemCallFailed."""
    attributes = struct.pack("QQQQ", 1, 0, 0, 0)
    result = _library.syscall(
        ctypes.c_long(_MOUNT_SETATTR),
        ctypes.c_int(-100),
        os.fsencode(target),
        ctypes.c_uint(_AT_RECURSIVE),
        attributes,
        ctypes.c_size_t(len(attributes)),
    )
    if result != 0:
        mount("none", target, None, BIND | REMOUNT | READ_ONLY)


def pivot_root(new_root: str) -> None:
    """Make ``new_root``, a mount point, the root and let go of the old one. Raises SystemCallFailed."""
    os.chdir(new_root)
    number = _PIVOT_ROOT.get(platform.machine())
    if number is None:
        ctypes.set_errno(38)
        raise SystemCallFailed(f"pivot_root on {platform.machine()}")
    _checked(_library.syscall(ctypes.c_long(number), b".", b"."), "pivot_root")
    _checked(_library.umount2(b".", _DETACH), "umount(old root)")
    os.chdir("/")


def die_with_parent(signal_number: int) -> None:
    """Be sent ``signal_number`` when the parent ends. Raises SystemCallFailed."""
    _checked(_prctl(_SET_PARENT_DEATH_SIGNAL, signal_number), "prctl(PR_SET_PDEATHSIG)")


def adopt_orphans() -> None:
    """Become the parent of descendants whose parent has ended. Raises SystemCallFailed."""
    _checked(_prctl(_SET_CHILD_SUBREAPER, 1), "prctl(PR_SET_CHILD_SUBREAPER)")


def give_up_power() -> None:
    """What this process becomes by ``exec`` can neither mount, nor load, nor gain anything: not even as root.

    Raises SystemCallFailed.
    """
    for capability in range(64):
        if capability not in KEPT_CAPABILITIES:
            _prctl(_DROP_BOUNDING_CAPABILITY, capability)
    _checked(_prctl(_SET_NO_NEW_PRIVILEGES, 1), "prctl(PR_SET_NO_NEW_PRIVS)")


def _prctl(option: int, value: int) -> int:
    zero = ctypes.c_ulong(0)
    return int(_library.prctl(ctypes.c_int(option), ctypes.c_ulong(value), zero, zero, zero))


def bring_up_loopback() -> None:
    """Let 127.0.0.1 answer in a new network namespace. Raises OSError."""
    up_and_running = 0x1 | 0x40
    set_flags = 0x8914
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, set_flags, struct.pack("16sh14x", b"lo", up_and_running))


def supports_user_attributes(directory: str) -> bool:
    """Whether files there can have attributes ``user.*``: tmpfs has them since Linux 6.6."""
    try:
        os.setxattr(directory, "user.overlay.try", b"y")
        os.removexattr(directory, "user.overlay.try")
    except OSError:
        return False
    return True


def map_users(process: int) -> None:
    """Give the users and groups of a new user namespace their own numbers again: all where we may, else only ours.

    Called outside of it, for the ``process`` that made it. Raises OSError.
    """
    folder = Path("/proc") / str(process)
    try:
        (folder / "uid_map").write_bytes(_identity("uid_map"))
        (folder / "gid_map").write_bytes(_identity("gid_map"))
    except PermissionError:
        (folder / "setgroups").write_bytes(b"deny")
        (folder / "uid_map").write_text(f"{os.geteuid()} {os.geteuid()} 1\n")
        (folder / "gid_map").write_text(f"{os.getegid()} {os.getegid()} 1\n")


def _identity(name: str) -> bytes:
    """Every number that is known here, as itself."""
    ranges = [line.split() for line in (Path("/proc/self") / name).read_text().splitlines()]
    return "".join(f"{first} {first} {count}\n" for first, _, count in ranges).encode()
