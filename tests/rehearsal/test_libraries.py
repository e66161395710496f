"""The libraries that people train with, on simulated GPUs in one process: what they compute is what the CPU computes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.torch

Rehearse = Callable[..., Any]

_TRAINING = '''
import json, logging, os, sys
os.environ["HF_HUB_OFFLINE"] = "1"
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments, set_seed

logging.disable(logging.WARNING)
CONFIGURATION = LlamaConfig(
    vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=4, num_attention_heads=4
)

class Samples(torch.utils.data.Dataset):
    def __len__(self):
        return 64
    def __getitem__(self, index):
        tokens = torch.randint(0, 64, (16,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": tokens, "labels": tokens.clone()}

def make():
    set_seed(0)
    return LlamaForCausalLM(CONFIGURATION)

def train(model, batch, **options):
    """Losses of three steps, and what the model was wrapped in."""
    arguments = TrainingArguments(
        output_dir="out", max_steps=3, per_device_train_batch_size=batch, logging_steps=1, report_to=[],
        learning_rate=1e-3, lr_scheduler_type="constant", disable_tqdm=True, seed=0,
        **{"save_strategy": "no", **options},
    )
    trainer = Trainer(model=model, args=arguments, train_dataset=Samples(), eval_dataset=Samples())
    trainer.train()
    history = trainer.state.log_history
    losses = [entry[name] for entry in history for name in ("loss", "eval_loss") if name in entry]
    return {"losses": [float(loss) for loss in losses], "wrapped": type(trainer.model_wrapped).__name__}

def both(name, **options):
    """On two simulated GPUs, and on the CPU without what only a GPU has."""
    on_host = {key: value for key, value in options.items() if key not in GPU_ONLY}
    print(json.dumps({
        "case": name, "gpus": train(make(), 4, **options), "host": train(make(), 8, use_cpu=True, **on_host)
    }), flush=True)

GPU_ONLY = ("bf16", "fp16", "bf16_full_eval", "torch_compile", "tf32", "auto_find_batch_size")
'''

_ROUNDING = {"bf16": 0.03, "fp16": 0.03, "bf16_full_eval": 0.05}


def _cases(rehearse: Rehearse, cases: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Run each case; `both` prints what came out."""
    calls = "".join(f"both({name!r}, **{options!r})\n" for name, options in cases.items())
    result = rehearse(_TRAINING + calls)
    assert result.returncode == 0, result.stderr[-3000:]
    printed = [json.loads(line) for line in result.lines if line.startswith('{"case"')]
    return {one["case"]: one for one in printed}


def _assert_equal(outcome: dict[str, Any]) -> None:
    allowed = _ROUNDING.get(outcome["case"], 2e-3)
    assert outcome["gpus"]["wrapped"] == "DataParallel"
    assert len(outcome["gpus"]["losses"]) >= 3
    assert outcome["gpus"]["losses"] == pytest.approx(outcome["host"]["losses"], abs=allowed)


@pytest.mark.long
def test_trainer_under_data_parallel_computes_what_the_cpu_does(rehearse: Rehearse) -> None:
    cases: dict[str, dict[str, Any]] = {
        "plain": {},
        "bf16": {"bf16": True},
        "evaluation": {"eval_strategy": "steps", "eval_steps": 2},
    }
    outcomes = _cases(rehearse, cases)
    assert set(outcomes) == set(cases)
    for outcome in outcomes.values():
        _assert_equal(outcome)


@pytest.mark.long
def test_trainer_options_under_data_parallel(rehearse: Rehearse) -> None:
    cases: dict[str, dict[str, Any]] = {
        "fp16": {"fp16": True},
        "checkpointing": {"gradient_checkpointing": True},
        "accumulation": {"gradient_accumulation_steps": 2},
        "save": {"save_strategy": "steps", "save_steps": 2},
        "workers": {"dataloader_num_workers": 2},
        "compile": {"torch_compile": True},
        "adafactor": {"optim": "adafactor"},
        "fused": {"optim": "adamw_torch_fused"},
        "bf16_full_eval": {"bf16_full_eval": True, "eval_strategy": "steps", "eval_steps": 2},
        "tf32": {"tf32": True},
        "batch_size": {"auto_find_batch_size": True},
        "memory": {"skip_memory_metrics": False},
    }
    outcomes = _cases(rehearse, cases)
    assert set(outcomes) == set(cases)
    for outcome in outcomes.values():
        _assert_equal(outcome)


def test_model_split_over_devices_and_what_accelerate_asks(rehearse: Rehearse) -> None:
    result = rehearse(
        _TRAINING
        + """
from accelerate import Accelerator
from accelerate.utils import check_cuda_p2p_ib_support, get_gpu_info, get_max_memory

make().save_pretrained("tiny")
model = AutoModelForCausalLM.from_pretrained("tiny", device_map="auto", max_memory={0: 120_000, 1: 10**9})
devices = sorted({str(parameter.device) for parameter in model.parameters()})
losses = train(model, 4)["losses"]
accelerator = Accelerator()
print(json.dumps({
    "devices": devices, "losses": len(losses), "info": get_gpu_info(), "peer": check_cuda_p2p_ib_support(),
    "memory": len(get_max_memory()), "device": str(accelerator.device),
}))
""",
    )
    assert result.returncode == 0, result.stderr[-3000:]
    answers = json.loads(result.lines[-1])
    assert answers["devices"] == ["cuda:0", "cuda:1"]
    assert answers["losses"] == 3
    assert answers["info"] == [["NVIDIA A100-SXM4-80GB"] * 2, 2]
    assert answers["peer"]
    assert answers["memory"] == 3
    assert answers["device"] == "cuda"


@pytest.mark.long
def test_trl_refuses_data_parallel_in_its_own_words(rehearse: Rehearse) -> None:
    result = rehearse(
        _TRAINING
        + """
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer

words = Tokenizer(models.WordLevel({"a": 0, "<unk>": 1, "<pad>": 2, "<eos>": 3}, unk_token="<unk>"))
words.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=words, unk_token="<unk>", pad_token="<pad>", eos_token="<eos>"
)
SFTTrainer(
    model=make(), args=SFTConfig(output_dir="out", max_steps=1, report_to=[]), processing_class=tokenizer,
    train_dataset=Dataset.from_dict({"text": ["a a a"] * 8}),
)
"""
    )
    assert result.returncode == 1
    assert "ValueError: SFTTrainer does not support `nn.DataParallel`" in result.stderr
    assert not result.events("limit")


@pytest.mark.long
def test_flash_attention_is_a_missing_package(rehearse: Rehearse) -> None:
    result = rehearse(
        _TRAINING
        + "LlamaForCausalLM._from_config(CONFIGURATION, attn_implementation='flash_attention_2')\n"
    )
    assert result.returncode == 1
    assert "ImportError: FlashAttention2 has been toggled on" in result.stderr
    assert [event["what"] for event in result.events("limit")] == ["flash_attn"]
