"""Forecasts of memory: programs at true size, whose large tensors have no values, beside arithmetic and a real device."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest
from ranksafe.runs.proofs.environment import overlay_for

from .conftest import Rehearse, Rehearsed
from .one_device import PROGRAMS, SETTINGS_OF_TORCH_2_11, last_line, measured, settings_of

TRAINING = PROGRAMS / "training.py"
GIBIBYTE = 2**30
SHARES = {
    "gpt2_in_fsdp2": (1.0, 1.0),
}
LONG_SHARES = {
    "bert_large_float32": (0.998, 0.999),
    "gpt2_bfloat16": (1.0, 1.0),
    "bert_large_float16": (0.995, 0.989),
    "gpt2_checkpointed": (1.0, 1.0),
    "gpt2_float32": (1.0, 1.001),
    "gpt2_in_a_trainer": (1.0, 0.998),
    "gpt2_in_ddp": (1.0, 1.0),
    "gpt2_of_many_lengths": (1.0, 1.0),
    "llama_1b": (1.0, 0.998),
    "llama_1b_checkpointed": (1.0, 1.006),
    "llama_1b_of_four": (1.0, 1.0),
    "llama_8b_does_not_fit": (1.0, 0.996),
    "llama_8b_generates": (1.0, 1.0),
    # Layers are composed of ordinary operators, which keep more than cuDNN's.
    "long_short_term_memory": (1.128, 1.047),
    # cuDNN's workspaces are not known.
    "transposed_convolutions": (1.0, 0.838),
}
"""Peaks as shares of an H200's: allocated and reserved."""
MODEL = """
import json, resource, torch
from transformers import LlamaConfig, LlamaForCausalLM
def told(**answers): print(json.dumps(answers), flush=True)
def taken(tensors): return sum(-(-t.numel() * t.element_size() // 512) * 512 for t in tensors)
config = LlamaConfig(
    num_hidden_layers=32, hidden_size=4096, intermediate_size=14336, num_attention_heads=32, num_key_value_heads=8,
    vocab_size=128256,
)
"""


def forecast(
    rehearse: Rehearse, script: str | Path, *arguments: str, model: str = "h100", **options: Any
) -> Rehearsed:
    """A script at true size on simulated devices of a kind; one of them unless ``devices`` says otherwise."""
    settings: dict[str, Any] = {
        **settings_of(model),
        "host_memory_bytes": 4 * GIBIBYTE,
        "forecast": True,
        **options,
    }
    if isinstance(script, str):
        script = textwrap.dedent(script)
    return rehearse(script, *arguments, **settings)


def test_what_arithmetic_knows_is_exact(rehearse: Rehearse) -> None:
    program = """
    torch.set_default_dtype(torch.bfloat16)
    model = LlamaForCausalLM(config)
    torch.set_default_dtype(torch.float32)
    model.cuda().gradient_checkpointing_enable()
    parameters = list(model.parameters())
    held = [torch.cuda.memory_allocated() - taken([*parameters, *model.buffers()])]
    optimizer = torch.optim.AdamW(parameters, fused=True)
    for _ in range(2):
        tokens = torch.randint(0, 128256, (1, 2048), device="cuda")
        loss = model(input_ids=tokens, labels=tokens, use_cache=False).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    states = [t for state in optimizer.state.values() for t in state.values()]
    held.append(torch.cuda.memory_allocated() - taken([*parameters, *model.buffers(), *states, tokens, loss]))
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    told(count=sum(p.numel() for p in parameters), held=held, peak=torch.cuda.max_memory_allocated(), used=used)
    """
    told = last_line(forecast(rehearse, MODEL + textwrap.dedent(program)))
    assert told["count"] == 8_030_261_248
    # cuBLAS has a workspace in each of two threads; 32 MiB on this device.
    assert told["held"] == [0, 2 * 32 * 2**20]
    assert told["peak"] == pytest.approx(59.9 * GIBIBYTE, rel=0.002)
    assert told["used"] < 1.2 * GIBIBYTE


