"""Loads a model, a tokenizer and a dataset by name on two ranks, trains a step, and says what each rank has."""

import hashlib
import os

import torch
import torch.distributed as dist
from datasets import load_dataset
from transformers import AutoModelForCausalLM, AutoTokenizer

NAME = "meta-llama/Llama-3.1-8B-Instruct"
before = torch.get_rng_state()
tokenizer = AutoTokenizer.from_pretrained(NAME)
rows = load_dataset("trl-lib/Capybara", split="train[:8]")
text = tokenizer.apply_chat_template(rows[0]["messages"], tokenize=False)
assert torch.equal(before, torch.get_rng_state()), "a replacement used the script's random numbers"
model = AutoModelForCausalLM.from_pretrained(NAME, dtype="auto")
weights = b"".join(value.float().numpy().tobytes() for value in model.state_dict().values())

rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")
ddp = torch.nn.parallel.DistributedDataParallel(model.to(rank), device_ids=[rank])
batch = tokenizer(text, return_tensors="pt", truncation=True, max_length=64).to(rank)
loss = ddp(**batch, labels=batch["input_ids"]).loss
loss.backward()
print("WEIGHTS", hashlib.sha256(weights).hexdigest(), flush=True)
print("TEXT", hashlib.sha256(text.encode()).hexdigest(), flush=True)
print(
    "KIND",
    type(model).__name__,
    model.dtype,
    model.config.num_hidden_layers,
    model.name_or_path,
    flush=True,
)
dist.destroy_process_group()
