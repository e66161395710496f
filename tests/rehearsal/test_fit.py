"""``ranksafe fit`` from end to end: what is forecast beside arithmetic, and every other end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ranksafe.runs.fit_search import MOST_RUNS
from ranksafe.runs.proofs.environment import overlay_for
from ranksafe.runs.records.forecast import load_forecast
from ranksafe.runs.records.kept_runs import run_named
from ranksafe.runs.report.facts import repeat_command
from ranksafe.runs.report.page import report

from tests.runs.browser import harmless, opened

from .conftest import RehearsalEnvironment

ROOT = Path(__file__).parents[2]
MEBIBYTE = 2**20
GIBIBYTE = 2**30
BESIDE_TENSORS = 9_240_576 + 518 * MEBIBYTE
"""The driver's and the context's part, of `ranksafe.rehearsal.device_models`."""
pytestmark = pytest.mark.torch


@dataclass(frozen=True)
class Answer:
    """How a call of ``ranksafe fit`` ended."""

    status: int
    out: str
    error: str

    @property
    def told(self) -> dict[str, Any]:
        """What was printed, read as JSON."""
        told: dict[str, Any] = json.loads(self.out)
        return told


Fit = Callable[..., Answer]


@pytest.fixture
def fit(rehearsal_environment: RehearsalEnvironment, tmp_path: Path) -> Fit:
    """Call the command on a script, given as text, on one GPU unless told otherwise; ``stop_at``: as Ctrl+C does, when
    this was said."""
    native = next(
        folder
        for folder in Path(rehearsal_environment.native.devices).parents
        if folder.name in ("native", "prebuilt")
    )
    cache = tmp_path / "cache" / "ranksafe"
    cache.mkdir(parents=True)
    if native.name == "native":
        (cache / "native").symlink_to(native)
    project = tmp_path / "project"
    project.mkdir()

    def call(
        script: str, *words: str, gpus: int = 1, stop_at: str = "", packages: Sequence[str] = ()
    ) -> Answer:
        (project / "train.py").write_text(textwrap.dedent(script), encoding="utf-8")
        paths = [str(ROOT / "server"), str(ROOT / "rules")]
        overlay = overlay_for(packages, rehearsal_environment.interpreter, lambda text: None)
        paths += [] if overlay is None else [str(overlay)]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "ranksafe", "fit", "train.py", "--yes", "--warm", "off"),
                *("--gpus", str(gpus), "--python", str(rehearsal_environment.interpreter)),
                *("--timeout", "240"),
                *words,
            ],
            cwd=project,
            env={
                **environment,
                "PYTHONPATH": os.pathsep.join(paths),
                "XDG_CACHE_HOME": str(cache.parent),
            },
            stdin=subprocess.DEVNULL,
            stdout=(out := tmp_path / "out").open("wb"),
            stderr=subprocess.PIPE,
            # A shell starts what is in the background with SIGINT ignored.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            text=True,
        )
        error = ""
        assert process.stderr is not None
        for line in process.stderr:
            error += line
            if stop_at and stop_at in line:
                process.send_signal(signal.SIGINT)
        return Answer(process.wait(), out.read_text(encoding="utf-8"), error)

    return call


LAYERS = """
import torch
from torch import nn
SIZE, LAYERS, ROWS = 4096, 4, 256
model = nn.Sequential(*(nn.Linear(SIZE, SIZE, bias=False) for _ in range(LAYERS))).cuda()
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
for _ in range(5):
    loss = model(torch.randn(ROWS, SIZE, device="cuda")).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
WEIGHT = 4096 * 4096 * 4
ACTIVATION = 256 * 4096 * 4


