"""What a run is: request, events, evidence, failures, outcome. Plain data; JSON forms as the CLI prints them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Literal

from ranksafe.localization import Language, Translated
from ranksafe.rehearsal.settings import RehearsalOptions


class Outcome(str, Enum):
    """How a run ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SILENT_FAILURE = "silent-failure"
    SIMULATION_LIMIT = "simulation-limit"
    CANCELLED = "cancelled"
    NOT_STARTED = "not-started"
    """Used wrongly or broken before a rank existed (no interpreter, no accelerate, no free GPU)."""


@dataclass(frozen=True, slots=True)
class Debugging:
    """One rank waits for a debugger before its script begins; the others run on until they need it."""

    rank: int
    libraries: Path | None = None
    """A folder with debugpy, for a Python that has none of its own."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What to start. Only a user's own settings and commands fill `interpreter`, `arguments` and `environment`."""

    script: Path
    target: str = "local"
    gpus: int | None = None
    """Ranks to start; None: all free CUDA devices, else 2 CPU ranks."""
    cpu_ranks: bool = False
    """Start gloo ranks on the CPU even where CUDA devices exist."""
    steps: int | None = None
    """Stop after that many optimizer steps (a smoke run); None: run to the end."""
    arguments: tuple[str, ...] = ()
    config_file: Path | None = None
    """An accelerate configuration chosen by the user; never overridden by ours."""
    interpreter: Path | None = None
    """The Python that has torch and accelerate; None: found (active virtual environment, the script's folder, PATH)."""
    working_directory: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    timeout_seconds: float | None = None
    on_hang: Literal["stop", "report"] = "stop"
    """What happens to ranks that wait for each other in vain: the run is ended as failed, or told of and kept."""
    debugging: Debugging | None = None
    """On this machine only. Whoever stands at a breakpoint is waited for: such ranks are never said to hang."""
    launcher: Literal["accelerate", "torchrun", "python", "deepspeed", "fabric"] | None = None
    """What starts the script; None: what its text asks for."""
    module: str = ""
    """Started by this name (``-m``), from `script`, which is its file; empty: the file is started."""
    rehearsal: RehearsalOptions = field(default_factory=RehearsalOptions)
    """Read by the target ``simulated:N`` only."""
    in_background: bool = False
    """On this machine, at the lowest priority: nobody waits for it."""
    keep_detached: bool = False
    """Leave processes that the script detached and that go on when it has ended; otherwise they are ended."""
    stop_when_lost: bool = False
    """On another host: end the run soon after the connection is lost, instead of letting it go on there."""
    language: Language = "en"
    """Of the events' texts, the messages and the lists of what was modified and what a run cannot show."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One line of a traceback. Lines and columns are 1-based, columns in characters."""

    filename: str
    line: int
    function: str
    source: str = ""
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
    in_user_code: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Evidence explained."""

    kind: str
    """Kebab-case category of the signature table ("data-parallel-zero-dim-scatter", "rank-died", "user-error")."""
    code: str | None = None
    """The rule this failure proves, if any (RSnnn)."""
    rank: int | None = None
    message: str
    """The exception's own type and text, or what happened ("killed by SIGKILL")."""
    filename: str | None = None
    """Innermost file of the user's code."""
    line: int | None = None
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
    frames: tuple[Frame, ...] = ()
    """Outermost first, library frames included."""
    explanation: Translated
    """What it means and what to do."""
    root_cause: bool = True
    related: tuple[tuple[str, int], ...] = ()
    """Lines that belong to it, by file: where the ways of the ranks parted, then where the others were."""
    excerpt: tuple[str, ...] = ()
    """The raw end of the log, where nothing better is known."""

    @classmethod
    def without_place(
        cls, kind: str, message: Translated, explanation: Translated, language: Language
    ) -> Failure:
        """A failure of the run as a whole."""
        return cls(kind=kind, message=message.in_language(language), explanation=explanation)

    def at(self, frame: Frame | None) -> Failure:
        """The failure drawn on this line; as it is where there is none."""
        if frame is None:
            return self
        return replace(
            self,
            filename=frame.filename,
            line=frame.line,
            column=frame.column,
            end_line=frame.end_line,
            end_column=frame.end_column,
        )


@dataclass(frozen=True, slots=True)
class RankReport:
    """How one rank ended."""

    rank: int
    host: str
    exit: int | None
    """Exit status; negative: the signal that ended it; None: unknown."""
    outcome: str
    """"succeeded", "failed", "killed", "stopped" (by the launcher after a peer failed), "unknown"."""


@dataclass(frozen=True, slots=True)
class RankState:
    """What a rank does at the moment."""

    rank: int
    kind: str
    """"starting", "runs", "waits" (in a collective), "still" (without a sign of life), "ended", "failed"."""
    text: Translated
    """A few words, without the rank."""
    steps: int = 0
    """Optimizer steps made."""
    steps_per_second: float | None = None
    seconds: float | None = None
    """Since when it waits or stands still."""


