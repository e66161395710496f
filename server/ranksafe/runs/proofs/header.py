"""The header of a proof program: what it needs and what must be seen when it runs."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, TypeVar

from ranksafe.localization import Translated
from ranksafe.source.parsing import parse_python

if TYPE_CHECKING:
    from pathlib import Path

_KEYS = ("runs-on", "ranks", "requires", "launch", "expect", "frame")
_LINE = re.compile(r"^([a-z][a-z-]*):\s*(.*)$")
_EXCEPTION = re.compile(r"^exception\s+([\w.]+)(?::\s*(.*))?$", re.DOTALL)
_Chosen = TypeVar("_Chosen", bound=Enum)


class RunsOn(str, Enum):
    """The kinds of machine a proof is written for."""

    CPU_RANKS = "cpu-ranks"
    """gloo processes on the CPU, started by ``accelerate launch``."""
    EMULATED_DP = "emulated-dp"
    """One process; nn.DataParallel over CPU replicas (`ranksafe.runs.proofs.emulated_data_parallel`)."""
    JAX_HOST = "jax-host"
    """One process; JAX's host platform split into several devices."""
    CUDA = "cuda"
    """As many CUDA devices as ranks."""


class Launch(str, Enum):
    """How a proof is started where the machine leaves a choice (``runs-on: cuda``)."""

    PYTHON = "python"
    ACCELERATE = "accelerate"


@dataclass(frozen=True, slots=True)
class ExpectedException:
    """An uncaught exception: ``type`` as written in the header, ``text`` a part of its message."""

    type: str
    text: str


@dataclass(frozen=True, slots=True)
class ExpectedOutput:
    """The program ends with status 0 and ``pattern`` matches somewhere in its output."""

    pattern: str


@dataclass(frozen=True, slots=True)
class ExpectedSuccess:
    """The program ends with status 0."""


Expectation = ExpectedException | ExpectedOutput | ExpectedSuccess


@dataclass(frozen=True, slots=True)
class ProofHeader:
    """What a proof program declares of itself."""

    sentence: str
    runs_on: RunsOn
    ranks: int
    """Processes, replicas or devices."""
    requires: tuple[str, ...]
    """Requirements as pip reads them, over the environment's torch."""
    launch: Launch
    expectations: tuple[Expectation, ...]
    """All of them must hold; at most one is an exception."""
    frame: str | None
    """Source text of the innermost line of the program that must be blamed."""

    @property
    def requirements(self) -> tuple[str, ...]:
        """What it requires, or what its kind of machine does where it says nothing."""
        return self.requires or _REQUIREMENTS.get(self.runs_on, ())


_REQUIREMENTS = {RunsOn.JAX_HOST: ("jax", "jaxlib")}


class ProofHeaderError(ValueError):
    """A header that breaks the contract; ``explanation`` says how, in both languages."""

    def __init__(self, explanation: Translated) -> None:
        super().__init__(explanation.en)
        self.explanation = explanation


def read_header(program: Path) -> ProofHeader:
    """The header in the docstring of ``program``.

    Raises ProofHeaderError when it is missing or invalid, OSError when the file cannot be read.
    """
    return parse_header(program.read_text(encoding="utf-8"))


def parse_header(source: str) -> ProofHeader:
    """The header in the module docstring of ``source``. Raises ProofHeaderError."""
    try:
        docstring = ast.get_docstring(parse_python(source))
    except SyntaxError as error:
        raise _invalid(f"not valid Python: {error}", f"不是有效的 Python 代码：{error}") from error
    if not docstring:
        raise _invalid("the module has no docstring", "模块没有文档字符串")
    sentence, fields = _split(docstring)
    return ProofHeader(
        sentence=sentence,
        runs_on=_choice(RunsOn, "runs-on", _only(fields, "runs-on")),
        ranks=_ranks(fields),
        requires=tuple(_only(fields, "requires", default="").split()),
        launch=_choice(Launch, "launch", _only(fields, "launch", default=Launch.PYTHON.value)),
        expectations=_expectations(fields),
        frame=_frame(fields),
    )


