"""Two ranks load a model that device_map="auto" spreads over two devices; accelerate refuses to prepare it.

The limit on CPU memory makes the map put the layers on the CPU and on disk, as it puts them on two GPUs where there
are some.

runs-on: cpu-ranks
ranks: 2
expect: exception ValueError: You can't train a model that has been loaded with `device_map='auto'` in any
    distributed mode.
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
        model = LlamaForCausalLM.from_pretrained(
            directory,
            device_map="auto",
            max_memory={"cpu": "24KB"},
            offload_folder=f"{directory}/offload",
        )
        model = accelerator.prepare(model)
        print("prepared:", type(model).__name__)


if __name__ == "__main__":
    main()
