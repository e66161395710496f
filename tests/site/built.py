"""A built site, as its readers' browsers see it."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

LOADED = {"src", "srcset", "data", "poster"}


class Reference(NamedTuple):
    """What an element names."""

    tag: str
    attribute: str
    address: str

    @property
    def is_loaded(self) -> bool:
        """Whether a browser fetches it without being asked."""
        return self.attribute in LOADED or self.tag == "link"

    @property
    def is_elsewhere(self) -> bool:
        parts = urlsplit(self.address)
        return bool(parts.netloc or parts.scheme not in ("", "data"))


@dataclass
class Page(HTMLParser):
    """Ids, references and marked elements of one page."""

    text: str
    ids: set[str] = field(default_factory=set)
    references: list[Reference] = field(default_factory=list)
    filtered: list[dict[str, str]] = field(default_factory=list)
    wordings: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self._in_wording = False
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.ids |= {attributes[name] for name in ("id", "name") if name in attributes}
        for name in ("href", *LOADED):
            if name in attributes:
                self.references.append(Reference(tag, name, attributes[name]))
        if "data-filtered" in attributes:
            self.filtered.append(attributes)
        self._in_wording = attributes.get("class") == "wording"
        if self._in_wording:
            self.wordings.append("")

    def handle_endtag(self, tag: str) -> None:
        self._in_wording = False

    def handle_data(self, data: str) -> None:
        if self._in_wording:
            self.wordings[-1] += data


@dataclass
class Site:
    """All pages, by their path in the folder."""

    folder: Path

    @cached_property
    def pages(self) -> dict[str, Page]:
        return {
            path.relative_to(self.folder).as_posix(): Page(path.read_text(encoding="utf-8"))
            for path in sorted(self.folder.rglob("*.html"))
        }

    def problem(self, page: str, reference: Reference) -> str | None:
        """What is wrong with a reference into the site itself."""
        parts = urlsplit(reference.address)
        path = unquote(parts.path)
        target = posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page
        if target.startswith(("../", "/")) or not (self.folder / target).is_file():
            return f"{page}: {reference.address} does not exist"
        if parts.fragment and target in self.pages:
            if unquote(parts.fragment) not in self.pages[target].ids:
                return f"{page}: {reference.address} has no such place"
        return None
