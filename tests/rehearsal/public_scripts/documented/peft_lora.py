"""LoRA over a language model with the Trainer, after peft's quick tour."""

from datasets import load_dataset
from peft import LoraConfig, TaskType, get_peft_model
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    DataCollatorForLanguageModeling,
    Trainer,
    TrainingArguments,
)

model_id = "Qwen/Qwen2.5-3B-Instruct"
peft_config = LoraConfig(r=16, lora_alpha=32, task_type=TaskType.CAUSAL_LM)
model = AutoModelForCausalLM.from_pretrained(model_id)
model = get_peft_model(model, peft_config)
model.print_trainable_parameters()
tokenizer = AutoTokenizer.from_pretrained(model_id)
quotes = load_dataset("Abirate/english_quotes", split="train")
quotes = quotes.map(
    lambda rows: tokenizer(rows["quote"], truncation=True, max_length=64),
    batched=True,
    remove_columns=quotes.column_names,
)
trainer = Trainer(
    model=model,
    args=TrainingArguments(
        output_dir="lora", per_device_train_batch_size=4, max_steps=4, report_to="none"
    ),
    train_dataset=quotes,
    data_collator=DataCollatorForLanguageModeling(tokenizer, mlm=False),
)
trainer.train()
model.save_pretrained("lora/adapter")
