"""Training at true size: ``training.py NAME`` prints the device's memory after every step; ``--names`` lists them.

``--trace FILE`` also writes what the caching allocator did: one line of JSON, ``[action, address, bytes, stream]`` each.
"""

import argparse
import gzip
import itertools
import json
import os
import sys
import time
from collections.abc import Callable, Iterator

import torch
from memory import reading
from torch import nn

CASES: dict[str, Callable[[], Iterator[object]]] = {}
STEPS = 3


def case(function: Callable[[], Iterator[object]]) -> Callable[[], Iterator[object]]:
    CASES[function.__name__] = function
    return function


@case
def gpt2_bfloat16() -> Iterator[object]:
    return _language_model(_gpt2(), batch=12, length=1024, autocast=torch.bfloat16, fused=True)


@case
def gpt2_float32() -> Iterator[object]:
    return _language_model(_gpt2(), batch=4, length=1024)


@case
def gpt2_checkpointed() -> Iterator[object]:
    model = _gpt2()
    model.gradient_checkpointing_enable()
    return _language_model(model, batch=12, length=1024, autocast=torch.bfloat16)


@case
def gpt2_of_many_lengths() -> Iterator[object]:
    model, lengths = _gpt2(), torch.randint(128, 1024, (30,), generator=_seeded()).tolist()
    optimizer = torch.optim.AdamW(model.parameters())
    for length in lengths:
        yield from _step(optimizer, lambda n=length: _loss_of(model, 8, n), torch.bfloat16)


@case
def gpt2_in_a_trainer() -> Iterator[object]:
    from transformers import Trainer, TrainingArguments

    rows = [{"input_ids": ids, "labels": ids} for ids in torch.randint(0, 50000, (64, 1024))]
    options = TrainingArguments(
        "out", per_device_train_batch_size=8, max_steps=STEPS, bf16=True, report_to=[], save_strategy="no"
    )  # fmt: skip
    Trainer(model=_gpt2(), args=options, train_dataset=rows).train()
    yield reading()


@case
def gpt2_in_ddp() -> Iterator[object]:
    _group_of_one()
    yield reading()
    model = nn.parallel.DistributedDataParallel(_gpt2())
    yield from _language_model(model, batch=8, length=1024, autocast=torch.bfloat16)


@case
def gpt2_in_fsdp2() -> Iterator[object]:
    from torch.distributed.fsdp import fully_shard

    _group_of_one()
    model = _gpt2()
    for block in model.transformer.h:
        fully_shard(block)
    fully_shard(model)
    yield from _language_model(model, batch=8, length=1024, autocast=torch.bfloat16)


@case
def gpt2_compiled() -> Iterator[object]:
    model = torch.compile(_gpt2())
    return _language_model(model, batch=12, length=1024, autocast=torch.bfloat16, fused=True)


@case
def bert_large_float32() -> Iterator[object]:
    return _classifier(_bert_large(), batch=4)


@case
def bert_large_float16() -> Iterator[object]:
    return _classifier(_bert_large(), batch=4, autocast=torch.float16)


@case
def t5_base() -> Iterator[object]:
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(d_model=768, d_ff=3072, num_layers=12, num_heads=12, decoder_start_token_id=0)
    model = T5ForConditionalGeneration(config).cuda()
    optimizer = torch.optim.AdamW(model.parameters())

    def loss() -> torch.Tensor:
        tokens = torch.randint(0, 32000, (8, 512), device="cuda")
        return model(input_ids=tokens, labels=tokens[:, :128].contiguous()).loss  # type: ignore[no-any-return]

    for _ in range(STEPS):
        yield from _step(optimizer, loss, torch.bfloat16)


@case
def llama_1b() -> Iterator[object]:
    return _language_model(_llama_1b(), batch=1, length=2048)


@case
def llama_1b_of_four() -> Iterator[object]:
    return _language_model(_llama_1b(), batch=4, length=2048)


@case
def llama_1b_checkpointed() -> Iterator[object]:
    model = _llama_1b()
    model.gradient_checkpointing_enable()
    return _language_model(model, batch=4, length=2048, fused=True)


