"""Runs of which one rank waits for the editor's debugger."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ranksafe.lsp.messages import DEBUG_ONLY_HERE
from ranksafe.lsp.options import as_mapping
from ranksafe.lsp.run_request import Refused, request_for
from ranksafe.lsp.session import Session
from ranksafe.lsp.targets import as_count
from ranksafe.lsp.user_state import DEFAULT_TARGET

if TYPE_CHECKING:
    from ranksafe.runs.model import RunRequest

DEBUG_RANK: Final = "ranksafe.debugRank"


async def debug_rank(
    session: Session, uri: str, rank: int | None = None, options: object = None
) -> dict[str, Any]:
    """Run a document's script on all free GPUs, or as the options say, with one rank that waits for a debugger.

    Without a rank: how many there would be. Else the run's id and, once the rank waits, the arguments of debugpy's
    attach request. The option ``debugpy`` names a folder that has it, for a Python that has none. Raises Refused.
    """
    from ranksafe.runs.agent import INJECT_DIRECTORY
    from ranksafe.runs.model import Debugging

    given = as_mapping(options)
    request = request_for(session, uri, given)
    if request.target != DEFAULT_TARGET:
        raise Refused(DEBUG_ONLY_HERE.filled(file=request.script.name, target=request.target))
    if rank is None:
        return {"ranks": await _ranks(session, request)}
    if isinstance(rank, bool) or not isinstance(rank, int) or rank < 0:
        raise TypeError("the number of a rank is expected")
    libraries = given.get("debugpy")
    debugging = Debugging(rank, Path(libraries) if isinstance(libraries, str) else None)
    run_id = await session.runs.start(replace(request, debugging=debugging))
    address = await session.runs.debugger(run_id)
    if address is None:
        return {"runId": run_id}
    attach = {
        "connect": {"host": address[0], "port": address[1]},
        "justMyCode": True,
        # Whoever steps into a collective wants none of ours.
        "rules": [{"path": str(INJECT_DIRECTORY), "include": False}],
    }
    return {"runId": run_id, "attach": attach}


async def _ranks(session: Session, request: RunRequest) -> int:
    """How many ranks a run would have."""
    from ranksafe.runs.cpu_ranks import cpu_ranks
    from ranksafe.runs.launch_plan import Style, style_of

    if request.config_file is not None and (count := _configured(request.config_file)):
        return count
    if style_of(request.script.read_text(encoding="utf-8", errors="replace"), True) is Style.PYTHON:
        return 1
    await session.free_gpus.wait()
    free = None if request.cpu_ranks else session.free_gpus.known()
    return request.gpus or free or cpu_ranks(None)


def _configured(path: Path) -> int | None:
    """As an accelerate configuration has it."""
    import yaml

    try:
        configured = as_mapping(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, yaml.YAMLError):
        return None
    return as_count(configured.get("num_processes"))
