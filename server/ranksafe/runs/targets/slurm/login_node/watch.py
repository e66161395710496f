"""Tells of a job and of the files in its run's folder until it is over, or nobody listens any more.

Request: ``directory``, ``job``, ``have`` (bytes of each file that the listener has already), ``poll_seconds``,
``commands`` (folders for PATH). Standard input: a line ``cancel`` has the job cancelled, ``look JSON`` puts a question
to the ranks' agents; its end ends this program, and nothing else. Writes JSON lines:

    {"state": {"state", "reason", "nodes", "position", "start"}}      whenever it changes
    {"file": NAME, "at": OFFSET, "data": BASE64}                      what was appended
    {"whole": NAME, "data": BASE64}                                   a file that is written anew
    {"full": true}                                                    the disk of the run's folder, once
    {"over": {"state", "reason", "nodes", "down", "exit", "signal", "began", "script_status", "accounting"}}
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import select
import shutil
import sys
import time
from typing import Any

from ranksafe.runs.on_host.request import read_line
from ranksafe.runs.targets.slurm.login_node import tree
from ranksafe.runs.targets.slurm.login_node.commands import asked, down, expanded, run

_GROWING = re.compile(r"(?:rank\d+\.(?:stdout|stderr|jsonl|fatal)|node\.\d+\.log|batch\.log)\Z")
_WHOLE = re.compile(r"rank\d+\.[a-z_]+\Z")
_OVER = frozenset({"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED"}) | {
    *("NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT")
}
_UNKNOWN = "UNKNOWN"
_NO_ANSWER = "NO_ANSWER"
"""Of a controller that is restarted or busy: it will answer again."""
_NO_STATE: dict[str, Any] = {
    "reason": None,
    "nodes": [],
    "exit": None,
    "signal": 0,
    "position": None,
    "start": None,
}
_FULL_DISK_BYTES = 1024 * 1024
_CHUNK = 256 * 1024
_LARGEST_WHOLE = 4 * 1024 * 1024
_TURN_SECONDS = 0.1
_WHOLE_SECONDS = 1.0
_EAGER_SECONDS = 20.0
"""At first jobs are looked at every second, later every ``poll_seconds``: schedulers are shared."""
_PATIENCE = 4
"""A job that waits is looked at less often by that."""
_SETTLING_SECONDS = 2.0
"""Files of other nodes may come that much after the job's end."""