def _invalid(english: str, chinese: str) -> ProofHeaderError:
    return ProofHeaderError(Translated(f"proof header: {english}", f"证明程序的头部：{chinese}"))


def _split(docstring: str) -> tuple[str, dict[str, list[str]]]:
    """The prose before the first key, and each key's values; an indented line continues the one above."""
    prose: list[str] = []
    fields: dict[str, list[str]] = {}
    last: list[str] | None = None
    for line in docstring.splitlines():
        match = _LINE.match(line)
        if match and match[1] in _KEYS:
            last = fields.setdefault(match[1], [])
            last.append(match[2].strip())
        elif last is not None and line.startswith((" ", "\t")):
            last[-1] = f"{last[-1]} {line.strip()}"
        elif last is not None and line.strip():
            raise _invalid(f"unknown line {line.strip()!r}", f"无法识别的行 {line.strip()!r}")
        elif last is None:
            prose.append(line)
    sentence = " ".join(" ".join(prose).split())
    if not sentence:
        raise _invalid("it must start with a sentence", "必须以一句说明开头")
    return sentence, fields


def _only(fields: dict[str, list[str]], key: str, default: str | None = None) -> str:
    values = fields.get(key, [])
    if len(values) > 1:
        raise _invalid(f"{key} is given twice", f"{key} 出现了两次")
    if values:
        return values[0]
    if default is None:
        raise _invalid(f"{key} is missing", f"缺少 {key}")
    return default


def _choice(kind: type[_Chosen], key: str, value: str) -> _Chosen:
    try:
        return kind(value)
    except ValueError:
        known = " | ".join(str(member.value) for member in kind)
        raise _invalid(
            f"{key} must be one of {known}, not {value!r}",
            f"{key} 必须是 {known} 之一，而不是 {value!r}",
        ) from None


def _ranks(fields: dict[str, list[str]]) -> int:
    text = _only(fields, "ranks", default="2")
    if not text.isdigit() or not 1 <= int(text) <= 64:
        raise _invalid(
            f"ranks must be 1 to 64, not {text!r}", f"ranks 必须在 1 到 64 之间，而不是 {text!r}"
        )
    return int(text)


def _expectations(fields: dict[str, list[str]]) -> tuple[Expectation, ...]:
    found = tuple(_expectation(value) for value in fields.get("expect", ()))
    if not found:
        raise _invalid("expect is missing", "缺少 expect")
    exceptions = [item for item in found if isinstance(item, ExpectedException)]
    if len(exceptions) > 1 or (exceptions and len(found) > 1):
        raise _invalid("an exception must be the only expectation", "期望异常时不能再有其他期望")
    return found


def _expectation(value: str) -> Expectation:
    if value == "success":
        return ExpectedSuccess()
    if value.startswith("output "):
        pattern = value.removeprefix("output ").strip()
        try:
            re.compile(pattern)
        except re.error as error:
            raise _invalid(
                f"output is not a regular expression: {error}", f"output 不是正则表达式：{error}"
            ) from error
        return ExpectedOutput(pattern)
    if match := _EXCEPTION.match(value):
        return ExpectedException(match[1], (match[2] or "").strip())
    raise _invalid(
        f"expect must be 'exception TYPE: TEXT', 'output REGEX' or 'success', not {value!r}",
        f"expect 必须是 'exception TYPE: TEXT'、'output REGEX' 或 'success'，而不是 {value!r}",
    )


def _frame(fields: dict[str, list[str]]) -> str | None:
    frame = _only(fields, "frame", default="")
    raises = any(value.startswith("exception") for value in fields.get("expect", ()))
    if raises and not frame:
        raise _invalid("an expected exception needs a frame", "期望异常时必须给出 frame")
    if frame and not raises:
        raise _invalid("frame belongs to an expected exception", "frame 只能与期望的异常一起使用")
    return frame or None
