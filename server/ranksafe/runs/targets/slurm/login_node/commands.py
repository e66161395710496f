"""Slurm's commands, asked on the login node."""

from __future__ import annotations

import subprocess


def down(nodes: list[str]) -> list[str]:
    """Those that do not answer Slurm any more, or were given up."""
    if not nodes:
        return []
    status, output = run(["sinfo", "-h", "-N", "-n", ",".join(nodes), "-o", "%N|%T"])
    lines = [line.strip().split("|") for line in output.splitlines()] if status == 0 else []
    return sorted({name for name, state in lines if state.startswith("down") or state[-1:] == "*"})


def expanded(nodes: str) -> list[str]:
    """``gpu[1-2]`` as names."""
    if nodes in ("", "(null)", "None assigned"):
        return []
    status, output = run(["scontrol", "show", "hostnames", nodes])
    return output.split()[:1024] if status == 0 else [nodes]


def run(command: list[str]) -> tuple[int, str]:
    """Exit status and output; 127 where there is no answer."""
    status, output, _ = asked(command)
    return status, output


def asked(command: list[str]) -> tuple[int, str, str]:
    """Exit status, output and complaint; 127 where there is no answer in a minute."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=60.0,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return 127, "", str(error)
    output, complaint = (
        each.decode("utf-8", "replace").strip() for each in (done.stdout, done.stderr)
    )
    return done.returncode, output, complaint
