"""HTML and SVG elements, built as trees: what is put in as text stays text, whatever it says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree as ET

from ranksafe.localization import Translated

Element = ET.Element
Content = Element | str | Translated | Sequence["Content"] | None

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, movements of the cursor
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # titles, links
    r"|\x1b[@-Z\\^_]"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_TURNERS = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""They make a line read in another order than it is."""
LANGUAGE_TAGS = {"en": "en", "zh-cn": "zh-CN"}


def element(tag: str, *content: Content, **attributes: object) -> Element:
    """An element with its content; of an attribute's name, a final ``_`` is dropped and others become dashes.

    An attribute that is None is left out. A sentence in both languages becomes two spans, of which the page shows one.
    """
    made = Element(tag)
    for name, value in attributes.items():
        if value is not None:
            made.set(name.removesuffix("_").replace("_", "-"), clean(str(value)))
    _fill(made, content)
    return made


def raw(tag: str, text: str, **attributes: object) -> Element:
    """A ``style`` or ``script`` element. ``text`` must be ours: it is written as it is."""
    made = element(tag, **attributes)
    made.text = text
    return made


def clean(text: str) -> str:
    """``text`` without terminal sequences and without characters that no page may hold; newlines and tabs stay."""
    text = text.replace("\r\n", "\n")
    text = _CONTROLS.sub("\ufffd", _ESCAPES.sub("", text))
    return _TURNERS.sub("\ufffd", text)


def to_html(root: Element) -> str:
    """The whole document."""
    return "<!DOCTYPE html>\n" + ET.tostring(root, encoding="unicode", method="html")


def _fill(made: Element, content: Content) -> None:
    if content is None:
        return
    if isinstance(content, Element):
        made.append(content)
    elif isinstance(content, Translated):
        _translated(made, content)
    elif isinstance(content, str):
        _add_text(made, clean(content))
    else:
        for each in content:
            _fill(made, each)


def _translated(made: Element, text: Translated) -> None:
    if text.en == text.zh_cn:
        _add_text(made, clean(text.en))
        return
    for sentence, tag in ((text.en, LANGUAGE_TAGS["en"]), (text.zh_cn, LANGUAGE_TAGS["zh-cn"])):
        span = Element("span")
        span.set("class", "t")
        span.set("lang", tag)
        span.text = clean(sentence)
        made.append(span)


def _add_text(made: Element, text: str) -> None:
    if len(made):
        last = made[-1]
        last.tail = (last.tail or "") + text
    else:
        made.text = (made.text or "") + text
