"""Without device_map each rank loads the whole model and accelerate places it on the rank's own device.

runs-on: cpu-ranks
ranks: 2
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
        model = LlamaForCausalLM.from_pretrained(
            directory,
            max_memory={"cpu": "24KB"},
            offload_folder=f"{directory}/offload",
        )
        model = accelerator.prepare(model)
        print("prepared:", type(model).__name__)


if __name__ == "__main__":
    main()
