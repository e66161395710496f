"""From transformers 4.50.0 to 4.53.3 a launcher turns device_map="auto" into tensor parallelism, and DDP fails.

runs-on: cpu-ranks
ranks: 2
requires: transformers==4.51.3 accelerate==1.8.1
expect: exception RuntimeError: got mixed torch.Tensor and DTensor
frame: model = accelerator.prepare(model)
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
        model = LlamaForCausalLM.from_pretrained(directory, device_map="auto")
        model = accelerator.prepare(model)
        print("prepared:", type(model).__name__)


if __name__ == "__main__":
    main()
