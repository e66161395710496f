"""trl's SFTTrainer on a tiny model of random weights and a tokenizer made on the spot."""

import sys

from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer

words = ["<pad>", "<unk>", "<eos>", *(f"w{index}" for index in range(60))]
plain = Tokenizer(
    models.WordLevel({word: index for index, word in enumerate(words)}, unk_token="<unk>")
)
plain.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=plain, pad_token="<pad>", unk_token="<unk>", eos_token="<eos>"
)
model = LlamaForCausalLM(
    LlamaConfig(
        vocab_size=len(words),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
    )
)
texts = [
    " ".join(f"w{(index * 7 + place * place) % 60}" for place in range(6)) for index in range(32)
]
trainer = SFTTrainer(
    model=model,
    args=SFTConfig(
        output_dir=sys.argv[1],
        per_device_train_batch_size=2,
        max_steps=3,
        logging_steps=1,
        report_to="none",
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
    ),
    train_dataset=Dataset.from_dict({"text": texts}),
    processing_class=tokenizer,
)
trainer.train()
