"""The same programs under other tools: TorchFix, ruff and pylint, each with everything switched on.

None of them has rules about ranks, so a message counts as right when it stands on the expected line and its words are
about what ranks do; what was said there is kept for a reader who wants to judge again.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.bench.compared_tools import ToolMissing, cache_folder, ruff_program, torchfix_program
from tests.rank_bench.header import Pair, Program
from tests.rank_bench.lint import MISSED, STRICT, Message, Score, copy_program, judge

PYLINT = "pylint==4.0.4"
CONCERNS_RANKS = re.compile(
    r"(?i)\branks?\b|distribut|collective|barrier|deadlock|\bhang|process.?group|world.?size"
    r"|all.?reduce|all.?gather|broadcast|\bDDP\b|\bFSDP\b|main.process|every process"
)
_TORCHFIX_LINE = re.compile(
    r"(?P<file>[^:\n]+\.py):(?P<row>\d+):\d+: (?P<code>TOR\d+) (?P<text>.*)"
)


def score_with(
    name: str, program: str, pairs: Sequence[Pair], idioms: Sequence[Program]
) -> tuple[list[Score], dict[str, list[Message]]]:
    """Judge pairs and idioms by what a peer says; noise is only what is about ranks, not its other messages."""
    both = [program for pair in pairs for program in (pair.incorrect, pair.corrected)]
    said = _said(name, program, [*both, *idioms])
    on_idioms = {one.name: list(filter(concerns_ranks, said[one.name])) for one in idioms}
    return [_judge(pair, said) for pair in pairs], on_idioms


def _said(name: str, program: str, programs: Sequence[Program]) -> dict[str, list[Message]]:
    with tempfile.TemporaryDirectory(prefix="ranksafe-rank-bench-") as folder:
        root = Path(folder).resolve()
        for one in programs:
            copy_program(one, root / one.name)
        said: dict[str, list[Message]] = {one.name: [] for one in programs}
        for message in READERS[name](program, root):
            place = Path(message.file).relative_to(root)
            inside = Path(*place.parts[3:]).as_posix()
            said["/".join(place.parts[:3])].append(
                Message(message.code, inside, message.row, message.text)
            )
    return said


def _judge(pair: Pair, said: Mapping[str, Sequence[Message]]) -> Score:
    score = judge(pair, said[pair.incorrect.name], said[pair.corrected.name])
    return Score(
        pair,
        STRICT if any(map(concerns_ranks, score.hits)) else MISSED,
        score.hits,
        tuple(filter(concerns_ranks, score.noise)),
        tuple(filter(concerns_ranks, score.noise_on_twin)),
    )


def concerns_ranks(message: Message) -> bool:
    """Whether the message, but for the source that it quotes, is about what ranks do."""
    unquoted = re.sub(r"`[^`]*`|'[^']*'|\"[^\"]*\"", "", message.text)
    return bool(CONCERNS_RANKS.search(unquoted))


def _ruff(program: str, root: Path) -> list[Message]:
    words = ["check", "--isolated", "--no-cache", "--preview", "--select", "ALL", "--exit-zero"]
    output = _output([program, *words, "--output-format", "json", str(root)])
    return [
        Message(
            item["code"] or "syntax", item["filename"], item["location"]["row"], item["message"]
        )
        for item in json.loads(output)
    ]


def _pylint(program: str, root: Path) -> list[Message]:
    files = [str(file) for file in sorted(root.rglob("*.py"))]
    # An empty configuration, since pylint would read one that lies above. torch is not in its environment; twins are
    # duplicates of each other.
    off = "--disable=import-error,duplicate-code"
    words = ["--rcfile=/dev/null", "--enable=all", off, "--reports=n"]
    output = _output([program, *words, "--output-format=json", "--jobs=1", *files])
    items = json.loads(output or "[]")
    return [
        Message(item["message-id"], str(root / item["path"]), item["line"], item["message"])
        for item in items
    ]


def _torchfix(program: str, root: Path) -> list[Message]:
    output = _output([program, "--select", "ALL", "--jobs", "1", str(root)])
    return [
        Message(found["code"], found["file"], int(found["row"]), found["text"])
        for found in _TORCHFIX_LINE.finditer(output)
    ]


def _output(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise ToolMissing(f"{command[0]}: {error.strerror or error}") from None
    if "Traceback" in done.stderr and not done.stdout:
        raise ToolMissing(f"{command[0]}: {done.stderr.strip().splitlines()[-1]}")
    return done.stdout


READERS: dict[str, Callable[[str, Path], list[Message]]] = {
    "TorchFix": _torchfix,
    "ruff": _ruff,
    "pylint": _pylint,
}


def pylint_program() -> str:
    """pylint from PATH, else in an environment of its own in the cache. Raises ToolMissing."""
    beside = Path(sys.executable).parent / "pylint"
    found = str(beside) if beside.exists() else shutil.which("pylint")
    if found is not None:
        return found
    folder = cache_folder() / "pylint"
    if not (folder / "bin" / "pylint").exists():
        python = str(folder / "bin" / "python")
        for command in (
            [sys.executable, "-m", "venv", str(folder)],
            [python, "-m", "pip", "install", "--quiet", PYLINT],
        ):
            if subprocess.run(command, check=False).returncode != 0:
                shutil.rmtree(folder, ignore_errors=True)
                raise ToolMissing(f"{PYLINT} could not be installed")
    return str(folder / "bin" / "pylint")


FINDERS: dict[str, Callable[[], str]] = {
    "TorchFix": torchfix_program,
    "ruff": ruff_program,
    "pylint": pylint_program,
}
