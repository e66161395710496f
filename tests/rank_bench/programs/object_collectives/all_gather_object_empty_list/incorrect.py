"""Merge the vocabularies of all ranks with all_gather_object into an empty list, where it needs one entry per rank.

source: documented: torch.distributed.all_gather_object docstring, torch 2.13.0 (object_list should be correctly sized as the size of the group)
bug: RS408
ranks: 3
expect: RS408
line: dist.all_gather_object(vocabularies, vocabulary)
decidable: yes
shows: error IndexError: list assignment index out of range
"""

import os
from collections import Counter
from datetime import timedelta

import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

CORPUS = """all ranks read the corpus
each rank counts its own lines
the vocabulary must be the same on all ranks
or the embeddings differ in size
and the constructor of the wrapper fails
each line has a few words""".splitlines()


def count_words(lines):
    counts = Counter()
    for line in lines:
        counts.update(line.split())
    return counts


def merge_vocabularies(vocabulary):
    vocabularies = []
    dist.all_gather_object(vocabularies, vocabulary)
    merged = Counter()
    for part in vocabularies:
        merged.update(part)
    return sorted(merged)


def main():
    dist.init_process_group(
        "gloo", timeout=timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    )
    rank = int(os.environ["RANK"])
    world_size = int(os.environ["WORLD_SIZE"])
    words = merge_vocabularies(count_words(CORPUS[rank::world_size]))
    model = DistributedDataParallel(nn.Embedding(len(words), 4))
    if rank == 0:
        print(f"{len(words)} words", tuple(model.module.weight.shape))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
