"""Programs as frontends hand them over: StableHLO as text or bytecode.

Jaxlib makes HLO of them, as it does for JAX. XLA may abort on a program, so it reads it in a process of its
own. Text that it refuses, or that comes without a jaxlib, our own reader reads: it ignores what other
dialects add, and names what it cannot read by line and column.
"""

from __future__ import annotations

import itertools
import logging
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from hlotool.errors import BackendUnavailable, DumpError, UsageError
from hlotool.sources.prefixed import unprefixed
from hlotool.sources.quoted import Lines, Quotation

if TYPE_CHECKING:
    from hlotool.ir.module import Module

_logger = logging.getLogger(__name__)

#: Seconds that a conversion may take.
TIMEOUT = 300.0

_CHILD = Path(__file__).with_name("mlir_child.py")
#: The first bytes of MLIR bytecode. `jax.export` wraps it, after its length, in a message of its own.
BYTECODE = b"ML\xefR"
_MLIR = re.compile(
    rb"(?>(?:\s|//[^\n]*+\n)*)"
    rb"(?:#\w+ ?=|!\w+ ?=|(?:builtin\.)?module\b[^\n]*\{|\"\w+\.[\w.]+\"[ \t]*\("
    rb"|(?:func\.)?func[ \t]+(?:(?:public|private|nested)[ \t]+)?@"
    rb"|sdy\.mesh\b|(?:util|ml_program|memref)\.global\b|transform\.(?:named_)?sequence\b)"
)
_STABLEHLO = re.compile(rb"\b(?:stablehlo|mhlo|xla_hlo|chlo|vhlo|func\.func|sdy)\b")


def is_mlir(head: bytes) -> bool:
    """Whether a file that begins with `head` is StableHLO: text, bytecode, or what `jax.export` writes."""
    if b"\0" in head:
        return _bytecode_start(head) >= 0
    return _MLIR.match(head) is not None and _STABLEHLO.search(head) is not None


def _bytecode_start(content: bytes) -> int:
    """Where bytecode begins, at the start or behind the length that a flatbuffer gives it; -1 for nowhere."""
    at = content.find(BYTECODE)
    if at == 0:
        return 0
    while at >= 4:
        length = int.from_bytes(content[at - 4 : at], "little")
        if 16 < length < 1 << 31:
            return at
        at = content.find(BYTECODE, at + 1)
    return -1


def unwrapped(content: bytes) -> bytes:
    """Text or bytecode without what `jax.export` puts around it."""
    if b"\0" not in content:
        return content
    at = _bytecode_start(content)
    if at <= 0:
        return content
    length = int.from_bytes(content[at - 4 : at], "little")
    return content[at : at + length]


_MAIN = re.compile(rb"@main\b")


def read_program(content: bytes, name: str, entry: str = "") -> Module:
    """A StableHLO program as a module.

    Args:
        content: text or bytecode.
        name: of the file, for messages.
        entry: the function to run; without it `main`, or the only one that is not private.

    Raises:
        HloSyntaxError, Unsupported, UsageError: it cannot be read; see `parse_mlir`.
        BackendUnavailable, DumpError: bytecode, which jaxlib alone reads; see `hlo_proto`.
    """
    from hlotool.parser.mlir.reader import parse_mlir
    from hlotool.parser.proto.module import parse_module_proto

    is_text = b"\0" not in content
    if entry and not is_text:
        raise UsageError(f"{name}: --entry is for StableHLO as text, this is bytecode")
    try:
        # XLA's importer takes no other function for the entry.
        if entry or (is_text and _MAIN.search(content) is None):
            return parse_mlir(content.decode("utf-8", "replace"), name, entry)
        module = parse_module_proto(hlo_proto(content, name), name)
    except (BackendUnavailable, DumpError) as error:
        if not is_text:
            raise
        _logger.info("%s: hlotool reads it itself", error)
        return parse_mlir(content.decode("utf-8", "replace"), name, entry)
    return _without_own_lines(_with_partitions(module, content)) if is_text else module


#: What XLA's importer calls the file of a text that has no locations.
_TEXT_ITSELF = "-"


def _without_own_lines(module: Module) -> Module:
    """Without the lines of the text itself, which are no places in a user's program."""
    for instruction in module.instructions():
        if instruction.metadata is not None and instruction.metadata.source_file == _TEXT_ITSELF:
            instruction.line = instruction.line or instruction.metadata.source_line
            instruction.metadata = None
    return module


_PARTITIONS = re.compile(rb"\bmhlo\.num_partitions = (\d+)")


def _with_partitions(module: Module, content: bytes) -> Module:
    """XLA's importer drops the number of partitions that the text states."""
    stated = _PARTITIONS.search(content)
    if stated is not None and int(stated[1]) > 1:
        module.attributes = {"num_partitions": int(stated[1]), **module.attributes}
    return module


