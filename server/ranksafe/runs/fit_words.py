"""The answer to "does it fit?" in words: what stands in it, and how sizes are written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ranksafe.localization import Translated
from ranksafe.rehearsal.device_models import device_model
from ranksafe.runs.explain.locate import place
from ranksafe.runs.fit import DeviceNeed, Fits, Forecast, margin_of
from ranksafe.runs.model import Frame, MemoryLine, MemoryPeak, RunRequest

_DIFFERENT = 0.01
"""From this part on devices are said to differ."""

_HEADLINES = {
    Fits.YES: Translated(
        "fits {number} × {model}: needs {range} of {capacity} GiB per GPU, most likely {likely}",
        "可放入 {number} × {model}：每个 GPU 需要 {range} GiB（共 {capacity} GiB），最可能为 {likely}",
    ),
    Fits.TIGHT: Translated(
        "tight on {number} × {model}: needs {range} of {capacity} GiB per GPU, most likely {likely}; only "
        "a try can tell",
        "{number} × {model} 很紧张：每个 GPU 需要 {range} GiB（共 {capacity} GiB），最可能为 {likely}；"
        "只有试运行才能确定",
    ),
    Fits.NO: Translated(
        "does not fit {number} × {model}: needs {range} of {capacity} GiB per GPU, most likely {likely}",
        "无法放入 {number} × {model}：每个 GPU 需要 {range} GiB（共 {capacity} GiB），最可能为 {likely}",
    ),
}
_COMPILED_HEADLINES = {
    Fits.YES: Translated(
        "fits {number} × {model}: needs at most {most} of {capacity} GiB per GPU; eager code {range}",
        "可放入 {number} × {model}：每个 GPU 最多需要 {most} GiB（共 {capacity} GiB）；eager 代码为 {range}",
    ),
    Fits.TIGHT: Translated(
        "tight on {number} × {model}: eager code needs {range} of {capacity} GiB per GPU, compiled code less; only a "
        "try can tell",
        "{number} × {model} 很紧张：每个 GPU 上 eager 代码需要 {range} GiB（共 {capacity} GiB），编译后的代码更少；"
        "只有试运行才能确定",
    ),
}
"""What a compiled program needs at least is not known: its code runs eagerly here."""
_AT_LEAST = {
    Fits.TIGHT: Translated(
        "tight on {number} × {model}: needs at least {least} of {capacity} GiB per GPU, and ran out of memory here",
        "{number} × {model} 很紧张：每个 GPU 至少需要 {least} GiB（共 {capacity} GiB），并且在此处显存不足",
    ),
    Fits.NO: Translated(
        "does not fit {number} × {model}: needs at least {least} of {capacity} GiB per GPU",
        "无法放入 {number} × {model}：每个 GPU 至少需要 {least} GiB（共 {capacity} GiB）",
    ),
}
_TITLES = {
    Fits.YES: Translated(
        "Fits {number} × {model}: {likely} of {capacity} GiB",
        "可放入 {number} × {model}：{likely} / {capacity} GiB",
    ),
    Fits.TIGHT: Translated(
        "Tight on {number} × {model}: {range} of {capacity} GiB",
        "{number} × {model} 很紧张：{range} / {capacity} GiB",
    ),
    Fits.NO: Translated(
        "Does not fit {number} × {model}: at least {least} of {capacity} GiB",
        "无法放入 {number} × {model}：至少 {least} / {capacity} GiB",
    ),
}
_FITS_COMPILED = Translated(
    "Fits {number} × {model}: at most {most} of {capacity} GiB",
    "可放入 {number} × {model}：最多 {most} / {capacity} GiB",
)
_TIGHT_AT_LEAST = Translated(
    "Tight on {number} × {model}: at least {least} of {capacity} GiB",
    "{number} × {model} 很紧张：至少 {least} / {capacity} GiB",
)
_NOTHING = Translated(
    "the script took no GPU memory: there is nothing to forecast", "脚本没有占用显存：无可预测"
)
_PHASES = {
    "forward": Translated("in a forward pass", "前向传播中"),
    "backward": Translated("in a backward pass", "反向传播中"),
    "recomputed": Translated(
        "in a forward pass that is computed again for the backward pass", "反向传播的重计算中"
    ),
    "optimizer": Translated("in the optimizer's step", "优化器更新中"),
    "no-gradients": Translated(
        "where no gradients are wanted (loading, evaluation, generation)",
        "不需要梯度的部分（加载、评估、生成）",
    ),
}
_PEAK = Translated("peak {phase}{step}{place}", "峰值出现在{phase}{step}{place}")
_OF_STEP = Translated(", step {step}", "，第 {step} 步")
_OF_GPU = Translated(" of GPU {gpu}", "，GPU {gpu}")
PARTS = {
    "parameters": Translated("parameters", "参数"),
    "gradients": Translated("gradients", "梯度"),
    "optimizer-states": Translated("optimizer states", "优化器状态"),
    "buffers": Translated("buffers", "缓冲区"),
    "activations": Translated("activations", "激活"),
    "gathered": Translated("gathered by FSDP", "FSDP 收集"),
    "reduced": Translated("reduced by FSDP", "FSDP 规约"),
    "buckets": Translated("DDP's buckets", "DDP 的 bucket"),
    "backward": Translated("backward pass", "反向传播"),
    "recomputed": Translated("computed again", "重计算"),
    "optimizer": Translated("optimizer's step", "优化器更新"),
    "workspaces": Translated("workspaces of libraries", "库的工作区"),
    "other": Translated("other", "其他"),
}
"""What memory was for, as in `MemoryPeak.parts`."""
_SMALLEST_PART = 0.005
"""Of what is allocated; smaller parts are told together."""
_MOST_LINES = 5
REST = Translated("rest", "其余")
_LINE = Translated(
    "{size} GiB at {place}: {part} (blocks: {blocks})",
    "{place} 处 {size} GiB：{part}（块数：{blocks}）",
)
NO_LINE = Translated("no known line", "未知的行")
_COUNTED = Translated(
    "tensors {allocated} + CUDA's context {context} = at least {least}; cache and fragments {cache}, libraries' code "
    "{code}, NCCL {groups}; margin {margin}",
    "张量 {allocated} + CUDA 上下文 {context} = 至少 {least}；缓存与碎片 {cache}，库代码 {code}，NCCL {groups}；"
    "余量 {margin}",
)
_DIFFER = Translated(
    "GPUs differ: most likely {least} GiB on GPU {smallest}, {most} GiB on GPU {largest}",
    "各 GPU 不同：GPU {smallest} 最可能为 {least} GiB，GPU {largest} 为 {most} GiB",
)
_RAN_OUT = Translated(
    "memory ran out, and the script went on with something that needs less",
    "显存曾不足，脚本改用占用更少的方式继续运行",
)
_CACHE_GIVEN_BACK = Translated(
    "the allocator gave its cache back {retries} times to make room, which costs time",
    "分配器为腾出空间归还缓存 {retries} 次，这会耗费时间",
)
_ONE_FOR_ALL = Translated(
    "one rank stood for all {ranks}: what only other ranks hold (stages of a pipeline, uneven shards) is not in it",
    "由一个 rank 代表全部 {ranks} 个：只有其他 rank 持有的部分（流水线阶段、不均匀的分片）不在其中",
)
_STEPS = Translated(
    "seen: {steps} optimizer steps, with the batches that came; longer batches, and whatever the run did not come to, "
    "may need more",
    "观察范围：{steps} 个优化器步及其批次；更长的批次以及未运行到的部分可能需要更多",
)
_NO_STEPS = Translated(
    "seen: no optimizer step; what the run did not come to may need more",
    "观察范围：没有优化器步；未运行到的部分可能需要更多",
)
_COMPILED = Translated(
    "torch.compile counts as eager: a compiled program needs less, GPT-2 on an H200 0.56 of that",
    "torch.compile 按 eager 计算：编译后的程序需要更少，H200 上的 GPT-2 为其 0.56",
)
_SOURCES = Translated(
    "CUDA's context and code as measured on an H100 and an H200, NCCL with one rank; the margin is {margin} % of what "
    "the allocator reserves, and not a bound: cuDNN's workspaces are not known",
    "CUDA 上下文和代码的占用来自 H100 与 H200 的实测，NCCL 来自单个 rank；余量为分配器预留量的 {margin}%，并非上界："
    "cuDNN 的工作区未知",
)


def headline(forecast: Forecast | None, request: RunRequest, number: int) -> Translated:
    """One line; ``number``: of all devices."""
    if forecast is None:
        return _NOTHING
    sentence = (_HEADLINES if forecast.is_whole else _AT_LEAST)[forecast.fits]
    if forecast.is_whole and forecast.largest.peak.compiled:
        sentence = _COMPILED_HEADLINES[forecast.fits]
    return _filled(sentence, forecast, number, device_model(request.rehearsal.device_model).name)


def title(forecast: Forecast, request: RunRequest, number: int) -> Translated:
    """The same in a few words."""
    sentence = _TITLES[forecast.fits]
    if forecast.fits is Fits.TIGHT and not forecast.is_whole:
        sentence = _TIGHT_AT_LEAST
    elif forecast.fits is Fits.YES and forecast.largest.peak.compiled:
        sentence = _FITS_COMPILED
    return _filled(sentence, forecast, number, short_name(request.rehearsal.device_model))


def short_name(model: str) -> str:
    """Of a device model, by its word for the command line."""
    return model.upper()


def _filled(sentence: Translated, forecast: Forecast, number: int, model: str) -> Translated:
    need = forecast.largest.need
    return sentence.filled(
        number=number,
        model=model,
        range=f"{gib(need.least)} – {gib(need.most)}",
        likely=gib(need.likely),
        least=gib(need.least),
        most=gib(need.most),
        capacity=gib(forecast.capacity),
    )


def details(forecast: Forecast) -> Iterator[Translated]:
    """What stands below: where the peak is, what is in the figure, and what is not."""
    device = forecast.largest
    need = device.need
    if forecast.is_whole:
        yield peak(forecast)
        yield composition(device.peak)
    yield _COUNTED.filled(
        allocated=gib(need.allocated),
        context=gib(need.context),
        least=gib(need.least),
        cache=gib(need.cache),
        code=gib(need.code),
        groups=gib(need.groups),
        margin=gib(need.margin),
    )
    for line in device.peak.lines[:_MOST_LINES] if forecast.is_whole else ():
        yield line_held(line)
    smallest = forecast.smallest
    if smallest.need.likely < need.likely * (1 - _DIFFERENT):
        yield _DIFFER.filled(
            least=gib(smallest.need.likely),
            smallest=smallest.number,
            most=gib(need.likely),
            largest=device.number,
        )
    if forecast.ran_out and forecast.failure is None:
        yield _RAN_OUT
    if device.peak.retries and forecast.failure is None:
        yield _CACHE_GIVEN_BACK.filled(retries=device.peak.retries)
    if device.peak.compiled:
        yield _COMPILED
    if forecast.stands_for > 1:
        yield _ONE_FOR_ALL.filled(ranks=forecast.stands_for)
    steps = device.peak.steps
    yield _STEPS.filled(steps=steps) if steps else _NO_STEPS
    yield _SOURCES.filled(margin=round(100 * margin_of(device.peak)))


def peak(forecast: Forecast) -> Translated:
    """When and where most was held."""
    device = forecast.largest
    return _PEAK.filled(
        phase=_PHASES[device.peak.phase],
        step=_step(device.peak),
        place=_place(device, several=len(forecast.devices) > 1),
    )


def line_held(line: MemoryLine) -> Translated:
    """What one line had taken of it."""
    return _LINE.filled(
        size=gib(line.size),
        blocks=line.blocks,
        part=PARTS[line.part],
        place=_lines_of(line.frames) or NO_LINE,
    )


def _step(peak: MemoryPeak) -> Translated | str:
    trains = peak.steps > 0 and peak.phase != "no-gradients"
    return _OF_STEP.filled(step=peak.step) if trains else ""


def _place(device: DeviceNeed, *, several: bool) -> Translated:
    gpu = _OF_GPU.filled(gpu=device.number) if several else Translated("", "")
    lines = _lines_of(device.peak.frames)
    if not lines:
        return gpu
    return Translated(f"{gpu.en}: {lines}", f"{gpu.zh_cn}：{lines}")


def _lines_of(frames: Sequence[Frame]) -> str:
    """Innermost first."""
    return " ← ".join(map(place, reversed(frames)))


def composition(peak: MemoryPeak) -> Translated:
    """What was held at a peak: the parts in the order of their names above, then what is small."""
    told = [
        (PARTS[name], peak.parts[name])
        for name in PARTS
        if peak.parts.get(name, 0) >= _SMALLEST_PART * peak.allocated
    ]
    rest = peak.allocated - sum(size for _, size in told)
    if rest >= _SMALLEST_PART * peak.allocated:
        told.append((REST, rest))
    return Translated(
        " · ".join(f"{name.en} {gib(size)}" for name, size in told),
        " · ".join(f"{name.zh_cn} {gib(size)}" for name, size in told),
    )


def gib(size: int) -> str:
    """Of bytes, without the unit."""
    number = size / 2**30
    return f"{number:.1f}" if number >= 1 else f"{number:.2f}"
