"""Sets that need no look at what the program decides: other seeds, ties, signs, corner values of its
parameters.

Those of ordinary values come first; what is legal but odd (NaN, positions out of range) follows, one array at
a time where one odd value would hide another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hlotool.backends.base import Value
from hlotool.directed import corners
from hlotool.directed.leaves import Chooser, Leaf, leaves_of, with_chosen
from hlotool.directed.sets import InputSet
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Class
from hlotool.ir.types import ArrayShape
from hlotool.values.generate import generate_inputs

#: Constants of a program that are larger say nothing that a parameter could be compared with.
_LARGEST = 1e6


#: Places that the largest number of a row has in turn.
_PLACES = 12


@dataclass(frozen=True, slots=True)
class _Family:
    name: str
    choose: Chooser
    odd: tuple[str, ...] = ()
    #: One set for each array that it changes.
    apart: bool = False


def ordinary_sets(module: Module, plain: Sequence[Value], seed: int) -> Iterator[InputSet]:
    """Sets of values that any framework may pass; equal seeds give equal sets.

    Args:
        module: the program.
        plain: its plain arguments.
        seed: of what is drawn.
    """
    leaves = leaves_of(module, plain)
    rng = np.random.default_rng([seed, 1])
    if leaves:
        for step in (1, 2):
            yield InputSet(f"seed {seed + step}", generate_inputs(module, seed + step).values)
    for family in _ordinary(rng, _constants(module)):
        yield from _of(module, plain, leaves, family)


def odd_sets(module: Module, plain: Sequence[Value], seed: int) -> Iterator[InputSet]:
    """Sets of what is legal and yet may never be passed; see `ordinary_sets`."""
    leaves = leaves_of(module, plain)
    rng = np.random.default_rng([seed, 3])
    leaves_open = any(map(_leaves_open, module.instructions()))
    for family in _odd(rng):
        if not (leaves_open and family.name in ("NaN", "infinity", "extremes")):
            yield from _of(module, plain, leaves, family)


def _leaves_open(instruction: Instruction) -> bool:
    """Whether nobody says what an operation makes of NaN and infinity.

    Linear algebra is a library's affair; and whether a convolution multiplies by the zeros of its padding,
    which makes NaN of infinity, is up to the compiler.
    """
    is_library = instruction.opcode == "custom-call" or instruction.row.opcode_class is Class.LIBRARY
    return is_library or instruction.opcode == "convolution"


def _of(
    module: Module, plain: Sequence[Value], leaves: Sequence[Leaf], family: _Family
) -> Iterator[InputSet]:
    if not family.apart:
        values, changed = with_chosen(module, plain, leaves, family.choose)
        if changed:
            yield InputSet(family.name, values, family.odd)
        return
    for leaf in leaves:
        values, changed = with_chosen(module, plain, leaves, corners.only(leaf, family.choose))
        if changed:
            yield InputSet(f"{family.name} in {leaf.name}", values, family.odd)


def _ordinary(rng: corners.Rng, constants: Sequence[float]) -> Iterator[_Family]:
    yield _Family("ties", corners.ties(rng, constants))
    yield _Family("both signs", corners.signed(rng))
    yield _Family("all magnitudes", corners.wide(rng))
    yield _Family("negative numbers", corners.one_sided(rng, -1))
    yield _Family("positive numbers", corners.one_sided(rng, 1))
    yield _Family("large numbers", corners.large(rng))
    yield _Family("zeros", corners.constant(0))
    yield _Family("ones", corners.constant(1))
    yield _Family("minus ones", corners.constant(-1))
    yield _Family("ascending", corners.ascending)
    yield _Family("descending", corners.descending)
    yield _Family("more ties", corners.ties(rng, constants))
    yield _Family("more signs", corners.signed(rng))
    for place in range(_PLACES):
        yield _Family(f"largest at {place}", corners.peak(place))


def _odd(rng: corners.Rng) -> Iterator[_Family]:
    yield _Family("positions beyond the end", corners.outside(rng, above=True), ("indices out of range",))
    yield _Family("positions before the start", corners.outside(rng, above=False), ("indices out of range",))
    yield _Family("positions far beyond", corners.far_outside, ("indices out of range",))
    yield _Family("negative zeros", corners.special(rng, -0.0), ("negative zeros",))
    yield _Family("NaN", corners.special(rng, np.nan), ("NaN",), apart=True)
    yield _Family("infinity", corners.special(rng, np.inf), ("infinity",), apart=True)
    yield _Family("extremes", corners.extreme(rng), ("extreme numbers",))


def _constants(module: Module) -> list[float]:
    """The scalar constants of a program, each once: what its comparisons may be with."""
    found: dict[float, None] = {}
    for instruction in module.instructions():
        literal = instruction.literal
        shape = instruction.shape
        if literal is None or literal.has_elided or not isinstance(shape, ArrayShape) or shape.rank:
            continue
        if shape.element_type.is_complex:
            continue
        value = float(np.asarray(literal.array).astype(np.float64))
        if abs(value) <= _LARGEST:
            found[value] = None
    return list(found)
