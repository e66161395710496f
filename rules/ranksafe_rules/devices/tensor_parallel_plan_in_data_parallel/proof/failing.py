"""A model loaded with tp_plan="auto" has DTensor parameters; DistributedDataParallel cannot synchronise them.

runs-on: cpu-ranks
ranks: 2
expect: exception RuntimeError: got mixed torch.Tensor and DTensor
frame: replica = DistributedDataParallel(model)
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
        model = LlamaForCausalLM.from_pretrained(directory, tp_plan="auto")
        replica = DistributedDataParallel(model)
        print("wrapped:", type(replica).__name__)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
