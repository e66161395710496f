"""Links of the repository's files, turned into links of the site."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Container
from pathlib import Path

from ranksafe.checker.rule_folder import REPOSITORY
from rule_pages import ROOT

_LINK = re.compile(r"(?<=\]\()(?P<path>[^()\s#:]+)(?P<anchor>#[^()\s]*)?(?=\))")
_OTHER_LANGUAGE = re.compile(
    r"\(\[(?:中文|English)\]\([^)]*\)\) ?|（\[(?:中文|English)\]\([^)]*\)）"
)
"""The site has a switch on every page."""


def for_site(text: str, source: str, sources: Container[str]) -> str:
    """The text of ``source`` with links that lead on in the site, or else to the repository.

    ``sources`` are the paths of all pages and pictures. A link to a file that does not exist stays: mkdocs reports it.
    """

    def link(found: re.Match[str]) -> str:
        path, anchor = found["path"], found["anchor"] or ""
        folder = posixpath.dirname(source)
        for known, suffix in ((path, anchor), (_chinese(path), ""), (f"{path}/README.md", anchor)):
            if posixpath.normpath(posixpath.join(folder, known)) in sources:
                return known + suffix
        target = posixpath.normpath(posixpath.join(folder, path))
        return f"{REPOSITORY}/{target}{anchor}" if Path(ROOT, target).exists() else found[0]

    return _LINK.sub(link, _OTHER_LANGUAGE.sub("", text))


def _chinese(path: str) -> str:
    """An English page's link to a page that the Chinese site has in Chinese only, whose anchors are others."""
    return f"{path.removesuffix('.md')}.zh-cn.md"