def test_what_training_holds_is_told_with_its_line(fit: Fit) -> None:
    answer = fit(LAYERS, "--output-format", "json", "--must-fit")
    told = answer.told
    assert (answer.status, told["fits"]) == (0, "fits")
    needs, peak = told["needs"], told["peak"]
    # Parameters and two states each; at the end of the backward pass all gradients. The step's counts are small.
    assert needs["allocated"] >= 16 * WEIGHT
    assert needs["allocated"] < 16 * WEIGHT + 5 * ACTIVATION + 70 * MEBIBYTE
    assert needs["at_least"] == needs["allocated"] + BESIDE_TENSORS
    assert needs["at_least"] < needs["most_likely"] < needs["at_most"] < told["capacity"]
    assert (peak["phase"], peak["step"], peak["steps"]) == ("backward", 2, 3)
    assert [frame["location"]["row"] for frame in peak["frames"]] == [9]
    assert peak["phases"]["optimizer"]["allocated"] >= 16 * WEIGHT
    assert told["run"]["outcome"] == "succeeded"
    # Every block is written down for a snapshot alone.
    assert _blocks_written(told) == 0
    parts, lines = peak["parts"], peak["lines"]
    assert (parts["parameters"], parts["gradients"]) == (4 * WEIGHT, 4 * WEIGHT)
    # Each parameter has a count of steps, too.
    assert parts["optimizer-states"] == 8 * WEIGHT + 4 * 512
    # cuBLAS, in the main thread and in autograd's.
    assert parts["workspaces"] == 2 * 32 * MEBIBYTE
    assert sum(parts.values()) == needs["allocated"]
    told_lines = [
        (line["part"], line["size"], line["blocks"], line["frames"][-1]["location"]["row"])
        for line in lines
    ]
    assert told_lines[0] == ("optimizer-states", 8 * WEIGHT, 8, 10)
    assert set(told_lines[1:3]) == {
        ("parameters", 4 * WEIGHT, 4, 5),
        ("gradients", 4 * WEIGHT, 4, 9),
    }


@pytest.mark.long
def test_what_was_held_from_moment_to_moment_is_in_the_report(fit: Fit, tmp_path: Path) -> None:
    told = fit(LAYERS, "--output-format", "json").told
    folder = Path(told["run"]["log"]).parent
    kept = load_forecast(folder)
    assert kept is not None
    timeline = kept.timeline
    assert timeline is not None
    stacks = list(zip(*timeline.parts.values(), strict=True))
    totals = [sum(stack) for stack in stacks]
    assert max(totals) == told["needs"]["allocated"]
    at_peak = dict(zip(timeline.parts, stacks[totals.index(max(totals))], strict=True))
    assert {name: size for name, size in at_peak.items() if size} == told["peak"]["parts"]
    # Before the first step there are no states, and gradients do not outlive a step.
    assert [step for _, step in timeline.steps] == [1, 2]
    first = next(at for at, moment in enumerate(timeline.moments) if moment > timeline.steps[0][0])
    assert timeline.parts["optimizer-states"][0] == 0
    assert timeline.parts["optimizer-states"][first] == 8 * WEIGHT + 4 * 512
    assert timeline.parts["gradients"][first - 1] == 4 * WEIGHT
    assert min(timeline.parts["gradients"][first:]) == 0
    run = run_named(str(folder), tmp_path)
    page = report(run)
    assert kept.headline.en in page
    assert repeat_command(run).splitlines()[1].startswith("ranksafe fit ")
    seen = opened(page, tmp_path, "forecast")
    harmless(seen)
    assert (seen["plots"], "optimizer states" in seen["text"]) == (1, True)
    assert "优化器状态" in opened(page, tmp_path, "forecast-zh", language="zh-cn")["text"]


_OPENED = """
import pickle, sys
from torch.cuda import _memory_viz
with open(sys.argv[1], "rb") as file:
    told = pickle.load(file)
print(_memory_viz.segsum(told))
print(_memory_viz.trace(told))
print(_memory_viz.memory(told, format_flamegraph=str))
assert "Active Memory Timeline" in _memory_viz.trace_plot(told)
assert "Allocator State History" in _memory_viz.segment_plot(told)
"""


