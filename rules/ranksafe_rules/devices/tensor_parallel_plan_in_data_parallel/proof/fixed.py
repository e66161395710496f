"""Without the plan every rank holds the whole model, which is what DistributedDataParallel expects.

runs-on: cpu-ranks
ranks: 2
expect: output wrapped: DistributedDataParallel
"""

import tempfile

import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from transformers import LlamaConfig, LlamaForCausalLM

TINY = LlamaConfig(
    vocab_size=64,
    hidden_size=16,
    intermediate_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
)


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        LlamaForCausalLM(TINY).save_pretrained(directory)
        dist.init_process_group("gloo")
        model = LlamaForCausalLM.from_pretrained(directory)
        replica = DistributedDataParallel(model)
        print("wrapped:", type(replica).__name__)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
