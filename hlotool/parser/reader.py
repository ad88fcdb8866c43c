"""HLO text into modules: the entry points for whole texts, and for texts that end too early.

Logs have limits, pastes are cut, disks run full. Computations stand in the text before what calls them, so
all but the last are whole. Of the last one its whole instructions are kept, the last of them as the root:
the program is no longer the one that was meant, which `Module.cut` says.
"""

from __future__ import annotations

import itertools
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hlotool.errors import HloSyntaxError
from hlotool.ir.module import Module
from hlotool.ir.types import Shape, strip_layouts
from hlotool.parser.text.hlo_parser import parse_syntax
from hlotool.parser.text.modules import build_module
from hlotool.parser.text.syntax import Source, TextError
from hlotool.system.resources import collector_off

if TYPE_CHECKING:
    from hlotool.ir.arrays import Literal


_logger = logging.getLogger(__name__)

#: From so many characters on texts are cut into lines first. To compile what proves the pieces of a line
#: takes as long as parsing so much; where that is done, short texts are cut, too.
LARGE = 24_000
_SHORT = 1_000

#: Characters read so far in this process.
_read_so_far = 0


def parse_module(
    text: str, path: str | None = None, *, strict: bool = False, reads_literals: bool = True
) -> Module:
    """Read a module, some computations, or a single instruction.

    Args:
        text: HLO.
        path: of the file, for messages.
        strict: also reject what XLA's parser rejects today although it is clear: attributes and metadata keys
            of older versions, physical shapes in layouts.
        reads_literals: otherwise the long ones of a large text are decoded when somebody asks for them, and
            only then is HloSyntaxError raised for one that is wrong.

    Raises:
        HloSyntaxError: it is not HLO, or it breaks a rule without which nothing can be built (names, operand
            counts, attributes, literals); shapes are left to the verifier.
    """
    global _read_so_far
    source = Source(text if strict else _without_elided(text, path), path)
    _read_so_far += len(text)
    is_cut = _read_so_far >= LARGE and len(text) >= min(_SHORT, LARGE)
    with collector_off():
        try:
            module = _read_large(source, strict, reads_literals) if is_cut else None
            return module or build_module(parse_syntax(source, "module", strict), source, strict)
        except TextError as error:
            raise source.error(error.message, error.position) from error


_BRACKETS = re.compile(r"\"[^\"\\]*(?:\\.[^\"\\]*)*\"|[{}\[\]()]|,")


def _without_elided(text: str, path: str | None) -> str:
    """The text with blanks in the place of what its header leaves out; what that says, the body says, too."""
    at, header = text.find(_HEADER_WORD), None
    while at >= 0 and (header := _HEADER.match(text, text.rfind("\n", 0, at) + 1)) is None:
        at = text.find(_HEADER_WORD, at + 1)
    if header is None or "..." not in header["attributes"] or not header["attributes"].startswith(","):
        return text
    start, end = header.span("attributes")
    starts, depth = [start], 0
    for mark in _BRACKETS.finditer(text, start + 1, end):
        depth += (mark[0] in "{[(") - (mark[0] in "}])")
        if mark[0] == "," and not depth:
            starts.append(mark.start())
    attributes = [text[one:other] for one, other in itertools.pairwise([*starts, end])]
    kept = [" " * len(one) if "..." in one else one for one in attributes]
    left_out = [one.strip(", ") for one in attributes if "..." in one]
    _logger.info("%s: left out of the header: %s", path or "text", ", ".join(left_out))
    return text[:start] + "".join(kept) + text[end:]


def _read_large(source: Source, strict: bool, reads_literals: bool) -> Module | None:
    """The module of a large text, None where it is not written like a dump."""
    from hlotool.parser.text.large import LargeReader

    return LargeReader(source, strict, reads_literals).module()


def forget_texts() -> None:
    """Let the next text be read as the first one of a process is: for measurements."""
    global _read_so_far
    from hlotool.parser.text.pieces import forget_pieces

    _read_so_far = 0
    forget_pieces()


def parse_shape(text: str) -> Shape:
    """Read a shape such as `f32[2,3]{1,0}`; raises HloSyntaxError."""
    shape: Shape = parse_syntax(Source(text), "shape", strict=False)
    return shape


def parse_literal(text: str, shape: Shape) -> Literal:
    """Read what stands in the parentheses of `constant(…)`; raises HloSyntaxError."""
    from hlotool.parser.text.literals import read_literal

    return read_literal(text, shape)


_OPENING = re.compile(
    r"^[ \t]*(?P<entry>ENTRY[ \t]+)?(?P<name>%?[\w.~-]+)[ \t]*"
    r"(?:\((?P<parameters>.*)\)[ \t]*->.*)?\{[ \t\r]*$"
)
_CLOSING = re.compile(r"^[ \t]*\}")
_INSTRUCTION = re.compile(r"^(?P<blanks>[ \t]*)(?P<root>ROOT[ \t]+)?%?[\w.~-]+[ \t]*=[ \t]")
_PARAMETER = re.compile(r"=[^=]*\bparameter\((\d+)\)")
_HEADER_WORD = "HloModule"
_HEADER = re.compile(r"^[ \t]*HloModule[ \t]+(?P<name>[^\s,]+)(?P<attributes>.*)$", re.MULTILINE)
#: What is kept of the header: the rest speaks of a result that is not there.
_FACTS = ("is_scheduled", "replica_count", "num_partitions")
_KEPT = re.compile(rf"\b(?:{'|'.join(_FACTS)})=(?:true|\d+)")
#: How many instructions at the end may be unreadable: the last one, and what somebody wrote below it.
_UNREADABLE = 3


