"""A machine that the user's own ``ssh HOST`` reaches.

The OpenSSH client is used, not a library, so that everything in ``~/.ssh/config`` counts: aliases, jump hosts, agents,
hardware keys, known hosts. Host keys are checked as the user has it; nothing ever asks for a password.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from ranksafe.localization import Translated
from ranksafe.runs.directory import cache_directory
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.hosts.boot import BOOT, opening
from ranksafe.runs.hosts.errors import HostUnreachable
from ranksafe.runs.hosts.piped import AskedHost, Babble, PipedConversation
from ranksafe.runs.hosts.protocol import Conversation, never
from ranksafe.runs.hosts.ssh_refusals import refusal

CONFIG_VARIABLE: Final = "RANKSAFE_SSH_CONFIG"
"""Environment variable: the configuration file for ssh, in place of ``~/.ssh/config``."""
_chosen_config: Path | None = None
SILENT_SECONDS: Final = 15
"""After so long without a sign of the other side a connection counts as lost."""
_HOST_NAME = re.compile(r"[A-Za-z0-9._@][A-Za-z0-9._@-]*")
_INTERPRETER = re.compile(r"(?P<home>~/)?(?P<rest>[^'\\!\x00-\x1f\x7f-]?[^'\\!\x00-\x1f\x7f]*)")
_OPTIONS: Final = (
    "BatchMode=yes",
    "ClearAllForwardings=yes",
    "ConnectTimeout=15",
    "ForwardAgent=no",
    "LogLevel=ERROR",
    "PermitLocalCommand=no",
    "RemoteCommand=none",
    "RequestTTY=no",
    "ServerAliveCountMax=3",
    f"ServerAliveInterval={SILENT_SECONDS // 3}",
)
_LONGEST_SOCKET = 104
"""``sun_path`` of the BSDs and macOS; Linux has 108."""
_SOCKET_NAME = 40 + 1 + 8 + 17 + 1
"""``%C`` (40 characters), what we put before it, and what ssh appends while it makes the socket (misc: ``.XXXX``)."""
_START_SECONDS = 30.0
"""For all of it: the connection has 15, the rest is for login scripts."""


def choose_config(path: Path | None) -> None:
    """The configuration file for ssh that the user chose, for all hosts named from now on; None: `CONFIG_VARIABLE`'s.

    Not by way of the variable, which scripts that run here would inherit.
    """
    global _chosen_config
    _chosen_config = path


def config_file() -> Path:
    """The configuration of the user's own that ssh reads."""
    chosen = _chosen_config or os.environ.get(CONFIG_VARIABLE)
    return Path(chosen) if chosen else Path.home() / ".ssh" / "config"


class SshHost(AskedHost):
    """A host as the user names it for ssh.

    Raises RunNotPossible for what is no name of a host (it must never become an option of ssh), and where there is no
    ssh.
    """

    def __init__(self, name: str) -> None:
        if not _HOST_NAME.fullmatch(name):
            raise RunNotPossible(_NO_HOST_NAME.filled(host=name))
        program = shutil.which("ssh")
        if program is None:
            raise RunNotPossible(_NO_SSH)
        self._name = name
        self._program = program
        self._chosen_config = _chosen_config

    @property
    def name(self) -> str:
        """The name or alias, perhaps with a user before it."""
        return self._name

    def start(
        self,
        program: str,
        request: Mapping[str, Any],
        *,
        interpreter: str = "python3",
        should_stop: Callable[[], bool] = never,
    ) -> Conversation:
        """Start ``program`` there; returns once it runs."""
        remote = f"exec {remote_word(interpreter)} -I -u -c '{BOOT}'"
        command = [*self.command, "-T", "--", self._name, remote]
        try:
            conversation = PipedConversation(command, opening(program, request))
        except OSError as error:
            reason = Translated(str(error.strerror), str(error.strerror))
            raise HostUnreachable(reason) from error
        try:
            status = conversation.wait_for_greeting(_START_SECONDS, should_stop)
        except TimeoutError as error:
            raise HostUnreachable(
                _TOO_SLOW.filled(host=self._name, seconds=f"{_START_SECONDS:g}")
            ) from error
        except Babble as error:
            raise HostUnreachable(_BABBLES.filled(host=self._name)) from error
        if status is not None:
            raise HostUnreachable(refusal(self._name, interpreter, status, conversation.complaints))
        return conversation

    @cached_property
    def command(self) -> tuple[str, ...]:
        """ssh and its options, without the host: for other programs that connect through it, too (rsync)."""
        options = [
            word for option in (*_OPTIONS, *self._shared_connection) for word in ("-o", option)
        ]
        return (self._program, *self._config, "-x", "-a", *options)

    @property
    def _config(self) -> tuple[str, ...]:
        chosen = self._chosen_config or os.environ.get(CONFIG_VARIABLE)
        return ("-F", str(chosen)) if chosen else ()

    @property
    def _shared_connection(self) -> tuple[str, ...]:
        """One connection for everything, which is several times as fast. A user who shares connections has a reason
        (a second factor, say), so theirs is used; Windows' OpenSSH has none."""
        if sys.platform == "win32" or self._shares_already():
            return ()
        folder = _socket_folder()
        if folder is None:
            return ()
        # The same name may be another host, or be trusted otherwise, in another configuration file.
        kind = hashlib.sha256("\0".join(self._config).encode()).hexdigest()[:8]
        return ("ControlMaster=auto", f"ControlPath={folder}/{kind}-%C", "ControlPersist=30")

    def _shares_already(self) -> bool:
        try:
            answer = subprocess.run(
                [self._program, *self._config, "-G", "--", self._name],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=30,
                check=False,
            )
        except (OSError, subprocess.SubprocessError):
            return True
        path = re.search(r"^controlpath (.*)$", answer.stdout, re.MULTILINE)
        return path is not None and path[1] != "none"


