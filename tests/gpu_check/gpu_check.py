"""The same programs on this machine's CUDA device and on a simulated one: where do they differ?

    make gpu-check          (PYTHON_WITH_TORCH=… and GPU_CHECK="--only calls --json FILE" are optional)

Needs a CUDA device, and nothing from outside but an environment with torch. Every program is started as a user starts
it, by ``ranksafe run`` and by ``ranksafe rehearse``, on one device. Prints markdown; ``--json FILE`` keeps every answer.
Four parts: *calls* that CUDA refuses or answers in its own way, *operators* of torch's own database (with the package
expecttest), *memory* that the caching allocator gives, and the *choice* of free devices.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).parent / "programs"
ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join(
        [str(ROOT / "server"), str(ROOT / "rules"), *filter(None, [os.environ.get("PYTHONPATH")])]
    ),
}
PARTS = ("calls", "memory", "operators", "choice")
LONGEST_SECONDS = 420
ENOUGH_TO_BE_BUSY = "import torch, time; held = torch.ones(2**31, device='cuda'); print(1, flush=True); time.sleep(120)"


@dataclass(frozen=True)
class Ending:
    """How one program ended: ``ranksafe``'s outcome, the failure's text and row, and what the program answered."""

    outcome: str
    message: str
    row: int | None
    explanation: str
    limit: str
    answers: dict[str, Any]


@dataclass(frozen=True)
class Check:
    """Starts programs on the device or on a simulated one."""

    python: str
    device_model: str

    def run(self, simulated: bool, program: str, *arguments: str) -> Ending:
        """Start ``programs/<program>.py`` and wait for its end."""
        where = (
            ["rehearse", "--steps", "0", "--device-model", self.device_model, "--yes"]
            if simulated
            else ["run"]
        )
        command = [
            *(sys.executable, "-m", "ranksafe", *where, "--gpus", "1", "--launcher", "python"),
            *(
                "--python",
                self.python,
                "--timeout",
                str(LONGEST_SECONDS),
                "--output-format",
                "json",
            ),
            *(str(PROGRAMS / f"{program}.py"), "--", *arguments),
        ]
        with tempfile.TemporaryDirectory() as folder:
            done = _started(command, folder)
        try:
            record = json.loads(done.stdout)
        except ValueError:
            return Ending("no record", done.stderr[-600:], None, "", "", {})
        failure = (record["failures"] or [{}])[0]
        return Ending(
            record["outcome"],
            failure.get("message", ""),
            (failure.get("location") or {}).get("row"),
            failure.get("explanation") or "",
            json.dumps(record["simulation_limit"]) if record["simulation_limit"] else "",
            _answers(Path(record["log"])),
        )

    def names(self, program: str) -> list[str]:
        """The cases of a program."""
        done = subprocess.run(
            [self.python, str(PROGRAMS / f"{program}.py"), "--names"],
            capture_output=True,
            text=True,
            check=True,
        )
        return list(json.loads(done.stdout))


def _started(command: list[str], folder: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )


def _answers(log: Path) -> dict[str, Any]:
    """The JSON lines that a program printed, by their case."""
    answers = {}
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        start = line.find('{"case": ')
        if start >= 0:
            try:
                entry = json.loads(line[start:])
            except ValueError:
                continue
            answers[entry["case"]] = entry["answer"]
    return answers


def plain(text: str) -> str:
    """The first line of a message without what differs from run to run: sizes, addresses, processes, source places."""
    first = text.strip().splitlines()[0] if text.strip() else ""
    first = re.sub(r"0x[0-9a-f]+", "0x…", first)
    first = re.sub(r"\d+(\.\d+)? (bytes|[KMG]iB)", "… GiB", first)
    first = re.sub(r"[Pp]rocess \d+", "process …", first)
    return re.sub(r"[\w/.+-]+\.(cpp|cu|h|cuh|hpp):\d+", "source", first)


def calls(check: Check) -> Iterator[dict[str, Any]]:
    """Each call on both: the same answer, the same refusal on the same line?"""
    names = check.names("calls")
    with ThreadPoolExecutor(4) as pool:
        real = list(pool.map(lambda name: check.run(False, "calls", name), names))
        simulated = list(pool.map(lambda name: check.run(True, "calls", name), names))
    for name, one, other in zip(names, real, simulated, strict=True):
        yield {
            "part": "calls",
            "case": name,
            "same": _same_ending(one, other),
            "real": asdict(one),
            "simulated": asdict(other),
        }


def _same_ending(one: Ending, other: Ending) -> bool:
    return (one.outcome, plain(one.message), one.row, one.answers) == (
        other.outcome,
        plain(other.message),
        other.row,
        other.answers,
    )


def memory(check: Check) -> Iterator[dict[str, Any]]:
    """Allocated and reserved bytes after each step, one program after another: others' memory would be counted."""
    for name in check.names("memory"):
        one, other = check.run(False, "memory", name), check.run(True, "memory", name)
        readings = one.answers.get("answer"), other.answers.get("answer")
        kinds = ("allocated", "reserved", "peak_allocated", "peak_reserved")
        ratios = {}
        if all(readings):
            for kind in kinds:
                last_real, last_simulated = (reading[-1][kind] for reading in readings)  # type: ignore[index]
                ratios[kind] = round(last_simulated / last_real, 4) if last_real else None
        yield {
            "part": "memory",
            "case": name,
            "same": all(readings)
            and all(
                left[kind] == right[kind]
                for left, right in zip(*readings, strict=False)  # type: ignore[arg-type]
                for kind in kinds
            ),
            "ratios": ratios,
            "real": asdict(one),
            "simulated": asdict(other),
        }


