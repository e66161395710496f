"""Large changes through rsync, which sends of a file only the parts that have changed."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Final

from ranksafe.runs.errors import RunCancelled
from ranksafe.runs.hosts.protocol import Host
from ranksafe.runs.hosts.ssh import SshHost
from ranksafe.runs.remote.listing import Listing
from ranksafe.runs.targets.protocol import Listener

WORTH_BYTES: Final = 1 << 20
"""Below it a second program costs more time than it saves."""
_OPTIONS = (
    "--files-from=-",
    "--from0",
    "--links",
    "--perms",
    "--chmod=u+rw,go=",
    "--times",
    "--compress",
    # Names reach rsync on the other side in its own stream, not through the shell there.
    "-s",
)
_POLL_SECONDS = 0.05


def can_send(host: Host, there: bool) -> bool:
    """Whether both sides have rsync (``there``: the host) and it can be told how to connect."""
    if not there or not isinstance(host, SshHost) or shutil.which("rsync") is None:
        return False
    return _shell(host) is not None


def send(
    host: Host, listing: Listing, names: Sequence[str], folder: PurePosixPath, listener: Listener
) -> bool:
    """Send ``names``; whether it worked: old versions, a login shell that prints something and full disks end it.

    Raises RunCancelled.
    """
    assert isinstance(host, SshHost)
    program, shell = shutil.which("rsync"), _shell(host)
    if program is None or shell is None:
        return False
    command = [
        program,
        *_OPTIONS,
        "--rsh",
        shell,
        "--",
        f"{listing.root}/",
        f"{host.name}:{folder}/",
    ]
    with tempfile.TemporaryFile() as wanted:
        for name in names:
            # Without a folder before it, a name that begins with # or ; is a comment.
            wanted.write(b"./" + os.fsencode(name) + b"\0")
        wanted.seek(0)
        process = subprocess.Popen(
            command,
            stdin=wanted,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            while process.poll() is None:
                if listener.should_stop():
                    raise RunCancelled
                time.sleep(_POLL_SECONDS)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
    return process.returncode == 0


def _shell(host: SshHost) -> str | None:
    """ssh and its options as rsync splits them: at spaces, outside of quotes; None where that cannot be said."""
    words = []
    for word in host.command:
        if '"' in word or "'" in word or "\\" in word or "\n" in word:
            return None
        words.append(f'"{word}"' if " " in word or not word else word)
    return " ".join(words)