def _opened(snapshot: Path, environment: RehearsalEnvironment) -> str:
    opened = subprocess.run(
        [str(environment.interpreter), "-c", _OPENED, str(snapshot)],
        capture_output=True,
        text=True,
    )
    assert opened.returncode == 0, opened.stderr
    return opened.stdout


def _blocks_written(told: dict[str, Any]) -> int:
    """How many kinds of blocks and lines of blocks the run has told of."""
    files = Path(told["run"]["log"]).parent.glob("rehearsal-*.jsonl")
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    peaks = [line for line in lines if "blocks" in line and "places" in line]
    assert peaks
    return sum(len(peak["blocks"]) + len(peak["places"]) for peak in peaks)


@pytest.mark.long
def test_a_snapshot_of_the_peak_is_opened_by_torchs_own_tool(
    fit: Fit, tmp_path: Path, rehearsal_environment: RehearsalEnvironment
) -> None:
    snapshot = tmp_path / "peak.pickle"
    told = fit(LAYERS, "--snapshot", str(snapshot), "--output-format", "json").told
    peak = told["peak"]
    assert _blocks_written(told) > 0
    opened = _opened(snapshot, rehearsal_environment)
    flames = [line.rpartition(" ") for line in opened.splitlines() if ";" in line]
    held: dict[str, int] = {}
    for stack, _, size in flames:
        _, state, *frames = stack.split(";")
        if state == "active_allocated":
            part = frames[0].removeprefix("ranksafe:0:")
            held[part] = held.get(part, 0) + int(size)
    assert held == peak["parts"]
    assert f"ranksafe:0:gradients;train.py:9:<module> {WEIGHT}" in opened
    assert "segments: 1\n" in opened


def test_a_snapshot_that_cannot_be_written_takes_no_answer_away(fit: Fit, tmp_path: Path) -> None:
    snapshot = tmp_path / "no such folder" / "peak.pickle"
    answer = fit(LAYERS, "--snapshot", str(snapshot), "--lang", "en")
    assert answer.status == 2
    assert answer.out.startswith("fits 1 × NVIDIA H100")
    assert f"{snapshot} cannot be written: No such file or directory" in answer.error


@pytest.mark.long
def test_a_kernel_that_nothing_here_can_run_takes_what_its_fake_says(fit: Fit) -> None:
    script = """
    import torch
    @torch.library.custom_op("mine::doubled", mutates_args=())
    def doubled(x: torch.Tensor) -> torch.Tensor:
        x.untyped_storage()._share_cuda_()  # a limit
        return torch.empty(0)
    HINT
    x = torch.empty(2**28, device="cuda")
    y = torch.ops.mine.doubled(x)
    assert y.shape == (2**29,) and y.is_cuda
    """
    fake = "doubled.register_fake(lambda x: x.new_empty(2 * len(x)))"
    answer = fit(script.replace("HINT", fake), "--output-format", "json")
    assert answer.told["needs"]["allocated"] == 3 * GIBIBYTE, answer.error
    assert any("mine::doubled" in each for each in answer.told["run"]["modified"])
    assert fit(script.replace("HINT", "")).status == 3


@pytest.mark.long
def test_what_a_change_costs_is_told_with_its_line(fit: Fit, tmp_path: Path) -> None:
    before = tmp_path / "before.json"
    before.write_text(fit(LAYERS, "--output-format", "json").out, encoding="utf-8")
    changed = LAYERS.replace("import torch\n", "import torch\nheld = []\n", 1).replace(
        "    loss.backward()\n",
        "    loss.backward()\n    held.append(torch.ones(2**28, device='cuda'))\n",
    )
    answer = fit(changed, "--compare", str(before), "--lang", "en", "--steps", "3")
    lines = answer.out.splitlines()
    told = next(at for at, line in enumerate(lines) if line.startswith("compared with"))
    assert "costs 3.0 GiB more per GPU" in lines[told]
    assert lines[told].endswith("; most of it at train.py:11")
    assert any(line.startswith("  +3.0 GiB at train.py:11: ") for line in lines[told:])
    # What only moved by a line is the same.
    assert not any("train.py:9" in line or "train.py:12" in line for line in lines[told:])


