"""Starts the language server from the extension's folder.

The editor runs this file with ``python -I``, which ignores ``PYTHONPATH`` and the working directory, so that nothing in the
opened folder can be imported by accident. The bundled libraries are therefore put on ``sys.path`` here.
"""

import sys
from pathlib import Path

OLDEST_PYTHON = (3, 10)


def bundled_paths(extension: Path) -> "list[str]":
    """Import paths of the packaged server; in a source checkout the sources themselves, as a bundle there may be old."""
    bundled = extension / "bundled"
    root = extension if (extension / "server").is_dir() else bundled
    candidates = [root / "server", root / "rules", bundled / "libs"]
    return [str(path) for path in candidates if path.is_dir()]


def start() -> None:
    """Put the server on the import path, if asked, and run it over standard input and output."""
    if sys.version_info < OLDEST_PYTHON:
        sys.exit(
            "ranksafe needs Python 3.10 or newer; this is %s at %s"
            % (sys.version.split()[0], sys.executable)
        )
    if "--from-environment" in sys.argv:
        sys.argv.remove("--from-environment")
    else:
        sys.path[:0] = bundled_paths(Path(__file__).resolve().parent.parent)
    from ranksafe.lsp.server import create_server
    from ranksafe.lsp.transport import serve_stdio

    serve_stdio(create_server())


if __name__ == "__main__":
    start()
