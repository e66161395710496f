"""What small programs take of the device's memory: ``memory.py NAME`` prints bytes as JSON; ``--names`` lists them."""

import gc
import json
import sys
from collections.abc import Callable

import torch
from torch import nn

CASES: dict[str, Callable[[], object]] = {}


def case(function: Callable[[], object]) -> Callable[[], object]:
    CASES[function.__name__] = function
    return function


def reading() -> dict[str, int]:
    """Bytes: allocated, reserved, their peaks, and what the device says is in use by anybody."""
    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    return {
        "allocated": torch.cuda.memory_allocated(),
        "reserved": torch.cuda.memory_reserved(),
        "peak_allocated": torch.cuda.max_memory_allocated(),
        "peak_reserved": torch.cuda.max_memory_reserved(),
        "used": total - free,
    }


@case
def nothing() -> object:
    torch.cuda.init()
    return [reading()]


@case
def blocks() -> object:
    readings = []
    for size in (
        1,
        511,
        512,
        513,
        2**20 - 1,
        2**20 + 1,
        5 * 2**20,
        10 * 2**20,
        11 * 2**20,
        2**28 + 1,
    ):
        kept = torch.empty(size, dtype=torch.uint8, device="cuda")
        readings.append({"size": size, **reading()})
        del kept
        readings.append({"size": -size, **reading()})
    torch.cuda.empty_cache()
    return [*readings, reading()]


@case
def fragments() -> object:
    generator = torch.Generator().manual_seed(0)
    held: list[torch.Tensor] = []
    readings = []
    for turn in range(400):
        if held and torch.rand((), generator=generator) < 0.45:
            held.pop(int(torch.randint(len(held), (), generator=generator)))
        else:
            size = int(2 ** (8 + 17 * torch.rand((), generator=generator)))
            held.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
        if turn % 40 == 39:
            readings.append(reading())
    return readings


@case
def first_product() -> object:
    before = reading()
    value = torch.ones(256, 256, device="cuda")
    value @ value
    return [before, reading()]


@case
def first_convolution() -> object:
    before = reading()
    nn.Conv2d(3, 16, 3).cuda()(torch.ones(8, 3, 64, 64, device="cuda"))
    return [before, reading()]


@case
def multilayer_perceptron() -> object:
    model = nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024)).cuda()
    return _steps(model, lambda: torch.ones(64, 1024, device="cuda"))


@case
def convolutions() -> object:
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
    ).cuda()  # fmt: skip
    return _steps(model, lambda: torch.ones(16, 3, 96, 96, device="cuda"))


@case
def long_short_term_memory() -> object:
    class Last(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(64, 128, num_layers=2, batch_first=True)

        def forward(self, value: torch.Tensor) -> torch.Tensor:
            return self.lstm(value)[0]  # type: ignore[no-any-return]

    return _steps(Last().cuda(), lambda: torch.ones(8, 50, 64, device="cuda"))


@case
def transformer() -> object:
    return _steps(_transformer(), lambda: torch.ones(4, 256, 256, device="cuda"))


@case
def transformer_in_bfloat16() -> object:
    return _steps(_transformer(), lambda: torch.ones(4, 256, 256, device="cuda"), torch.bfloat16)


@case
def language_model() -> object:
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(n_layer=4, n_embd=256, n_head=4, vocab_size=8192)).cuda()

    def loss() -> torch.Tensor:
        tokens = torch.randint(0, 8192, (4, 256), device="cuda")
        return model(input_ids=tokens, labels=tokens).loss  # type: ignore[no-any-return]

    return _steps(model, loss, torch.bfloat16, is_loss=True)


def _transformer() -> nn.Module:
    layer = nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True)
    return nn.TransformerEncoder(layer, 4).cuda()


def _steps(
    model: nn.Module,
    batch: Callable[[], torch.Tensor],
    dtype: torch.dtype | None = None,
    is_loss: bool = False,
) -> object:
    optimizer = torch.optim.AdamW(model.parameters())
    readings = [reading()]
    for _ in range(3):
        with torch.autocast("cuda", dtype=dtype or torch.float16, enabled=dtype is not None):
            loss = batch() if is_loss else model(batch()).float().square().mean()
        readings.append(reading())
        loss.backward()
        readings.append(reading())
        optimizer.step()
        optimizer.zero_grad()
        readings.append(reading())
    del loss
    gc.collect()
    return readings


if __name__ == "__main__":
    if sys.argv[1:] == ["--names"]:
        print(json.dumps(sorted(CASES)))
    else:
        print(json.dumps({"case": "answer", "answer": CASES[sys.argv[1]]()}))
