"""What a log prints elsewhere is brought together with the failure: counts, file names, warnings."""

from __future__ import annotations

import pytest
from ranksafe.runs.diagnosis.diagnose import diagnose

_FRAME = '  File "/w/train.py", line {line}, in <module>\n    {source}\n'
_WAITED = "RuntimeError: [gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 15000ms for recv operation"


def _raised(rank: int, last: str, line: int = 9, source: str = "dist.barrier()") -> str:
    lines = [
        "Traceback (most recent call last):",
        *_FRAME.format(line=line, source=source).splitlines(),
        last,
    ]
    return "".join(f"[rank{rank}]: {text}\n" for text in lines)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("[rank 0] 83 pairs", "[rank 1] 82 pairs"),
        ("01:21:02 rank0 vocabulary of 92 words", "01:21:03 rank1 vocabulary of 95 words"),
        ("[GPU0] Steps: 12", "[GPU1] Steps: 11"),
        ("task 0: 83 pairs", "task 1: 82 pairs"),
    ],
)
def test_counts_that_differ_between_the_ranks_are_shown(one: str, other: str) -> None:
    log = f"{one}\n{other}\n" + _raised(1, _WAITED)
    told = diagnose(log)[0].explanation.en
    assert "differ in a count" in told
    assert "rank 0: " in told
    assert "rank 1: " in told


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("[rank 0] 83 pairs", "[rank 1] 83 pairs"),
        ("rank 0 loss 5.1 over 83 pairs", "rank 1 loss 5.2 over 82 pairs"),
        ("rank 0: step 10 of 83 batches", "rank 1: step 9 of 83 batches"),
        ("rank 0 pid 3344 listens", "rank 1 pid 3345 listens"),
        ("rank 0: 83 pairs", "starting"),
    ],
)
def test_what_is_equal_or_always_differs_is_not_shown(one: str, other: str) -> None:
    log = f"{one}\n{other}\n" + _raised(1, _WAITED)
    assert "differ in a count" not in diagnose(log)[0].explanation.en


def test_counts_that_change_alike_on_every_rank_are_not_shown() -> None:
    log = "".join(f"[rank {rank}] loaded {count} files\n" for count in (10, 20) for rank in (0, 1))
    assert "differ in a count" not in diagnose(log + _raised(1, _WAITED))[0].explanation.en


def test_counts_say_nothing_of_an_ordinary_error() -> None:
    log = "[rank 0] 83 pairs\n[rank 1] 82 pairs\n" + _raised(1, "KeyError: 'label'", source="a[b]")
    assert "differ in a count" not in diagnose(log)[0].explanation.en


_OUT_OF_MEMORY = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 274.00 MiB. GPU 0 has a total capacity of 4.93 GiB "
    "of which 137.69 MiB is free. Including non-PyTorch memory, this process has 4.30 GiB memory in use."
)


@pytest.mark.parametrize(
    ("inner", "said"),
    [
        ("torch/nn/modules/module.py|to", "is placed here, not a batch"),
        ("torch/serialization.py|load", "map_location='cpu'"),
        ("torch/optim/adamw.py|_init_group", "its states are as large"),
        ("transformers/trainer_pt_utils.py|nested_concat", "eval_accumulation_steps"),
        ("torch/nn/functional.py|linear", "a smaller batch per process"),
    ],
)
def test_advice_for_memory_fits_what_it_was_for(inner: str, said: str) -> None:
    name, function = inner.split("|")
    log = (
        'Traceback (most recent call last):\n  File "/w/train.py", line 9, in <module>\n    step()\n'
        f'  File "/opt/lib/python3.11/site-packages/{name}", line 3, in {function}\n    call()\n{_OUT_OF_MEMORY}\n'
    )
    failure = diagnose(log)[0]
    assert failure.kind == "cuda-out-of-memory"
    assert said in failure.explanation.en


def test_the_beginning_of_a_long_log_is_remembered() -> None:
    log = (
        "[rank 0] 83 pairs\n[rank 1] 82 pairs\n"
        + "".join(f"step {n} loss 1.{n}\n" for n in range(3000))
        + _raised(1, _WAITED)
    )
    assert "differ in a count" in diagnose(log)[0].explanation.en


def test_bad_data_is_shown_with_the_file_that_its_rank_had_named_last() -> None:
    last = "zipfile.BadZipFile: File is not a zip file"
    log = "[rank 0] reads part-00001.npz\n[rank 1] reads part-00002.npz\n" + _raised(
        1, last, source="np.load(name)"
    )
    told = diagnose(log)[0].explanation.en
    assert 'The last that rank 1 had printed was "[rank 1] reads part-00002.npz".' in told
    other = "[rank 0] reads part-00001.npz\n" + _raised(1, last, source="np.load(name)")
    assert "part-" not in diagnose(other)[0].explanation.en


def test_a_warning_of_torch_is_where_numbers_broke_down() -> None:
    log = (
        "/w/agent.py:22: UserWarning: std(): degrees of freedom is <= 0. Correction should be strictly less than the "
        "reduction factor.\n  return x / x.std()\n"
        + _raised(
            1,
            "ValueError: Expected parameter logits (Tensor of shape (8, 3)) of distribution Categorical(logits: "
            "torch.Size([8, 3])) to satisfy the constraint Real(), but found invalid values:",
            source="Categorical(x)",
        )
    )
    failure = diagnose(log)[0]
    assert "degrees of freedom is <= 0" in failure.explanation.en
    assert "agent.py:22" in failure.explanation.en
