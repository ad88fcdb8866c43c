"""HLO and StableHLO inside of other texts: documents, programs, notebooks, logs.

Each form has its reader, and the first that finds something is believed. A text may be wrapped several
times: a program in a fence in a cell of a notebook. StableHLO amid other lines is what a console, a log or
a dump of passes printed.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
import re
from collections.abc import Iterator

from msgspec import Struct

from hlotool.sources.mlir import is_mlir, mlir_amid_lines, mlir_programs
from hlotool.sources.prefixed import blocks_unprefixed, has_messages, modules_amid_lines, without_margin
from hlotool.sources.quoted import (
    Lines,
    Quotation,
    character_data,
    doubled,
    escaped,
    fenced,
    is_escaped,
    is_page,
    literals,
    marked_up,
    of_json,
    of_keyed_messages,
    of_mail,
    of_table,
    preformatted,
)
from hlotool.sources.sections import (
    is_bare,
    is_headless,
    is_mended,
    is_plain,
    mended,
    module_name,
    split_log,
    split_modules,
)

# HLO in the output of `diff`: what was there before, and what is there now.

#: The only hunk of a file: it begins with the first line.
_WHOLE = re.compile(
    r"^@@ -[01](?:,(?P<old>\d{1,9}))? \+[01](?:,(?P<new>\d{1,9}))? @@[^\n]*\n"
    r"(?P<lines>(?>(?:[ +\-\\][^\n]*\n?|\n)*))",
    re.MULTILINE,
)


def both_sides(text: str) -> Iterator[Quotation]:
    """Both sides of each file that a unified diff has in full; of a file that is new or gone there is one."""
    if is_page(text):  # its characters are not yet as they are meant
        return
    counted = Lines(text)
    for hunk in _WHOLE.finditer(text):
        before = counted.before(hunk.start("lines"))
        lines = hunk["lines"].split("\n")
        sides = [_side(lines, mark, int(hunk[count] or 1)) for mark, count in (("-", "old"), ("+", "new"))]
        for side in filter(None, dict.fromkeys(sides)):
            yield Quotation(before, side)


def _side(lines: list[str], mark: str, count: int) -> str:
    """The lines of one side, `count` of them, empty ones in the place of the other's."""
    kept = [line[1:] if line[:1] in (mark, " ", "") else None for line in lines]
    number = 0
    for at, line in enumerate(kept):
        number += line is not None
        if number > count:
            kept = kept[:at]
            break
    return "\n".join(line or "" for line in kept) if number and count else ""


#: How often a text may be wrapped.
_DEEPEST = 6
#: How much of a text shows that its characters are escaped.
_HEAD_BYTES = 1 << 14
#: In which a program may be quoted, the more particular ones first.
_FORMS = (
    of_json,
    of_mail,
    of_table,
    of_keyed_messages,
    both_sides,
    without_margin,
    character_data,
    preformatted,
    fenced,
    literals,
    doubled,
    escaped,
    marked_up,
)
#: What doctests write for an empty line of output.
_BLANK_LINE = re.compile(r"^[ \t>#]*<BLANKLINE>[ \t]*$", re.MULTILINE)
#: A literal of bytes that are no text, of more than a few.
_BYTES = re.compile(
    r"""(?<![\w'"])b(?P<quote>['"])(?=[^\n]{0,4000}?\\x0)(?>(?:\\.|(?!(?P=quote))[^\\\n])*)(?P=quote)"""
)
#: Only a text with one of these words is looked at more closely.
_CERTAIN = re.compile(r"HloModule\b|ENTRY\b|func\.func\b|\bfunc[ \t]+(?:\w+[ \t]+)?@|base64\b")


class Wrapped(Struct, frozen=True):
    """A program inside of another text.

    Attributes:
        line: how many lines of the outer text stand before it; 0 where the form has no lines.
        content: its text.
        name: of a file, where a log gives it; else empty.
        is_complete: False when the log ends before the end of that file.
    """

    line: int
    content: bytes
    name: str = ""
    is_complete: bool = True

    def read(self) -> bytes:
        """The text behind as many line ends as stand before it, so that errors name the lines of the file.

        What is no text comes as it is.
        """
        return self.content if b"\0" in self.content else b"\n" * self.line + self.content


def wrapped_texts(content: bytes) -> tuple[Wrapped, ...]:
    """The programs inside of `content`, each once; none where nothing is wrapped."""
    text = mended(content)
    has_blanks = "<BLANKLINE>" in text
    text = _BLANK_LINE.sub("", text) if has_blanks else text
    if has_blanks or is_mended(content) or is_mlir(content):
        programs = _quoted(Quotation(0, text), 0, _DEEPEST)
    else:
        programs = itertools.chain(_programs(text, 0, _DEEPEST), _printed_bytes(text))
    found = {(one.name, one.content): one for one in reversed(list(programs))}
    return tuple(reversed(found.values()))


def _printed_bytes(text: str) -> Iterator[Wrapped]:
    """Protos, bytecode and what `jax.export` writes, as Python prints bytes: `b'\\n\\x05jit_f…'`."""
    if "\\x0" not in text:
        return
    counted = Lines(text)
    for found in _BYTES.finditer(text):
        with contextlib.suppress(ValueError, SyntaxError):
            content = ast.literal_eval(found[0])
            if b"\0" in content:
                yield Wrapped(counted.before(found.start()), content)


def is_as_printed(content: bytes) -> bool:
    """Whether a text begins as HLO does, and nothing has happened to it since."""
    if not is_plain(content) or is_headless(content):
        return False
    head = content[:_HEAD_BYTES].decode("utf-8", "replace")
    is_whole = not is_escaped(head) and next(escaped(head), None) is None
    return is_whole and not has_messages(content) and not is_mended(content)


def _programs(text: str, line: int, depth: int) -> Iterator[Wrapped]:
    """What is wrapped in `text`, before which `line` lines stand."""
    if not depth or _CERTAIN.search(text) is None:
        return
    if blocks := blocks_unprefixed(text):
        plain = _bytes(blocks)
        for block in split_log(plain):
            before = plain.count(b"\n", 0, block.start)
            yield Wrapped(before, plain[block.start : block.end], block.name, block.is_complete)
        return
    for form in _FORMS:
        found = [one for quoted in form(text) for one in _quoted(quoted, line, depth)]
        if found:
            yield from found
            return
    for module in (*modules_amid_lines(text), *mlir_amid_lines(text)):
        yield Wrapped(line + module.line, _bytes(module.text))


def _quoted(quoted: Quotation, line: int, depth: int) -> Iterator[Wrapped]:
    """The programs of a text that was quoted below `line` lines."""
    if _CERTAIN.search(quoted.text) is None:
        return
    content = _bytes(quoted.text)
    if is_mended(content):  # its escapes hid what happened to it
        quoted = Quotation(quoted.line, mended(content))
        content = _bytes(quoted.text)
    if is_mlir(content):
        for program in mlir_programs(quoted.text):
            yield Wrapped(line + quoted.line + program.line, _bytes(program.text))
    elif is_as_printed(content) or is_bare(content):
        for part in split_modules(content):
            before = line + quoted.line + content.count(b"\n", 0, part.start)
            whole = content[part.start : part.end]
            # A header alone is a mention, and so is an entry without an instruction.
            if b"=" in whole and (b"\n" in whole.strip() or not module_name(whole)):
                yield Wrapped(before, whole)
    else:
        yield from _programs(quoted.text, line + quoted.line, depth - 1)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