@case
def llama_8b_lora() -> Iterator[object]:
    from peft import LoraConfig, get_peft_model

    names = ["q_proj", "k_proj", "v_proj", "o_proj"]
    model = get_peft_model(_llama_8b(), LoraConfig(r=16, target_modules=names))
    model.gradient_checkpointing_enable()
    model.enable_input_require_grads()
    return _language_model(model, batch=1, length=2048)


@case
def llama_8b_generates() -> Iterator[object]:
    model = _llama_8b()
    with torch.no_grad():
        model.generate(
            torch.randint(0, 32000, (4, 1024), device="cuda"), max_new_tokens=16, pad_token_id=0
        )
    yield reading()


@case
def llama_8b_does_not_fit() -> Iterator[object]:
    return _language_model(_llama_8b(), batch=4, length=2048)


@case
def resnet50_float32() -> Iterator[object]:
    return _pictures(_torchvision("resnet50"), batch=64)


@case
def resnet50_bfloat16() -> Iterator[object]:
    return _pictures(_torchvision("resnet50"), batch=128, autocast=torch.bfloat16)


@case
def resnet50_channels_last() -> Iterator[object]:
    model = _torchvision("resnet50").to(memory_format=torch.channels_last)
    return _pictures(model, batch=128, autocast=torch.bfloat16, layout=torch.channels_last)


@case
def vit_b_16() -> Iterator[object]:
    return _pictures(_torchvision("vit_b_16"), batch=64, autocast=torch.bfloat16)


@case
def convnext_base() -> Iterator[object]:
    return _pictures(_torchvision("convnext_base"), batch=32, autocast=torch.bfloat16)


@case
def transposed_convolutions() -> Iterator[object]:
    widths = [256, 512, 256, 128, 64, 3]
    layers = [
        nn.Sequential(nn.ConvTranspose2d(one, two, 4, 2, 1), nn.BatchNorm2d(two), nn.ReLU())
        for one, two in itertools.pairwise(widths)
    ]
    model = nn.Sequential(*layers).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(STEPS):
        yield from _step(
            optimizer, lambda: model(torch.randn(64, 256, 4, 4, device="cuda")).square().mean()
        )


@case
def long_short_term_memory() -> Iterator[object]:
    embedding, head = nn.Embedding(33000, 1024).cuda(), nn.Linear(1024, 33000).cuda()
    layers = nn.LSTM(1024, 1024, num_layers=2, batch_first=True, dropout=0.1).cuda()
    models = nn.ModuleList([embedding, layers, head])
    optimizer = torch.optim.SGD(models.parameters(), lr=0.1, momentum=0.9)

    def loss() -> torch.Tensor:
        tokens = torch.randint(0, 33000, (32, 256), device="cuda")
        scores = head(layers(embedding(tokens))[0])
        return nn.functional.cross_entropy(scores.flatten(0, 1), tokens.flatten())

    for _ in range(STEPS):
        yield from _step(optimizer, loss)


def _seeded() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def _group_of_one() -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0", RANK="0", WORLD_SIZE="1")
    store = torch.distributed.HashStore()
    torch.cuda.set_device(0)
    torch.distributed.init_process_group("nccl", store=store, rank=0, world_size=1)
    torch.distributed.all_reduce(torch.ones(1, device="cuda"))


def _gpt2() -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(GPT2Config()).cuda()


def _bert_large() -> nn.Module:
    from transformers import BertConfig, BertForSequenceClassification

    size = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16}
    return BertForSequenceClassification(BertConfig(**size, intermediate_size=4096)).cuda()


def _llama_1b() -> nn.Module:
    sizes = {
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_hidden_layers": 16,
        "head_dim": 64,
    }
    return _llama(**sizes, tie_word_embeddings=True)


def _llama_8b() -> nn.Module:
    return _llama(hidden_size=4096, intermediate_size=14336, num_hidden_layers=32)


