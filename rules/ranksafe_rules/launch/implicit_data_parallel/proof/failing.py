"""A TRL script is started with plain python on several GPUs: nn.DataParallel runs one replica, TRL compares.

runs-on: emulated-dp
ranks: 2
requires: transformers==4.51.3 trl==0.17.0
expect: exception RuntimeError: The size of tensor a (2) must match the size of tensor b (4) at non-singleton dimension 0
frame: trainer.train()
"""

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