def test_memory_that_runs_out_is_told_on_its_line_with_what_it_would_take(fit: Fit) -> None:
    script = LAYERS.replace("SIZE, LAYERS, ROWS = 4096, 4,", "SIZE, LAYERS, ROWS = 8192, 5,")
    answer = fit(script, "--gpu-memory", "4GiB", "--must-fit", "--output-format", "json")
    told = answer.told
    assert (answer.status, told["fits"]) == (1, "does-not-fit")
    assert told["needs"]["allocated"] > 5 * 4 * 4 * WEIGHT
    failure = told["run"]["failures"][0]
    assert "CUDA out of memory. Tried to allocate 256.00 MiB." in failure["message"]
    assert failure["location"]["row"] == 10
    assert "does not fit 1 × NVIDIA H100 80GB HBM3: needs 5." in told["summary"]


@pytest.mark.long
def test_what_is_compiled_and_called_alone_needs_less(fit: Fit) -> None:
    """Libraries decorate helpers that a program never calls."""
    helper = LAYERS.replace(
        "SIZE, LAYERS", "helper = torch.compile(lambda given: given)\nSIZE, LAYERS"
    )
    summary = fit(helper, "--output-format", "json", "--gpu-memory", "512MiB").told["summary"]
    assert summary.startswith("does not fit")
    called = LAYERS.replace("optimizer =", "model = torch.compile(model)\noptimizer =")
    summary = fit(called, "--output-format", "json", "--gpu-memory", "512MiB").told["summary"]
    assert summary.startswith("tight")


def test_a_process_that_leaves_at_once_is_forecast_all_the_same(fit: Fit) -> None:
    script = """
    import os, torch
    held = torch.empty(2**28, device="cuda")
    torch.compile(torch.nn.Conv2d(3, 3, 3).cuda())(torch.ones(1, 3, 8, 8, device="cuda"))
    os._exit(0)
    """
    told = fit(script, "--output-format", "json").told
    assert told["needs"]["allocated"] // 2**30 == 1
    assert sum("counts as eager" in note or "margin is 20 %" in note for note in told["notes"]) == 2
    peak = told["peak"]
    assert (peak["phase"], peak["steps"]) == ("forward", 0)
    assert peak["frames"][0]["location"]["row"] in (3, 4)


def test_what_is_no_forecast_is_told_as_in_a_rehearsal(fit: Fit) -> None:
    start = "import torch\ntorch.ones(2, device='cuda')\n"
    limit = fit(start + "torch._C._cuda_customAllocator(0, 0)", "--must-fit")
    assert (limit.status, limit.out) == (3, "")
    assert "simulation limit" in limit.error
    failed = fit(start + "raise ValueError('of its own')", "--output-format", "json")
    assert (failed.status, failed.told["fits"], failed.told["needs"]) == (1, None, None)
    assert failed.told["run"]["failures"][0]["message"] == "ValueError: of its own"


