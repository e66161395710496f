"""Loads and saves a sharded Llama; because of rank0_only the full state dict is asked for by rank 0 alone.

source: https://github.com/pytorch/pytorch/issues/122903
bug: RS402
ranks: 2
expect: RS402
line: state_dict = fsdp_model.state_dict()
decidable: yes
shows: hang
"""

from datetime import timedelta
from functools import partial
from os import environ, path
from tempfile import mkdtemp

import torch
from torch import save
from torch.distributed import barrier, destroy_process_group, get_rank, init_process_group
from torch.distributed.fsdp import (
    FullStateDictConfig,
    StateDictType,
)
from torch.distributed.fsdp import (
    FullyShardedDataParallel as FSDP,
)
from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.models.llama.modeling_llama import LlamaDecoderLayer

file_name = "sharded.pt"


def tiny_llama():
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=64,
            hidden_size=16,
            intermediate_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=2,
        )
    )


def load_and_save(rank, output_dir):
    torch.manual_seed(29)
    auto_wrap_policy = partial(
        transformer_auto_wrap_policy, transformer_layer_cls={LlamaDecoderLayer}
    )
    fsdp_model = FSDP(
        tiny_llama(), auto_wrap_policy=auto_wrap_policy, device_id=torch.device("cpu")
    )
    config = FullStateDictConfig(rank0_only=True)
    if rank == 0:
        with FSDP.state_dict_type(fsdp_model, StateDictType.FULL_STATE_DICT, config):
            state_dict = fsdp_model.state_dict()
        print(f"saving {len(state_dict)} tensors")
        save(state_dict, path.join(output_dir, file_name))
    barrier()


if __name__ == "__main__":
    seconds = float(environ.get("RANK_BENCH_TIMEOUT", "5"))
    init_process_group("gloo", timeout=timedelta(seconds=seconds))
    load_and_save(get_rank(), mkdtemp() if get_rank() == 0 else "")
    destroy_process_group()
