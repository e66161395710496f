"""Talking with a host through the user's ssh."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.hosts.errors import HostLost, HostUnreachable, ProgramFailed
from ranksafe.runs.hosts.ssh import CONFIG_VARIABLE, SshHost, remote_word
from ranksafe.runs.remote.reconnection import Reconnection

from .far_host import processes_with, until
from .ssh_server import HOST, SshServer, ssh_server
from .test_remote_record import RUN

_ECHO = """
import json, os, sys
request = json.loads(sys.stdin.buffer.raw.readline())
print(json.dumps({"request": request, "argv": sys.argv, "where": os.environ.get("RANKSAFE_TEST_HOST")}))
"""
_NASTY = [
    "a b",
    "'",
    '"',
    "$(touch x)",
    "`x`",
    "!!",
    "\\",
    "new\nline",
    "-oProxyCommand=x",
    "数据 \U0001f600",
    "*",
    "%",
]


@pytest.fixture
def server(ssh_host: SshServer) -> SshServer:
    return ssh_host


@pytest.fixture(autouse=True)
def private_ssh(server: SshServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CONFIG_VARIABLE, str(server.config))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


def test_a_program_answers_and_no_string_of_the_users_meets_a_shell() -> None:
    answer = SshHost(HOST).ask(_ECHO, {"strings": _NASTY})
    assert answer["request"]["strings"] == _NASTY
    assert answer["argv"] == ["-c"]
    assert answer["where"] == "yes"


@pytest.mark.parametrize("shell", ["bash", "dash", "zsh", "tcsh", "fish"])
def test_every_login_shell_starts_it(
    shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"needs {shell}: apt-get install {shell}")
    through = f'ForceCommand {program} -c "$SSH_ORIGINAL_COMMAND"'
    with ssh_server(tmp_path / "sshd", settings=[through]) as other:
        monkeypatch.setenv(CONFIG_VARIABLE, str(other.config))
        spaced = tmp_path / "my python3 (old)"
        spaced.symlink_to("/usr/bin/python3")
        for interpreter in ("python3", str(spaced)):
            answer = SshHost(HOST).ask(_ECHO, {"strings": _NASTY}, interpreter=interpreter)
            assert answer["request"]["strings"] == _NASTY


def test_what_a_login_shell_prints_is_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noisy = tmp_path / "noisy"
    noisy.write_text(
        '#!/bin/sh\necho Welcome; echo "Permission denied (oh no)" >&2\nexec sh -c "$SSH_ORIGINAL_COMMAND"\n'
    )
    noisy.chmod(0o755)
    with ssh_server(tmp_path / "sshd", settings=[f"ForceCommand {noisy}"]) as other:
        monkeypatch.setenv(CONFIG_VARIABLE, str(other.config))
        assert SshHost(HOST).ask("print(17)", {}) == 17


def test_a_conversation_goes_both_ways_until_it_is_closed() -> None:
    program = (
        "import sys\nfor line in sys.stdin.buffer: sys.stdout.write('heard ' + line.decode())\n"
    )
    conversation = SshHost(HOST).start(program, {})
    conversation.send(b"one\n" * 3)
    heard = b""
    while heard.count(b"\n") < 4:
        heard += conversation.receive()
    conversation.close()
    assert heard.endswith(b"heard one\nheard one\nheard one\n")
    assert conversation.returncode == 0


def test_a_program_that_fails_says_why() -> None:
    with pytest.raises(ProgramFailed, match="ZeroDivisionError"):
        SshHost(HOST).ask("1/0", {})


def test_a_connection_that_breaks_is_lost(server: SshServer) -> None:
    host = SshHost(HOST)
    conversation = host.start("import time\ntime.sleep(60)", {})
    server.cut()
    while conversation.returncode is None:
        time.sleep(0.02)
    assert conversation.returncode == 255
    with pytest.raises(HostLost):
        conversation.send(b"still there?\n" * 100_000)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("UserKnownHostsFile /dev/null", "is not known yet. Run `ssh gpu-box`"),
        ("IdentityFile /dev/null", "lets nobody in"),
        ("HostName no-such-host.invalid", "There is no machine called gpu-box"),
        ("Port 1", "no ssh server answers"),
        ("NoSuchOption yes", "does not accept its configuration"),
    ],
)
def test_a_refusal_says_what_to_do(
    server: SshServer, monkeypatch: pytest.MonkeyPatch, line: str, sentence: str
) -> None:
    own = server.config.read_text().splitlines()
    kept = [each for each in own if each.split()[0] != line.split()[0]]
    config = server.folder / "broken"
    config.write_text("\n".join([line, *kept]) + "\n")
    monkeypatch.setenv(CONFIG_VARIABLE, str(config))
    with pytest.raises(HostUnreachable) as raised:
        SshHost(HOST).ask("print(1)", {})
    assert sentence in raised.value.message.en
    assert "gpu-box" in raised.value.message.zh_cn or "ssh" in raised.value.message.zh_cn


def test_another_host_key_than_the_known_one(
    server: SshServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = server.folder / "other_known_hosts"
    key = " ".join((server.folder / "user.pub").read_text().split()[:2])
    known.write_text(f"[127.0.0.1]:{server.port} {key}\n")
    config = server.client_config("other_key", f"UserKnownHostsFile {known}")
    monkeypatch.setenv(CONFIG_VARIABLE, str(config))
    with pytest.raises(HostUnreachable, match="is not the one that is known"):
        SshHost(HOST).ask("print(1)", {})


@pytest.mark.parametrize(
    "interpreter", ["no-such-python", "/no/such/python3", "/bin/false", "/etc/passwd"]
)
def test_a_wrong_interpreter_is_named(interpreter: str) -> None:
    with pytest.raises(HostUnreachable) as raised:
        SshHost(HOST).ask("print(1)", {}, interpreter=interpreter)
    assert interpreter in raised.value.message.en
    assert HOST in raised.value.message.zh_cn


@pytest.mark.parametrize(
    "name", ["-oProxyCommand=touch x", "a b", "a;b", "$(x)", "", "a\nb", "a/b", "主机", "-"]
)
def test_what_is_no_name_of_a_host_is_refused(name: str) -> None:
    with pytest.raises(RunNotPossible, match="no name of a host"):
        SshHost(name)


@pytest.mark.parametrize("text", ["-c", "a'b", "a\\b", "a!b", "a\nb", "", "a\tb"])
def test_what_not_every_shell_reads_alike_is_refused(text: str) -> None:
    with pytest.raises(RunNotPossible, match="cannot be used"):
        remote_word(text)


def test_the_home_folder_is_the_remote_shells_to_find() -> None:
    assert remote_word("~/a b/python") == "~/'a b/python'"
    assert remote_word("~x/$HOME") == "'~x/$HOME'"


def test_one_connection_serves_several_programs_and_only_the_user_can_use_it(
    server: SshServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        monkeypatch.setenv("XDG_CACHE_HOME", short)
        host = SshHost(HOST)
        try:
            ports = {host.ask(_PORT, {}) for _ in range(3)}
        finally:
            subprocess.run(
                [*host.command, "-O", "exit", "--", HOST], capture_output=True, check=False
            )
        folder = Path(short) / "ranksafe" / "ssh"
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert len(ports) == 1


_PORT = "import os\nprint(os.environ['SSH_CONNECTION'].split()[1])"


def test_a_connection_that_the_user_shares_is_the_one_that_is_used(
    server: SshServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = server.client_config("shared", "ControlMaster auto", "ControlPath /tmp/rs-%C")
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        monkeypatch.setenv("XDG_CACHE_HOME", short)
        assert any("ControlPath" in word for word in SshHost(HOST).command)
        monkeypatch.setenv(CONFIG_VARIABLE, str(config))
        assert not any("ControlPath" in word for word in SshHost(HOST).command)


def test_a_host_that_accepts_and_says_nothing_is_given_up(
    server: SshServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        own = [line for line in server.config.read_text().splitlines() if "Port" not in line]
        config = server.folder / "silent"
        config.write_text("\n".join([f"Port {silent.getsockname()[1]}", *own]) + "\n")
        monkeypatch.setenv(CONFIG_VARIABLE, str(config))
        monkeypatch.setattr("ranksafe.runs.hosts.ssh._START_SECONDS", 2.0)
        with pytest.raises(HostUnreachable, match="did not answer within 2 s"):
            SshHost(HOST).ask("print(1)", {})


def test_who_stops_seeking_leaves_no_process_behind(
    server: SshServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = f"4711.{os.getpid()}{time.monotonic_ns()}"
    config = server.client_config("hanging", f"ProxyCommand sh -c 'sleep {mark}; true'")
    monkeypatch.setenv(CONFIG_VARIABLE, str(config))
    attempt = Reconnection(SshHost(HOST), RUN, tmp_path)
    until(lambda: processes_with(mark) != [])
    attempt.abandon()
    until(lambda: processes_with(mark) == [], 5)
    assert attempt.conversation is None


def test_no_agent_is_forwarded(
    server: SshServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        socket_of_agent = Path(short) / "agent"
        agent = subprocess.Popen(
            ["ssh-agent", "-D", "-a", str(socket_of_agent)], stdout=subprocess.DEVNULL
        )
        try:
            while not socket_of_agent.exists():
                time.sleep(0.02)
            config = server.client_config("forward", "ForwardAgent yes")
            monkeypatch.setenv(CONFIG_VARIABLE, str(config))
            monkeypatch.setenv("SSH_AUTH_SOCK", str(socket_of_agent))
            program = "import json, os\nprint(json.dumps(os.environ.get('SSH_AUTH_SOCK')))"
            assert SshHost(HOST).ask(program, {}) is None
        finally:
            agent.terminate()
            agent.wait()


def test_the_name_comes_where_no_options_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = tmp_path / "ssh"
    recorder.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > "{tmp_path}/words"\nexit 255\n')
    recorder.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(HostUnreachable):
        SshHost(HOST).ask("print('secret')", {"token": "s3cret"})
    words = (tmp_path / "words").read_text()
    assert words.splitlines()[-3:-1] == ["--", HOST]
    assert "BatchMode=yes" in words
    assert "secret" not in words
    assert "s3cret" not in words
