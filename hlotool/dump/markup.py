"""HLO in pages: HTML and XML, whose characters and tags are taken away."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from hlotool.dump.quoted import Lines, Quotation

_PRE = re.compile(r"<(?P<tag>pre|textarea|script)\b[^<>]{0,500}>", re.IGNORECASE)
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,500}>")
_DECLARATION = re.compile(r"<[?!][^<>]{0,500}>")
_PAGE = re.compile(r"\s*<[!?a-zA-Z]")
_DATA, _DATA_END = "<![CDATA[", "]]>"
#: What ends a line of a page: a break, and the end of a row, of a paragraph or of an item.
_LINE_END = re.compile(r"<br\b[^<>]{0,500}>\n?|</(?:tr|p|div|li)\s*>\n?", re.IGNORECASE)
#: What the signature of a program has, where the characters of a page are escaped.
_ARROW = "-&gt;"


def preformatted(text: str) -> Iterator[Quotation]:
    """What stands in `<pre>` and `<textarea>`, its tags taken away and its characters as they are meant.

    What stands in `<script>` is data, which has neither.
    """
    counted, at = Lines(text), 0
    while (opening := _PRE.search(text, at)) is not None:
        tag = opening["tag"]
        end = text.find(f"</{tag}", opening.end())
        at = end if end >= 0 else len(text)
        inside = text[opening.end() : at]
        is_data = tag.lower() == "script"
        yield Quotation(
            counted.before(opening.end()), inside if is_data else html.unescape(_TAG.sub("", inside))
        )


def marked_up(text: str) -> Iterator[Quotation]:
    """The text of a page as it is shown; nothing where `text` is none."""
    if is_escaped(text) or is_page(text):
        shown = _TAG.sub("", _LINE_END.sub("\n", _DECLARATION.sub("", text)))
        yield Quotation(0, html.unescape(shown))


def is_page(text: str) -> bool:
    """Whether `text` is HTML or XML: it begins with a tag, and closes one."""
    return _PAGE.match(text) is not None and "</" in text


def is_escaped(text: str) -> bool:
    """Whether the characters of `text` are written as a page wants them."""
    return _ARROW in text and "->" not in text


def character_data(text: str) -> Iterator[Quotation]:
    """What stands in CDATA sections of XML, where characters mean themselves."""
    counted, at = Lines(text), 0
    while (start := text.find(_DATA, at)) >= 0:
        start += len(_DATA)
        end = text.find(_DATA_END, start)
        at = end if end >= 0 else len(text)
        yield Quotation(counted.before(start), text[start:at])