@dataclass(frozen=True, slots=True)
class _Open:
    """The computation in which a text ends.

    Attributes:
        start: number of its first line, from 0.
        starts: of each of its instructions.
    """

    start: int
    starts: list[int]


def parse_cut(text: str, path: str | None, error: HloSyntaxError) -> Module:
    """What can be read of a text that is cut at its end.

    Args:
        text: HLO.
        path: of the file, for messages.
        error: what is wrong with it; raised again where it is no cut that explains it: all braces are closed.

    Raises:
        HloSyntaxError: `error`.
    """
    if text.rstrip().endswith("}") and text.count("{") == text.count("}"):
        raise error
    lines = text.rstrip("\n").split("\n")
    found = _open_computation(lines)
    for kept, cut in _attempts(lines, found, text.endswith("\n")):
        try:
            module = parse_module("\n".join(kept), path)
        except HloSyntaxError:
            continue
        module.cut = cut
        return module
    raise error


def mark_missing_entry(module: Module) -> None:
    """Note in a module that ends before its entry that it does; `module` is of a text that marks none.

    The last computation is then the entry, and the header says whether it is meant to be.
    """
    stated = module.entry_layout.parameters
    if [strip_layouts(p.shape) for p in module.entry.parameters] != list(map(strip_layouts, stated)):
        module.cut = "the text ends before the entry computation"
        module.attributes = {key: module.attributes[key] for key in _FACTS if key in module.attributes}


def _open_computation(lines: list[str]) -> _Open | None:
    """The last computation, if nothing closes it."""
    found: _Open | None = None
    for number, line in enumerate(lines):
        if _OPENING.match(line):
            found = _Open(number, [])
        elif found is not None and _CLOSING.match(line) and _indent(line) <= _indent(lines[found.start]):
            # A brace that stands further to the right closes a part of a literal.
            found = None
        elif found is not None and _INSTRUCTION.match(line):
            found.starts.append(number)
    return found


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _attempts(lines: list[str], found: _Open | None, ends_with_line: bool) -> Iterator[tuple[list[str], str]]:
    """Texts that may be whole, the longest first, and what each leaves out."""
    if found is not None:
        # A line without an end may be cut off: whether it goes on is unknown.
        starts = [*found.starts, len(lines)]
        whole = len(found.starts) - (not ends_with_line)
        for count in range(whole, max(0, whole - _UNREADABLE), -1):
            end = starts[count]
            kept = _completed(lines, found, count, end)
            where = f"computation {_name(lines[found.start])}"
            yield kept, f"the text ends within {where}: {count} of its instructions are whole (line {end})"
    before = lines[: found.start] if found is not None else lines
    closed = [number for number, line in enumerate(before) if _CLOSING.match(line)]
    if closed and not any(line.lstrip().startswith("ENTRY") for line in lines[: closed[-1]]):
        end = closed[-1] + 1
        yield _header_alone(lines[:end]), f"the text ends before the entry computation (line {end})"


def _name(line: str) -> str:
    found = _OPENING.match(line)
    return found["name"] if found else line.strip()


def _completed(lines: list[str], found: _Open, count: int, end: int) -> list[str]:
    """The lines up to `end`, their computation closed; all keep their numbers."""
    kept = _header_alone(lines[:end])
    opening = _OPENING.match(lines[found.start])
    assert opening is not None
    present = {int(n) for line in kept[found.start :] for n in _PARAMETER.findall(line)}
    missing = " ".join(_missing(opening["parameters"] or "", present))
    kept[found.start] = f"{opening['entry'] or ''}{opening['name']} {{ {missing}"
    root = found.starts[count - 1]
    if not any((one := _INSTRUCTION.match(line)) and one["root"] for line in kept[found.start + 1 :]):
        kept[root] = f"ROOT {kept[root].lstrip()}"
    kept[-1] += " }"
    return kept


def _missing(signature: str, present: set[int]) -> Iterator[str]:
    """The parameters of a signature that the text does not reach."""
    depth, parts = 0, [""]
    for character in re.sub(r"/\*.*?\*/", "", signature):
        depth += (character in "([{") - (character in ")]}")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    for number, part in enumerate(parts):
        name, colon, shape = part.partition(":")
        if colon and number not in present:
            yield f"%{name.strip().removeprefix('%')} = {shape.strip()} parameter({number})\n".rstrip()


def _header_alone(lines: list[str]) -> list[str]:
    """The lines with a header that promises nothing."""
    kept = list(lines)
    for number, line in enumerate(kept):
        if (header := _HEADER.match(line)) is not None:
            kept[number] = ", ".join([f"HloModule {header['name']}", *_KEPT.findall(header["attributes"])])
            break
    return kept
