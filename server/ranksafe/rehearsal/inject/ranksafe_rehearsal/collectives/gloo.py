"""``gloo`` with tensors on simulated devices: the simulated nccl carries them.

torch's gloo moves CUDA tensors through the host; only CUDA builds can (``ProcessGroupGlooCuda.cpp``), others end in a
crash. Unlike nccl it takes no memory of a device, and several ranks may use one device.
"""

from __future__ import annotations

from typing import Any

from . import backend


def install() -> None:
    """Have each group of gloo carry tensors of devices."""
    import torch.distributed as distributed

    if not distributed.is_available() or not distributed.is_gloo_available():
        return
    from torch.distributed import distributed_c10d

    groups: Any = distributed_c10d.ProcessGroup
    gloo: Any = distributed_c10d.ProcessGroupGloo
    construct, register = gloo.__init__, groups._register_backend
    stores: list[Any] = []

    def initialise(self: Any, store: Any, *given: Any, **named: Any) -> None:
        construct(self, store, *given, **named)
        # torch registers a group right after it has made it.
        stores[:] = [store]

    def registered(self: Any, device: Any, kind: Any, made: Any = None) -> None:
        if device.type == "cuda" and isinstance(made, gloo):
            store = distributed.PrefixStore("cuda", stores[0])
            made = backend.carrier(store, made.rank(), made.size())
            kind = groups.BackendType.CUSTOM
        register(self, device, kind, made)

    gloo.__init__ = initialise
    groups._register_backend = registered
