"""Every way to a replacement that needs no second rank; prints one line for each."""

import json
import os
import struct
import sys
import tempfile

import torch
from datasets import load_dataset
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    LlamaConfig,
    LlamaForCausalLM,
)


def caught(action):
    try:
        action()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


folder = tempfile.mkdtemp()

tiny = LlamaForCausalLM(
    LlamaConfig(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=3,
        num_attention_heads=4,
    )
)
tiny.save_pretrained(f"{folder}/tiny")
again = AutoModelForCausalLM.from_pretrained(f"{folder}/tiny")
same = torch.equal(again.model.embed_tokens.weight, tiny.model.embed_tokens.weight)
print("SMALL", same, again.config.num_hidden_layers)

os.mkdir(f"{folder}/large")
LlamaConfig(num_hidden_layers=40, num_key_value_heads=8, rope_theta=1234.0).save_pretrained(
    f"{folder}/large"
)
header = json.dumps(
    {
        "model.embed_tokens.weight": {
            "dtype": "F32",
            "shape": [150_000, 1000],
            "data_offsets": [0, 600_000_000],
        }
    }
).encode()
with open(f"{folder}/large/model.safetensors", "wb") as file:
    file.write(struct.pack("<Q", len(header)) + header)
    file.truncate(file.tell() + 600_000_000)
large = AutoModelForCausalLM.from_pretrained(f"{folder}/large", device_map="auto")
print(
    "LARGE",
    large.config.num_hidden_layers,
    large.config.num_key_value_heads,
    large.config.rope_parameters["rope_theta"],
    sorted({str(place) for place in large.hf_device_map.values()}),
)

os.mkdir(f"{folder}/remote")
with open(f"{folder}/remote/config.json", "w") as file:
    json.dump(
        {
            "model_type": "mine",
            "auto_map": {"AutoConfig": "mine.Config", "AutoModel": "mine.Model"},
        },
        file,
    )
with open(f"{folder}/remote/mine.py", "w") as file:
    file.write(f"open({folder + '/executed'!r}, 'w')\n")
print(
    "REMOTE", caught(lambda: AutoModel.from_pretrained(f"{folder}/remote", trust_remote_code=True))
)
print("EXECUTED", os.path.exists(f"{folder}/executed"))

name = "distilbert/distilbert-base-uncased"
tokenizer = AutoTokenizer.from_pretrained(name)
model = AutoModelForSequenceClassification.from_pretrained(name, num_labels=3)
batch = tokenizer(["one", "two words"], ["pair", "of them"], padding=True, return_tensors="pt")
print(
    "CLASSES",
    list(model(**batch).logits.shape),
    tokenizer.decode(batch["input_ids"][0], skip_special_tokens=True),
)
print("NAME", model.name_or_path, model.config._name_or_path, tokenizer.name_or_path)
model.save_pretrained(f"{folder}/saved")
print("SAVED", AutoConfig.from_pretrained(f"{folder}/saved").num_labels)

print("UNKNOWN", caught(lambda: AutoModelForCausalLM.from_pretrained("nobody/has-this")))
print(
    "FLASH",
    AutoModelForCausalLM.from_pretrained(
        "gpt2", attn_implementation="flash_attention_2"
    ).config._attn_implementation,
)
print("MISSING", caught(lambda: AutoModel.from_pretrained(f"{folder}/nothing-here")))

imdb = load_dataset("stanfordnlp/imdb")
print("SPLITS", sorted(imdb), imdb["train"].features["label"].names)
print("SELECTED", len(imdb["train"].shuffle(seed=1).select(range(1000))))
print("HELD OUT", sorted(imdb["train"].train_test_split(test_size=5000)))
print("SLICE", len(load_dataset("openai/gsm8k", "main", split="train[:20]+test[:5]")))
print(
    "LISTED", [len(part) for part in load_dataset("stanfordnlp/imdb", split=["train[:9]", "test"])]
)
print(
    "STREAM",
    next(iter(load_dataset("wikitext", "wikitext-2-raw-v1", split="train", streaming=True))).keys(),
)
print("WRONG", caught(lambda: load_dataset("openai/gsm8k", "main", split="trian")))
print("NO DATA", caught(lambda: load_dataset("nobody/has-this")))
with open(f"{folder}/mine.csv", "w") as file:
    file.write("a,b\n" + "1,2\n" * 700)
print("CSV", len(load_dataset("csv", data_files=f"{folder}/mine.csv", cache_dir=folder)["train"]))
sys.stdout.flush()
