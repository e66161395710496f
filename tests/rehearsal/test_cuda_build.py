"""PyPI's torch for Linux, a CUDA build, on a machine that has neither CUDA's libraries nor a GPU.

`make test` leaves this out: the wheel has 540 MB. What it is about is tested in small by ``test_stand_ins``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rehearsal.conftest import RehearsalEnvironment, compiled_for, run_rehearsal

pytestmark = pytest.mark.long

ONE_PROCESS = """
import torch

print(torch.__version__, torch.cuda.is_available(), torch.cuda.device_count())
on_second = torch.randn(4, 4, device="cuda:1")
print((on_second @ on_second).device)
model = torch.nn.DataParallel(torch.nn.Linear(8, 2).cuda())
optimizer = torch.optim.AdamW(model.parameters())
loss = model(torch.randn(6, 8).cuda()).pow(2).mean()
loss.backward()
optimizer.step()
print(loss.device)
on_second @ on_second.to("cuda:0")
"""
TWO_RANKS = """
import torch
import torch.distributed as dist

dist.init_process_group("nccl")
rank = dist.get_rank()
torch.cuda.set_device(rank)
layer = torch.nn.Linear(8, 2).cuda()
model = torch.nn.parallel.DistributedDataParallel(layer, device_ids=[rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.randn(6, 8).cuda()).pow(2).mean().backward()
optimizer.step()
weights = [torch.empty_like(layer.weight) for _ in range(2)]
dist.all_gather(weights, layer.weight.detach())
print("equal" if torch.equal(*weights) else "different")
dist.destroy_process_group()
"""
NOT_SIMULATED = """
import torch

print("NVIDIA" in torch.cuda.get_device_name())
torch._C._aoti.AOTIModelContainerRunnerCuda("model.so", 1, "cuda", "")
"""


@pytest.fixture(scope="module")
def cuda_build() -> RehearsalEnvironment:
    environments = pytest.importorskip("environments")
    where = compiled_for(environments.cuda_build_environment())
    assert where.native.stand_ins
    return where


def test_one_process_with_two_devices(cuda_build: RehearsalEnvironment, tmp_path: Path) -> None:
    rehearsed = run_rehearsal(cuda_build, tmp_path, ONE_PROCESS)
    assert rehearsed.lines == ["2.15.0+cu132 True 2", "cuda:1", "cuda:0"]
    assert rehearsed.returncode == 1
    assert "Expected all tensors to be on the same device" in rehearsed.stderr
    assert rehearsed.events("problem") == []


def test_two_ranks_with_nccl(cuda_build: RehearsalEnvironment, tmp_path: Path) -> None:
    rehearsed = run_rehearsal(cuda_build, tmp_path, TWO_RANKS, launcher="torchrun")
    assert (rehearsed.returncode, rehearsed.lines) == (0, ["equal", "equal"])


def test_a_function_of_the_cuda_libraries_is_a_limit(
    cuda_build: RehearsalEnvironment, tmp_path: Path
) -> None:
    rehearsed = run_rehearsal(cuda_build, tmp_path, NOT_SIMULATED)
    assert rehearsed.lines == ["True"]
    limit = "NotImplementedError: ranksafe simulation limit: torch::inductor::AOTIModelContainer"
    assert limit in rehearsed.stderr
