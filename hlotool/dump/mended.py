"""What terminals, editors and browsers do to a text on its way, undone.

A redirection of PowerShell is UTF-16; a terminal adds colours and cuts lines at its width; what is copied
from a page has blanks that do not break, marks of no width, and typographers' marks, arrows and dots.
Nothing inside of a string literal is changed but the control sequences of terminals, which XLA never writes.
"""

from __future__ import annotations

import codecs
import re

#: Byte order marks, the longer first: that of UTF-32 begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
#: Without a mark: a text that is ASCII at its beginning.
_WIDE = (
    (re.compile(rb"(?:[\t\r\n -~]\0\0\0){8}"), "utf-32-le"),
    (re.compile(rb"(?:\0\0\0[\t\r\n -~]){8}"), "utf-32-be"),
    (re.compile(rb"(?:[\t\r\n -~]\0){8}"), "utf-16-le"),
    (re.compile(rb"(?:\0[\t\r\n -~]){8}"), "utf-16-be"),
)
#: Control sequences of terminals: colours and movements, titles and links.
_CONTROL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[()][\w]|[=>])|\x1b")
#: What other characters stand for outside of strings.
_MEANT = dict.fromkeys("\xa0\u2002\u2003\u2007\u2009\u202f\u3000", " ")
_MEANT |= dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\xad", "")
_MEANT |= {"\u2192": "->", "\u2212": "-", "\u2026": "..."}
_STRING_OR_ODD = re.compile(rf'"[^"\\\n]*+(?>(?:\\.[^"\\\n]*+)*)"|[{"".join(_MEANT)}]')
_QUOTATION_MARKS = str.maketrans(dict.fromkeys("\u201c\u201d\u201e", '"'))
#: What is looked for before anything is decoded: most texts have none of it.
_ODD_BYTES = tuple(character.encode() for character in (*_MEANT, "\u201c"))
_HEADER_LINE = re.compile(rb"^HloModule [^\n]*$", re.MULTILINE)
#: A line that does not continue the header.
_FRESH_LINE = re.compile(rb"[ \t\r]*(?:\n|\Z|ENTRY\b|FileNames|%?[\w.~-]+ (?:= |\{|\())")
#: Widths of terminals at which lines are cut, and how many lines below the header must have just that width.
_WIDTHS, _FULL_LINES, _LOOKED_AT = range(40, 500), 3, 1 << 14


def is_mended(content: bytes) -> bool:
    """Whether `mended` would change the text `content`."""
    if b"\0" in content[:64] or content[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return _encoding(content) != "utf-8-sig"
    has_odd = b"\x1b" in content or (not content.isascii() and any(odd in content for odd in _ODD_BYTES))
    return (has_odd and _with_plain_characters(plain := _decoded(content)) != plain) or _width(content) > 0


def mended(content: bytes) -> str:
    """The text, lines ended by newlines; bytes that are no UTF-8 become surrogates."""
    text = _with_plain_characters(_decoded(content))
    width = _width(text.encode("utf-8", "surrogateescape"))
    return _rejoined(text, width) if width else text


def _encoding(content: bytes) -> str:
    marked = next((name for mark, name in _MARKS if content.startswith(mark)), "")
    return marked or next((name for wide, name in _WIDE if wide.match(content)), "utf-8-sig")


def _decoded(content: bytes) -> str:
    encoding = _encoding(content)
    errors = "surrogateescape" if encoding == "utf-8-sig" else "replace"
    return content.decode(encoding, errors).removeprefix("\ufeff").replace("\r\n", "\n")


def _with_plain_characters(text: str) -> str:
    text = _CONTROL.sub("", text) if "\x1b" in text else text
    if '"' not in text:
        text = text.translate(_QUOTATION_MARKS)
    if not text.isascii():
        text = _STRING_OR_ODD.sub(lambda found: _MEANT.get(found[0], found[0]), text)
    return text


def _width(content: bytes) -> int:
    """The width at which a terminal cut the lines of a module, 0 where none did: no line is longer."""
    header = _HEADER_LINE.search(content)
    width = len(header[0].rstrip(b"\r")) if header is not None else 0
    # Mails write an equals sign where they cut a line, and are read by what knows them.
    if header is None or width not in _WIDTHS or header[0].endswith(b"="):
        return 0
    if _FRESH_LINE.match(content, header.end() + 1) is not None:
        return 0
    start = header.start()
    full = re.compile(rb"^[^\r\n]{%d}\r?$" % width, re.MULTILINE).findall(content, start, start + _LOOKED_AT)
    longer = re.compile(rb"^[^\r\n]{%d}" % (width + 1), re.MULTILINE)
    return width if len(full) >= _FULL_LINES and longer.search(content, start) is None else 0


def _rejoined(text: str, width: int) -> str:
    """`text` with the lines that were cut at `width` in one piece, and empty ones where the others were."""
    joined: list[str] = []
    pieces = 0
    for line in text.split("\n"):
        joined.append(line)
        if len(line) == width:
            pieces += 1
        else:
            joined.append("\n" * (pieces + 1))
            pieces = 0
    return "".join(joined).removesuffix("\n")
