"""``nvidia-smi`` for the simulated devices: the queries that training code makes, ``-L`` and the plain table."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from . import node_devices, settings

_MEBIBYTE = 1 << 20
_NO_DEVICES = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."


def _memory(size: int) -> str:
    return f"{size // _MEBIBYTE} MiB"


def _capability(device: int) -> str:
    major, minor = node_devices.capability()
    return f"{major}.{minor}"


_FIELDS: dict[str, Callable[[int], str]] = {
    "index": str,
    "count": lambda device: str(node_devices.count()),
    "name": lambda device: node_devices.name(),
    "gpu_name": lambda device: node_devices.name(),
    "uuid": lambda device: node_devices.uuid(device),
    "gpu_uuid": lambda device: node_devices.uuid(device),
    "serial": lambda device: f"{device:013d}",
    "gpu_serial": lambda device: f"{device:013d}",
    "driver_version": lambda device: node_devices.DRIVER_VERSION,
    "compute_cap": _capability,
    "compute_mode": lambda device: "Default",
    "pci.bus_id": lambda device: node_devices.pci_address(device),
    "gpu_bus_id": lambda device: node_devices.pci_address(device),
    "memory.total": lambda device: _memory(node_devices.memory_total()),
    "memory.used": lambda device: _memory(0),
    "memory.free": lambda device: _memory(node_devices.memory_total()),
    "memory.reserved": lambda device: _memory(0),
    "utilization.gpu": lambda device: "0 %",
    "utilization.memory": lambda device: "0 %",
    "temperature.gpu": lambda device: str(node_devices.TEMPERATURE),
    "power.draw": lambda device: f"{node_devices.POWER_WATTS:.2f} W",
    "power.limit": lambda device: f"{node_devices.POWER_LIMIT_WATTS:.2f} W",
    "clocks.sm": lambda device: f"{node_devices.CLOCK_MHZ} MHz",
    "clocks.gr": lambda device: f"{node_devices.CLOCK_MHZ} MHz",
    "clocks.mem": lambda device: f"{node_devices.CLOCK_MHZ} MHz",
    "mig.mode.current": lambda device: "Disabled",
    "persistence_mode": lambda device: "Enabled",
    "pstate": lambda device: "P0",
    "timestamp": lambda device: "2025/01/01 00:00:00.000",
}
_QUESTIONS = frozenset({"--query-gpu", "--query-compute-apps", "--query-accounted-apps"})
"""Of the last two the answer is empty: nothing else runs on the simulated devices."""
_UNITS = {"MiB": "MiB", "%": "%", "W": "W", "MHz": "MHz"}


def main(arguments: Sequence[str]) -> int:
    """Print what is asked for and return the exit status: 9, as the real one, where there are no devices."""
    if settings.current() is None:
        print(_NO_DEVICES)
        return 9
    options = _Options(arguments)
    if options.problem:
        print(options.problem)
        return 2
    if options.list_devices:
        for device in options.devices:
            uuid = node_devices.uuid(device)
            print(f"GPU {device}: {node_devices.name()} (UUID: {uuid})")
    elif options.query is not None:
        return _print_query(options)
    elif options.query_processes:
        if options.header:
            print(", ".join(options.query_processes.split(",")))
    else:
        print(_table(options.devices))
    return 0


def is_simulated(arguments: Sequence[str]) -> bool:
    """Whether all of a question is answered as by the real one."""
    options = _Options(arguments)
    questions = {each.partition("=")[0] for each in arguments if each.startswith("--query-")}
    known = _QUESTIONS >= questions and _FIELDS.keys() >= set(options.query or ())
    return known and not options.problem


class _Options:
    """The command line, as far as it is understood; ``problem`` says what is not."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self.list_devices = False
        self.query: list[str] | None = None
        self.query_processes = ""
        self.header = self.units = True
        self.problem = ""
        self.devices = list(range(node_devices.count()))
        rest = iter(arguments)
        for argument in rest:
            name, equals, value = argument.partition("=")
            if name in ("-L", "--list-gpus"):
                self.list_devices = True
            elif name in ("-i", "--id"):
                self._choose(value if equals else next(rest, ""))
            elif name == "--query-gpu":
                self.query = [field.strip() for field in value.split(",")]
            elif name.startswith("--query-"):
                self.query_processes = value
            elif name in ("--format", "-f"):
                words = (value if equals else next(rest, "")).split(",")
                self.header, self.units = "noheader" not in words, "nounits" not in words
            elif name in ("-q", "--query", "-x", "-d", "-l", "-lms", "-h"):
                self.problem = f'Option "{argument}" is not simulated.'
            else:
                self.problem = f"Invalid combination of input arguments: {argument}"

    def _choose(self, text: str) -> None:
        known = {str(device): device for device in self.devices}
        known.update({node_devices.uuid(device): device for device in self.devices})
        known.update({node_devices.pci_address(device): device for device in self.devices})
        wanted = [known.get(word.strip()) for word in text.split(",")]
        if None in wanted:
            self.problem = f"No devices were found for {text}"
        self.devices = [device for device in wanted if device is not None]


def _print_query(options: _Options) -> int:
    fields = options.query or []
    for field in fields:
        if field not in _FIELDS:
            print(f'Field "{field}" is not a valid field to query.')
            return 2
    if options.header:
        print(", ".join(_header(field, options.units) for field in fields))
    for device in options.devices:
        values = [_FIELDS[field](device) for field in fields]
        print(", ".join(value if options.units else _bare(value) for value in values))
    return 0


def _header(field: str, units: bool) -> str:
    unit = _FIELDS[field](0).rpartition(" ")[2]
    return f"{field} [{unit}]" if units and unit in _UNITS else field


def _bare(value: str) -> str:
    number, _, unit = value.rpartition(" ")
    return number if unit in _UNITS else value


def _table(devices: Sequence[int]) -> str:
    line = "+" + "-" * 89 + "+"
    head = (
        f"NVIDIA-SMI {node_devices.DRIVER_VERSION}             "
        f"Driver Version: {node_devices.DRIVER_VERSION}     "
        f"CUDA Version: {node_devices.DRIVER_CUDA_VERSION}"
    )
    rows = [line, f"| {head:<88}|", line]
    total = node_devices.memory_total() // _MEBIBYTE
    for device in devices:
        left = f"{device:>4}  {node_devices.name()[:30]:<30} On"
        rows.append(f"| {left:<41}| {node_devices.pci_address(device)} Off | {'0':>18} |")
        usage = f"{node_devices.TEMPERATURE}C    P0    {node_devices.POWER_WATTS}W / "
        usage += f"{node_devices.POWER_LIMIT_WATTS}W"
        rows.append(f"| {usage:<41}| {f'0MiB / {total}MiB':>20} | {'0%      Default':>20} |")
        rows.append(line)
    return "\n".join(rows)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