@dataclass(frozen=True, slots=True)
class RunEvent:
    """Something to show while a run goes on."""

    kind: str
    """"status" (text for people), "output" (lines of a rank), "step", "ranks" (what they do), "hang", "first-failure"
    (why the run is about to end), "debugger" (a rank waits for one, or cannot), "failure" (when it has ended)."""
    text: str
    rank: int | None = None
    stream: str = "stdout"
    goes_on: bool = False
    """With "output": whether the last line goes on in the next output of the rank's stream."""
    seconds: float = 0.0
    """Since the start of the run."""
    states: tuple[RankState, ...] = ()
    """With "ranks": one per rank."""
    devices: tuple[str, ...] = ()
    """With "ranks": memory and utilisation of each GPU in a few words, where nvidia-smi tells."""
    failures: tuple[Failure, ...] = ()
    """With "hang" and "first-failure": what to draw on which lines; empty when a reported hang is no longer one."""
    address: tuple[str, int] | None = None
    """With "debugger": where the rank listens; None: it runs without one."""

    @property
    def lines(self) -> list[str]:
        """Of an output, which may come in several lines at once."""
        return self.text.split("\n")


@dataclass(frozen=True, slots=True)
class Unreached:
    """A line that no rank of a passed rehearsal was seen to execute."""

    filename: str
    line: int
    """1-based."""
    name: str
    """The code of the rule with a finding there, or the function that would have been called."""

    @property
    def text(self) -> str:
        """As it is listed: ``RS401 (train.py:78)``."""
        return f"{self.name} ({Path(self.filename).name}:{self.line})"


@dataclass(frozen=True, slots=True)
class MemoryLine:
    """What one line of a program had taken, in large blocks (16 MiB and more), of what was held at a peak."""

    part: str
    """As in `MemoryPeak.parts`."""
    size: int
    """In bytes."""
    blocks: int
    frames: tuple[Frame, ...]
    """As in `MemoryPeak.frames`."""


@dataclass(frozen=True, slots=True)
class MemoryBlocks:
    """Blocks that are alike, of what was held at a peak."""

    part: str
    """As in `MemoryPeak.parts`."""
    size: int
    """Of each, in bytes."""
    count: int
    frames: tuple[Frame, ...]
    """As in `MemoryPeak.frames`; empty where a block is too small to be asked for."""


@dataclass(frozen=True, slots=True)
class MemoryTimeline:
    """What one rank held of one device from moment to moment, in bytes."""

    moments: tuple[int, ...]
    """Counts of blocks taken and given back, of several in a row the one at which most was held."""
    parts: Mapping[str, tuple[int, ...]]
    """Named as in `MemoryPeak.parts`; for each moment what was held."""
    steps: tuple[tuple[int, int], ...]
    """When optimizer steps ended: the moment and the step."""


@dataclass(frozen=True, slots=True)
class MemoryPeak:
    """What one rank held of one device at most, as a forecast of memory saw it; all in bytes."""

    rank: int
    device: int
    allocated: int
    """By tensors and by libraries' workspaces."""
    reserved: int
    """By torch's caching allocator, its cache and fragments included."""
    refused: int
    """What would have been allocated where memory ran out; 0 where it never did."""
    retries: int
    """How often the allocator gave its cache back to make room."""
    phase: str
    """Of the peak: "forward", "backward", "recomputed" (a forward pass within the backward pass), "optimizer",
    "no-gradients" (loading, evaluation, generation)."""
    step: int
    """The optimizer step that the peak belongs to, from 1."""
    steps: int
    """How many were made."""
    frames: tuple[Frame, ...]
    """The user's line at the peak and, behind it, the library's that it called; empty where none is known."""
    phases: Mapping[str, tuple[int, int]]
    """Peaks of each phase: allocated and reserved."""
    groups: int
    """How many NCCL groups the rank made."""
    convolves: bool = False
    """Whether a module with convolutions was called."""
    compiled: bool = False
    """Whether ``torch.compile`` was called, which changes nothing here."""
    parts: Mapping[str, int] = field(default_factory=dict)
    """What `allocated` was for: "parameters", "gradients", "optimizer-states", "buffers", "gathered" and "reduced" (by
    FSDP), "buckets" (DDP's), "workspaces" (of libraries), "activations" (all else of forward passes); then what the
    other phases took: "backward", "recomputed", "optimizer", "other"."""
    lines: tuple[MemoryLine, ...] = ()
    """The largest first."""
    blocks: tuple[MemoryBlocks, ...] = ()
    """All of `allocated`, by part and size, where that was asked for."""
    timeline: MemoryTimeline | None = None
    """None where the process was ended before it could tell."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended, and why."""

    run_id: str
    outcome: Outcome
    target: str
    command: tuple[str, ...]
    modified: tuple[str, ...]
    """What ranksafe changed against a plain launch, in words ("stops after 2 optimizer steps")."""
    limits: tuple[str, ...]
    """What this run could not show ("no CUDA device: gloo ranks on the CPU")."""
    ranks: tuple[RankReport, ...]
    failures: tuple[Failure, ...]
    """Root causes first."""
    seconds: float
    log: Path | None
    """All ranks' output, time-ordered, each line marked with its rank."""
    run_directory: Path | None
    simulation_limit: Failure | None = None
    """With the outcome SIMULATION_LIMIT: what the simulation could not do, and where. No fault of the user's, and
    never among `failures`."""
    unreached: tuple[Unreached, ...] = ()
    """Of a rehearsal that passed: what it says nothing about; `limits` has it in words."""
    memory: tuple[MemoryPeak, ...] = ()
    """Of a forecast: by rank and device."""
