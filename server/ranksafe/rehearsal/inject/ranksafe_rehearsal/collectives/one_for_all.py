"""One rank stands for all of a world: what the others would send is taken to be its own.

``torch.distributed`` has a process group for that, ``fake`` (torch 2.1 to 2.13,
``torch/testing/_internal/distributed/fake_pg.py``): sizes and shapes are those of the whole world, values are not. Ours
(``native/src/nccl/one_for_all.h``) is that one, with futures that hold what DDP and communication hooks look for.
"""

from __future__ import annotations

import functools
import os
import sys
from typing import Any, Callable

from .. import importing
from ..settings import Settings
from . import backend


def install(settings: Settings) -> None:
    """Let the script's own process believe that it is rank 0 of ``stands_for``."""
    if settings.stands_for < 2 or not _is_a_rank(settings):
        return
    os.environ.update(
        RANK="0",
        LOCAL_RANK="0",
        WORLD_SIZE=str(settings.stands_for),
        LOCAL_WORLD_SIZE=str(settings.devices),
    )
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29500")


def _is_a_rank(settings: Settings) -> bool:
    """Whether this is no launcher: it has a rank, or Python was started with the script."""
    words = [word for word in sys.orig_argv[1:] if not word.startswith("-")]
    script = bool(words) and os.path.abspath(words[0]) == settings.script
    return "RANK" in os.environ or (script and "-m" not in sys.orig_argv)


def replace_groups(settings: Settings) -> None:
    """Give ``torch.distributed``, once imported, groups that need nobody else."""
    if settings.stands_for < 2 or "RANK" not in os.environ:
        return
    import torch.distributed as distributed
    from torch.distributed import distributed_c10d

    importing.after_import("torch.distributed.checkpoint.default_planner", _accept_own_shards)

    def first(original: Callable[..., Any], *_: Any, **given: Any) -> None:
        from torch.testing._internal.distributed.fake_pg import FakeStore

        _replace_creator(distributed.Backend)
        kept = {name: given[name] for name in ("timeout", "group_name") if name in given}
        world = settings.stands_for
        original("fake", store=FakeStore(), rank=0, world_size=world, **kept)
        backend.groups[0] += 1

    def further(original: Callable[..., Any], *given: Any, **named: Any) -> Any:
        ranks, timeout = (*given, None, None)[:2]
        named.update(backend="fake", pg_options=None)
        if given:
            named.update(ranks=ranks, timeout=timeout)
        group = original(**named)
        backend.groups[0] += group is not distributed.GroupMember.NON_GROUP_MEMBER
        return group

    for name, instead in (("init_process_group", first), ("new_group", further)):
        original = getattr(distributed_c10d, name)
        replaced = functools.wraps(original)(functools.partial(instead, original))
        # Modules that torch.distributed itself imports hold them, too: device_mesh.
        for place in list(sys.modules.values()):
            if getattr(place, "__dict__", {}).get(name) is original:
                setattr(place, name, replaced)


def _accept_own_shards(module: Any) -> None:
    """A checkpoint of all ranks has this one's shards alone, which its check would call incomplete.

    It returns its complaints as a list (torch 2.13), before that whether there are none.
    """
    check = module._validate_global_plan

    @functools.wraps(check)
    def accept(*given: Any) -> Any:
        return [] if isinstance(check(*given), list) else True

    module._validate_global_plan = accept


def _replace_creator(kinds: Any) -> None:
    """Have the registered backend ``fake`` make our groups (``Backend.register_backend``, torch 2.13)."""

    def create(common: Any, _: Any) -> Any:
        return backend.one_for_all(common.group_rank, common.group_size)

    plugin = kinds._plugins["FAKE"]
    kinds._plugins["FAKE"] = plugin._replace(creator_fn=create)
