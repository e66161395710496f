"""Asks the simulated devices one thing after the other and prints one JSON line per question: its name and the answer.

Run with two devices of 64 MiB each.
"""

from __future__ import annotations

import copy
import io
import json
import os
import pickle
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import torch

warnings.simplefilter("ignore")


def answer(name: str, work: Callable[[], Any]) -> None:
    """Print what ``work`` returns, or the type and text of what it raises."""
    try:
        value = work()
    except Exception as error:
        value = f"{type(error).__name__}: {error}"
    print(json.dumps({"name": name, "answer": value}), flush=True)


first = torch.ones(3, 4, device="cuda:0")
second = torch.ones(3, 4, device="cuda:1")
square = torch.eye(3, device="cuda:0")

# The device check, in torch's words.
answer("mm", lambda: first @ second.T)
answer("addmm", lambda: torch.nn.Linear(4, 2).cuda(0)(second))
answer("add", lambda: first + second)
answer("add cpu", lambda: first + torch.ones(3, 4))
answer("add cpu scalar", lambda: str((second + torch.tensor(2.0)).device))
answer(
    "embedding", lambda: torch.nn.functional.embedding(torch.tensor([1], device="cuda:1"), first)
)
answer("index", lambda: first[torch.tensor([0], device="cuda:1")])
answer("index from cpu", lambda: str(second[torch.tensor([0])].device))
answer(
    "cross_entropy",
    lambda: torch.nn.functional.cross_entropy(
        first, torch.zeros(3, dtype=torch.long, device="cuda:1")
    ),
)
answer("conv type", lambda: torch.nn.Conv1d(3, 1, 2)(first))
answer("conv device", lambda: torch.nn.Conv1d(3, 1, 2).cuda(1)(first))
answer("solve", lambda: torch.linalg.solve(square, torch.ones(3, device="cuda:1")))
answer("softmax backward", lambda: torch._softmax_backward_data(first, second, 1, torch.float32))
answer("masked_fill", lambda: first.masked_fill(second > 0, 1.0))
answer("cat", lambda: torch.cat([first, second]))
answer("copy", lambda: first.copy_(second).sum().item())
answer("no kernel", lambda: torch.histogram(first, 3))
answer("ordinal", lambda: torch.ones(1, device="cuda:7"))
answer("numpy", lambda: first.numpy())
answer("whole numbers", lambda: first.long() @ first.long().T)

# Memory.
answer("allocated", lambda: [torch.cuda.memory_allocated(1), torch.cuda.max_memory_allocated(1)])


def peak() -> list[int]:
    before = torch.cuda.memory_allocated(0)
    big = torch.empty(2**20, device="cuda:0")
    held = torch.cuda.memory_allocated(0) - before
    del big
    return [
        held,
        torch.cuda.memory_allocated(0) - before,
        torch.cuda.max_memory_allocated(0) - before,
    ]


answer("peak", peak)
answer("out of memory", lambda: torch.empty(2**26, device="cuda:0"))
answer("out of memory in a result", lambda: first.repeat(2**21, 1))
answer("memory after", lambda: torch.cuda.memory_allocated(0) < 2**20)
answer("pinned", lambda: [torch.ones(2).pin_memory().is_pinned(), torch.ones(2).is_pinned()])
answer("pin a device tensor", lambda: second.pin_memory())


# Random numbers.
def reproducible() -> list[bool]:
    torch.manual_seed(3)
    one, other, host = (
        torch.randn(4, device="cuda:0"),
        torch.randn(4, device="cuda:1"),
        torch.randn(4),
    )
    torch.manual_seed(3)
    again, host_again = torch.randn(4, device="cuda:0"), torch.randn(4)
    following = torch.randn(4, device="cuda:0")
    return [
        torch.equal(one, again),
        torch.equal(one.cpu(), other.cpu()),
        torch.equal(host, host_again),
        torch.equal(one, following),
    ]


def state_round_trip() -> list[Any]:
    state = torch.cuda.get_rng_state(1)
    one = torch.rand(3, device="cuda:1")
    torch.cuda.set_rng_state(state, 1)
    return [list(state.shape), torch.equal(one, torch.rand(3, device="cuda:1"))]