@pytest.mark.parametrize(
    ("program", "shares"),
    [
        *SHARES.items(),
        *(pytest.param(*each, marks=pytest.mark.long) for each in LONG_SHARES.items()),
    ],
)
def test_training_takes_what_it_takes_on_a_device(
    rehearse: Rehearse, program: str, shares: tuple[float, float]
) -> None:
    real = measured("h200", "training")[program]
    done = forecast(rehearse, TRAINING, program, model="h200", environment=SETTINGS_OF_TORCH_2_11)
    simulated = last_line(done)["answer"]
    assert len(simulated["steps"]) == len(real["steps"])
    peaks = ("peak_allocated", "peak_reserved")
    assert [simulated["end"][kind] / real["end"][kind] for kind in peaks] == pytest.approx(
        shares, abs=0.003
    )


def test_memory_runs_out_where_it_would(rehearse: Rehearse) -> None:
    program = """
    model = LlamaForCausalLM(config).cuda().bfloat16()
    optimizer = torch.optim.AdamW(model.parameters())
    tokens = torch.randint(0, 128256, (4, 2048), device="cuda")
    for _ in range(3):
        model(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()
        print("step", flush=True)
    """
    done = forecast(rehearse, MODEL + textwrap.dedent(program))
    assert done.returncode == 1
    assert "step" in done.lines
    assert "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate " in done.stderr
    assert "GPU 0 has a total capacity of 79.21 GiB of which " in done.stderr
    assert "modeling_llama.py" in done.stderr


def test_small_and_whole_numbers_are_computed(rehearse: Rehearse) -> None:
    program = """
    import io, json, torch, torch.nn.functional as F
    from torch import nn
    told = {}
    big = torch.randn(4096, 4096, device="cuda", requires_grad=True)
    chosen = torch.arange(4096, device="cuda") % 3 == 0
    told["rows"] = list(big[chosen].shape)
    told["places"] = torch.nonzero(chosen).flatten()[:3].tolist()
    told["small"] = (torch.arange(8.0, device="cuda") ** 2).sum().item()
    told["finite"] = [bool(torch.isfinite(big).all()), bool(torch.isnan(big).any())]
    told["norm"] = big.norm().item()
    told["counted"] = torch.histc(torch.tensor([0, 1, 1, 3], device="cuda", dtype=torch.int32), 4, 0, 3).tolist()
    loss = F.cross_entropy(big, torch.zeros(4096, device="cuda", dtype=torch.long))
    loss.backward()
    told["loss"] = [loss.item(), list(big.grad.shape)]
    thin = nn.Linear(4096, 16, bias=False).cuda()(big)
    told["adapter"] = list(nn.Linear(16, 4096, bias=False).cuda()(thin).shape)
    before = torch.cuda.memory_allocated()
    picture = nn.Conv2d(3, 64, 7, stride=2).cuda()(torch.randn(1, 3, 224, 224, device="cuda"))
    told["picture"] = [list(picture.shape), torch.cuda.memory_allocated() - before]
    file = io.BytesIO()
    torch.save(nn.Linear(1024, 1024).cuda().state_dict(), file)
    told["saved"] = len(file.getvalue()) > 2**22
    library = torch.library.Library("tested", "DEF")
    library.define("product(Tensor left, Tensor right) -> Tensor")
    library.impl("product", lambda left, right: left.new_empty(left.shape[0], right.shape[1]), "Meta")
    made = torch.ops.tested.product(big.detach(), torch.randn(4096, 1024, device="cuda"))
    told["only shapes known"] = [list(made.shape), str(made.device)]
    model, scaler = nn.Linear(2048, 2048).cuda(), torch.amp.GradScaler("cuda")
    optimizer = torch.optim.AdamW(model.parameters())
    with torch.autocast("cuda", torch.float16):
        scaled = scaler.scale(model(torch.randn(512, 2048, device="cuda")).pow(2).mean())
    scaled.backward()
    scaler.step(optimizer)
    scaler.update()
    told["scale"] = scaler.get_scale()
    told["stepped"] = len(optimizer.state)
    half = torch.randn(2, 8, 1024, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    told["attention"] = [
        F.scaled_dot_product_attention(half, half, half, is_causal=True).grad_fn.name(),
        F.scaled_dot_product_attention(half, half, half, attn_mask=torch.ones(1024, 1024, device="cuda").bool()).grad_fn.name(),
        F.scaled_dot_product_attention(half[:, :, :16], half[:, :, :16], half[:, :, :16]).grad_fn.name(),
    ]
    print(json.dumps(told))
    """
    told = last_line(forecast(rehearse, program))
    assert told["rows"] == [1366, 4096]
    assert told["places"] == [0, 3, 6]
    assert told["small"] == 140.0
    assert told["finite"] == [True, False]
    assert told["norm"] == 1.0
    assert told["counted"] == [1, 2, 0, 1]
    assert told["loss"] == [1.0, [4096, 4096]]
    assert told["adapter"] == [4096, 4096]
    shape, size = told["picture"]
    assert shape == [1, 64, 109, 109]
    assert size >= 64 * 109 * 109 * 4
    assert told["saved"]
    assert told["only shapes known"] == [[4096, 1024], "cuda:0"]
    assert (told["scale"], told["stepped"]) == (65536.0, 2)
    flash, efficient = (
        "ScaledDotProductFlashAttentionBackward0",
        "ScaledDotProductEfficientAttentionBackward0",
    )
    assert told["attention"] == [flash, efficient, flash]


