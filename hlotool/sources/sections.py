"""Texts as they arrive: damage done on the way repaired, and several modules in one cut apart.

A redirection of PowerShell is UTF-16; a terminal adds colours and cuts lines at its width; what is copied
from a page has blanks that do not break, marks of no width, and typographers' marks, arrows and dots.
Nothing inside of a string literal is changed but the control sequences of terminals, which XLA never
writes.

Three forms are split:

- logs of a run without `--xla_dump_to`, where XLA prints `*** Begin NAME ***` … `*** End NAME ***`;
- files that torch-xla writes for XLA_SAVE_TENSORS_FILE, with `## BEGIN_GRAPH` … `## END_GRAPH`;
- modules separated by `// -----`, as in XLA's own tests, or simply one after the other.
"""

from __future__ import annotations

import codecs
import itertools
import re
import sys
from collections.abc import Iterator

from msgspec import Struct

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


class Section(Struct, frozen=True):
    """A part of a text.

    Attributes:
        name: file name that the log gives it, or empty.
        start: of its content, in bytes.
        end: of its content, in bytes.
        is_complete: False when the log ends before its end marker.
    """

    name: str
    start: int
    end: int
    is_complete: bool = True


_BEGIN_WORD, _GRAPH_WORD, _SEPARATOR_WORD = b"*** Begin ", b"## BEGIN_GRAPH", b"// -----"
_HEADER_WORD = b"HloModule "
#: What may stand in front of a header: blanks, and the byte order mark of the file.
_BLANKS = b" \t\xef\xbb\xbf"
_BEGIN = re.compile(rb"\*\*\* Begin (?P<name>.+?) \*\*\*\r?\n")
_GRAPH = re.compile(rb"## BEGIN_GRAPH\r?\n(?P<content>.*?)(?=^## END_GRAPH|\Z)", re.MULTILINE | re.DOTALL)
#: Before the first word of a line. Never blank lines, too: from each of many to their end takes for ever.
_INDENT = rb"^[ \t\r\f\v]*"
#: A header, which a lower-case word behind the name would make a sentence of that speaks of one; an entry.
_START = rb"HloModule[ \t]+(?=[\w%\"<])[^\s,]++(?<!:)(?![ \t]+[a-z])|ENTRY\s+(?:%?[\w.~-]+\s*)?[({]"
#: An instruction up to its type, of which `x = indices[0]` of a programming language has none. Graphs of
#: PyTorch/XLA have HLO's types, too.
_VALUE = (
    rb"(?:ROOT\s+)?%?[\w.-]+\s*=\s*\(*(?:pred|token|opaque|bf16|[suc]\d{1,3}|f\d{1,2}\w*)"
    rb"\[[\d<=?, ]*\](?=\s*[{,)%]|\s+[a-z])(?![^\n(]{0,80}\b(?:prim|aten)::)"
)
_STARTING_LINE = re.compile(_INDENT + rb"(?:" + _START + rb")", re.MULTILINE)
_HLO_LINE = re.compile(_INDENT + rb"(?:" + _START + rb"|" + _VALUE + rb")", re.MULTILINE)


_COMMENTS = rb"(?:\xef\xbb\xbf)?(?>(?:\s|//[^\n]*+|/\*(?>(?:[^*]|\*(?!/))*)\*/)*)"
#: Nothing but comments stands before HLO: a header, an entry, an instruction, another computation.
_PLAIN = re.compile(
    _COMMENTS + rb"(?:HloModule\s|ENTRY\s|" + _VALUE + rb"|%[\w.~-]+\s*\{"
    rb"|%?[\w.~-]+\s*\((?:(?!HloModule )[^\n])*->[^\n]*\{)"
)  # fmt: skip


#: A computation with a signature, which XLA reads only below a HloModule line.
_HEADLESS = re.compile(_COMMENTS + rb"%?[\w.~-]+\s*\((?:(?!HloModule )[^\n])*->[^\n]*\{")


#: A computation without any sign that only HLO has; an entry has to follow.
_BARE = re.compile(_COMMENTS + rb"[\w.~-]+\s*\{\s*\n")
_ENTRY = re.compile(_INDENT + rb"ENTRY\s", re.MULTILINE)


_HEADER_NAME = re.compile(rb"^(?:\xef\xbb\xbf)?[ \t]*HloModule[ \t]+%?([^\s,]+)", re.MULTILINE)


def module_name(head: bytes) -> str:
    """The name on the HloModule line, or empty."""
    found = _HEADER_NAME.search(head)
    return found.group(1).decode("utf-8", errors="backslashreplace") if found else ""


def is_bare(text: bytes) -> bool:
    """Whether `text` begins with a computation and has an entry: enough for what is quoted as a whole."""
    return _BARE.match(text) is not None and _ENTRY.search(text) is not None and looks_like_hlo(text)


def is_plain(text: bytes) -> bool:
    """Whether `text` begins as HLO does, so that nothing has to be searched for."""
    return _PLAIN.match(text) is not None or next(_line_starts(text, _GRAPH_WORD), None) is not None


def is_headless(text: bytes) -> bool:
    """Whether the HloModule line is missing that XLA's reader needs in front of such a text."""
    return _HEADLESS.match(text) is not None


def looks_like_hlo(text: bytes, start: int = 0, end: int = sys.maxsize) -> bool:
    """Whether `text` holds a line that only HLO text has: a header, an entry, or an instruction."""
    return _HLO_LINE.search(text, start, end) is not None


