"""The parts of the judgement: who can go on, what is a sign of life, where two stacks part."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from ranksafe.runs.compared_ranks.branches import parting
from ranksafe.runs.explain.locate import UserCode
from ranksafe.runs.model import Frame
from ranksafe.runs.watch.beat import Wait, beat_from
from ranksafe.runs.watch.deadlock import stuck_ranks
from ranksafe.runs.watch.live import LiveView, in_one_line
from ranksafe.runs.watch.standing import STILL_SECONDS, Kind, Standing, WatchedRank, ranks_text
from ranksafe.runs.watch.unheard import Unheard
from ranksafe.runs.watch.watchdog import Hang, Watchdog


def _waits(call: str, number: int, group: str = "0", ranks: int = 4, **counts: int) -> Standing:
    wait = Wait(call, 100.0, group, tuple(range(ranks)), number)
    return Standing(Kind.WAITS, 100.0, wait, tuple({group: number, **counts}.items()))


def _works(count: int) -> Standing:
    return Standing(Kind.WORKS, 100.0, None, (("0", count),))


def _over(kind: Kind, count: int) -> Standing:
    return Standing(kind, 100.0, None, (("0", count),))


def test_a_rank_that_works_keeps_everybody_alive() -> None:
    assert stuck_ranks({0: _waits("barrier", 2), 1: _works(1), 2: _waits("barrier", 2)}) == {}


def test_a_transfer_between_ranks_that_are_all_there_is_no_hang() -> None:
    assert stuck_ranks({rank: _waits("all_reduce", 7) for rank in range(4)}) == {}
    alike = {0: _waits("all_gather", 7), 1: _waits("all_gather_into_tensor float32[4]", 7)}
    assert stuck_ranks(alike) == {}


@pytest.mark.parametrize("kind", [Kind.ENDED, Kind.STILL])
def test_who_waits_for_one_that_will_not_come_is_stuck_and_so_is_who_waits_for_that_one(
    kind: Kind,
) -> None:
    standings = {0: _waits("barrier", 2), 1: _over(kind, 1), 2: _waits("barrier", 2)}
    assert stuck_ranks(standings) == {0: {1}, 2: {1}}
    pairs = {
        0: _waits("barrier", 1, "pair", 2),
        1: _waits("barrier", 2, pair=0),
        2: _over(kind, 1),
    }
    assert stuck_ranks(pairs) == {0: {1}, 1: {0, 2}}


def test_one_that_stands_still_may_wait_for_one_that_works() -> None:
    standings = {0: _waits("barrier", 2), 1: _over(Kind.STILL, 1), 2: _works(1)}
    assert stuck_ranks(standings) == {}
    standings[2] = _waits("barrier", 2)
    assert stuck_ranks(standings) == {0: {1}, 2: {1}}


def test_one_that_ended_after_the_same_collective_is_not_waited_for() -> None:
    assert stuck_ranks({0: _waits("all_reduce", 2), 1: _over(Kind.ENDED, 2)}) == {}


def test_one_that_is_not_heard_never_comes_not_even_where_it_was_seen_last() -> None:
    silent = Standing(Kind.SILENT, 100.0, _waits("barrier", 2).wait, (("0", 2),))
    assert stuck_ranks({0: _waits("barrier", 2), 1: silent}) == {0: {1}}
    assert stuck_ranks({0: _waits("barrier", 2), 1: _over(Kind.SILENT, 2)}) == {}
    assert stuck_ranks({0: _waits("barrier", 2), 1: _over(Kind.SILENT, 1), 2: _works(1)}) == {}
    receives = Standing(Kind.SILENT, 100.0, Wait("recv", 100.0, peers=(0,)))
    assert stuck_ranks({0: _transfers("send", 1), 1: receives}) == {0: {1}}


def test_different_calls_as_the_same_number_never_meet() -> None:
    standings = {0: _waits("all_reduce float32[4]", 2), 1: _waits("barrier", 2)}
    assert stuck_ranks(standings) == {0: {1}, 1: {0}}
    passed = {0: _waits("all_reduce", 2), 1: _works(3)}
    assert stuck_ranks(passed) == {}
    assert stuck_ranks(passed, lambda _rank, _group, _number: "broadcast") == {0: {1}}


def _transfers(call: str, *peers: int) -> Standing:
    return Standing(Kind.WAITS, 100.0, Wait(call, 100.0, peers=peers))


def test_transfers() -> None:
    assert stuck_ranks({0: _transfers("send", 1), 1: _transfers("recv", 0)}) == {}
    assert stuck_ranks({0: _transfers("recv", 1), 1: _transfers("recv", 0)}) == {0: {1}, 1: {0}}
    assert stuck_ranks({0: _transfers("recv", 1), 1: _works(0)}) == {}
    anybody = {0: _transfers("recv"), 1: _over(Kind.ENDED, 0), 2: _works(0)}
    assert stuck_ranks(anybody) == {}
    assert set(stuck_ranks({**anybody, 2: _over(Kind.STILL, 0)})) == {0}


def test_a_group_is_made_by_all_but_not_by_all_at_once() -> None:
    making = Standing(Kind.WAITS, 1.0, Wait("new_group", 1.0, "groups", (), 2), (("groups", 2),))
    beyond = Standing(
        Kind.WAITS, 1.0, Wait("barrier", 1.0, "0", (0, 1), 1), (("groups", 2), ("0", 1))
    )
    assert stuck_ranks({0: making, 1: beyond}) == {}, (
        "it is no member, and waits for those that are"
    )
    behind = Standing(Kind.ENDED, 1.0, None, (("groups", 1),))
    assert stuck_ranks({0: making, 1: behind}) == {0: {1}}


def test_groups_of_other_members_are_waited_for_in_vain_once_all_ranks_are_there() -> None:
    def making(members: str, number: int = 1) -> Standing:
        wait = Wait(f"new_group{members}", 1.0, "groups", (), number)
        return Standing(Kind.WAITS, 1.0, wait, (("groups", number),))

    standings = {0: making("(0,2)"), 1: making(""), 2: making("(0,2)")}
    assert stuck_ranks(standings) == {0: {1}, 1: {0, 2}, 2: {1}}
    assert stuck_ranks({**standings, 3: _works(0)}) == {}, "who has not come yet may set them free"
    assert stuck_ranks({0: making("(0,2)"), 1: making("(0,2)"), 2: making("(0,2)")}) == {}


def _beat(second: int, **fields: Any) -> dict[str, Any]:
    signs = {
        "main": [1000, 5],
        "cpu": 1.0,
        "others": {"disk": False, "threads": [], "children": []},
    }
    signs.update(fields.pop("signs", {}))
    frames = [{"file": "/home/user/train.py", "line": 3, "function": "main"}]
    return {"time": 1000.0 + second, "frames": frames, "group": 2, "signs": signs, **fields}


def _after(seconds: int, sign: Any = None, frames: Any = None) -> Standing:
    """Where a rank stands that shows ``sign(second)`` in each beat and nothing else."""
    rank = WatchedRank(0)
    for second in range(seconds + 1):
        data = _beat(second, signs=sign(second) if sign else {})
        if frames is not None:
            data["frames"] = frames
        rank.update(beat_from(data))
    return rank.standing()


def test_without_any_sign_of_life_a_rank_stands_still_after_a_while() -> None:
    assert _after(int(STILL_SECONDS) - 2).kind is Kind.WORKS
    assert _after(int(STILL_SECONDS) + 1).kind is Kind.STILL


def test_who_sleeps_on_purpose_may_do_so_for_minutes(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import time\nwhile refused():\n    time.sleep(60)\n    ask()\n")
    sleeping = [{"file": str(script), "line": 3, "function": "<module>"}]
    assert _after(int(STILL_SECONDS) + 60, frames=sleeping).kind is Kind.WORKS
    assert _after(301, frames=sleeping).kind is Kind.STILL
    asking = [{"file": str(script), "line": 4, "function": "<module>"}]
    assert _after(int(STILL_SECONDS) + 1, frames=asking).kind is Kind.STILL


def _others(second: int, **fields: Any) -> dict[str, Any]:
    return {"others": {"disk": False, "threads": [], "children": [], **fields}}


@pytest.mark.parametrize(
    "sign",
    [
        lambda second: {"main": [1000 + second, 5 + second]},
        lambda second: {"cpu": 1.0 + 0.1 * second},
        lambda second: _others(second, disk=True),
        lambda second: _others(second, threads=[[7, 0, 4 * second]]),
        lambda second: _others(second, children=[[8, 50 * second, 0, 0]]),
        lambda second: _others(second, children=[[8, 0, 9 * second, 0]]),
        lambda second: _others(second, children=[[8, 0, 0, 1]]),
        lambda second: _others(second, children=[[100 + second, 0, 0, 0]]),
    ],
    ids=[
        "woken",
        "threads",
        "disk",
        "thread",
        "child computes",
        "child reads",
        "child's disk",
        "new",
    ],
)
def test_each_sign_of_life_counts(sign: Any) -> None:
    assert _after(60, sign).kind is Kind.WORKS


def test_idle_children_and_pollers_are_no_sign_of_life() -> None:
    idle = lambda second: _others(  # noqa: E731
        second, threads=[[7, 1000 * second, second]], children=[[8, 3, second // 5, 0]]
    )
    assert _after(60, idle).kind is Kind.STILL


@pytest.mark.parametrize("name", ["/usr/lib/python3.12/ssl.py", "/x/urllib3/response.py"])
def test_a_rank_that_waits_for_a_network_is_never_still(name: str) -> None:
    frames = [{"file": name, "line": 3, "function": "read"}]
    assert _after(3600, frames=frames).kind is Kind.WORKS


def test_a_beat_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    from ranksafe.runs.watch.beat import read_beat

    path = tmp_path / "rank0.beat"
    assert read_beat(path) is None
    for text in ("", "[]", '{"time": null}', '{"time": 1, "frames": [], "signs": {"main": [1]}}'):
        path.write_text(text, encoding="utf-8")
        assert read_beat(path) is None
    path.write_text('{"time": 1, "frames": [], "group": null}', encoding="utf-8")
    assert read_beat(path) is not None, "of an agent that tells less"


SOURCE = """\
def step(rank, value):
    if rank == 0:
        one(value)
    elif rank == 1:
        two(value)
    else:
        three(value)
    four(value)


