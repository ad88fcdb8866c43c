"""PTX text cut into statements, and the operands in them (PTX ISA, "Syntax")."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hlotool.backends.gpu_ptx.model import (
    Address,
    Immediate,
    Not,
    Operand,
    Pair,
    Sink,
    Special,
    Symbol,
    Vector,
)

#: Directives that end with their line. They, comments and debug sections say nothing about values.
_NOISE = re.compile(
    r"//[^\n]*|/\*.*?\*/|^[ \t]*\.(?:loc|file)\b[^\n]*|^[ \t]*\.section\b[^{]*\{[^}]*\}",
    re.MULTILINE | re.DOTALL,
)
_HEADER_LINE = re.compile(r"^[ \t]*\.(version|target|address_size)[ \t]+([^\n;]+)", re.MULTILINE)
_DELIMITER = re.compile(r'[;{}]|"[^"\n]*"')
_LABEL = re.compile(r"\s*([A-Za-z_$%][\w$]*)\s*:(?!:)")
_FUNCTION = re.compile(r"\.(?:entry|func)\b")


@dataclass(frozen=True, slots=True)
class Statement:
    """A piece of PTX.

    Attributes:
        kind: `statement` (up to its semicolon), `label`, `header` (of a function, before its body), `open` or
            `close` (a brace).
        text: without the semicolon, white space made single spaces; a label without its colon.
        line: where it begins, from 1.
    """

    kind: str
    text: str
    line: int


def header_lines(text: str) -> dict[str, str]:
    """The values of `.version`, `.target` and `.address_size`."""
    return {found[1]: found[2].strip() for found in _HEADER_LINE.finditer(_without_noise(text))}


def statements(text: str) -> Iterator[Statement]:
    """All statements in order; comments and line directives are left out."""
    text = _HEADER_LINE.sub("", _without_noise(text))
    begin, line, depth = 0, 1, 0

    def cut(end: int) -> Iterator[Statement]:
        """Labels and the statement in `text[begin:end]`."""
        nonlocal begin, line
        while True:
            label = _LABEL.match(text, begin, end)
            if label is None:
                break
            yield Statement("label", label[1], line + text.count("\n", begin, label.start(1)))
            line += text.count("\n", begin, label.end())
            begin = label.end()
        piece = text[begin:end]
        stripped = piece.lstrip()
        start = line + piece.count("\n", 0, len(piece) - len(stripped))
        line += piece.count("\n")
        begin = end + 1
        if stripped:
            yield Statement("statement", " ".join(stripped.split()), start)

    for found in _DELIMITER.finditer(text):
        mark, at = found[0], found.start()
        if mark[0] == '"':
            continue
        if mark == ";":
            if depth == 0:
                yield from cut(at)
            continue
        if depth:
            depth += 1 if mark == "{" else -1
            continue
        before = text[begin:at]
        label_free = _LABEL.sub("", before).strip()  # what a scope begins with, and nothing else
        if mark == "{" and label_free and not _FUNCTION.search(label_free):
            depth = 1  # the braces of a vector or of an initial value
            continue
        for statement in cut(at):
            yield (
                Statement("header", statement.text, statement.line)
                if statement.kind != "label"
                else statement
            )
        yield Statement("open" if mark == "{" else "close", mark, line)


def _without_noise(text: str) -> str:
    """`text` without comments and debug information, with all its line breaks."""
    return _NOISE.sub(lambda found: "\n" * found[0].count("\n"), text)


def split_commas(text: str) -> list[str]:
    """Parts between the commas outside of all brackets."""
    parts, depth, begin = [], 0, 0
    for at, character in enumerate(text):
        if character in "{[(":
            depth += 1
        elif character in "}])":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[begin:at].strip())
            begin = at + 1
    last = text[begin:].strip()
    return [*parts, last] if last or parts else []


_NUMBER = re.compile(r"([+-]?)(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)U?$")
_FLOAT = re.compile(r"0([fFdD])([0-9a-fA-F]+)$")
_SUM = re.compile(r"(.+?)\s*([+-])\s*(-?\w+)$")
_SPECIAL = re.compile(
    r"%(?:(?:n?tid|n?ctaid|n?clusterid|cluster_n?ctaid)\.[xyz]|laneid|n?warpid|n?smid|gridid|clock(?:64|_hi)?"
    r"|globaltimer(?:_lo|_hi)?|lanemask_(?:eq|lt|le|gt|ge)|dynamic_smem_size|total_smem_size"
    r"|is_explicit_cluster|cluster_n?ctarank)$"
)


def integer(text: str) -> int | None:
    """The value of an integer literal."""
    found = _NUMBER.match(text)
    if found is None:
        return None
    digits = found[2]
    if len(digits) > 1 and digits[0] == "0" and digits.isdigit():
        value = int(digits, 8)
    else:
        value = int(digits, 0)
    return -value if found[1] == "-" else value


def literal(text: str) -> Immediate | None:
    """The literal that `text` is."""
    value = integer(text)
    if value is not None:
        return Immediate(value)
    found = _FLOAT.match(text)
    if found is not None:
        return Immediate(int(found[2], 16), 32 if found[1] in "fF" else 64)
    return None


def operand(text: str, name: Callable[[str], Operand | None]) -> Operand:
    """The operand that `text` is; `name` knows registers and variables.

    Raises:
        ValueError: it is none.
    """
    if text == "_":
        return Sink()
    if text[0] == "!":
        return Not(operand(text[1:].strip(), name))
    if text[0] in "{(":
        return Vector(tuple(operand(part, name) for part in split_commas(text[1:-1])))
    if text[0] == "[":
        parts = split_commas(text[1:-1])
        if len(parts) > 1:  # a tensor and its coordinates
            return Vector(tuple(operand(part, name) for part in parts))
        base, offset = _base_and_offset(parts[0])
        return Address(operand(base, name), offset)
    known = name(text)
    if known is not None:
        return known
    value = literal(text)
    if value is not None:
        return value
    if _SPECIAL.match(text):
        return Special(text)
    if "|" in text:
        first, second = text.split("|")
        return Pair(operand(first.strip(), name), operand(second.strip(), name))
    if re.fullmatch(r"[\w$]+", text):
        return Symbol(text)
    base, offset = _base_and_offset(text)
    if offset and re.fullmatch(r"[\w$]+", base):
        return Symbol(base, offset)
    raise ValueError(text)


def _base_and_offset(text: str) -> tuple[str, int]:
    """Both parts of `base + offset`."""
    found = _SUM.match(text)
    if found is not None:
        value = integer(found[3])
        if value is not None:
            return found[1].strip(), -value if found[2] == "-" else value
    return text.strip(), 0