def _llama(**sizes: object) -> nn.Module:
    """Llama 3's shapes: 32 heads, 8 of keys, 128,256 words; bfloat16; built on the device, where that is quick."""
    from transformers import AutoModelForCausalLM, LlamaConfig

    config = LlamaConfig(num_attention_heads=32, num_key_value_heads=8, vocab_size=128256, **sizes)  # type: ignore[arg-type]
    with torch.device("cuda"):
        return AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)  # type: ignore[no-any-return]


def _torchvision(name: str) -> nn.Module:
    import torchvision

    return torchvision.models.get_model(name).cuda()  # type: ignore[no-any-return]


def _loss_of(model: nn.Module, batch: int, length: int) -> torch.Tensor:
    tokens = torch.randint(0, 32000, (batch, length), device="cuda")
    return model(input_ids=tokens, labels=tokens).loss  # type: ignore[no-any-return]


def _language_model(
    model: nn.Module,
    batch: int,
    length: int,
    autocast: torch.dtype | None = None,
    fused: bool | None = None,
) -> Iterator[object]:
    optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), fused=fused)
    model.train()
    yield reading()
    for _ in range(STEPS):
        yield from _step(optimizer, lambda: _loss_of(model, batch, length), autocast)


def _classifier(
    model: nn.Module, batch: int, autocast: torch.dtype | None = None
) -> Iterator[object]:
    optimizer = torch.optim.AdamW(model.parameters())
    scaler = torch.amp.GradScaler("cuda", enabled=autocast is torch.float16)
    model.train()
    yield reading()
    for _ in range(STEPS):
        tokens = torch.randint(100, 30000, (batch, 512), device="cuda")
        labels = torch.randint(0, 2, (batch,), device="cuda")
        with torch.autocast("cuda", dtype=autocast or torch.float16, enabled=autocast is not None):
            loss = model(tokens, labels=labels).loss
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        yield reading()


def _pictures(
    model: nn.Module,
    batch: int,
    autocast: torch.dtype | None = None,
    layout: torch.memory_format = torch.contiguous_format,
) -> Iterator[object]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    yield reading()

    def loss() -> torch.Tensor:
        pictures = torch.randn(batch, 3, 224, 224, device="cuda").to(memory_format=layout)
        labels = torch.randint(0, 1000, (batch,), device="cuda")
        return nn.functional.cross_entropy(model(pictures), labels)

    for _ in range(STEPS):
        yield from _step(optimizer, loss, autocast)


def _step(
    optimizer: torch.optim.Optimizer,
    loss: Callable[[], torch.Tensor],
    autocast: torch.dtype | None = None,
) -> Iterator[object]:
    with torch.autocast("cuda", dtype=autocast or torch.float16, enabled=autocast is not None):
        value = loss()
    forward = reading()
    value.backward()
    backward = reading()
    optimizer.step()
    optimizer.zero_grad()
    yield {"forward": forward, "backward": backward, **reading()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("name", nargs="?", choices=list(CASES))
    parser.add_argument("--names", action="store_true")
    parser.add_argument("--trace")
    arguments = parser.parse_args()
    if arguments.names:
        print(json.dumps(list(CASES)))
        return
    began = time.monotonic()
    if arguments.trace:
        torch.cuda.memory._record_memory_history(context=None, max_entries=400_000)
    answer: dict[str, object] = {"steps": []}
    try:
        answer["steps"] = list(CASES[arguments.name]())
    except torch.OutOfMemoryError as error:
        answer["out of memory"] = str(error)
    numbers = torch.cuda.memory_stats()
    answer |= {"retries": numbers["num_alloc_retries"], "end": reading()}
    answer |= {"segments": numbers["segment.all.peak"], "seconds": time.monotonic() - began}
    if arguments.trace:
        events = torch.cuda.memory._snapshot()["device_traces"][0]
        with gzip.open(arguments.trace, "wt") as file:
            for event in events:
                file.write(
                    json.dumps([event["action"], event["addr"], event["size"], event["stream"]])
                    + "\n"
                )
    print(json.dumps({"case": arguments.name, "answer": answer}))


if __name__ == "__main__":
    sys.exit(main())
