"""Where an interpreter keeps its packages, and which interpreter is the project's. Reads folders, starts nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from ranksafe.source.plain_files import read_plain

_MOST_BYTES: Final = 1 << 20
_PYTHON_FOLDER = re.compile(r"^python3\.\d+t?$")


def find_interpreter(folder: Path, environment: Mapping[str, str]) -> Path | None:
    """The Python of the project in ``folder``: the active virtual or conda environment, else a ``.venv`` or ``venv``
    in the folder or above it; None when there is none."""
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        prefix = environment.get(variable)
        found = _executable_in(Path(prefix)) if prefix else None
        if found is not None:
            return found
    for parent in (folder.absolute(), *folder.absolute().parents):
        for name in (".venv", "venv"):
            if (parent / name / "pyvenv.cfg").is_file():
                found = _executable_in(parent / name)
                if found is not None:
                    return found
    return None


def site_packages(interpreter: Path) -> tuple[Path, ...]:
    """The folders from which ``interpreter`` imports installed packages, first the one that wins.

    Knows virtual environments (``pyvenv.cfg``, with its base when system packages are included), conda environments,
    system installations of Linux, macOS and Windows, pyenv's shims and the user's own packages. Empty when the
    interpreter is not there or laid out in another way.
    """
    found: list[Path] = []
    for prefix, executable in _prefixes(interpreter.absolute()):
        settings = _virtual_environment(prefix)
        own = list(_package_folders(prefix, executable))
        found += own
        if settings is not None:
            if settings.get("include-system-site-packages", "").lower() == "true":
                base = Path(settings.get("home", "")) / executable.name
                found += site_packages(base)
            break
        if own:
            found += _user_packages(own)
            break
    return tuple(dict.fromkeys(found))


def _executable_in(prefix: Path) -> Path | None:
    for relative in ("bin/python", "bin/python3", "Scripts/python.exe", "python.exe"):
        if (prefix / relative).exists():
            return prefix / relative
    return None


def _prefixes(interpreter: Path) -> Iterator[tuple[Path, Path]]:
    """Installations the interpreter may belong to: as it is written, then along its symbolic links."""
    interpreter = _behind_shim(interpreter)
    for _ in range(16):
        folder = interpreter.parent
        in_own_folder = folder.name in ("bin", "Scripts", "sbin")
        yield (folder.parent if in_own_folder else folder), interpreter
        if not interpreter.is_symlink():
            return
        interpreter = (folder / interpreter.readlink()).absolute()


def _behind_shim(interpreter: Path) -> Path:
    """pyenv puts scripts in ``shims/``; the version in its ``version`` file is the one they start by default."""
    root = interpreter.parent.parent
    if interpreter.parent.name != "shims" or not (root / "versions").is_dir():
        return interpreter
    try:
        chosen = read_plain(root / "version", _MOST_BYTES).decode("utf-8").split()
    except (OSError, UnicodeDecodeError):
        return interpreter
    for version in chosen:
        candidate = root / "versions" / version / "bin" / interpreter.name
        if candidate.exists():
            return candidate
    return interpreter


def _virtual_environment(prefix: Path) -> dict[str, str] | None:
    try:
        text = read_plain(prefix / "pyvenv.cfg", _MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return None
    pairs = (line.partition("=") for line in text.splitlines())
    return {key.strip().lower(): value.strip() for key, separator, value in pairs if separator}


def _package_folders(prefix: Path, executable: Path) -> Iterator[Path]:
    versions = _version_folders(prefix, executable)
    candidates = [prefix / "Lib" / "site-packages"]
    for version in versions:
        for library in ("lib", "lib64"):
            candidates.append(prefix / library / version / "site-packages")
    if prefix == Path("/usr"):
        # Debian and its derivatives keep pip's packages under /usr/local and their own without a version.
        candidates += [Path("/usr/local/lib") / version / "dist-packages" for version in versions]
        candidates.append(prefix / "lib" / "python3" / "dist-packages")
    return (folder for folder in candidates if folder.is_dir())


def _version_folders(prefix: Path, executable: Path) -> list[str]:
    """``python3.11`` and the like below ``lib``; only the one the executable's name says, if it says one."""
    names = {executable.name, executable.resolve().name}
    found = {
        folder.name
        for library in ("lib", "lib64")
        for folder in _listed(prefix / library)
        if _PYTHON_FOLDER.match(folder.name)
    }
    exact = found & names
    return sorted(exact or found, key=_version_key, reverse=True)


def _version_key(name: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", name))


def _user_packages(own: list[Path]) -> list[Path]:
    versions = {part for folder in own for part in folder.parts if _PYTHON_FOLDER.match(part)}
    try:
        home = Path.home()
    except RuntimeError:
        return []
    candidates = (home / ".local" / "lib" / version / "site-packages" for version in versions)
    return [folder for folder in candidates if folder.is_dir()]


def _listed(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []
