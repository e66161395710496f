"""The same programs on this machine's CUDA device and on a simulated one: where do they differ?

    make gpu-check RANKSAFE_TEST_TORCH_PYTHON=… [GPU_CHECK="--only calls --keep FILE"]

Needs a CUDA device and the Python of an environment with torch. Every program is started as a user starts it, by
``ranksafe run`` and by ``ranksafe rehearse``, on one device. Prints markdown; ``--keep FILE`` writes every difference as
a line of JSON as soon as it is known.
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
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ranksafe.rehearsal.device_models import device_model, keys
from ranksafe.runs.on_host.probe import ask_nvidia

PROGRAMS = Path(__file__).parent / "programs"
MEASURED = ("allocated", "reserved", "peak_allocated", "peak_reserved")
SECONDS = {"calls": 60, "memory": 60, "operators": 420}
"""The longest that a program of each kind may take."""
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
            *("--python", self.python, "--timeout", str(SECONDS[program])),
            *("--output-format", "json", str(PROGRAMS / f"{program}.py"), "--", *arguments),
        ]
        done = _started(command)
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
            (record["simulation_limit"] or {}).get("message", ""),
            _answers(Path(record["log"])) if record["log"] else {},
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


def _started(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run in an empty folder, so that what a program writes does not stay."""
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


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
    for name, one, other in _on_both(check, "calls"):
        yield _entry("calls", name, _compared(one) == _compared(other), asdict(one), asdict(other))


def _on_both(check: Check, program: str) -> Iterator[tuple[str, Ending, Ending]]:
    names = check.names(program)
    with ThreadPoolExecutor(4) as pool:
        # A run takes its device for itself, so only the simulated ones can go side by side.
        simulated = [pool.submit(check.run, True, program, name) for name in names]
        for name, other in zip(names, simulated, strict=True):
            yield name, check.run(False, program, name), other.result()


def _compared(ending: Ending) -> tuple[Any, ...]:
    return ending.outcome, plain(ending.message), ending.row, ending.answers


def memory(check: Check) -> Iterator[dict[str, Any]]:
    """Bytes after each step, one program after another: others' memory would be counted."""
    for name, one, other in _on_both(check, "memory"):
        same = bool(one.answers) and _bytes(one) == _bytes(other)
        yield _entry("memory", name, same, asdict(one), asdict(other))


def _bytes(ending: Ending) -> list[list[int]]:
    return [[reading[kind] for kind in MEASURED] for reading in ending.answers.get("answer", [])]


def _entry(part: str, case: str, same: bool, real: Any, simulated: Any) -> dict[str, Any]:
    return {"part": part, "case": case, "same": same, "real": real, "simulated": simulated}