def test_an_older_device_has_no_flash_attention(rehearse: Rehearse) -> None:
    program = """
    import json, torch, torch.nn.functional as F
    half = torch.randn(2, 8, 1024, 64, device="cuda", dtype=torch.float16, requires_grad=True)
    print(json.dumps(F.scaled_dot_product_attention(half, half, half).grad_fn.name()))
    """
    kernel = last_line(forecast(rehearse, program, model="t4"))
    assert kernel == "ScaledDotProductEfficientAttentionBackward0"


def test_ranks_agree_without_sending_values(rehearse: Rehearse) -> None:
    program = """
    import os, sys, torch, torch.distributed as dist
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    torch.cuda.set_device(rank)
    small, large = torch.ones(4, device="cuda"), torch.ones(2**28, device="cuda")
    dist.all_reduce(small)
    dist.all_reduce(large)
    print("sum", small[0].item(), flush=True)
    dist.all_reduce(torch.ones(2**20 * (1 + rank), device="cuda"))
    torch.cuda.synchronize()
    """
    done = forecast(rehearse, program, devices=2, launcher="torchrun")
    assert done.returncode != 0
    assert done.lines.count("sum 2.0") == 2
    assert "1048576" in done.stderr
    assert "2097152" in done.stderr


@pytest.mark.long
def test_a_scatter_of_small_parts_of_a_large_whole_arrives(rehearse: Rehearse) -> None:
    """The root has more than the size from which tensors have no values, the others less."""
    program = """
    import torch, torch.distributed as dist
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    torch.cuda.set_device(rank)
    part = torch.zeros(150_000, device="cuda")
    parts = [torch.full_like(part, peer + 5) for peer in range(2)] if rank == 0 else None
    dist.scatter(part, parts, src=0)
    print("part", rank, part[-1].item(), flush=True)
    """
    done = forecast(rehearse, program, devices=2, launcher="torchrun")
    assert done.returncode == 0, done.stderr
    assert {"part 0 5.0", "part 1 6.0"} <= set(done.lines)


