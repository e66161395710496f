"""Long epochs are cut in the middle, and nothing else about a script's loaders changes."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from .conftest import INJECTED, Rehearse

sys.path.insert(0, str(INJECTED))
from ranksafe_rehearsal.short_epochs import UNIT, kept

_LOADERS = """
import json
import torch
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, SequentialSampler, TensorDataset

class Endless(BatchSampler):
    def __len__(self):
        raise TypeError("endless")

class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(40))
    def __len__(self):
        return 40

def told(loader):
    return len(loader), [[int(each) for each in batch] for batch in loader]

def rows(count, **options):
    data = TensorDataset(torch.arange(count))
    return DataLoader(data, collate_fn=lambda rows: [row for row, in rows], **options)

whole = SequentialSampler(range(60))
print(json.dumps({
    "long": told(rows(205, batch_size=2)),
    "small": told(rows(32, batch_size=2)),
    "workers": told(rows(205, batch_size=2, num_workers=1)),
    "stream": len(list(DataLoader(Stream(), batch_size=1))),
    "unknown": len(list(rows(60, batch_sampler=Endless(whole, 1, False)))),
    "one": [int(row[0]) for row in DataLoader(TensorDataset(torch.arange(50)), batch_size=None)],
}))
"""


def test_ranks_of_the_same_number_stay_equal_and_those_that_differ_differ() -> None:
    assert [kept(batches) for batches in range(2 * UNIT + 1)] == list(range(2 * UNIT + 1))
    for batches in range(2 * UNIT + 1, 500):
        assert UNIT <= kept(batches) < 2 * UNIT
        assert (batches - kept(batches)) % UNIT == 0
        assert kept(batches) != kept(batches + 1)


@pytest.mark.torch
def test_the_middle_of_a_long_epoch_is_left_out_and_told(rehearse: Rehearse) -> None:
    done = rehearse(_LOADERS, devices=1, short_epochs=True)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.lines[-1])
    length, batches = told["long"]
    # 103 batches, the last of one row only.
    first, last = (
        [[2 * at, 2 * at + 1] for at in range(4)],
        [[2 * at, 2 * at + 1] for at in range(92, 102)],
    )
    assert batches == [*first, *last, [204]]
    assert length == len(batches) == kept(103)
    assert told["workers"] == told["long"]
    assert told["small"][0] == len(told["small"][1]) == 16
    assert (told["stream"], told["unknown"], len(told["one"])) == (40, 60, kept(50))
    sentences = [event["message"]["en"] for event in done.events("modified")]
    assert "epochs of 103 batches are cut to 15: the first 4 and the last 11" in sentences
    assert not any("16 batches" in sentence for sentence in sentences)


@pytest.mark.torch
def test_nothing_is_cut_where_it_was_not_chosen(rehearse: Rehearse) -> None:
    done = rehearse(_LOADERS, devices=1)
    assert json.loads(done.lines[-1])["long"][0] == 103
    assert not done.events("modified")
