"""Hosts that say nothing, or never stop: behind a real sshd whose login does so, each is given up with a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from ranksafe.runs.hosts import piped, ssh
from ranksafe.runs.hosts.errors import HostUnreachable, ProgramFailed
from ranksafe.runs.hosts.local import LocalHost
from ranksafe.runs.hosts.ssh import SshHost

from tests.targets.ssh_server import HOST, ssh_server

_LOGINS = {
    "silence": ("exec sleep 1000", "did not answer within"),
    "zeros": ("exec cat /dev/zero", "prints without end"),
    "text": ("exec yes welcome", "prints without end"),
    "complaints": ("exec yes sorry >&2", "did not answer within"),
}


@pytest.mark.parametrize("login", _LOGINS)
def test_a_host_that_never_answers_is_given_up(
    login: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command, sentence = _LOGINS[login]
    if "within" in sentence:
        monkeypatch.setattr(ssh, "_START_SECONDS", 3.0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    settings = (f"ForceCommand {command}",)
    with ssh_server(tmp_path / "sshd", settings=settings) as server:
        monkeypatch.setenv(ssh.CONFIG_VARIABLE, str(server.config))
        with pytest.raises(HostUnreachable) as caught:
            SshHost(HOST).start("print('here')", {})
    assert sentence in caught.value.message.en


def test_an_answer_without_end_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(piped, "_LONGEST_ANSWER", 2**22)
    program = "import sys\nwhile True: sys.stdout.write('[' * 2**16)"
    with pytest.raises(ProgramFailed) as caught:
        LocalHost().ask(program, {})
    assert "no end" in caught.value.message.en


def test_what_nobody_takes_waits_on_the_other_side() -> None:
    conversation = LocalHost().start("import sys\nwhile True: sys.stdout.write('x' * 2**16)", {})
    try:
        held = [len(conversation.receive()) for _ in range(40)]
        assert max(held) <= piped._MOST_UNREAD + piped._CHUNK
    finally:
        conversation.close()
