"""HLO text into modules: the entry points of the text half of `parse`."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hlotool.ir.module import Module
from hlotool.ir.types import Shape
from hlotool.parse.text.modules import build_module
from hlotool.parse.text.structure_actions import parse_syntax
from hlotool.parse.text.syntax import Source, TextError

if TYPE_CHECKING:
    from hlotool.ir.literal import Literal

#: From so many characters on texts are cut into lines first. To compile what proves the pieces of a line
#: takes as long as parsing so much; where that is done, short texts are cut, too.
LARGE = 24_000
_SHORT = 1_000

#: Characters read so far in this process.
_read_so_far = 0


def parse_module(text: str, path: str | None = None, *, strict: bool = False) -> Module:
    """Read a module, some computations, or a single instruction.

    Args:
        text: HLO.
        path: of the file, for messages.
        strict: also reject what XLA's parser rejects today although it is clear: attributes and metadata keys
            of older versions, physical shapes in layouts.

    Raises:
        HloSyntaxError: it is not HLO, or it breaks a rule without which nothing can be built (names, operand
            counts, attributes, literals); shapes are left to the verifier.
    """
    global _read_so_far
    source = Source(text, path)
    _read_so_far += len(text)
    is_cut = _read_so_far >= LARGE and len(text) >= min(_SHORT, LARGE)
    with _collector_off():
        try:
            module = _read_large(source, strict) if is_cut else None
            return module or build_module(parse_syntax(source, "module", strict), source, strict)
        except TextError as error:
            raise source.error(error.message, error.position) from error


def _read_large(source: Source, strict: bool) -> Module | None:
    """The module of a large text, None where it is not written like a dump."""
    from hlotool.parse.text.large import LargeReader

    return LargeReader(source, strict).module()


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
    from hlotool.parse.text.literals import decode_literal

    source = Source(text)
    try:
        return decode_literal(text, shape)
    except TextError as error:
        parse_syntax(source, "literal", strict=False)  # where even the syntax is wrong, that is the error
        raise source.error(error.message, error.position) from error


@contextmanager
def _collector_off() -> Iterator[None]:
    """No cyclic collection while objects only become more: it would scan them again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            if not gc.get_freeze_count():
                # What was made is old at once: nobody need look through it to see that it is still in use.
                gc.freeze()
                gc.unfreeze()
            gc.enable()