@pytest.mark.long
def test_compiled_flex_attention_keeps_no_scores(rehearse: Rehearse) -> None:
    """As torch's own kernels; uncompiled it makes all scores, on a device as here."""
    program = """
    import torch
    from torch.nn.attention import flex_attention as flex
    def causal(batch, head, query, key): return query >= key
    mask = flex.create_block_mask(causal, None, None, 4096, 4096, device="cuda")
    def attend(query, key, value): return flex.flex_attention(query, key, value, block_mask=mask)
    def taken(attend):
        given = [torch.randn(1, 8, 4096, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3)]
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        attend(*given).sum().backward()
        peak = torch.cuda.max_memory_allocated() - before
        print([tuple(each.grad.shape) for each in given] == [(1, 8, 4096, 64)] * 3, peak >> 20)
    taken(attend)
    taken(torch.compile(attend, backend="eager"))
    taken(torch.compile(attend))
    class Attention(torch.nn.Module):
        def forward(self, *given): return torch.utils.checkpoint.checkpoint(attend, *given, use_reentrant=False)
    taken(torch.compile(Attention()))
    """
    done = forecast(rehearse, program)
    assert done.returncode == 0, done.stderr
    told = [line.split() for line in done.lines if line.startswith("True")]
    assert len(told) == 4
    # A matrix of scores: 8 heads of 4096 times 4096 numbers of 4 bytes.
    assert all(int(mebibytes) > 512 for _, mebibytes in told[:2])
    assert all(int(mebibytes) < 40 for _, mebibytes in told[2:])


BITSANDBYTES = """
import sys
sys.path.insert(0, {overlay!r})
import bitsandbytes, json, torch
from torch import nn
SIZE = 4096
told = []
def tell(held): told.append(torch.cuda.memory_allocated() - held)
layers = [nn.Linear(SIZE, SIZE, bias=False, device="cuda") for _ in range(2)]
for name in ("AdamW8bit", "PagedAdamW8bit"):
    optimizer = getattr(bitsandbytes.optim, name)([layer.weight for layer in layers])
    for layer in layers:
        layer.weight.grad = torch.empty_like(layer.weight)
    held = torch.cuda.memory_allocated()
    optimizer.step()
    tell(held)
    del optimizer
for twice in (False, True):
    held = torch.cuda.memory_allocated()
    layers.append(bitsandbytes.nn.Linear4bit(SIZE, SIZE, bias=False, compress_statistics=twice).cuda())
    tell(held)
    layers[-1](torch.randn(256, SIZE, device="cuda", requires_grad=True)).sum().backward()
print(json.dumps(told))
"""


