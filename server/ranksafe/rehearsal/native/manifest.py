"""What a folder of compiled files says about itself."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from ranksafe.rehearsal.settings import NativeFiles
from ranksafe.rehearsal.torch_build import TorchBuild

DEVICES = "libranksafe_devices.so"
"""The library with the simulated devices; its SONAME too."""
NCCL_MODULE = "_ranksafe_nccl"
"""The name of the extension module with the process group."""
_FILE = "manifest.json"


@dataclass(frozen=True, slots=True)
class Manifest:
    """The files of one build by name, and the torch it was made for."""

    key: str
    """`ranksafe.rehearsal.native.build.build_key`."""
    torch: str
    """`TorchBuild.version`."""
    stand_ins: tuple[str, ...]
    devices: str
    nccl_module: str
    glibc: str
    """The oldest C library that has all they need: ``2.34``."""

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """The manifest in ``folder``. Raises OSError, and ValueError or TypeError where it is not one."""
        fields = json.loads((folder / _FILE).read_text(encoding="utf-8"))
        return cls(**{**fields, "stand_ins": tuple(fields["stand_ins"])})

    def write(self, folder: Path) -> None:
        """Write it into ``folder``. Raises OSError."""
        (folder / _FILE).write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")

    def files(self, folder: Path) -> NativeFiles:
        """The files as absolute paths."""
        return NativeFiles(
            stand_ins=tuple(str(folder / name) for name in self.stand_ins),
            devices=str(folder / self.devices),
            nccl_module=str(folder / self.nccl_module),
        )


def nccl_file(build: TorchBuild) -> str:
    """The file name of the extension module for that Python."""
    return f"{NCCL_MODULE}{build.extension_suffix}"
