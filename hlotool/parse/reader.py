"""HLO text into modules: the entry points of the text half of `parse`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotool.ir.module import Module
from hlotool.ir.types import Shape
from hlotool.parse.text.modules import build_module
from hlotool.parse.text.structure_actions import parse_syntax
from hlotool.parse.text.syntax import Source, TextError
from hlotool.workers.collector import collector_off

if TYPE_CHECKING:
    from hlotool.ir.literal import Literal

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
    source = Source(text, path)
    _read_so_far += len(text)
    is_cut = _read_so_far >= LARGE and len(text) >= min(_SHORT, LARGE)
    with collector_off():
        try:
            module = _read_large(source, strict, reads_literals) if is_cut else None
            return module or build_module(parse_syntax(source, "module", strict), source, strict)
        except TextError as error:
            raise source.error(error.message, error.position) from error


def _read_large(source: Source, strict: bool, reads_literals: bool) -> Module | None:
    """The module of a large text, None where it is not written like a dump."""
    from hlotool.parse.text.large import LargeReader

    return LargeReader(source, strict, reads_literals).module()


def forget_texts() -> None:
    """Let the next text be read as the first one of a process is: for measurements."""
    global _read_so_far
    from hlotool.parse.text.pieces import forget_pieces

    _read_so_far = 0
    forget_pieces()


def parse_shape(text: str) -> Shape:
    """Read a shape such as `f32[2,3]{1,0}`; raises HloSyntaxError."""
    shape: Shape = parse_syntax(Source(text), "shape", strict=False)
    return shape


def parse_literal(text: str, shape: Shape) -> Literal:
    """Read what stands in the parentheses of `constant(…)`; raises HloSyntaxError."""
    from hlotool.parse.text.literals import read_literal

    return read_literal(text, shape)
