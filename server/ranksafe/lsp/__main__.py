"""``python -m ranksafe.lsp``: the language server over standard input and output."""

from __future__ import annotations

from ranksafe.__main__ import leave_working_directory

if __name__ == "__main__":
    leave_working_directory()

    from ranksafe.lsp.server import create_server
    from ranksafe.lsp.transport import serve_stdio

    serve_stdio(create_server())