def hlo_proto(content: bytes, name: str) -> bytes:
    """The HloModuleProto of a StableHLO program, as XLA's importer makes it.

    Args:
        content: text or bytecode.
        name: of the file, for messages.

    Raises:
        BackendUnavailable: there is no jaxlib.
        DumpError: XLA does not take the program; the message is XLA's own.
    """
    if find_spec("jaxlib") is None:
        raise BackendUnavailable(f"{name}: StableHLO is read by jaxlib: pip install 'hlotool[xla]'")
    return _converted(unwrapped(content), name)


@lru_cache(maxsize=2)
def _converted(content: bytes, name: str) -> bytes:
    _logger.info("run %s for %s, %g s at most", _CHILD.name, name, TIMEOUT)
    try:
        child = subprocess.run(
            # -P: what lies beside the child is no library; Python 3.14 has a package `compression`, too.
            [sys.executable, "-P", str(_CHILD)],
            input=content,
            capture_output=True,
            timeout=TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise DumpError(f"{name}: XLA did not read this StableHLO within {TIMEOUT:g} s") from error
    if child.returncode:
        raise DumpError(f"{name}: XLA does not read this StableHLO: {_reason(child.stderr)}")
    return child.stdout


def _reason(stderr: bytes) -> str:
    """The last line that says something."""
    lines = [line.strip() for line in stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    told = [line for line in lines if "error:" in line or "Error" in line]
    return (told or lines or ["no reason given"])[-1]


# StableHLO amid other lines, as `prefixed` finds HLO: what a console, a log or a dump of passes printed.

_HEADER = re.compile(
    r"^(?P<prefix>[^\n]{0,300}?)"
    r"(?P<header>(?:builtin\.)?module(?=[ \t]+@|[ \t]+attributes\b|[ \t]*\{)[^\n]*\{)[ \t]*$",
    re.MULTILINE,
)
#: A line that only the inside of a module has.
_BODY = re.compile(r"\s*(?:func\.func\b|%\S+ = |(?:func\.)?return\b|\"|\}|stablehlo\.)")
#: A name for an attribute or a location, which may stand above or below the module.
_ALIAS = re.compile(r"#\w+(?:\([^\n]*\))? ?= ?\S")
_FURTHEST = 2000
#: What separates the programs of one file, for tools of LLVM.
_SEPARATOR = re.compile(r"^//[ \t]?---[^\n]*$", re.MULTILINE)
_FUNCTION = re.compile(
    r"^[ \t]*(?:func\.)?func[ \t]+(?:(?P<visibility>public|private|nested)[ \t]+)?"
    r"@(?P<name>\"[^\"\n]*\"|[\w.$-]+)",
    re.MULTILINE,
)
_SYMBOL = re.compile(r"@(\"[^\"\n]*\"|[\w.$-]+)")
_COMMENT = re.compile(r"//[^\n]*")
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"')
_CLOSED = re.compile(r"\}[ \t\r]*(?:loc\([^\n]*\)[ \t\r]*)?$")
#: A pattern of FileCheck, where a template of Python or Rust has a brace, where one has no type: no programs.
_PATTERN = re.compile(
    rb"^(?![ \t]*//)[^\n]*(?:%\[\[|\[\[[A-Za-z_]\w*:|\{\{[.^]|\{\{[ \t\r]*$|%\w+ ?: ?#?[{%])", re.MULTILINE
)
#: A brace that closes the outermost, behind which something else than MLIR follows.
_PROSE_BEHIND = re.compile(
    r"^\}[^\n]*\n(?![ \t\r\n]*(?:[!}/\"%]|#\w|\{-#|module\b|func\b|\w+\.\w+|\Z))",
    re.MULTILINE,
)
#: What every function has, also one that is cut.
_OPERATION = re.compile(rb"\breturn\b|%\w+(?::\d+)?[ \t]*=")


def mlir_programs(text: str) -> Iterator[Quotation]:
    """The programs of a text of MLIR, one after the other.

    Separators part programs, and modules do. Of functions of which none is `main`, each that no other one
    calls is a program, with those that it calls; in place of the others' lines there are empty ones.
    """
    starts = [0, *(found.end() for found in _SEPARATOR.finditer(text)), len(text)]
    for start, end in itertools.pairwise(starts):
        part, before = text[start:end], text.count("\n", 0, start)
        if (closed := _PROSE_BEHIND.search(part)) is not None:
            part = part[: closed.end()]
        content = part.encode("utf-8", "surrogateescape")
        if _is_program(content):
            is_several = len(re.findall(rb"^module\b[^\n]*\{[ \t\r]*$", content, re.MULTILINE)) > 1
            for found in mlir_amid_lines(part) if is_several else _functions_apart(part):
                yield Quotation(before + found.line, found.text)


def _is_program(content: bytes) -> bool:
    return is_mlir(content) and _PATTERN.search(content) is None and _OPERATION.search(content) is not None


def function_name(content: bytes) -> str:
    """The name of the first function that is not private, where it is not `main`."""
    found = _FUNCTION.finditer(content.decode("utf-8", "replace"))
    name = next((one["name"].strip('"') for one in found if one["visibility"] != "private"), "")
    return "" if name == "main" else name


def _functions_apart(text: str) -> Iterator[Quotation]:
    functions = list(_FUNCTION.finditer(text))
    names = [one["name"] for one in functions]
    if len(set(names)) < len(names) and _HEADER.search(text) is None:
        yield from _one_of_each_name(text, functions)
        return
    public = [one["name"] for one in functions if one["visibility"] != "private"]
    # Without a public function the private ones are what the text is about.
    public = public or [one["name"] for one in functions]
    if len(public) < 2 or "main" in public:
        yield Quotation(0, text)
        return
    ends = [*(one.start() for one in functions[1:]), len(text)]
    uses = {
        one["name"]: set(_SYMBOL.findall(_COMMENT.sub("", text[one.end() : end])))
        for one, end in zip(functions, ends)
    }
    roots = [
        name for name in public if not any(name in used for other, used in uses.items() if other != name)
    ]
    lines, counted = text.split("\n"), Lines(text)
    firsts = [*(counted.before(one.start()) for one in functions), len(lines)]
    for root in roots:
        needed, new = {root}, [root]
        while new:
            found = (uses[new.pop()] & uses.keys()) - needed
            needed |= found
            new += found
        kept = list(lines)
        for one, (first, end) in zip(functions, itertools.pairwise(firsts)):
            if one["name"] not in needed:
                count = _end_of_function(lines[first:end])
                kept[first : first + count] = [""] * count
        yield Quotation(0, "\n".join(kept))


def _one_of_each_name(text: str, functions: Sequence[re.Match[str]]) -> Iterator[Quotation]:
    """A function of a name that there was begins another program: so a session prints one again and again.

    Only the last one may be cut: of the others, what returns nothing was printed before it was complete.
    """
    starts, seen = [0], set[str]()
    for one in functions:
        if one["name"] in seen:
            starts.append(one.start())
            seen.clear()
        seen.add(one["name"])
    counted = Lines(text)
    for start, end in itertools.pairwise([*starts, len(text)]):
        before, part = counted.before(start), text[start:end]
        if (end == len(text) or "return" in part) and _is_program(part.encode("utf-8", "surrogateescape")):
            yield from (Quotation(before + one.line, one.text) for one in _functions_apart(part))


def _end_of_function(lines: Sequence[str]) -> int:
    """How many of these lines, from the first one on, a function has: all where nothing closes it."""
    depth = 0
    for number, line in enumerate(lines):
        code = _COMMENT.sub("", _STRING.sub("", line))
        depth += code.count("{") - code.count("}")
        # In a signature of several lines, attributes of arguments end within parentheses.
        if depth <= 0 and _CLOSED.search(code) is not None:
            return number + 1
    return len(lines)


def mlir_amid_lines(text: str) -> Iterator[Quotation]:
    """The modules of StableHLO that begin with a `module` line somewhere in `text`, else its functions."""
    headers = list(_HEADER.finditer(text))
    if not headers:
        yield from _functions_amid_lines(text)
        return
    counted, end, stop = Lines(text), 0, 0
    for number, header in enumerate(headers):
        if header.start() < stop:
            continue  # a module in a module
        indent = _indent(header)
        later = (one.start() for one in headers[number + 1 :] if _indent(one) <= indent)
        stop = next(later, len(text))
        above = _aliases_above(header["prefix"], text[end : header.start()].split("\n")[-_FURTHEST:])
        below = unprefixed(header["prefix"], text[header.end() + 1 : stop].split("\n"), _BODY)
        module = "\n".join([*above, header["header"], *_until_closed(below)])
        content = module.encode("utf-8", "surrogateescape")
        if _is_program(content):
            before = max(counted.before(header.start()) - len(above), 0)
            yield from (Quotation(before + one.line, one.text) for one in _functions_apart(module))
        end = header.end()


def _functions_amid_lines(text: str) -> Iterator[Quotation]:
    """Functions between other lines, all of them one program, with empty lines in the place of the others."""
    lines, counted = text.split("\n"), Lines(text)
    kept = [""] * len(lines)
    for found in _FUNCTION.finditer(text):
        first = counted.before(found.start())
        end = first + _end_of_function(lines[first:])
        kept[first:end] = lines[first:end]
    program = "\n".join(kept)
    if _is_program(program.encode("utf-8", "surrogateescape")):
        yield from _functions_apart(program)


def _indent(header: re.Match[str]) -> int:
    """How far a `module` stands to the right, of what is in front of it."""
    return len(header["prefix"]) - len(header["prefix"].rstrip())


def _aliases_above(prefix: str, lines: Sequence[str]) -> list[str]:
    """The lines right above a header that define aliases."""
    found: list[str] = []
    for line in reversed(unprefixed(prefix, lines[:-1], _BODY)):
        if line.strip() and _ALIAS.match(line) is None:
            break
        found.insert(0, line)
    return found if any(map(str.strip, found)) else []


def _until_closed(lines: Sequence[str]) -> Iterator[str]:
    """Lines up to the brace that closes a module, and the aliases that follow."""
    depth = 1
    for line in lines:
        if depth <= 0 and line.strip() and _ALIAS.match(line) is None:
            return
        yield line
        code = _COMMENT.sub("", _STRING.sub("", line))
        depth += code.count("{") - code.count("}")
