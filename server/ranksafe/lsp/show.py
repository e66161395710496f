"""``window/showDocument``: has the client show a file, inside the editor or beside it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lsprotocol import types
from pygls.uris import from_fs_path

if TYPE_CHECKING:
    from ranksafe.lsp.server import RanksafeServer

_LONGEST_WAIT_SECONDS: Final = 30.0


async def show(server: RanksafeServer, file: Path, *, external: bool = False) -> bool:
    """Whether the client showed ``file``. ``external``: a page, which most editors leave to the browser."""
    window = server.client_capabilities.window
    if not (window and window.show_document and window.show_document.support):
        return False
    params = types.ShowDocumentParams(
        uri=from_fs_path(str(file)) or "", external=external or None, take_focus=True
    )
    try:
        shown = server.window_show_document_async(params)
        result = await asyncio.wait_for(shown, _LONGEST_WAIT_SECONDS)
    except Exception:
        return False
    return bool(result and result.success)
