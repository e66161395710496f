"""Reinforcement-learning processes send their prompts to the language-model process, which passes no list to gather them in.

source: https://github.com/flowersteam/lamorel/issues/19
bug: RS408
ranks: 3
expect: RS408
line: dist.gather_object(request, object_gather_list=None, dst=self.llm_master)
decidable: yes
shows: error must be specified on destination rank
"""

import os
from datetime import timedelta

import torch.distributed as dist


class Caller:
    """Lets the RL processes ask one process that holds the language model."""

    def __init__(self, llm_master: int):
        self.rank = dist.get_rank()
        self.world_size = dist.get_world_size()
        self.llm_master = llm_master

    def score(self, contexts: list[str], candidates: list[list[str]]) -> list[list[float]]:
        return self.__call_model({"contexts": contexts, "candidates": candidates})

    def serve(self) -> None:
        self.__call_model(None)

    def __call_model(self, request):
        dist.gather_object(request, object_gather_list=None, dst=self.llm_master)
        requests = [request] * self.world_size
        answers = [None] * self.world_size
        if self.rank == self.llm_master:
            answers = [compute_scores(r) if r else None for r in requests]
        answer = [None]
        dist.scatter_object_list(answer, answers, src=self.llm_master)
        return answer[0]


def compute_scores(request) -> list[list[float]]:
    return [
        [len(set(context) & set(candidate)) / len(candidate) for candidate in candidates]
        for context, candidates in zip(request["contexts"], request["candidates"])
    ]


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    llm_master = dist.get_world_size() - 1
    caller = Caller(llm_master)
    for _ in range(2):
        if dist.get_rank() == llm_master:
            caller.serve()
        else:
            scores = caller.score(["open the door"], [["go north", "open door", "wait"]])
            print(f"rank {dist.get_rank()}: {scores}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
