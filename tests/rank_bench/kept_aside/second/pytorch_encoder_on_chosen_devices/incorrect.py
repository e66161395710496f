"""Runs a DDP encoder on one device and not on the other, to see which processes come through.

source: https://github.com/pytorch/pytorch/issues/89716
bug: RS403
ranks: 2
expect: RS403
line: output = encoder(source_ids, attention_mask=source_mask)
decidable: yes
shows: hang
"""

import argparse
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from transformers import RobertaConfig, RobertaModel


def build_encoder():
    config = RobertaConfig(
        vocab_size=50,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=40,
    )
    return RobertaModel(config, add_pooling_layer=False)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--local_rank", type=int, default=int(os.environ.get("LOCAL_RANK", -1)), help="local_rank"
    )
    args = parser.parse_args()
    limit = float(os.environ.get("RANK_BENCH_TIMEOUT", "5"))
    dist.init_process_group(backend="gloo", timeout=timedelta(seconds=limit))

    encoder = build_encoder()
    encoder = DDP(encoder, find_unused_parameters=False)

    source_ids = torch.zeros([8, 32]).long()
    source_mask = torch.ones([8, 32]).long()

    devices = [-1, 1]
    print(f"{args.local_rank} started", flush=True)
    if args.local_rank in devices:
        output = encoder(source_ids, attention_mask=source_mask)
        print(f"{args.local_rank} done {tuple(output.last_hidden_state.shape)}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
