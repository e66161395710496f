"""``ranksafe lsp``: the language server, over standard input and output, or over TCP for debugging."""

from __future__ import annotations

import argparse
from typing import Final

from ranksafe.cli.terminal import fail
from ranksafe.localization import Language, Translated

_USED_WRONGLY: Final = 2
_TCP: Final = Translated(
    "listen on a TCP port instead of standard input and output (for debugging)",
    "监听 TCP 端口而不使用标准输入输出（用于调试）",
)
_PORTS: Final = 2**16
_NO_ADDRESS: Final = Translated("{text} is not HOST:PORT", "{text} 不是 HOST:PORT 形式")


def add_arguments(parser: argparse.ArgumentParser, language: Language) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--tcp", metavar="HOST:PORT", help=_TCP.in_language(language))
    # Editors' generic clients add it by habit; it is what happens anyway.
    parser.add_argument("--stdio", action="store_true", help=argparse.SUPPRESS)


def execute(arguments: argparse.Namespace, language: Language) -> int:
    """Serve until the client ends the session; 2 when the address is not one."""
    if arguments.tcp is None:
        from ranksafe.lsp.server import create_server
        from ranksafe.lsp.transport import serve_stdio

        serve_stdio(create_server())
        return 0
    host, _, port = arguments.tcp.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) < _PORTS):
        return fail(_NO_ADDRESS.filled(text=arguments.tcp).in_language(language), _USED_WRONGLY)
    from ranksafe.lsp.server import create_server

    create_server().client.start_tcp(host or "127.0.0.1", int(port))
    return 0
