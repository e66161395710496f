"""``python -m ranksafe.lsp``: the language server over standard input and output."""

from __future__ import annotations

from ranksafe.lsp.server import create_server
from ranksafe.lsp.transport import serve_stdio

if __name__ == "__main__":
    serve_stdio(create_server())
