"""What the runs of a search say, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ranksafe.localization import Translated
from ranksafe.runs.fit import Fits
from ranksafe.runs.fit_search import GPUS, Change, Trial
from ranksafe.runs.fit_words import gib

_NEEDED = Translated("needs {range} of {capacity} GiB", "需要 {range} GiB（共 {capacity} GiB）")
_ROW = Translated("{change}: {needs}: {fits}", "{change}：{needs}：{fits}")
_WORDS = {
    Fits.YES: Translated("fits", "可放入"),
    Fits.TIGHT: Translated("tight", "很紧张"),
    Fits.NO: Translated("does not fit", "无法放入"),
}
_NO_FORECAST = Translated(
    "{change}: no forecast, the run ended in another way ({reason})",
    "{change}：没有预测，运行以其他方式结束（{reason}）",
)
_TOO_SHORT = Translated(
    "{change}: no forecast, the run made {steps} optimizer steps, too few to show the peak",
    "{change}：没有预测，运行只做了 {steps} 个优化器步，不足以显示峰值",
)
_OTHER_BATCH = Translated(
    "the effective batch becomes {part} of what it was, unless the script makes up for it",
    "有效批大小变为原来的 {part}，除非脚本自行补偿",
)
_OTHER_RANKS = Translated(
    "with more data-parallel ranks the effective batch grows",
    "数据并行的 rank 增多时，有效批大小会增大",
)


NOTHING_EXPOSED = Translated(
    "what would make it fit: not tried, because no argument of the script is known to decide its memory (micro-batch, "
    "length, checkpointing, precision), and more GPUs are not in question",
    "怎样才能放下：未尝试，因为脚本没有已知会决定显存的参数（micro-batch、长度、激活重计算、精度），也无法增加 GPU",
)
_BEST = Translated("the least change that fits: {change}", "能放下的最小改动：{change}")
_NONE = Translated("none of these is known to make it fit", "以上改动都不能确定可放下")


def conclusion(trials: Sequence[Trial]) -> Translated:
    """Which of them is recommended, if any."""
    best = recommended(trials)
    return _NONE if best is None else _BEST.filled(change=change_told(best.change))


def recommended(trials: Sequence[Trial]) -> Trial | None:
    """The first kind of change that fits, with its largest value: the last of that kind that fits."""
    return next(iter(best_of_each_kind(trials)), None)


def best_of_each_kind(trials: Sequence[Trial]) -> list[Trial]:
    """Of the kinds of changes that can make it fit, in their order: the largest value that was seen to fit."""
    return list({each.change.kinds: each for each in trials if each.fits is Fits.YES}.values())


def told(trial: Trial) -> Translated:
    """What was needed, and whether that fits; or why nobody knows."""
    forecast, change = trial.forecast, change_told(trial.change)
    if forecast is None:
        return _NO_FORECAST.filled(change=change, reason=trial.reason or trial.outcome.value)
    if trial.fits is None:
        return _TOO_SHORT.filled(change=change, steps=forecast.largest.peak.steps)
    return _ROW.filled(change=change, needs=needed(trial), fits=_WORDS[trial.fits])


def needed(trial: Trial) -> Translated:
    """What was needed, of how much; of a trial with a forecast."""
    assert trial.forecast is not None
    need = trial.forecast.largest.need
    return _NEEDED.filled(
        range=f"{gib(need.least)} – {gib(need.most)}", capacity=gib(trial.forecast.capacity)
    )


def change_told(change: Change) -> str:
    """As it is typed."""
    return ", ".join(change.told)


def remarks(trial: Trial) -> Iterator[Translated]:
    """What else the change does, where it may help."""
    if trial.fits in (None, Fits.NO):
        return
    if trial.change.batch is not None:
        before, after = trial.change.batch
        yield _OTHER_BATCH.filled(part=f"{after}/{before}")
    if GPUS in trial.change.kinds:
        yield _OTHER_RANKS
