"""Every entry explains its own example, and not the log that has the same message without its conditions."""

from __future__ import annotations

import pytest
from ranksafe.runs.diagnosis.diagnose import diagnose
from ranksafe.runs.explain.entries import Entry, entries

_BY_NAME = pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.name)


@_BY_NAME
def test_an_entry_wins_on_its_example_and_shows_why(entry: Entry) -> None:
    failure = diagnose(entry.example)[0]
    english, chinese = failure.explanation.en, failure.explanation.zh_cn
    assert entry.meaning.en in english
    assert english.endswith(entry.action.en)
    assert entry.meaning.zh_cn in chinese
    assert chinese.endswith(entry.action.zh_cn)
    shown = english.split("The log shows it: ")[1].removesuffix(f". {entry.action.en}")
    assert shown in chinese
    place = shown.split(":")[0]
    assert place in entry.example
    assert ("Probably" in english) == (entry.confidence == "likely")


@_BY_NAME
def test_an_entry_is_silent_without_its_conditions(entry: Entry) -> None:
    failure = diagnose(entry.counterexample)[0]
    assert entry.message.search(failure.message)
    assert entry.action.en not in failure.explanation.en
    assert entry.action.zh_cn not in failure.explanation.zh_cn


@_BY_NAME
def test_an_entry_is_complete(entry: Entry) -> None:
    assert entry.source
    assert entry.needs.frames or entry.needs.printed
    for sentence in (entry.meaning, entry.action):
        assert sentence.en.endswith(".")
        assert sentence.zh_cn.endswith("。")


def test_a_wrapper_in_the_call_chain_forbids_the_claim_of_one_gpu() -> None:
    def told(wrapper: str) -> str:
        frames = ["/home/user/train.py", wrapper, "/home/user/model.py"]
        lines = [f'  File "{name}", line 5, in forward\n    return x' for name in frames]
        log = "\n".join(
            ["Traceback (most recent call last):", *lines, "NameError: name 'x' is not defined"]
        )
        return diagnose(log)[0].explanation.en

    claim = "one GPU would show"
    assert claim in told("/opt/lib/python3.12/site-packages/torch/nn/modules/module.py")
    assert claim not in told("/opt/lib/python3.12/site-packages/torch/nn/parallel/data_parallel.py")


def test_of_a_long_message_the_beginning_and_the_end_are_kept() -> None:
    log = (
        "Traceback (most recent call last):\n"
        '  File "/home/user/train.py", line 5, in <module>\n    build()\n'
        f"RuntimeError: Error building extension: {'-O3 ' * 900}the reason"
    )
    message = diagnose(log)[0].message
    assert message.startswith("RuntimeError: Error building extension")
    assert message.endswith("the reason")
    assert len(message) < 2100


def test_no_smaller_batch_is_advised_first_where_a_barrier_met_a_full_gpu() -> None:
    def told(function: str) -> str:
        log = (
            "[rank2]: Traceback (most recent call last):\n"
            '[rank2]:   File "/home/user/train.py", line 9, in <module>\n[rank2]:     start()\n'
            '[rank2]:   File "/opt/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py", '
            f"line 4159, in {function}\n[rank2]:     work = group.barrier(opts=opts)\n"
            "[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 MiB."
        )
        return diagnose(log)[0].explanation.en

    assert "a smaller batch per process" in told("all_gather")
    assert "a smaller batch per process" not in told("barrier")
    assert "torch.cuda.set_device(local_rank)" in told("barrier")


def test_of_an_unknown_error_the_package_and_its_line_are_told_and_nothing_else() -> None:
    log = (
        "Traceback (most recent call last):\n"
        '  File "/home/user/train.py", line 5, in <module>\n    data = load(name)\n'
        '  File "/opt/lib/python3.12/site-packages/loader/read.py", line 71, in load\n    fail()\n'
        "loader.BadHeader: 17 is not a version"
    )
    told = diagnose(log)[0].explanation
    assert "inside loader (read.py:71 in load), called from this line of yours." in told.en
    assert "loader（read.py:71 in load）" in told.zh_cn