def remote_word(text: str) -> str:
    """``text`` as one word for bash, dash, zsh, tcsh and fish alike; a leading ``~/`` is the home folder there.

    Raises RunNotPossible for what cannot be said to all of them: quotes, backslashes, ``!``, control characters, a
    leading dash.
    """
    found = _INTERPRETER.fullmatch(text)
    if found is None or not text or text.startswith("-"):
        raise RunNotPossible(_NOT_SAYABLE.filled(text=ascii(text)))
    if re.fullmatch(r"[A-Za-z0-9/._+-]*", found["rest"]):
        return text
    return f"{found['home'] or ''}'{found['rest']}'"


def _socket_folder() -> Path | None:
    """A folder only the user can enter, with a name short enough for sockets; None where there is none."""
    candidates = [cache_directory() / "ssh"]
    if runtime := os.environ.get("XDG_RUNTIME_DIR"):
        candidates.insert(0, Path(runtime) / "ranksafe")
    for folder in candidates:
        name = str(folder)
        if len(os.fsencode(name)) + _SOCKET_NAME > _LONGEST_SOCKET or re.search(
            r"[\s%\"'$~]", name
        ):
            continue
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)
            return folder
        except OSError:
            continue
    return None


_NO_HOST_NAME = Translated(
    en='"{host}" is no name of a host: letters, digits, ".", "_", "@" and "-" make one, and it begins with no "-".',
    zh_cn="“{host}”不是有效的主机名：只能包含字母、数字和“.”“_”“@”“-”，且不能以“-”开头。",
)
_NO_SSH = Translated(
    en="There is no ssh on this machine: install the OpenSSH client.",
    zh_cn="本机上没有 ssh：请安装 OpenSSH 客户端。",
)
_TOO_SLOW = Translated(
    en="{host} did not answer within {seconds} s. Try `ssh {host} true` in a terminal: do its login scripts wait for "
    "something?",
    zh_cn="{host} 在 {seconds} 秒内没有应答。请在终端中尝试 `ssh {host} true`：其登录脚本是否在等待什么？",
)
_BABBLES = Translated(
    en="{host} prints without end before any program starts. Try `ssh {host} true` in a terminal: what do its login "
    "scripts print?",
    zh_cn="{host} 在任何程序启动之前不断输出内容。请在终端中尝试 `ssh {host} true`：其登录脚本输出了什么？",
)
_NOT_SAYABLE = Translated(
    en="The path {text} cannot be used on another host: it must have no quotes, backslashes, exclamation marks or "
    "control characters, and must not begin with a dash.",
    zh_cn="路径 {text} 不能用于远程主机：不能包含引号、反斜杠、感叹号或控制字符，且不能以“-”开头。",
)
