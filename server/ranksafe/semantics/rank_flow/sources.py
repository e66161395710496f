"""Names and attributes that say which rank runs, and in how large a world.

Functions of torch, accelerate and their relatives are recognised by their canonical names. Attributes and parameters
of unknown objects are recognised by the field's conventions (``args.local_rank``, ``self.is_main_process``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class World:
    """The ranks that are looked at: one node, all of whose processes are ranks."""

    rank: int
    size: int


_RANK_FUNCTIONS = frozenset(
    {
        "torch.distributed.get_rank",
        "torch.distributed.get_node_local_rank",
        "torch.distributed.distributed_c10d.get_rank",
        "torch_xla.core.xla_model.get_ordinal",
        "torch_xla.runtime.global_ordinal",
        "deepspeed.comm.get_rank",
        "horovod.torch.rank",
        "horovod.torch.local_rank",
    }
)
_SIZE_FUNCTIONS = frozenset(
    {
        "torch.distributed.get_world_size",
        "torch.distributed.distributed_c10d.get_world_size",
        "deepspeed.comm.get_world_size",
        "horovod.torch.size",
    }
)
_TRUE_FUNCTIONS = frozenset(
    {
        "torch.distributed.is_available",
        "torch.distributed.is_initialized",
        "torch.distributed.is_torchelastic_launched",
        "torch.distributed.distributed_c10d.is_initialized",
        "deepspeed.comm.is_initialized",
        "accelerate.utils.is_torch_distributed_available",
    }
)
_RANK_VARIABLES = frozenset(
    {
        "RANK", "LOCAL_RANK", "SLURM_PROCID", "SLURM_LOCALID", "OMPI_COMM_WORLD_RANK", "GLOBAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_RANK",
    }
)  # fmt: skip
_SIZE_VARIABLES = frozenset(
    {"WORLD_SIZE", "LOCAL_WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}
)
_NODE_VARIABLES = frozenset({"NODE_RANK", "GROUP_RANK", "SLURM_NODEID"})

_RANK_WORDS = frozenset(
    {
        "rank", "local_rank", "global_rank", "process_index", "local_process_index", "proc_id", "_rank",
        "_local_rank", "_global_rank", "world_rank", "dist_rank", "ddp_rank", "ddp_local_rank", "rank_id",
        "dp_rank", "data_parallel_rank", "RANK", "LOCAL_RANK",
    }
)  # fmt: skip
_SIZE_WORDS = frozenset(
    {
        "world_size", "num_processes", "_world_size", "local_world_size", "ddp_world_size", "nprocs",
        "num_replicas", "WORLD_SIZE",
    }
)  # fmt: skip
_MAIN_WORDS = frozenset(
    {
        "is_main_process", "is_local_main_process", "is_world_process_zero", "is_local_process_zero",
        "is_global_zero", "is_rank_zero", "is_rank_0", "is_rank0", "is_master", "is_master_process",
        "is_main", "is_main_rank", "master_process", "main_process", "should_save", "is_zero_rank",
        "world_process_zero", "is_master_rank", "is_main_proc", "is_chief",
    }
)  # fmt: skip
_LAST_WORDS = frozenset({"is_last_process"})
_DISTRIBUTED_WORDS = frozenset(
    {
        "distributed", "is_distributed", "use_distributed", "use_ddp", "ddp", "is_ddp", "multi_gpu",
        "is_dist", "use_dist", "distributed_training", "is_distributed_training", "is_dist_initialized",
        "is_dist_avail_and_initialized", "dist_initialized", "is_parallel",
    }
)  # fmt: skip
_DATA_WORDS = frozenset(
    {
        "batch", "inputs", "labels", "targets", "input_ids", "data_batch", "batch_data", "gt_bboxes",
        "gt_labels", "pred_boxes", "mini_batch", "minibatch", "micro_batch",
    }
)  # fmt: skip
_GENERATED = frozenset({"completions", "completion_ids"})
"""What trl's trainers give a reward function (trl 1.16.0, trainer/grpo_trainer.py): those of this rank's prompts."""
_STEPS = frozenset(
    {
        "forward", "loss", "training_step", "train_step", "validation_step", "compute_loss", "step",
        "get_loss", "prediction_step", "loss_fn", "train_one_step", "__call__", "compute_metrics",
    }
)  # fmt: skip
GUARDING_DECORATORS = frozenset(
    {
        "rank_zero_only", "on_main_process", "on_local_main_process", "master_only", "main_process_only",
        "rank_zero", "only_main_process",
    }
)  # fmt: skip


def is_rank_word(word: str) -> bool:
    """Whether a name says which rank runs: its value differs from rank to rank."""
    return word in _RANK_WORDS or word in _MAIN_WORDS or word in _LAST_WORDS


def is_data_parameter(function: str, word: str) -> bool:
    """Whether a parameter is the batch of a step, of which each rank has its own."""
    return word in _GENERATED or (word in _DATA_WORDS and function in _STEPS)


def by_word(word: str, world: World) -> Any:
    """The value that an attribute or parameter of this name has by convention; None when it says nothing."""
    if word in _RANK_WORDS:
        return world.rank
    if word in _SIZE_WORDS:
        return world.size
    if word in _MAIN_WORDS:
        return world.rank == 0
    if word in _LAST_WORDS:
        return world.rank == world.size - 1
    if word in _DISTRIBUTED_WORDS:
        return True
    return None


def by_function(name: str, world: World) -> Any:
    """What a library's function returns; None when it says nothing of the rank."""
    if name in _RANK_FUNCTIONS:
        return world.rank
    if name in _SIZE_FUNCTIONS:
        return world.size
    if name in _TRUE_FUNCTIONS:
        return True
    return None


def is_rank_function(name: str) -> bool:
    """Whether a library's function returns the rank."""
    return name in _RANK_FUNCTIONS


def by_variable(name: str, world: World) -> str | None:
    """The text of an environment variable that a launcher sets; None for others."""
    if name in _RANK_VARIABLES:
        return str(world.rank)
    if name in _SIZE_VARIABLES:
        return str(world.size)
    if name in _NODE_VARIABLES:
        return "0"
    return None


def is_rank_variable(name: str) -> bool:
    """Whether a launcher's environment variable differs from rank to rank."""
    return name in _RANK_VARIABLES