class _Watch:
    def __init__(self, request: dict[str, Any]) -> None:
        self.directory: str = request["directory"]
        self.job: str = request["job"]
        self.have: dict[str, int] = dict(request["have"])
        self.poll_seconds: float = request["poll_seconds"]
        self.began = time.monotonic()
        self.asked = float("-inf")
        self.sent: dict[str, Any] | None = None
        self.stamps: dict[str, int] = {}
        self.sent_whole = self.began
        self.told_full = False
        self.pending = b""

    def run(self) -> None:
        while self._listens():
            moved = self._growing()
            now = time.monotonic()
            if now - self.sent_whole > _WHOLE_SECONDS:
                self.sent_whole = now
                self._whole()
                self._look_at_disk()
            if now - self.asked > self._period() or self._script_is_over():
                state = self._state()
                self.asked = time.monotonic()
                if state["state"] in _OVER or state["state"] == _UNKNOWN:
                    self._finish(state)
                    return
                told = {
                    key: state[key] for key in ("state", "reason", "nodes", "position", "start")
                }
                if told != self.sent:
                    self.sent = told
                    _tell(state=told)
            if not moved:
                time.sleep(_TURN_SECONDS)

    def _period(self) -> float:
        if time.monotonic() - self.began < _EAGER_SECONDS:
            return min(1.0, self.poll_seconds)
        waits = self.sent is not None and self.sent["state"] == "PENDING"
        return self.poll_seconds * (_PATIENCE if waits else 1)

    def _script_is_over(self) -> bool:
        """Then the job will be, at once: worth a look every half second."""
        recently = time.monotonic() - self.asked < 0.5
        return not recently and os.path.exists(os.path.join(self.directory, "over.json"))

    def _listens(self) -> bool:
        """Whether somebody still does; carries out what was said."""
        while select.select([0], [], [], 0)[0]:
            data = os.read(0, 4096)
            if not data:
                return False
            self.pending += data
            *lines, self.pending = self.pending.split(b"\n")
            for line in lines:
                if line == b"cancel":
                    run(["scancel", self.job])
                    self.asked = float("-inf")
                elif line.startswith(b"look "):
                    _write(os.path.join(self.directory, "look"), line[5:])
        return True

    def _growing(self) -> bool:
        moved = False
        for name in _names(self.directory):
            if not _GROWING.match(name):
                continue
            try:
                with open(os.path.join(self.directory, name), "rb") as file:
                    file.seek(self.have.get(name, 0))
                    data = file.read(_CHUNK)
            except OSError:
                continue
            if data:
                at = self.have.get(name, 0)
                _tell(file=name, at=at, data=base64.b64encode(data).decode())
                self.have[name] = at + len(data)
                moved = True
        return moved

    def _whole(self) -> None:
        for name in _names(self.directory):
            if not _WHOLE.match(name) or _GROWING.match(name):
                continue
            path = os.path.join(self.directory, name)
            try:
                stamp = os.stat(path).st_mtime_ns
                if self.stamps.get(name) == stamp or os.path.getsize(path) > _LARGEST_WHOLE:
                    continue
                with open(path, "rb") as file:
                    data = file.read(_LARGEST_WHOLE)
            except OSError:
                continue
            self.stamps[name] = stamp
            _tell(whole=name, data=base64.b64encode(data).decode())

    def _look_at_disk(self) -> None:
        try:
            full = shutil.disk_usage(self.directory).free < _FULL_DISK_BYTES
        except OSError:
            return
        if full and not self.told_full:
            self.told_full = True
            _tell(full=True)

    def _state(self) -> dict[str, Any]:
        status, output, complaint = asked(["scontrol", "-o", "show", "job", self.job])
        # The first of each: a folder's name further on may contain anything.
        facts = dict(reversed(re.findall(r"(?:^|\s)([A-Za-z]+)=(\S*)", output)))
        if status != 0 and "Invalid job id" not in complaint:
            return dict(_NO_STATE, state=_NO_ANSWER)
        if "JobState" not in facts:
            return self._forgotten()
        state = facts["JobState"]
        code, _, number = facts.get("ExitCode", "0:0").partition(":")
        found: dict[str, Any] = {
            "state": state,
            "reason": None if facts.get("Reason") in (None, "None") else facts["Reason"],
            "nodes": expanded(facts.get("NodeList", "")),
            "exit": int(code),
            "signal": int(number or 0),
            "position": None,
            "start": None,
        }
        if state == "PENDING":
            found["position"] = self._position(facts.get("Partition", ""))
            start = facts.get("StartTime", "")
            found["start"] = start if start[:1].isdigit() else None
        return found

    def _position(self, partition: str) -> int | None:
        """The place among the jobs that wait, as far as they are shown to this user."""
        command = ["squeue", "-h", "-t", "PENDING", f"--partition={partition}", "-o", "%A|%Q"]
        status, output = run(command)
        jobs = [line.split("|") for line in output.splitlines()]
        order = sorted((-int(priority), int(job)) for job, priority in jobs if priority.isdigit())
        ids = [job for _, job in order]
        return ids.index(int(self.job)) + 1 if status == 0 and int(self.job) in ids else None

    def _forgotten(self) -> dict[str, Any]:
        """Of a job that the controller knows no more (MinJobAge): what accounting kept, if there is any."""
        found = dict(_NO_STATE, state=_UNKNOWN)
        line = ["sacct", "-j", self.job, "-X", "-P", "-n", "-o", "State,ExitCode,NodeList"]
        status, output = run(line)
        cells = output.splitlines()[0].split("|") if status == 0 and output else []
        if len(cells) == 3 and cells[0]:
            code, _, number = cells[1].partition(":")
            found.update(state=cells[0].split()[0], nodes=expanded(cells[2]))
            found.update(exit=int(code or 0), signal=int(number or 0))
        return found

    def _finish(self, state: dict[str, Any]) -> None:
        end = time.monotonic() + _SETTLING_SECONDS
        while self._growing() or (time.monotonic() < end and not self._settled()):
            time.sleep(_TURN_SECONDS)
        # Files that are mapped into memory (the ranks' collectives) change without a new time.
        self.stamps.clear()
        self._whole()
        self._look_at_disk()
        over = {key: state[key] for key in ("state", "reason", "nodes", "exit", "signal")}
        with contextlib.suppress(OSError, ValueError, KeyError):
            # Of a job that was killed; one that ended by itself has done it.
            tree.give_back(self.directory)
        over["down"] = down(state["nodes"])
        over["began"] = os.path.exists(os.path.join(self.directory, "batch.log"))
        path = os.path.join(self.directory, "over.json")
        try:
            with open(path, encoding="utf-8") as file:
                over["script_status"] = json.load(file)["status"]
        except (OSError, ValueError, KeyError):
            over["script_status"] = None
            # The script could not: tells a later submission that this run's folder may be deleted one day.
            _write(path, b'{"status": null}')
        line = ["sacct", "-j", self.job, "-P", "-n", "-o", "JobID,State,ExitCode,MaxRSS,NodeList"]
        status, output = run(line)
        over["accounting"] = output[:10_000] if status == 0 and output else None
        _tell(over=over)

    def _settled(self) -> bool:
        return os.path.exists(os.path.join(self.directory, "over.json"))


def main() -> None:
    """Read the request and watch."""
    request = json.loads(read_line())
    os.environ["PATH"] = os.environ.get("PATH", os.defpath) + os.pathsep + request["commands"]
    _Watch(request).run()


def _tell(**entry: Any) -> None:
    sys.stdout.write(json.dumps(entry) + "\n")
    sys.stdout.flush()


def _names(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return []


def _write(path: str, content: bytes) -> None:
    """In one step; on a full disk, not at all."""
    try:
        with open(path + ".new", "wb") as file:
            file.write(content)
        os.replace(path + ".new", path)
    except OSError:
        pass


if __name__ == "__main__":
    main()
