"""Debian packages that the tests start real parts from: an SSH server, a Slurm cluster, a browser.

In continuous integration they are installed where that is possible. Elsewhere nothing is: the tests that need one say
its name and skip themselves.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from environments import say

PACKAGES = {
    "git": "git",
    "ip": "iproute2",
    "rsync": "rsync",
    "ssh": "openssh-client",
    "sshd": "openssh-server",
    "munged": "munge",
    "slurmctld": "slurm-wlm",
    "fish": "fish",
    "tcsh": "tcsh",
    "zsh": "zsh",
    "chromium": "chromium",
}
"""Program to package."""
FOLDERS = {"/usr/share/fonts/opentype/noto": "fonts-noto-cjk"}
"""Folder to package, for what is no program."""
_OTHER_NAMES = {"chromium": ("chromium-browser", "google-chrome", "google-chrome-stable")}
"""Of programs that will do as well."""
_SEARCHED = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
_POLICY = Path("/usr/sbin/policy-rc.d")


def install_missing() -> None:
    """Install what is missing, without starting the services that come with it; what fails is said, no more."""
    missing = [
        package
        for program, package in PACKAGES.items()
        if not any(
            shutil.which(name, path=_SEARCHED) for name in (program, *_OTHER_NAMES.get(program, ()))
        )
    ]
    missing += [package for folder, package in FOLDERS.items() if not Path(folder).is_dir()]
    if not missing or os.geteuid() != 0 or shutil.which("apt-get") is None:
        return
    say(f"installing {', '.join(missing)}")
    ours = not _POLICY.exists()
    if ours:
        # Asked by Debian's packages before they start a service; 101 is "forbidden" (policy-rc.d(8)).
        _POLICY.write_text("#!/bin/sh\nexit 101\n", encoding="utf-8")
        _POLICY.chmod(0o755)
    try:
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for words in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends"]):
            command = ["apt-get", *words, *(missing if words[0] == "install" else [])]
            if subprocess.run(command, env=environment, check=False).returncode != 0:
                say(f"{' '.join(command)} failed")
    finally:
        if ours:
            _POLICY.unlink()