def dropout_leaves_the_host_alone() -> list[bool]:
    torch.manual_seed(1)
    expected = torch.rand(2)
    torch.manual_seed(1)
    torch.nn.functional.dropout(torch.ones(100, device="cuda"), 0.5)
    one = torch.nn.functional.dropout(torch.ones(100, device="cuda"), 0.5)
    drawn = torch.rand(2)
    torch.manual_seed(1)
    torch.nn.functional.dropout(torch.ones(100, device="cuda"), 0.5)
    two = torch.nn.functional.dropout(torch.ones(100, device="cuda"), 0.5)
    return [torch.equal(expected, drawn), torch.equal(one, two), 20 < (one == 0).sum().item() < 80]


def forked_generators() -> bool:
    torch.cuda.manual_seed_all(5)
    with torch.random.fork_rng():
        torch.rand(8, device="cuda:0")
    one = torch.rand(2, device="cuda:0")
    torch.cuda.manual_seed_all(5)
    return torch.equal(one, torch.rand(2, device="cuda:0"))


answer("reproducible", reproducible)
answer("state", state_round_trip)
answer("dropout", dropout_leaves_the_host_alone)
answer("fork_rng", forked_generators)
answer("generator of the cpu", lambda: torch.randn(2, device="cuda", generator=torch.Generator()))
answer(
    "own generator",
    lambda: torch.equal(
        torch.rand(3, device="cuda", generator=torch.Generator("cuda").manual_seed(4)),
        torch.rand(3, device="cuda", generator=torch.Generator("cuda").manual_seed(4)),
    ),
)


# Streams, events, graphs.
def events() -> list[Any]:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    end.record()
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        inside = torch.cuda.current_stream() == stream
    return [
        start.elapsed_time(end) > 0,
        inside,
        torch.cuda.current_stream() == stream,
        stream == torch.cuda.Stream(),
    ]


answer("events", events)
answer(
    "not recorded",
    lambda: torch.cuda.Event(enable_timing=True).elapsed_time(torch.cuda.Event(enable_timing=True)),
)


def saved() -> list[str]:
    buffer = io.BytesIO()
    torch.save({"weight": second, "sparse": square.to_sparse()}, buffer)
    places = []
    for place in (None, "cpu", "cuda:0"):
        buffer.seek(0)
        loaded = torch.load(buffer, map_location=place)
        places += [str(loaded["weight"].device), str(loaded["sparse"].device)]
    copied = copy.deepcopy(torch.nn.Linear(2, 2).to("cuda:1")).weight
    return [*places, str(copied.device), str(pickle.loads(pickle.dumps(second)).device)]


answer("saved", saved)


def threads() -> list[Any]:
    results: list[Any] = [None] * 4

    def work(place: int) -> None:
        device = f"cuda:{place % 2}"
        with torch.cuda.device(device):
            value = torch.ones(4, 4, device="cuda", requires_grad=True)
            for _ in range(50):
                out = (value @ value).relu().sum()
                out.backward()
        results[place] = [str(value.grad.device), value.grad.sum().item()]

    workers = [threading.Thread(target=work, args=(place,)) for place in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return results


answer("threads", threads)


def forked(work: Callable[[], Any]) -> str:
    sys.stdout.flush()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            text = str(work())
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
        os.write(writing, text.encode())
        os._exit(0)
    os.waitpid(child, 0)
    return os.read(reading, 2000).decode()


answer("forked allocation", lambda: forked(lambda: torch.ones(1, device="cuda")))
answer("forked tensor", lambda: forked(lambda: first + first))


def nested() -> list[Any]:
    tensor = torch.nested.nested_tensor([torch.ones(2, 4), torch.ones(3, 4)]).to("cuda:1")
    padded = torch.nn.Linear(4, 2).to("cuda:1")(tensor * 2).to_padded_tensor(0.0)
    return [str(padded.device), list(padded.shape)]


answer("nested", nested)
answer(
    "cudnn",
    lambda: torch.cudnn_convolution(
        torch.ones(1, 1, 4, 4, device="cuda"),
        torch.ones(1, 1, 2, 2, device="cuda"),
        *([0, 0], [1, 1], [1, 1], 1, False, False, False),
    ),
)
