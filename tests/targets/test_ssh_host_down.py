"""A host that vanishes while a run goes on: nothing says so, and it never answers again, or only after a restart."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest
from ranksafe.cli.main import main
from ranksafe.runs.attach import attach, waiting_runs
from ranksafe.runs.errors import RunNotPossible
from ranksafe.runs.hosts.errors import HostUnreachable
from ranksafe.runs.model import Outcome, RunEvent

from .cable import Cable
from .far_host import Far, processes_with, until

_STEPS = """\
import sys, time
import torch.distributed as dist

dist.init_process_group("gloo")
for number in range(3000):
    print("step", number, "of rank", dist.get_rank(), flush=True)
    time.sleep(0.1)
"""


@pytest.mark.torch
@pytest.mark.long
def test_the_host_is_switched_off(
    far: Far,
    cable: Cable,
    torch_python: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    mark = f"ranksafe-test-off-{os.getpid()}-{time.monotonic_ns()}"
    far.settle("patience-minutes = 0.1", interpreter=str(torch_python))
    cable.plug_in(tmp_path, monkeypatch)
    with cable.server(tmp_path) as server:
        monkeypatch.setenv("RANKSAFE_SSH_CONFIG", str(server.config))
        script = far.write("train.py", _STEPS)
        run = far.start(script, launcher="torchrun", gpus=2, arguments=(mark,))
        until(lambda: {"step 25 of rank 0", "step 25 of rank 1"} <= set(far.said("output")), 90)
        cable.set("down")
        cable.end_far_side()
        result = run.wait(120)
    assert result is not None
    assert processes_with(mark) == []
    assert processes_with(str(server.config)) == []
    assert result.outcome is Outcome.FAILED
    failure = result.failures[0]
    assert failure.kind == "host-lost"
    assert failure.message == "ssh:gpu-box did not come back: it was lost while the run went on"
    for rank in (0, 1):
        last = [text for text in far.said("output") if text.endswith(f"of rank {rank}")][-1]
        said = rf'Rank {rank} last printed "{last}" and was at train\.py:[67]\.'
        assert re.search(said, failure.explanation.en), failure.explanation
        assert f"rank {rank} 最后输出“{last}”，位于 train.py:" in failure.explanation.zh_cn
    said = far.said("status")
    assert any("is lost" in each for each in said)
    assert any("did not come back within 0.1 minutes" in each for each in said)

    assert waiting_runs() == [run.run_id]
    with pytest.raises(HostUnreachable) as raised:
        attach(run.run_id, [].append)
    assert "gpu-box does not answer" in raised.value.message.en
    assert f'Rank 1 last printed "{last}" and was at train.py:' in raised.value.message.en
    assert main(["stacks", run.run_id]) == 2
    assert "gpu-box does not answer" in capsys.readouterr().err

    cable.set("up")
    with cable.server(tmp_path):
        # When it was started anew cannot be changed here, so it is the supervisor's last word that is older.
        os.utime(far.run_folder(run.run_id) / "supervisor.json", (1.0, 1.0))
        events: list[RunEvent] = []
        result = attach(None, events.append).wait(60)
    assert result is not None
    assert result.outcome is Outcome.FAILED
    assert result.failures[0].kind == "host-restarted"
    assert "Rank 0 last printed" in result.failures[0].explanation.en
    with pytest.raises(RunNotPossible, match="has ended"):
        attach(run.run_id, [].append)