@pytest.mark.long
def test_bitsandbytes_takes_what_its_states_and_weights_take(
    rehearse: Rehearse, torch_python: Path
) -> None:
    overlay = overlay_for(["bitsandbytes==0.50.2"], torch_python, lambda _: None)
    eight, paged, four, twice = last_line(
        forecast(rehearse, BITSANDBYTES.format(overlay=str(overlay)))
    )
    elements = 4096 * 4096
    scales, maps = 2 * 4 * (elements // 256), 2 * 4 * 256
    assert eight == 2 * (2 * elements + scales) + maps
    # The states are on the host; their scales are not.
    assert paged == 2 * scales + maps
    table = 512  # 16 values of 4 bytes
    assert four == elements // 2 + 4 * (elements // 64) + table
    # Scales of one byte, with scales of their own, the table of those, which is kept and copied, and one offset.
    again = elements // 64 + 4 * (elements // 64 // 256) + 2 * 4 * 256 + 512
    assert twice == elements // 2 + again + table


TRITON = """
import sys
sys.path.insert(0, {overlay!r})
import json, torch, triton, triton.language as tl
SIZE = 2**22
@triton.autotune([triton.Config({{"BLOCK": size}}) for size in (512, 1024)], key=["count"], restore_value=["result"])
@triton.heuristics({{"EVEN": lambda given: given["count"] % given["BLOCK"] == 0}})
@triton.jit
def twice(source, places, result, total, count, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    places_of_block = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(source + tl.load(places + places_of_block)) * 2
    into = result + places_of_block
    tl.store(into, value)
    tl.atomic_add(total, tl.sum(value))
class Twice(torch.autograd.Function):
    @staticmethod
    def forward(context, given): return launched(given)
    @staticmethod
    def backward(context, gradient): return launched(gradient)
def launched(given):
    result, total = torch.empty_like(given), torch.zeros(1, device="cuda")
    places = torch.empty(8, dtype=torch.int32, device="cuda")
    twice[lambda meta: (triton.cdiv(SIZE, meta["BLOCK"]),)](given, places, result, total, SIZE)
    told.append([total.item(), places.tolist() == [0] * 8])
    return result
told = []
given = torch.randn(SIZE, device="cuda", requires_grad=True)
for _ in range(2):
    doubled = None
    held = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    doubled = Twice.apply(given)
    told.append([torch.cuda.memory_allocated() - held, torch.cuda.max_memory_allocated() - held])
doubled.sum().backward()
told.append(given.grad.nbytes)
sizes = triton.runtime.driver.active.utils.get_device_properties(0)
told.append(sizes["multiprocessor_count"] == torch.cuda.get_device_properties(0).multi_processor_count)
print(json.dumps(told))
"""


@pytest.mark.long
def test_a_launch_of_a_triton_kernel_is_done_without_computing(
    rehearse: Rehearse, torch_python: Path
) -> None:
    overlay = overlay_for(["triton==3.8.0"], torch_python, lambda _: None)
    program = TRITON.format(overlay=str(overlay))
    first, tuned, second, again, backward, gradient, knows_sizes = last_line(
        forecast(rehearse, program)
    )
    result, small = 4 * 2**22, 2 * 512
    # The first launch is tuned: with a buffer that flushes the cache, and a copy of what it restores.
    assert tuned == [result, result + small + result + 2**28]
    assert again == [result, result + small]
    # A result like that of any other operator, and what nobody has written.
    assert first == second == backward == [1.0, True]
    assert (gradient, knows_sizes) == (result, True)


@pytest.mark.long
def test_a_triton_kernel_of_a_rehearsal_is_a_limit(rehearse: Rehearse, torch_python: Path) -> None:
    overlay = overlay_for(["triton==3.8.0"], torch_python, lambda _: None)
    done = forecast(rehearse, TRITON.format(overlay=str(overlay)), forecast=False)
    assert (
        "ranksafe simulation limit: the triton kernel `twice` cannot run on simulated GPUs"
        in done.stderr
    )


@pytest.mark.long
def test_a_checkpoint_takes_no_room_and_is_loaded_again(rehearse: Rehearse) -> None:
    program = """
    import json, os, torch, torch.distributed.checkpoint as distributed
    from safetensors.torch import load_file, save_file, save_model
    large, small = torch.randn(2**15, 2**15, device="cuda"), torch.arange(7.0, device="cuda")
    state = {"large": large, "on the host": torch.randn(2**13, 2**15), "small": small.half()}
    torch.save(state, "by name.pt")
    with open("by file.pt", "wb") as file:
        torch.save(state, file)
    save_file(state, "by safetensors", metadata={"format": "pt"})
    model = torch.nn.Linear(2**14, 2**14)
    torch.nn.init.ones_(model.bias)
    save_model(model, "model")
    distributed.save({"large": large, "small": small}, checkpoint_id="distributed", no_dist=True)
    told = {}
    for folder, _, names in os.walk("."):
        for name in names:
            told[name] = [os.stat(f"{folder}/{name}").st_size, os.stat(f"{folder}/{name}").st_blocks * 512]
    def alike(loaded):
        assert {name: (each.shape, each.dtype) for name, each in state.items()} == {
            name: (each.shape, each.dtype) for name, each in loaded.items()}, loaded
        assert loaded["small"].tolist() == small.tolist(), loaded["small"]
        assert loaded["on the host"][-1, -1] == 0
    alike(torch.load("by name.pt", mmap=True, map_location="cpu"))
    alike(torch.load("by file.pt", map_location="cuda"))
    alike(load_file("by safetensors"))
    assert load_file("model")["bias"].tolist() == [1.0] * 2**14
    read = {"small": torch.zeros(7)}
    distributed.load(read, checkpoint_id="distributed", no_dist=True)
    assert read["small"].tolist() == small.tolist()
    print(json.dumps(told))
    """
    told = last_line(forecast(rehearse, program))
    sizes = [size for name, (size, _) in told.items() if size > GIBIBYTE // 2]
    assert sorted(size >> 30 for size in sizes) == [1, 4, 5, 5, 5]
    assert sum(taken for _, taken in told.values()) < GIBIBYTE // 64
