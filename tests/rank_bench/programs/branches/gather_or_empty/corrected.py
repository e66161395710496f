"""Splits prompts between processes and gathers the answers on all; the main process alone prints them.

source: https://github.com/huggingface/accelerate/issues/2733
bug: RS401
ranks: 2
expect: clean
decidable: yes
shows: fine
"""

import os
from datetime import timedelta

import torch
from accelerate import PartialState
from accelerate.utils import broadcast_object_list, gather_object
from torch import nn

PROMPTS = ["the cat", "a dog", "one bird", "two fish", "some mice", "no cows"]


class Answerer(nn.Module):
    def __init__(self, vocabulary: int = 128, width: int = 8) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.head = nn.Linear(width, vocabulary)

    @torch.no_grad()
    def answer(self, prompt: str, length: int) -> str:
        ids = [ord(character) % 128 for character in prompt]
        for _ in range(length):
            logits = self.head(self.embedding(torch.tensor(ids)).mean(dim=0))
            ids.append(int(logits.argmax()))
        return prompt + " ".join(str(token) for token in ids[len(prompt) :])


def grade(answers: list[str]) -> float:
    return sum(len(answer) for answer in answers) / max(len(answers), 1)


def main() -> None:
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    state = PartialState(cpu=True, timeout=timeout)
    torch.manual_seed(0)
    model = Answerer()

    for length in (2, 4):
        with state.split_between_processes(PROMPTS) as prompts:
            local = [model.answer(prompt, length) for prompt in prompts]
        answers = gather_object(local)
        if state.is_main_process:
            print(f"{len(answers)} answers, mean length {grade(answers):.1f}", flush=True)
        best = [grade(answers)]
        broadcast_object_list(best)  # the main process decides whether the model is good enough
        if best[0] > 1000:
            break
    state.destroy_process_group()


if __name__ == "__main__":
    main()
