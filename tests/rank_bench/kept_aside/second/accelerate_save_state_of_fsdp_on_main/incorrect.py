"""All processes wait for each other, then the main process alone asks for the state of a sharded model.

source: https://github.com/huggingface/accelerate/issues/2000
bug: RS402
ranks: 2
expect: RS402
line: model_state, optimizer_state = get_state_dict(model, optimizer, options=options)
decidable: yes
shows: error Received data size doesn't match expected size
"""

import os
import tempfile
from datetime import timedelta

import torch
from accelerate import Accelerator, InitProcessGroupKwargs
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader, TensorDataset

config = {"SAVE_STATE": True, "EPOCHS": 2, "LR": 1e-3}


def build_model(world_size):
    mesh = init_device_mesh("cpu", (world_size,))
    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def main():
    limit = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    accelerator = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=limit)])
    torch.manual_seed(0)
    model = build_model(accelerator.num_processes)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config["LR"])
    loader = accelerator.prepare(DataLoader(TensorDataset(torch.randn(32, 16)), batch_size=4))
    save_state_dir = os.path.join(tempfile.gettempdir(), f"state-{os.environ['MASTER_PORT']}")
    options = StateDictOptions(full_state_dict=True, cpu_offload=True)

    for epoch in range(config["EPOCHS"]):
        for (batch,) in loader:
            loss = (model(batch) - batch).pow(2).mean()
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        accelerator.wait_for_everyone()
        if accelerator.is_main_process:
            if config["SAVE_STATE"]:
                model_state, optimizer_state = get_state_dict(model, optimizer, options=options)
                os.makedirs(save_state_dir, exist_ok=True)
                torch.save(model_state, os.path.join(save_state_dir, "pytorch_model.bin"))
                torch.save(optimizer_state, os.path.join(save_state_dir, "optimizer.bin"))
        accelerator.print(f"epoch {epoch} done")
    accelerator.end_training()


if __name__ == "__main__":
    main()
