"""Lines that only show that a run goes on."""

from __future__ import annotations

import re

_BAR = re.compile(r"\d{1,3}%\|[^|]{0,200}\| ?[\d.,]+[kMG]?/[\d.,]+[kMG]? ?\[[^\]]*\]?\s*$")
_BAR_WITHOUT_END = re.compile(r"^.{0,60}?(?:(?<!\d)\d+it|(?<![\d.])[\d.]+[kMG]?B) \[\d\d:\d\d, ")
_STEP = re.compile(
    r"\b(?:step|epoch|iter(?:ation)?|batch)s?\b\W{0,3}\[?\d+|\bloss\b\W{0,4}\d|'loss':|\d{1,3}%\|",
    re.IGNORECASE,
)
_END = re.compile(
    r"\b(?:training|run|rank \d+|all|evaluation|epoch \d+)\W{1,3}(?:is |has )?(?:finished|completed|complete|done)\b"
    r"|\btrain_runtime\b|\bsaved (?:the |final )?(?:model|checkpoint|weights)\b|(?:^|[:\])|-] )finished: \d"
    r"|(?:\b(?:saved|written|wrote|exported)\b|保存).{0,60}\.(?:pt|pth|ckpt|bin|safetensors|onnx)\b"
    r"|(?:训练|评估|测试)(?:过程)?(?:已经|已|全部)?(?:结束|完成|完毕)",
    re.IGNORECASE,
)

_DONE = re.compile(r"^(?:\S+ )?(?:finished|done)(?:[.!]?$| in \d)", re.IGNORECASE)


def is_bar(line: str) -> bool:
    """Whether the line is one state of a progress bar and nothing else (tqdm's form)."""
    return ("%|" in line and _BAR.search(line) is not None) or (
        "it [" in line and _BAR_WITHOUT_END.match(line) is not None
    )


def is_progress(line: str) -> bool:
    """Whether the line counts steps, epochs or a loss."""
    return _STEP.search(line) is not None and not line.startswith(("srun", "slurm", "wandb"))


def is_completion(line: str) -> bool:
    """Whether the line says that a run, or a rank of it, came to its end as it should."""
    return _END.search(line) is not None


def is_end(line: str) -> bool:
    """Whether the line says that something is done; a launcher's script says it of failed ranks, too."""
    return _DONE.search(line) is not None or is_completion(line)
