"""What the user says of hosts: one file of the user's own, ``hosts.toml``; no workspace has a say in it.

[gpu-box]
interpreter = "~/envs/train/bin/python"   # the Python with torch; or one of
conda = "train"                           # a conda environment, by name or folder
command = ["uv", "run", "python"]         # what starts it: uv, a container, a wrapper
folder = "/scratch/me/ranksafe"           # where projects and runs are kept
lease-hours = 24                          # how long a run goes on when nobody comes back
patience-minutes = 15                     # how long a host that was lost is sought again
project-limit-mb = 500                    # larger projects are not sent
despite-slurm = false                     # run past the scheduler of a cluster's node
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from ranksafe.localization import Translated
from ranksafe.runs.user_files import Environment, names_in, read_table, read_tables, user_file
from ranksafe.settings import Amount, Expected, Flag

PYTHON_KEYS: Final = ("interpreter", "conda", "command")
"""Ways to name the Python of a host; at most one is used."""
APath = Annotated[
    str, Expected(Translated(en="a path in quotes", zh_cn="带引号的路径"), check=bool)
]
Words = Annotated[
    tuple[str, ...],
    Expected(
        Translated(
            en='a list of at least two words, such as ["uv", "run", "python"]',
            zh_cn='至少两个单词的列表，例如 ["uv", "run", "python"]',
        ),
        # What can be started, and can have arguments: the first word is no option.
        check=lambda words: (
            len(words) > 1 and words[0][:1] not in {"", "-"} and "\0" not in "".join(words)
        ),
    ),
]


@dataclass(frozen=True, slots=True)
class HostSettings:
    """Of one host."""

    interpreter: APath | None = None
    """A path on the host, perhaps with ``~``. None, as are `conda` and `command`: found there."""
    conda: Environment | None = None
    """The name or prefix of a conda environment there."""
    command: Words = ()
    """Words that start a Python there, given its arguments; no shell reads them."""
    folder: APath | None = None
    """On the host; None: its user's cache folder."""
    lease_hours: Amount = 12.0
    patience_minutes: Amount = 15.0
    project_limit_mb: Amount = 200.0
    despite_slurm: Flag = False

    @property
    def python(self) -> dict[str, Any] | None:
        """The user's choice, as `on_host.environments` reads it."""
        if self.command:
            return {"command": self.command}
        if self.conda is not None:
            return {"conda": self.conda}
        return None if self.interpreter is None else {"program": self.interpreter}


def settings_file() -> Path:
    """``ranksafe/hosts.toml`` under XDG_CONFIG_HOME, ``~/.config`` where that is not set or not absolute."""
    return user_file("hosts.toml")


def settings_of(host: str) -> HostSettings:
    """What the user says of ``host``. Raises RunNotPossible when the file cannot be understood."""
    path = settings_file()
    return read_table(HostSettings, path, host, read_tables(path).get(host, {}), PYTHON_KEYS)


def named_hosts() -> list[str]:
    """The hosts that the file names; none where it cannot be read."""
    return names_in(settings_file())