def loop(rank):
    for index in range(3):
        if rank == 0:
            one(index)
        two(index)


def guarded(rank):
    if rank == 0:
        one(rank)
    two(rank)


for each in range(3):
    step(0, each)
guarded(0)
"""


def _stack(path: Path, *places: tuple[str, int]) -> list[Frame]:
    return [Frame(str(path), line, function, in_user_code=True) for function, line in places]


@pytest.mark.parametrize(
    ("one", "other", "same_number", "expected"),
    [
        ((("<module>", 25), ("step", 3)), (("<module>", 25), ("step", 7)), False, 2),
        ((("<module>", 25), ("step", 5)), (("<module>", 25), ("step", 7)), False, 4),
        ((("<module>", 25), ("step", 3)), (("<module>", 25), ("step", 8)), True, None),
        ((("<module>", 26), ("guarded", 20)), (("<module>", 26), ("guarded", 21)), True, 19),
        ((("<module>", 26), ("guarded", 20)), (("<module>", 26), ("guarded", 21)), False, None),
        ((("<module>", 26), ("loop", 14)), (("<module>", 26), ("loop", 15)), True, None),
        ((("<module>", 25), ("step", 3)), (("<module>", 26), ("guarded", 21)), True, None),
        ((("<module>", 25), ("step", 3)), (("<module>", 25), ("step", 3)), True, None),
    ],
)
def test_where_two_stacks_part_is_told_only_where_it_is_certain(
    tmp_path: Path, one: Any, other: Any, same_number: bool, expected: int | None
) -> None:
    path = tmp_path / "train.py"
    path.write_text(SOURCE, encoding="utf-8")
    expectation = None if expected is None else (str(path), expected)
    for left, right in ((one, other), (other, one)):
        found = parting(_stack(path, *left), _stack(path, *right), same_number=same_number)
        assert found == expectation


def test_ranks_are_named_shortly() -> None:
    assert ranks_text([1]) == "rank 1"
    assert ranks_text([3, 0, 2, 4, 7, 6]) == "ranks 0, 2-4, 6, 7"


def test_who_is_waited_for_again_and_again_is_told_with_figures() -> None:
    ranks = {0: WatchedRank(0), 1: WatchedRank(1)}
    view = LiveView(UserCode([Path("/home/user")], Path("/home/user")))
    for second in range(100):
        waits = (
            {} if second % 4 == 0 else {"now": [{"call": "all_reduce", "since": 1000.0 + second}]}
        )
        collectives = {"entered": second, "left": second, **waits}
        ranks[0].update(beat_from(_beat(second, steps=second + 1, collectives=collectives)))
        ranks[1].update(beat_from(_beat(second, steps=second + 1)))
        states = view.states(ranks, {rank: each.standing() for rank, each in ranks.items()})
    assert in_one_line(states).en == "ranks 0, 1: step 100, 1.0/s"
    [sentence] = view.stragglers()
    assert "waited for rank 1 during 7" in sentence.en
    assert view.stragglers()[0].zh_cn.startswith("训练时间的 7")


_COMPUTES = """
while True:
    end = time.process_time() + 0.05
    while time.process_time() < end:
        pass
    print(flush=True)
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells of processes")
@pytest.mark.parametrize(
    ("does", "rests"), [("time.sleep(60)", True), (_COMPUTES, False), ("", False)]
)
def test_silence_counts_only_while_the_process_rests(does: str, rests: bool) -> None:
    source = f"import time\nprint(flush=True)\n{does}"
    with subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(0.2)
            unheard = Unheard()
            unheard.started(1, process.pid)
            longest = 0.0
            for look in range(26):
                if not rests:
                    process.stdout.readline()
                unheard.look({0}, look / 5)
                longest = max(longest, unheard.seconds(1))
            assert (longest > 4) == rests
            unheard.look({0, 1}, 6.0)
            assert unheard.seconds(1) == 0
        finally:
            process.kill()