def _line_starts(
    text: bytes, word: bytes, start: int = 0, end: int = sys.maxsize, blanks: bytes = b""
) -> Iterator[int]:
    """Where a line begins with `word`; texts are long, and a search for bytes is faster than a pattern.

    Some of `blanks` may stand in front of it.
    """
    at = text.find(word, start, end)
    while at >= 0:
        before = at
        while before > start and text[before - 1] in blanks:
            before -= 1
        if before == 0 or text[before - 1] == 0x0A:
            yield at
        at = text.find(word, at + 1, end)


def split_log(text: bytes) -> list[Section]:
    """The blocks that XLA printed to a log, in order; empty when there is none."""
    found = (_BEGIN.match(text, at) for at in _line_starts(text, _BEGIN_WORD))
    begins = [begin for begin in found if begin]
    stops = [b.start() for b in begins[1:]] + [len(text)]
    return [_block(text, begin, stop) for begin, stop in zip(begins, stops)]


def _block(text: bytes, begin: re.Match[bytes], stop: int) -> Section:
    """The block that `begin` opens; it ends before its end marker or the next block, whichever is first."""
    name = begin["name"]
    end = text.find(b"*** End " + name + b" ***", begin.end(), stop)
    shown = name.decode("utf-8", errors="backslashreplace")
    return Section(shown, begin.end(), end if end >= 0 else stop, is_complete=end >= 0)


def split_modules(text: bytes) -> list[Section]:
    """The parts of `text` that hold HLO; one section for an ordinary file, none when nothing is HLO.

    Instructions amid other lines, as a document shows them, are no program.
    """
    if not is_plain(text) and _STARTING_LINE.search(text) is None:
        return []
    graphs = [_GRAPH.match(text, at) for at in _line_starts(text, _GRAPH_WORD)]
    spans = [graph.span("content") for graph in graphs if graph] or _cut_at_headers(text)
    found = ((start, end) for start, end in spans if looks_like_hlo(text, start, end))
    return [Section("", start, end_of_hlo(text, start, end)) for start, end in found]


def _cut_at_headers(text: bytes) -> Iterator[tuple[int, int]]:
    """The text cut at `// -----` lines, and before every HloModule line but the first between these."""
    for start, end in _separated(text):
        headers = list(_line_starts(text, _HEADER_WORD, start, end, blanks=_BLANKS))
        yield from itertools.pairwise([start, *headers[1:], end])


def _separated(text: bytes) -> Iterator[tuple[int, int]]:
    """What stands between the `// -----` lines."""
    start = 0
    for separator in _line_starts(text, _SEPARATOR_WORD):
        yield start, separator
        start = text.find(b"\n", separator)
        if start < 0:
            return
    yield start, len(text)


_LAST_LINE = re.compile(rb"[ \t]*\}.*|.*(?:=|->|ENTRY).*\}[ \t\r]*")
_OPENING_LINE = re.compile(rb"\{[ \t\r]*$", re.MULTILINE)


def end_of_hlo(text: bytes, start: int, end: int) -> int:
    """Where HLO ends that begins at `start`: behind its last computation, unless more HLO may follow."""
    end = _end_below_entry(text, start, end)
    at = text.rfind(b"}", start, end)
    while at >= 0:
        line, stop = text.rfind(b"\n", start, at) + 1, text.find(b"\n", at, end) + 1
        stop = stop or end
        if _LAST_LINE.fullmatch(text, max(line, start), stop - text.endswith(b"\n", line, stop)):
            is_hlo = looks_like_hlo(text, stop, end) or _OPENING_LINE.search(text, stop, end) is not None
            return end if is_hlo else stop
        at = text.rfind(b"}", start, line)
    return end


#: The first line of a computation, and that of the entry.
OPENING = r"^[ \t]*(?:ENTRY[ \t]+)?%?[\w.~-]+[ \t]*(?:\([^\n]*->[^\n]*)?\{[ \t]*$"
ENTRY = r"^[ \t]*ENTRY[ \t][^\n]*\{[ \t]*$"
_OPENING_OF_ANY, _OPENING_OF_ENTRY = (re.compile(one.encode(), re.MULTILINE) for one in (OPENING, ENTRY))
#: What may stand below an entry, other computations apart: tables, comments, what closes a block of a log.
_BELOW_ENTRY = re.compile(
    rb"[ \t]*(?:HloModule\b|\}|//|/\*|FileNames|FunctionNames|FileLocations|StackFrames|\d+ |\*\*\*|##)"
)
_FULL_LINE = re.compile(rb"^[^\n]*\S[^\n]*$", re.MULTILINE)


def _end_below_entry(text: bytes, start: int, end: int) -> int:
    """Where prose or a program begins below a whole entry; `end` for nowhere."""
    opening = _OPENING_OF_ENTRY.search(text, start, end)
    while opening is not None:
        indent = len(opening[0]) - len(opening[0].lstrip())
        closing = re.compile(rb"^[ \t]{0,%d}\}[^\n]*$" % indent, re.MULTILINE)
        if (closed := closing.search(text, opening.end(), end)) is None:
            return end
        opening = None
        for line in _FULL_LINE.finditer(text, closed.end(), end):
            if (opening := _OPENING_OF_ANY.match(text, line.start(), end)) is not None:
                break
            if _BELOW_ENTRY.match(line[0]) is None:
                return line.start()
    return end
