"""Every rank loads its 4-bit model with device_map="auto"; accelerate refuses it on several GPUs.

runs-on: cuda
ranks: 2
launch: accelerate
expect: exception ValueError: You can't train a model that has been loaded
frame: model = accelerator.prepare(model)
"""

import tempfile

import torch
from accelerate import Accelerator
from transformers import BitsAndBytesConfig, LlamaConfig, LlamaForCausalLM

SMALL = LlamaConfig(
    vocab_size=128,
    hidden_size=256,
    intermediate_size=512,
    num_hidden_layers=4,
    num_attention_heads=4,
)


def main() -> None:
    four_bit = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_compute_dtype=torch.bfloat16)
    with tempfile.TemporaryDirectory() as directory:
        LlamaForCausalLM(SMALL).save_pretrained(directory)
        accelerator = Accelerator()
        model = LlamaForCausalLM.from_pretrained(
            directory, quantization_config=four_bit, device_map="auto"
        )
    model = accelerator.prepare(model)
    print("prepared on:", next(model.parameters()).device)


if __name__ == "__main__":
    main()
