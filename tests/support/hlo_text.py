"""Small HLO texts for tests of the text reader, and what a module holds as plain values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from hlotool.errors import HloSyntaxError
from hlotool.ir.arrays import Literal
from hlotool.ir.attributes import EmbeddedLiteral
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.parser import reader

#: Computations that attributes may name.
COMPUTATIONS = """
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
less { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = pred[] compare(a, b), direction=LT }
negated { a = f32[2] parameter(0)  ROOT b = f32[2] negate(a) }
below { a = f32[2] parameter(0)  ROOT b = pred[] constant(false) }
"""


def program(*lines: str, header: str = "", computations: str = "") -> str:
    """A module whose entry has these lines."""
    return "\n".join([f"HloModule m{header}", computations, "ENTRY main {", *lines, "}", ""])


def instruction(*lines: str, computations: str = "", strict: bool = False) -> Instruction:
    """The last instruction of an entry with these lines."""
    text = program(*lines, computations=computations)
    return reader.parse_module(text, strict=strict).entry.instructions[-1]


def rejected(text: str, *, strict: bool = False) -> HloSyntaxError:
    """The error that reading `text` ends with."""
    with pytest.raises(HloSyntaxError) as caught:
        reader.parse_module(text, "file.hlo", strict=strict)
    return caught.value


@contextmanager
def large_texts_begin_at(length: int) -> Iterator[None]:
    """Texts of at least this length are read line by line, shorter ones a token at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "LARGE", length)
        yield


def snapshot(module: Module) -> list[Any]:
    """All that a module holds, in values that can be compared."""
    attributes = {key: _plain(value) for key, value in module.attributes.items()}
    head = [module.name, module.entry.name, module.path, attributes, module.stack_frames]
    return head + [_computation(computation) for computation in module.computations]


def _computation(computation: Computation) -> tuple[Any, ...]:
    instructions = [
        (
            i.name,
            i.opcode,
            i.shape,
            [operand.name for operand in i.operands],
            {key: _plain(value) for key, value in i.attributes.items()},
            i.metadata,
            _plain(i.literal),
            i.parameter_number,
            i.line,
            [before.name for before in i.control_predecessors],
        )
        for i in computation.instructions
    ]
    head = (computation.name, computation.root.name, computation.execution_thread, computation.line)
    return *head, dict(computation.attributes), instructions


def _plain(value: Any) -> Any:
    match value:
        case Computation():
            return computation_key(value)
        case EmbeddedLiteral():
            return _plain(value.literal)
        case Literal():
            return value.shape, value.elided, _plain(value.value)
        case np.ndarray():
            return value.dtype.name, value.shape, value.tobytes()
        case tuple():
            return tuple(map(_plain, value))
    return value


def computation_key(computation: Computation) -> tuple[str, str]:
    """What tells a computation from an instruction of the same name."""
    return "computation", computation.name
