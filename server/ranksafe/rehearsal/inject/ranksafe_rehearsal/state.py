"""What all parts of one process share: its settings, the library, and the devices it sees."""

from __future__ import annotations

import os

from . import visible_devices
from .library import DeviceLibrary
from .settings import Settings


class Devices:
    """The simulated devices of this process.

    As with the CUDA driver, ``CUDA_VISIBLE_DEVICES`` may still change after ``import torch``: it counts from the first
    question for the devices on.
    """

    def __init__(self, settings: Settings, library: DeviceLibrary) -> None:
        self.settings = settings
        self.library = library
        self.physical: list[int] = []
        """For each visible device, its number on the node."""
        self.imported = False
        """Whether ``import torch`` is over; before, the program can have asked for nothing."""
        self.is_template = False
        """Whether this process is only forked for others: they ask where this one did."""
        self._asked = False
        self._settled_in: int | None = None
        self._configure()

    @property
    def forked(self) -> bool:
        """Whether this process is the child of one that had already asked for the devices."""
        return self._settled_in is not None and self._settled_in != os.getpid()

    def settle(self) -> int:
        """The number of visible devices, unchangeable from the program's first question on."""
        if self._settled_in is None:
            self._configure()
            if self.is_template:
                self._asked = self._asked or self.imported
            if self.is_template or not self.imported:
                return len(self.physical)
            self._settled_in = os.getpid()
            # As in torch, asking is enough: a process forked from now on cannot use CUDA.
            self.library.use_devices()
        return len(self.physical)

    def begin(self) -> None:
        """Start over in a process that was forked from a template, with the settings of its own run."""
        self.is_template = False
        self._configure()
        if self.settings.host_memory_bytes is not None:
            self.library.limit_host_memory(self.settings.host_memory_bytes)
        if self._asked:
            self.settle()

    def _configure(self) -> None:
        self.physical = visible_devices.visible(self.settings.devices, self.settings.node)
        major, minor = self.settings.capability
        self.library.configure(
            len(self.physical),
            10 * major + minor,
            self.settings.memory_bytes,
            self.settings.driver_memory_bytes,
            self.settings.context_memory_bytes,
        )
        if self.settings.forecast:
            self.library.begin_forecast(self.settings.unbounded)


_devices: Devices | None = None


def start(settings: Settings, library: DeviceLibrary) -> Devices:
    """Make the devices of this process; called once, before torch is executed."""
    global _devices
    _devices = Devices(settings, library)
    return _devices


def devices() -> Devices:
    """The devices of this process. Raises RuntimeError before ``start``."""
    if _devices is None:
        raise RuntimeError("the simulated devices are not started")
    return _devices
