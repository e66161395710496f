"""The same script with the guard, started by `accelerate launch`: one process and one replica per rank.

runs-on: cpu-ranks
ranks: 2
requires: transformers==4.51.3 trl==0.17.0
expect: success
"""

import os

import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer

WORDS = ["<unk>", "<eos>", "the", "cat", "sat", "on", "mat"]


def make_tokenizer():
    vocabulary = {word: index for index, word in enumerate(WORDS)}
    core = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=core, unk_token="<unk>", eos_token="<eos>", pad_token="<eos>"
    )


def main():
    if torch.cuda.device_count() > 1 and "LOCAL_RANK" not in os.environ:
        raise SystemExit(
            "several GPUs visible: start with `accelerate launch` or set CUDA_VISIBLE_DEVICES"
        )
    config = LlamaConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
    )
    arguments = SFTConfig(
        output_dir="out",
        per_device_train_batch_size=2,
        max_steps=1,
        save_strategy="no",
        report_to=[],
    )
    trainer = SFTTrainer(
        model=LlamaForCausalLM(config),
        args=arguments,
        train_dataset=Dataset.from_dict({"text": ["the cat sat on the mat"] * 16}),
        processing_class=make_tokenizer(),
    )
    trainer.train()


if __name__ == "__main__":
    main()