@pytest.mark.long
def test_what_fsdp_gathers_and_ddp_keeps_is_told_apart(fit: Fit) -> None:
    script = """
    import torch, torch.distributed as dist
    from torch import nn
    from torch.distributed.fsdp import fully_shard
    from torch.nn.parallel import DistributedDataParallel
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    size = 4096
    layers = [nn.Linear(size, size, bias=False, device="cuda") for _ in range(4)]
    model = nn.Sequential(*(fully_shard(layer) for layer in layers))
    wrapped = DistributedDataParallel(nn.Linear(size, size, bias=False, device="cuda"))
    groups = [{"params": list(each.parameters())} for each in (model, wrapped)]
    optimizer = torch.optim.AdamW(groups, fused=True)
    for _ in range(3):
        wrapped(model(torch.randn(16, size, device="cuda"))).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    """
    told = fit(script, "--launcher", "torchrun", "--output-format", "json", gpus=2).told
    peak = told["peak"]
    assert peak["parts"]["parameters"] == 4 * WEIGHT // 2 + WEIGHT
    assert peak["parts"]["optimizer-states"] == 2 * (4 * WEIGHT // 2 + WEIGHT) + 5 * 512
    assert peak["parts"]["buckets"] == WEIGHT
    assert peak["parts"]["gathered"] >= WEIGHT
    assert peak["parts"]["reduced"] >= WEIGHT


@pytest.mark.long
def test_gpus_that_differ_are_told_apart(
    fit: Fit, tmp_path: Path, rehearsal_environment: RehearsalEnvironment
) -> None:
    script = """
    import torch, torch.distributed as dist
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    torch.cuda.set_device(rank)
    held = torch.empty(2**28 * (1 + rank), device="cuda")
    dist.all_reduce(torch.ones(4, device="cuda"))
    """
    snapshot = tmp_path / "peak.pickle"
    words = ["--launcher", "torchrun", "--snapshot", str(snapshot), "--output-format", "json"]
    told = fit(script, *words, gpus=2).told
    assert [each["needs"]["allocated"] // 2**30 for each in told["devices"]] == [1, 2]
    assert [each["gpu"] for each in told["devices"]] == [0, 1]
    assert told["needs"]["nccl"] == 558 * MEBIBYTE
    assert any("GPUs differ: most likely 2.3 GiB on GPU 0" in note for note in told["notes"])
    opened = _opened(snapshot, rehearsal_environment)
    assert "segments: 2\n" in opened
    assert f"ranksafe:0:activations;train.py:6:<module> {2 * GIBIBYTE}" in opened


CONFIGURED = """
    import json, os
    os.makedirs("model", exist_ok=True)
    with open("model/config.json", "w") as file:
        json.dump({
            "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 2048,
            "intermediate_size": 4096, "num_hidden_layers": 2, "num_attention_heads": 16, "vocab_size": 32000,
            "torch_dtype": "bfloat16", "tie_word_embeddings": False,
        }, file)
"""
"""A model of two layers, without weights."""


@pytest.mark.long
def test_a_model_without_weights_is_built_from_its_configuration(fit: Fit) -> None:
    script = """
    from transformers import AutoModelForCausalLM
    model = AutoModelForCausalLM.from_pretrained("model", device_map={"": 0})
    assert model.config.name_or_path == model.name_or_path == "model"
    import torch
    model(torch.ones(1, 8, dtype=torch.long, device="cuda"))
    """
    told = fit(CONFIGURED + script, "--output-format", "json").told
    layer = 4 * 2048 * 2048 + 3 * 2048 * 4096 + 2 * 2048
    count = 2 * 32000 * 2048 + 2 * layer + 2048
    assert told["run"]["outcome"] == "succeeded", told["run"]
    assert told["peak"]["parts"]["parameters"] == 2 * count
    assert any("built from its configuration" in each for each in told["run"]["modified"])


@pytest.mark.long
def test_a_model_of_the_hub_without_weights_is_built_by_an_older_transformers(fit: Fit) -> None:
    script = """
    import json, os
    os.environ["HF_HOME"] = os.path.abspath("home")
    top, revision = "home/hub/models--some--model", "0" * 40
    os.makedirs(f"{top}/refs")
    os.makedirs(f"{top}/snapshots/{revision}")
    with open(f"{top}/refs/main", "w") as file:
        file.write(revision)
    with open(f"{top}/snapshots/{revision}/config.json", "w") as file:
        json.dump({
            "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 256,
            "intermediate_size": 512, "num_hidden_layers": 1, "num_attention_heads": 4, "vocab_size": 8000,
        }, file)
    from transformers import AutoModelForCausalLM
    AutoModelForCausalLM.from_pretrained("some/model").cuda()
    """
    told = fit(script, "--output-format", "json", packages=["transformers==4.57.6"]).told
    assert told["run"]["outcome"] == "succeeded", told["run"]


@pytest.mark.long
def test_weights_that_are_not_there_are_quantized_as_those_of_a_checkpoint(fit: Fit) -> None:
    script = """
    import torch
    from transformers import AutoModelForCausalLM, BitsAndBytesConfig
    four = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_compute_dtype=torch.bfloat16)
    model = AutoModelForCausalLM.from_pretrained("model", quantization_config=four)
    weights = 2 * (4 * 2048 * 2048 + 3 * 2048 * 4096)
    whole = 2 * (2 * 32000 * 2048 + 5 * 2048)
    held = torch.cuda.memory_allocated() - whole - weights // 2 - 4 * (weights // 64)
    assert 0 <= held < 2**20, held
    """
    told = fit(
        CONFIGURED + script, "--output-format", "json", packages=["bitsandbytes==0.50.2"]
    ).told
    assert told["run"]["outcome"] == "succeeded", told["run"]


@pytest.mark.long
def test_every_rank_of_fsdp_holds_the_weights_that_are_not_there(fit: Fit) -> None:
    """What is read from disk is on the host of every rank; what is missing stays on the meta device of the second, and
    accelerate would put it on the GPU of the first."""
    script = """
    import json, os, torch
    from accelerate import Accelerator, FullyShardedDataParallelPlugin
    from transformers import AutoModelForCausalLM
    Sharded = FullyShardedDataParallelPlugin
    accelerator = Accelerator(fsdp_plugin=Sharded(cpu_ram_efficient_loading=True, sync_module_states=True))
    folder = f"model-{accelerator.process_index}"
    os.makedirs(folder)
    with open(f"{folder}/config.json", "w") as file:
        json.dump({
            "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 2048,
            "intermediate_size": 4096, "num_hidden_layers": 2, "num_attention_heads": 16, "vocab_size": 32000,
            "tie_word_embeddings": False,
        }, file)
    model = AutoModelForCausalLM.from_pretrained(folder)
    assert {each.device.type for each in model.parameters()} == {"cpu"}
    model = accelerator.prepare(model)
    model(torch.ones(1, 8, dtype=torch.long, device=accelerator.device))
    """
    told = fit(script, "--launcher", "torchrun", "--output-format", "json", gpus=2).told
    assert told["run"]["outcome"] == "succeeded", told["run"]
    layer = 4 * 2048 * 2048 + 3 * 2048 * 4096 + 2 * 2048
    held = 4 * (2 * 32000 * 2048 + 2 * layer + 2048) // 2
    assert [each["needs"]["allocated"] >= held for each in told["devices"]] == [True, True]


@pytest.mark.long
def test_a_metric_that_is_not_there_takes_no_answer_away(fit: Fit) -> None:
    script = """
    import evaluate, torch
    metric = evaluate.load("glue", "mrpc")
    held = torch.ones(2**24, device="cuda")
    metric.add_batch(predictions=torch.ones(2), references=torch.ones(2))
    print(metric.compute()["f1"])
    """
    told = fit(script, "--output-format", "json", packages=["evaluate==0.4.6"]).told
    assert told["run"]["outcome"] == "succeeded", told["run"]
    assert any("metric glue" in each for each in told["run"]["modified"])


@pytest.mark.long
def test_a_model_of_diffusers_without_weights_is_built_from_its_configuration(fit: Fit) -> None:
    script = """
    import json, os, torch
    from diffusers import AutoencoderKL
    os.makedirs("whole/part", exist_ok=True)
    with open("whole/part/config.json", "w") as file:
        json.dump({
            "_class_name": "AutoencoderKL", "block_out_channels": [128, 256, 512, 512], "layers_per_block": 2,
            "down_block_types": ["DownEncoderBlock2D"] * 4, "up_block_types": ["UpDecoderBlock2D"] * 4,
        }, file)
    model = AutoencoderKL.from_pretrained("whole", subfolder="part", torch_dtype=torch.float16)
    assert not model.training
    assert sum(each.numel() for each in model.parameters()) > 2**24
    model.cuda()
    held = torch.cuda.memory_allocated()
    assert held >= 2 * sum(each.numel() for each in model.parameters())
    assert all(each.dtype is torch.float16 for each in model.parameters())
    """
    told = fit(script, "--output-format", "json", packages=["diffusers==0.42.1"]).told
    assert told["run"]["outcome"] == "succeeded", told["run"]
    assert any("whole/part: built from its" in each for each in told["run"]["modified"])


EXPOSED = """
import argparse, torch
from torch import nn
parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=4)
parser.add_argument("--gradient_accumulation_steps", type=int, default=1)
parser.add_argument("--seq-len", type=int, default=512)
parser.add_argument("--bf16", action="store_true")
options = parser.parse_args()
size = 4096
layers = [nn.Sequential(nn.Linear(size, size), nn.Tanh()) for _ in range(4)]
model = nn.Sequential(*layers).cuda()
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
for step in range(5):
    for _ in range(options.gradient_accumulation_steps):
        rows = options.batch_size * options.seq_len
        with torch.autocast("cuda", torch.bfloat16, enabled=options.bf16):
            loss = model(torch.randn(rows, size, device="cuda")).sum()
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.mark.long
def test_what_would_make_it_fit_is_found_by_running_it(fit: Fit) -> None:
    words = ["--gpu-memory", "4GiB", "--output-format", "json"]
    script = ["--", "--batch-size=64"]
    told = fit(EXPOSED, *words, "--search", "--max-runs", "3", *script).told
    assert told["fits"] == "does-not-fit"
    found = told["search"]
    smaller, half, shorter = found["trials"]
    assert smaller["change"] == ["--batch-size 64 → 32", "--gradient_accumulation_steps 1 → 2"]
    assert (half["change"], shorter["change"]) == (["--bf16"], ["--seq-len 512 → 256"])
    assert (smaller["fits"], shorter["fits"], found["recommended"]) == ("fits", "fits", 0)
    # Half the rows: of 32 × 512 rows each layer keeps two tensors less.
    rows = 32 * 512 * 4096 * 4
    assert smaller["needs"]["allocated"] < told["needs"]["allocated"] - 4 * rows
    assert half["fits"] != "fits"
    typed = smaller["command"]
    assert typed[:3] == ["ranksafe", "fit", "train.py"]
    assert typed[-4:] == ["--", "--batch-size=32", "--gradient_accumulation_steps", "2"]
    assert "--search" not in typed
    again = fit(EXPOSED, *words, "--", *smaller["arguments"]).told
    assert again["needs"] == smaller["needs"]


@pytest.mark.long
def test_what_stands_in_the_script_alone_is_tried_with_another_text(
    fit: Fit, tmp_path: Path
) -> None:
    """In isolation, where nothing that is written is kept."""
    script = LAYERS.replace(
        "for _ in range(5):\n",
        "from torch.utils.data import DataLoader\nfor rows in DataLoader(range(999), batch_size=8):\n",
    ).replace("torch.randn(ROWS,", "torch.randn(len(rows) * 4096,")
    answer = fit(script, "--gpu-memory", "4GiB", "--search", "--output-format", "json")
    told = answer.told
    assert told["fits"] != "fits"
    best = told["search"]["trials"][told["search"]["recommended"]]
    (edit,) = best["edits"]
    size = int(edit["content"])
    assert best["change"] == [f"train.py:8 batch_size=8 → {size}"]
    assert 1 <= size < 8
    assert best["command"][-2:] == ["--gpus", "1"]
    assert "    after that edit: ranksafe fit train.py" in "\n".join(told["search"]["summary"])
    path = Path(edit["filename"])
    lines = path.read_text(encoding="utf-8").splitlines()
    row, first, last = 8, edit["location"]["column"] - 1, edit["end_location"]["column"] - 1
    assert lines[row - 1][first:last] == "8"
    assert path == tmp_path / "project" / "train.py"
    # And it is true of the script that says so.
    again = fit(script.replace("batch_size=8", f"batch_size={size}"), "--gpu-memory", "4GiB")
    assert again.out.startswith("fits 1 ×"), again.out


@pytest.mark.long
def test_a_search_that_is_stopped_keeps_what_is_known(fit: Fit) -> None:
    words = ["--gpu-memory", "4GiB", "--search", "--lang", "en", "--", "--batch-size", "64"]
    answer = fit(EXPOSED, *words, stop_at=f"run 2 of at most {MOST_RUNS}: --bf16")
    assert answer.status == 130
    lines = answer.out.splitlines()
    assert lines[0].startswith("does not fit 1 × NVIDIA H100")
    known = lines.index("what would make it fit (1 more runs):")
    assert "--batch-size 64 → 32, --gradient_accumulation_steps 1 → 2: needs 3." in lines[known + 1]
    assert lines[known + 3] == "the search was stopped; this is what is known"


SHARDED = """
import os
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
assert dist.get_world_size() == HOW_MANY and dist.get_rank() < HOW_MANY
assert (os.environ["WORLD_SIZE"], os.environ["LOCAL_WORLD_SIZE"]) == ("HOW_MANY", str(min(HOW_MANY, 8)))
model = nn.Sequential(*(nn.Linear(4096, 4096, bias=False) for _ in range(4))).cuda()
for layer in model:
    fully_shard(layer)
fully_shard(model)
replicated = nn.parallel.DistributedDataParallel(nn.Linear(8, 8, bias=False).cuda())
optimizer = torch.optim.AdamW(model.parameters())
some = dist.new_group(range(2), backend="nccl")
for _ in range(5):
    loss = model(torch.randn(256, 4096, device="cuda")).sum()
    loss.backward()
    replicated(torch.randn(2, 8, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    reduced = dist.all_reduce(loss.detach(), async_op=True).get_future().wait()
    assert [each.shape for each in reduced] == [loss.shape]
"""


@pytest.mark.long
def test_one_rank_holds_what_each_of_two_does(fit: Fit) -> None:
    script = SHARDED.replace("HOW_MANY", "2")
    all_of_them = fit(script, "--ranks", "all", "--output-format", "json", gpus=2).told
    one = fit(script, "--ranks", "one", "--output-format", "json", gpus=2).told
    assert (all_of_them["stands_for"], one["stands_for"]) == (1, 2)
    assert len(all_of_them["devices"]) == 2
    assert len(one["devices"]) == 1
    assert one["needs"] == all_of_them["devices"][0]["needs"]
    assert one["peak"]["parts"] == all_of_them["devices"][0]["peak"]["parts"]


def test_many_ranks_are_one_that_holds_its_share(fit: Fit) -> None:
    # A mesh makes the first group itself, under the name that it has imported.
    mesh = 'dist.device_mesh.init_device_mesh("cuda", (64,))'
    script = SHARDED.replace('dist.init_process_group("nccl")', mesh).replace("HOW_MANY", "64")
    # Checked for being whole: what the others would write is this rank's own.
    saving = 'import torch.distributed.checkpoint as saved; saved.save(model.state_dict(), checkpoint_id="saved")'
    script = script.replace("some =", f"{saving}\nsome =")
    answer = fit(script, "--nodes", "8", "--output-format", "json", gpus=8)
    told = answer.told
    assert (answer.status, told["fits"], told["gpus"]) == (0, "fits", 64)
    parts = told["peak"]["parts"]
    assert parts["parameters"] == 4 * WEIGHT // 64 + 512
    assert parts["optimizer-states"] == 8 * WEIGHT // 64
    assert any("one rank stood for all 64" in note for note in told["notes"])


def test_ranks_that_the_script_starts_itself_are_not_stood_for(fit: Fit) -> None:
    script = """
    import torch.multiprocessing as mp
    if __name__ == "__main__":
        mp.spawn(print, nprocs=16)
    """
    answer = fit(script, gpus=16)
    assert answer.status == 2
    assert "--ranks all" in answer.error
