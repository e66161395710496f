"""What can be chosen about a rehearsal, and what the processes of one are told."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path

SETTINGS_VARIABLE = "RANKSAFE_REHEARSAL"
"""Names the file with `ProcessSettings` in every process of a rehearsal; not set anywhere else."""
SETTINGS_FILE = "rehearsal.json"
"""In the run's folder."""
NODE_VARIABLE = "RANKSAFE_REHEARSAL_NODE"
"""Which simulated node a process belongs to, from 0; unset: 0."""
LIMIT_PREFIX = "ranksafe simulation limit: "
"""How the message of each limit of a rehearsal begins, raised in C++ or in Python (`ranksafe_rehearsal.limits`)."""
DEFAULT_GPUS = 2
DEFAULT_DEVICE_MODEL = "a100-80g"


class Shrink(str, Enum):
    """Whether pretrained models are replaced by small ones of the same architecture."""

    AUTO = "auto"
    """Where a model has more than about 100 million parameters, or its weights are not on disk."""
    ON = "on"
    WORK = "work"
    """As on, and large batches and pictures become small ones."""
    OFF = "off"


class Isolation(str, Enum):
    """Whether files and network are kept away from the script."""

    AUTO = "auto"
    """Where the system allows it; elsewhere the outcome says that the run was not isolated."""
    REQUIRED = "required"
    """Refuse to start where the system does not allow it."""
    OFF = "off"


class Network(str, Enum):
    """What of the network is in reach of an isolated script."""

    NONE = "none"
    READ_ONLY = "read-only"
    """GET and HEAD over HTTP, without the user's credentials."""


class Confirm(str, Enum):
    """Whether a script that failed runs once more, on one process, before it is accused."""

    AUTO = "auto"
    """Where its failure comes through something that stands in for the real thing."""
    ALWAYS = "always"
    OFF = "off"


class Warm(str, Enum):
    """Whether processes may be forked from one that has imported their libraries before."""

    AUTO = "auto"
    """Where nothing can come of it but less waiting."""
    OFF = "off"


@dataclass(frozen=True, slots=True)
class RehearsalOptions:
    """What the user chooses. The number of devices (per node) and of steps belong to the run request."""

    nodes: int = 1
    device_model: str = DEFAULT_DEVICE_MODEL
    """A name of `ranksafe.rehearsal.device_models`."""
    memory_bytes: int | None = None
    """Capacity of each device; None: the model's own."""
    host_memory_bytes: int | None = None
    """What all processes together may hold of this machine's memory; None: a safe share of what is free."""
    shrink: Shrink = Shrink.AUTO
    isolation: Isolation = Isolation.AUTO
    network: Network = Network.NONE
    confirm: Confirm = Confirm.AUTO
    short_epochs: bool = False
    """Cut long epochs, and end a training of many once it has shown what it does; the rest of the script runs."""
    warm: Warm = Warm.AUTO
    forecast: bool = False
    """Only memory is of interest: large floating tensors get no values."""
    unbounded: bool = False
    """With ``forecast``: devices take more than they hold, so that all that the script needs is seen."""
    stands_for: int = 1
    """With ``forecast``: how many ranks the only one stands for."""
    every_block: bool = False
    """With ``forecast``: all blocks of the peak are told, not only what they were for and the lines that took much."""
    texts: tuple[tuple[str, str], ...] = ()
    """What files, by path, are to say to the script instead of what they say: only where nothing that is written is
    kept."""
    warm_afterwards: bool = True
    """Whether what is kept ready for the next rehearsal may outlive this process; it waits ten minutes."""


@dataclass(frozen=True, slots=True)
class NativeFiles:
    """The compiled parts, all absolute paths, made for one torch installation by `ranksafe.rehearsal.native`."""

    stand_ins: tuple[str, ...]
    """Shared libraries to load first, in this order; empty for a torch built without CUDA."""
    devices: str
    """The library that registers the simulated devices; loaded after the stand-ins, before ``import torch``."""
    nccl_module: str
    """The Python extension module with the ``nccl`` process group; loaded after ``import torch.distributed``."""


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    """Read by ``ranksafe_rehearsal`` in every process of the rehearsal, as JSON: keys are the fields' names."""

    run_directory: str
    """Evidence goes here; writable from inside the isolation too."""
    script: str
    agent_directory: str
    """Holds ``ranksafe_agent``, whose journal and import hooks are shared."""
    devices: int
    """Per node."""
    nodes: int
    device_name: str
    capability: tuple[int, int]
    multi_processor_count: int
    memory_bytes: int
    """Capacity of each simulated device."""
    driver_memory_bytes: int
    """What the driver keeps of it."""
    context_memory_bytes: int
    """What CUDA itself takes of it in a process that uses the device."""
    host_memory_bytes: int | None
    """What all ranks together may use of the real memory; None: not bounded."""
    shrink: str
    short_epochs: bool
    forecast: bool
    """Whether only memory is of interest: large floating tensors have no values."""
    unbounded: bool
    """Whether devices take more than they hold."""
    stands_for: int
    """How many ranks the only one stands for; 1: each is a process."""
    every_block: bool
    """Whether all blocks of a forecast's peak are told."""
    offline: bool
    """Whether the network is out of reach (isolated)."""
    reads_network: bool
    """Whether it can be read from, through the isolation's reader, and nothing can be sent."""
    native: NativeFiles

    def write(self, directory: Path) -> Path:
        """Write `SETTINGS_FILE` into ``directory`` and return its path. Raises OSError."""
        path = directory / SETTINGS_FILE
        path.write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")
        return path
