"""Without device_map the parameters stay plain tensors, and DDP takes the model.

runs-on: cpu-ranks
ranks: 2
requires: transformers==4.51.3 accelerate==1.8.1
expect: output prepared: DistributedDataParallel
"""

import tempfile

from accelerate import Accelerator
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
        accelerator = Accelerator()
        model = LlamaForCausalLM.from_pretrained(directory)
        model = accelerator.prepare(model)
        print("prepared:", type(model).__name__)


if __name__ == "__main__":
    main()