def operators(check: Check) -> Iterator[dict[str, Any]]:
    """Every operator's answer on both, in fresh processes after an error of the device."""
    with ThreadPoolExecutor(2) as pool:
        real, simulated = pool.map(lambda kind: _all_operators(check, kind), (False, True))
    for case in sorted(real.keys() | simulated.keys()):
        one, other = real.get(case), simulated.get(case)
        same = _first_line(one) == _first_line(other)
        yield {"part": "operators", "case": case, "same": same, "real": one, "simulated": other}


def _first_line(answer: Any) -> Any:
    return plain(answer) if isinstance(answer, str) else answer


def _all_operators(check: Check, simulated: bool) -> dict[str, Any]:
    answers: dict[str, Any] = {}
    start = 0
    while True:
        ending = check.run(simulated, "operators", "--from", str(start))
        answers.update(ending.answers)
        if "broken" not in ending.answers:
            if "complete" not in ending.answers:
                answers["how it ended"] = f"{ending.outcome}: {ending.message} {ending.limit}"
            answers.pop("complete", None)
            answers.pop("broken", None)
            return answers
        start = ending.answers["broken"] + 1


def choice(check: Check) -> Iterator[dict[str, Any]]:
    """``ranksafe run`` without ``--gpus``: on a free machine, and while somebody holds the device."""
    for case, busy in (("free device", False), ("device that somebody uses", True)):
        holder = None
        if busy:
            holder = subprocess.Popen(
                [check.python, "-c", ENOUGH_TO_BE_BUSY], stdout=subprocess.PIPE, text=True
            )
            assert holder.stdout is not None
            holder.stdout.readline()
        command = [sys.executable, "-m", "ranksafe", "run", "--python", check.python]
        script = [str(PROGRAMS / "calls.py"), "--", "nccl_group_of_one"]
        with tempfile.TemporaryDirectory() as folder:
            done = _started([*command, *script], folder)
        if holder is not None:
            holder.kill()
            holder.wait()
        yield {
            "part": "choice",
            "case": case,
            "same": None,
            "status": done.returncode,
            "printed": (done.stdout + done.stderr)[-1500:],
        }


def report(entries: list[dict[str, Any]], machine: dict[str, str]) -> Iterator[str]:
    """The lines of the tables."""
    yield "; ".join(f"{name} {value}" for name, value in machine.items())
    yield ""
    yield "| part | cases | the same | different |"
    yield "|---|---|---|---|"
    for part in dict.fromkeys(entry["part"] for entry in entries):
        states = Counter(entry["same"] for entry in entries if entry["part"] == part)
        yield f"| {part} | {sum(states.values())} | {states[True]} | {states[False]} |"
    yield ""
    for entry in entries:
        if entry["part"] == "memory" and entry["ratios"]:
            yield f"- {entry['case']}: simulated / real at the end: {entry['ratios']}"
        elif entry["part"] == "choice":
            yield f"- {entry['case']}: exit status {entry['status']}: {entry['printed'].strip().splitlines()[-1:]}"
        elif entry["same"] is False:
            yield f"- {entry['part']}, {entry['case']}:"
            yield f"    - real: {_told(entry['real'])}"
            yield f"    - simulated: {_told(entry['simulated'])}"


def _told(ending: Any) -> str:
    if not isinstance(ending, dict):
        return json.dumps(ending)[:260]
    answer = json.dumps(ending["answers"].get("answer")) if ending["answers"] else ""
    told = f"{ending['outcome']}, line {ending['row']}: {plain(ending['message'])} {answer} {ending['limit']}"
    return told[:600]


def machine_of(python: str) -> dict[str, str]:
    """The device, its driver and the libraries' versions."""
    smi = subprocess.run(
        ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()[0]
    versions = (
        "import torch; print(torch.__version__, torch.version.cuda, torch.cuda.nccl.version(), "
        "torch.backends.cudnn.version(), sep='|')"
    )
    done = subprocess.run([python, "-c", versions], capture_output=True, text=True, check=True)
    torch_version, cuda, nccl, cudnn = done.stdout.strip().split("|")
    device, driver = smi.split(", ")
    return {
        "device": device,
        "driver": driver,
        "torch": torch_version,
        "CUDA": cuda,
        "NCCL": nccl,
        "cuDNN": cudnn,
    }


def main() -> int:
    """Print the differences; exit status 0 whatever they are, since some are known."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--python", default=os.environ.get("PYTHON_WITH_TORCH", sys.executable))
    parser.add_argument("--device-model", default="h100", help="the simulated device")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--json", help="keep every answer here")
    arguments = parser.parse_args()
    check = Check(arguments.python, arguments.device_model)
    machine = machine_of(arguments.python)
    entries: list[dict[str, Any]] = []
    for part in arguments.only:
        entries.extend(globals()[part](check))
        if arguments.json:
            Path(arguments.json).write_text(
                json.dumps({"machine": machine, "entries": entries}, indent=1), encoding="utf-8"
            )
    for line in report(entries, machine):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