def test_silence_does_not_count_while_nobody_is_heard() -> None:
    unheard = Unheard()
    unheard.started(1, os.getppid())
    for now, heard in ((0.0, {0}), (1.0, set[int]()), (400.0, set[int]()), (401.0, {0})):
        unheard.look(heard, now)
    assert unheard.seconds(1) <= 2


def _told_at_once(folder: Path, waits: dict[int, Any], ended: Any = None) -> Hang | None:
    """What is said after one look at one beat of each rank, and at the end of rank 1 if it has ended."""
    watchdog = Watchdog(folder, UserCode([folder], folder), "en")
    for rank, wait in waits.items():
        told = {"now": [wait], "counts": {"0": [wait["number"], [0, 1]]}}
        beat = {"time": 101.0, "frames": [], "collectives": told}
        (folder / f"rank{rank}.beat").write_text(json.dumps(beat))
    if ended is not None:
        watchdog.heard(1, {"event": "exit", **ended})
    watchdog.turn()
    return watchdog.hang


def _wait(call: str, number: int | None, **fields: Any) -> dict[str, Any]:
    return {"call": call, "since": 100.9, "group": "0", "ranks": [0, 1], "number": number, **fields}


def test_a_deadlock_in_counted_collectives_is_certain_at_once(tmp_path: Path) -> None:
    other = {**_wait("broadcast", 1), "group": "1", "ranks": [0, 1]}
    hang = _told_at_once(tmp_path, {0: _wait("barrier", 2), 1: {**other, "number": 1}})
    assert hang is not None
    assert "barrier" in hang.sentence.en


def test_what_is_not_counted_is_looked_at_again(tmp_path: Path) -> None:
    transfers = {0: _wait("recv", 1, peers=[1]), 1: _wait("recv", 1, peers=[0])}
    assert _told_at_once(tmp_path, transfers) is None


@pytest.mark.parametrize(
    ("ended", "is_told"),
    [
        ({"time": 99.0}, True),
        # Those that wait for it may lose their connection yet, or its status tells more.
        ({"time": 100.8}, False),
        ({"time": 99.0, "asked": {"status": 3, "frames": []}}, False),
    ],
)
def test_a_rank_that_came_to_its_end_never_comes(tmp_path: Path, ended: Any, is_told: bool) -> None:
    hang = _told_at_once(tmp_path, {0: _wait("barrier", 2)}, ended)
    assert (hang is not None) is is_told
