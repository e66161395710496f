"""What ssh says when it gives up, and what to do about it.

Only ssh's own words are read, before any program of the host's has spoken (OpenSSH 9.2: ``sshconnect.c``,
``sshconnect2.c``, ``misc.c``; exit status 255), and the shell's status where the interpreter is not there.
"""

from __future__ import annotations

from ranksafe.localization import Translated
from ranksafe.runs.hosts.boot import TOO_OLD

_FAILED = 255
_NOT_FOUND = 127
_NOT_EXECUTABLE = 126
_LONGEST = 400


def refusal(host: str, interpreter: str, status: int, said: str) -> Translated:
    """Why no program was started on ``host``, and the way out. ``said``: standard error of ssh."""
    reason = _last_line(said)
    if status == TOO_OLD:
        return _OLD_PYTHON.filled(host=host, python=interpreter)
    if status != _FAILED:
        missing = status in (_NOT_FOUND, _NOT_EXECUTABLE) or "ot found" in reason
        sentence = _NO_PYTHON if missing else _BROKEN_PYTHON
        return sentence.filled(host=host, python=interpreter, reason=reason or f"status {status}")
    lowered = said.lower()
    for words, sentence in _KNOWN:
        if any(each in lowered for each in words):
            return sentence.filled(host=host, reason=reason)
    return _OTHER.filled(host=host, reason=reason or "?")


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:_LONGEST] if lines else ""


_CHANGED_KEY = Translated(
    en="The host key of {host} is not the one that is known for it. Either the machine was set up anew, or this is not "
    "the machine you mean. Ask who runs it; then run `ssh {host}` in a terminal, which says what to do.",
    zh_cn="{host} 的主机密钥与已知的不一致：可能是机器重装过，也可能不是您要连接的机器。请先向管理员确认，"
    "然后在终端中运行 `ssh {host}`，按其提示处理。",
)
_UNKNOWN_KEY = Translated(
    en="The host key of {host} is not known yet. Run `ssh {host}` in a terminal once, compare the key it shows, and "
    "accept it there.",
    zh_cn="尚不认识 {host} 的主机密钥。请在终端中运行一次 `ssh {host}`，核对显示的密钥并在那里确认。",
)
_DENIED = Translated(
    en="{host} lets nobody in with the keys at hand ({reason}). ranksafe never asks for passwords: make `ssh {host}` "
    "work without one (ssh-agent, ssh-copy-id), or open a shared connection (ControlMaster) in a terminal first.",
    zh_cn="现有密钥无法登录 {host}（{reason}）。ranksafe 从不询问密码：请让 `ssh {host}` 无需密码即可登录"
    "（ssh-agent、ssh-copy-id），或先在终端中打开一个共享连接（ControlMaster）。",
)
_UNRESOLVED = Translated(
    en="There is no machine called {host}: {reason}. Is it spelled as in your ssh configuration? Is the VPN up?",
    zh_cn="找不到名为 {host} 的机器：{reason}。名称是否与 ssh 配置中一致？VPN 是否已连接？",
)
_REFUSED = Translated(
    en="{host} is there, but no ssh server answers: {reason}. Check the port, and whether sshd runs.",
    zh_cn="{host} 可以访问，但没有 ssh 服务应答：{reason}。请检查端口以及 sshd 是否在运行。",
)
_TIMED_OUT = Translated(
    en="{host} does not answer: {reason}. Is the machine on, and the VPN up?",
    zh_cn="{host} 没有应答：{reason}。机器是否开机，VPN 是否已连接？",
)
_BAD_CONFIGURATION = Translated(
    en="ssh does not accept its configuration: {reason}", zh_cn="ssh 不接受其配置：{reason}"
)
_NO_PYTHON = Translated(
    en="{host} has no {python} that can be run ({reason}). Name one: `--python PATH`, or `interpreter` for this "
    "host in hosts.toml.",
    zh_cn="{host} 上没有可运行的 {python}（{reason}）。请指定一个：`--python PATH`，或在 hosts.toml 中为该主机设置 "
    "`interpreter`。",
)
_BROKEN_PYTHON = Translated(
    en="{python} on {host} does not run: {reason}", zh_cn="{host} 上的 {python} 无法运行：{reason}"
)
_OLD_PYTHON = Translated(
    en="{python} on {host} is older than 3.8. Name another one: `--python PATH`, or `interpreter` for this "
    "host in hosts.toml.",
    zh_cn="{host} 上的 {python} 低于 3.8。请另指定一个：`--python PATH`，"
    "或在 hosts.toml 中为该主机设置 `interpreter`。",
)
_OTHER = Translated(
    en="No connection to {host}: {reason}. Try `ssh {host}` in a terminal.",
    zh_cn="无法连接 {host}：{reason}。请在终端中尝试 `ssh {host}`。",
)
_KNOWN = (
    (
        ("remote host identification has changed", "has changed and you have requested"),
        _CHANGED_KEY,
    ),
    (("host key verification failed", "host key is known for"), _UNKNOWN_KEY),
    (
        ("bad configuration option", "bad owner or permissions", "can't open user config"),
        _BAD_CONFIGURATION,
    ),
    (("could not resolve hostname", "name or service not known"), _UNRESOLVED),
    (("permission denied (", "too many authentication failures"), _DENIED),
    (("connection refused",), _REFUSED),
    (("timed out", "no route to host", "network is unreachable", "host is down"), _TIMED_OUT),
)
