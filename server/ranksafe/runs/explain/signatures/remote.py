"""The OpenSSH client's own messages, whole lines as OpenSSH 9 writes them.

They come from ``ssh.c``, ``sshconnect2.c`` and ``clientloop.c``.

Only whole lines count: the words alone are common in other programs' output.
"""

from __future__ import annotations

from ranksafe.runs.explain.signatures.signature import Signature, signature

_NOT_CODE_EN = " Your code is not the cause."
_NOT_CODE_ZH = "与你的代码无关。"

SIGNATURES: tuple[Signature, ...] = (
    signature(
        "ssh-host-key",
        r"^Host key verification failed\.\s*$|^@ +WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! +@",
        en="ssh does not know this machine's host key, or the key has changed. Open a terminal, run ssh to that "
        "machine, "
        "and decide yourself whether to trust it." + _NOT_CODE_EN,
        zh="ssh 不认识该机器的主机密钥，或密钥已变更。请在终端中用 ssh 连接该机器，自行决定是否信任。"
        + _NOT_CODE_ZH,
    ),
    signature(
        "ssh-login",
        r"^(?P<who>\S+@\S+): Permission denied \((?P<methods>(?:publickey|password|keyboard-interactive|gssapi"
        r"|hostbased)[\w,-]*)\)\.",
        en="ssh could not log in as {who} without asking (methods: {methods}). Try `ssh {who}` in a terminal, or load "
        "the "
        "key with ssh-add." + _NOT_CODE_EN,
        zh="ssh 无法在不询问的情况下以 {who} 登录（方式：{methods}）。请在终端中尝试 `ssh {who}`，或用 ssh-add "
        "加载密钥。" + _NOT_CODE_ZH,
    ),
    signature(
        "ssh-lost",
        r"^Timeout, server (?P<host>\S+) not responding\.|^client_loop: send disconnect: "
        r"|^Connection to (?P<name>\S+) closed by remote host\.",
        en="The ssh connection was lost[[ (server {host})]][[ (server {name})]]; this says nothing of the processes "
        "on that machine, "
        "which may still run." + _NOT_CODE_EN,
        zh="ssh 连接已断开[[（服务器 {host}）]][[（服务器 {name}）]]；这并不说明那台机器上的进程如何，"
        "它们可能仍在运行。" + _NOT_CODE_ZH,
    ),
    signature(
        "ssh-unreachable",
        r"^ssh: Could not resolve hostname (?P<host>\S+): (?P<why>.+)"
        r"|^ssh: connect to host (?P<name>\S+) port \d+: (?P<reason>.+)",
        en="ssh cannot reach [[{host}: {why}]][[{name}: {reason}]]. Check the name, ~/.ssh/config and the network."
        + _NOT_CODE_EN,
        zh="ssh 无法到达 [[{host}：{why}]][[{name}：{reason}]]。请检查名称、~/.ssh/config 和网络。"
        + _NOT_CODE_ZH,
    ),
)