def operators(check: Check) -> Iterator[dict[str, Any]]:
    """Every operator's answer on both, in fresh processes after an error of the device."""
    with ThreadPoolExecutor(2) as pool:
        real, simulated = pool.map(lambda kind: _all_operators(check, kind), (False, True))
    for case in sorted(real.keys() | simulated.keys()):
        one, other = real.get(case), simulated.get(case)
        yield _entry("operators", case, _first_line(one) == _first_line(other), one, other)


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
    command = [sys.executable, "-m", "ranksafe", "run", "--python", check.python]
    script = [str(PROGRAMS / "calls.py"), "--", "nccl_group_of_one"]
    free = _started([*command, *script])
    holding = [check.python, "-c", ENOUGH_TO_BE_BUSY]
    with subprocess.Popen(holding, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        busy = _started([*command, *script])
        holder.kill()
    for case, done in (("free device", free), ("device that somebody uses", busy)):
        printed = (done.stdout + done.stderr)[-1500:]
        yield {"part": "choice", "case": case, "status": done.returncode, "printed": printed}


PARTS: dict[str, Callable[[Check], Iterator[dict[str, Any]]]] = {
    "calls": calls,
    "memory": memory,
    "operators": operators,
    "choice": choice,
}


def differences(check: Check, parts: list[str]) -> Iterator[dict[str, Any]]:
    """What differs, as it becomes known, and at the end of each part how many cases it had and how many agreed."""
    for part in parts:
        compared: list[bool] = []
        for entry in PARTS[part](check):
            same = entry.pop("same", None)
            if same is not None:
                compared.append(same)
            if not same:
                yield entry
        if compared:
            yield {"part": part, "cases": len(compared), "same": sum(compared)}


def report(lines: list[dict[str, Any]]) -> Iterator[str]:
    """The tables of `differences`, with the machine's line before them."""
    machine, *rest = lines
    yield "; ".join(f"{name} {value}" for name, value in machine["machine"].items())
    yield ""
    yield "| part | cases | the same |"
    yield "|---|---|---|"
    for line in rest:
        if "cases" in line:
            yield f"| {line['part']} | {line['cases']} | {line['same']} |"
    # What was measured alone is kept beside: nothing was compared.
    different = [line for line in rest if "simulated" in line or "printed" in line]
    kinds = Counter(operator_kind(line) for line in different if line["part"] == "operators")
    if kinds:
        yield ""
        yield "| the device | the simulated device | answers |"
        yield "|---|---|---|"
        for (real, simulated), count in kinds.most_common():
            yield f"| {real} | {simulated} | {count} |"
    yield ""
    for line in different:
        yield f"- {line['part']}, {line['case']}:"
        if "printed" in line:
            yield f"    - exit status {line['status']}: {line['printed'].strip().splitlines()[-1:]}"
        else:
            yield f"    - real: {_told(line['real'])}"
            yield f"    - simulated: {_told(line['simulated'])}"


def operator_kind(line: dict[str, Any]) -> tuple[str, str]:
    """What the device and the simulated device did, in a word each."""
    return _kind(line["real"]), _kind(line["simulated"])


def _kind(answer: Any) -> str:
    if answer is None:
        return "does not answer"
    if not isinstance(answer, str):
        return "runs"
    return "limit" if "simulation limit" in answer else "refuses"


def _told(ending: Any) -> str:
    if not isinstance(ending, dict):
        return json.dumps(ending)[:260]
    answer = json.dumps(ending["answers"].get("answer")) if ending["answers"] else ""
    told = f"{ending['outcome']}, line {ending['row']}: {plain(ending['message'])} {answer} {ending['limit']}"
    return told[:600]


def machine_of(python: str) -> dict[str, str]:
    """The device, its driver and the libraries' versions. Raises CalledProcessError where there is no device."""
    facts = (
        "import json, torch; print(json.dumps({'device': torch.cuda.get_device_name(0), 'torch': torch.__version__, "
        "'CUDA': torch.version.cuda, 'NCCL': '.'.join(map(str, torch.cuda.nccl.version())), "
        "'cuDNN': str(torch.backends.cudnn.version())}))"
    )
    done = subprocess.run([python, "-c", facts], stdout=subprocess.PIPE, text=True, check=True)
    driver, _ = ask_nvidia("--query-gpu=driver_version")
    return {**json.loads(done.stdout), "driver": driver.split("\n")[0]}


def model_of(device: str) -> str | None:
    """The word for the simulated device that has the real one's name."""
    return next((key for key in keys() if device_model(key).name == device), None)


def main() -> int:
    """Print the differences; exit status 0 whatever they are, since some are known."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--device-model", choices=keys(), help="the simulated device, where the real one is unknown"
    )
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--keep", type=Path, help="write every difference here as it is found")
    arguments = parser.parse_args()
    python = os.environ.get("RANKSAFE_TEST_TORCH_PYTHON")
    if not python:
        parser.error("RANKSAFE_TEST_TORCH_PYTHON names no Python with torch")
    try:
        machine = machine_of(python)
    except (OSError, subprocess.CalledProcessError) as error:
        parser.error(f"no CUDA device, or no torch that sees it: {error}")
    model = arguments.device_model or model_of(machine["device"])
    if model is None:
        parser.error(
            f"no simulated device is called {machine['device']}: choose one by --device-model"
        )
    lines: list[dict[str, Any]] = [{"machine": machine}]
    with open(arguments.keep or os.devnull, "w", encoding="utf-8") as kept:
        print(json.dumps(lines[0]), file=kept, flush=True)
        for line in differences(Check(python, model), arguments.only):
            lines.append(line)
            print(json.dumps(line), file=kept, flush=True)
    for text in report(lines):
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
