"""An evaluation that raises on a rank is logged there and left; the others wait in its gather.

source: https://github.com/EvolvingLMMs-Lab/lmms-eval/pull/1304
bug: RS410
ranks: 2
expect: RS410
line: except Exception as error:
decidable: yes
shows: hang
"""

import logging
import os
from datetime import timedelta

import torch.distributed as dist

logger = logging.getLogger("lmms-eval")

TASKS = {
    "counting": [{"question": f"{n} + {n}", "answer": str(2 * n)} for n in range(6)],
    "captions": [{"question": "a dog"}, {"question": "a cat", "answer": "cat"}] * 2,
}


def generate_until(question):
    words = question.split()
    return str(2 * int(words[0])) if words[0].isdigit() else words[-1]


def run_requests(docs):
    return [float(generate_until(doc["question"]) == doc["answer"]) for doc in docs]


def gather_metrics(metrics, rank, world_size):
    gathered = [None] * world_size if rank == 0 else None
    dist.gather_object(metrics, gathered, dst=0)
    return [value for part in gathered for value in part] if rank == 0 else None


def evaluate(name, rank, world_size):
    docs = TASKS[name][rank::world_size]
    metrics = run_requests(docs)
    return gather_metrics(metrics, rank, world_size)


def cli_evaluate(rank, world_size):
    results = {}
    for name in ("counting", "captions"):
        try:
            results[name] = evaluate(name, rank, world_size)
        except Exception as error:
            logger.error("Error during the evaluation of %s: %r", name, error)
            results[name] = None
    return results


def main():
    logging.basicConfig(level=logging.INFO)
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    rank, world_size = dist.get_rank(), dist.get_world_size()
    results = cli_evaluate(rank, world_size)
    dist.barrier()
    if rank == 0:
        for name, values in results.items():
            print(name, f"{sum(values) / len(values):.2f}" if values else "no result", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
