"""Trials: a program of one opcode with arguments, what is expected of it, and predicates that results must
hold.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any, TypeAlias

import numpy as np

from hlotool.facts.float_order import ulp_distance
from hlotool.ir.arrays import Array
from hlotool.ir.devices import ONE_DEVICE, DeviceGrid
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import OPCODES
from hlotool.ir.types import ArrayShape, ElementType, array_shapes
from hlotool.ir.walk import has_side_effect
from hlotool.lab.conformance.agreement import EXACT, Departure, Tolerance, flushed
from hlotool.lab.conformance.generators.cases import Case, case, generators
from hlotool.lab.conformance.spec_files import FOLDER, SpecCase, flat_arrays, read_spec

#: How many random cases are drawn for each that is wanted: where types are asked for, few may fit.
_DRAWS = 50
#: Among how many of those that fit the choice is made, for each that is wanted: as many types as possible.
_CHOICE = 4

#: Their first operand decides something; the data comes after it.
_DECIDED = frozenset({"select", "conditional"})

_RANDOM = re.compile(r"(.+)#(\d+)/(\d+)")


@dataclass(frozen=True, eq=False)
class Trial:
    """A program with arguments, and what it must return.

    Attributes:
        name: how it is found again.
        case: number, opcode, module, and the arguments of device 0 as flat arrays.
        title: what it shows.
        grid: the devices that execute it.
        spec: where the expected values stand; None where the reference computes them.
    """

    name: str
    case: Case
    title: str
    grid: DeviceGrid = ONE_DEVICE
    spec: SpecCase | None = None

    @property
    def opcode(self) -> str:
        """What it is about."""
        return self.case.opcode

    @property
    def module(self) -> Module:
        """The program."""
        return self.case.module

    @cached_property
    def element_type(self) -> ElementType | None:
        """Of the data that the opcode works on; None where there are only tokens."""
        return subject(self.opcode, self.module)

    @property
    def tolerance(self) -> Tolerance:
        """What the spec says of it."""
        return self.spec.tolerance if self.spec is not None else EXACT

    @property
    def rule(self) -> str | None:
        """The departure of XLA's that it shows."""
        return self.spec.rule if self.spec is not None else None

    @property
    def xla_cannot(self) -> str | None:
        """Why XLA's CPU compiler does not execute it."""
        return self.spec.cannot_run_on_xla if self.spec is not None else None

    @cached_property
    def rows(self) -> list[list[Any]]:
        """Per device, one value for each parameter."""
        if self.spec is None:
            return [list(self.case.arguments)]
        return [self.spec.arguments(self.module, device) for device in range(len(self.grid))]

    @cached_property
    def elements(self) -> int:
        """How large it is: elements of the arguments and of the result."""
        given = sum(array.size for array in self.case.arguments)
        return given + sum(shape.size for shape in array_shapes(self.module.entry.root.shape))

    @property
    def stands_alone(self) -> bool:
        """Whether it must not share a module with others: it acts on the world, or its header says more."""
        is_special = len(self.grid) > 1 or self.xla_cannot is not None or bool(self.module.attributes)
        return is_special or any(map(has_side_effect, self.module.instructions()))


def subject(opcode: str, module: Module) -> ElementType | None:
    """The element type of what the last instruction of that opcode works on; else of its result."""
    found = [i for i in module.instructions() if i.opcode == opcode]
    return working_type(found[-1] if found else module.entry.root)


def working_type(instruction: Instruction) -> ElementType | None:
    """The element type of the data that an instruction works on; None where there are only tokens."""
    candidates: Sequence[Instruction] = instruction.operands
    if instruction.opcode in _DECIDED and len(candidates) > 1:
        candidates = candidates[1:]
    shapes = [shape for i in (*candidates, instruction) for shape in array_shapes(i.shape)]
    return shapes[0].element_type if shapes else None


def trials(opcode: str, kinds: frozenset[str], count: int, seed: int) -> Iterator[Trial]:
    """What tries an opcode: all cases of its spec, then random ones where a generator has any.

    Args:
        opcode: of the table of opcodes.
        kinds: element types of interest; empty for all.
        count: random cases.
        seed: of these.
    """
    yield from (trial for trial in _specified(opcode) if _is_wanted(trial, kinds))
    drawn = (_drawn(opcode, number, seed) for number in _numbers(opcode, count * _DRAWS))
    fitting = (trial for trial in drawn if _is_wanted(trial, kinds))
    yield from _of_all_types(islice(fitting, count * _CHOICE))[:count]


def _of_all_types(found: Iterable[Trial]) -> list[Trial]:
    """The first of every element type, then the second of every one, and so on."""
    turns: Counter[ElementType | None] = Counter()
    order: list[tuple[int, Trial]] = []
    for trial in found:
        order.append((turns[trial.element_type], trial))
        turns[trial.element_type] += 1
    return [trial for _, trial in sorted(order, key=lambda pair: pair[0])]


def trial_named(name: str) -> Trial:
    """The trial of that name.

    Raises:
        ValueError: there is none.
    """
    if found := _RANDOM.fullmatch(name):
        return _drawn(found[1], int(found[2]), int(found[3]))
    opcode, _, _ = name.rpartition(":")
    for trial in _specified(opcode):
        if trial.name == name:
            return trial
    raise ValueError(f"there is no case {name}")


def _specified(opcode: str) -> Iterator[Trial]:
    """The cases of a spec that say what a program returns; those that say how one is refused are ours."""
    if opcode not in OPCODES:
        return
    for spec in read_spec(FOLDER / f"{opcode}.hlo"):
        if spec.error is None:
            module = _as_a_frontend_writes_it(spec.module)
            arguments = flat_arrays(spec.arguments(module))
            known = Case(spec.line, opcode, module, arguments)
            yield Trial(f"{opcode}:{spec.line}", known, spec.title, spec.grid, spec)


def _as_a_frontend_writes_it(module: Module) -> Module:
    """The module without a schedule: a text of a single instruction counts as scheduled, as XLA reads it.

    A backend would take it for a program that its own passes have been over.
    """
    return replace(module, attributes={k: v for k, v in module.attributes.items() if k != "is_scheduled"})


def _numbers(opcode: str, most: int) -> Iterator[int]:
    """The numbers of the random cases of an opcode: opcodes take turns."""
    names = list(generators())
    if opcode in names:
        yield from range(names.index(opcode), most * len(names), len(names))


def _drawn(opcode: str, number: int, seed: int) -> Trial:
    found = case(number, seed)
    if found.opcode != opcode:
        raise ValueError(f"random case {number} is about {found.opcode}, not about {opcode}")
    return Trial(f"{opcode}#{number}/{seed}", found, f"random case {number}, seed {seed}")


def _is_wanted(trial: Trial, kinds: frozenset[str]) -> bool:
    kind = trial.element_type
    return not kinds or (kind is not None and kind.value in kinds)


@dataclass(frozen=True, slots=True, eq=False)
class Difference:
    """One leaf of a result that is not equal on both sides.

    Attributes:
        case: what was run.
        leaf: its number in the result.
        kind: its element type.
        ours: of the numpy backend.
        theirs: of XLA.
    """

    case: Case
    leaf: int
    kind: ElementType
    ours: Array
    theirs: Array

    @property
    def operands(self) -> list[Array]:
        """The arguments, if they are as large as the result, or scalars; else none."""
        fits = all(a.shape in ((), self.ours.shape) for a in self.case.arguments)
        return [np.broadcast_to(a, self.ours.shape) for a in self.case.arguments] if fits else []

    @property
    def source(self) -> ElementType | None:
        """Element type of the first operand."""
        operands = self.case.instruction.operands
        shape = operands[0].shape if operands else None
        return shape.element_type if isinstance(shape, ArrayShape) else None


Predicate: TypeAlias = Callable[[Difference], Array]


def explained(rule: Departure, difference: Difference) -> Array:
    """A mask over the elements of the result."""
    nothing = np.zeros(difference.ours.shape, np.bool_)
    if rule.predicate is None or not {"*", difference.case.opcode} & set(rule.opcodes):
        return nothing
    predicate: Predicate = globals()[rule.predicate]
    with np.errstate(all="ignore"):
        return nothing | predicate(difference)


def _wide(array: Array) -> Array:
    return array.astype(np.float64)


def flushes_denormals(difference: Difference) -> Array:
    """An operand is denormal, or the result is and XLA has a zero."""
    return flushed(difference.ours, difference.theirs, difference.operands)


def has_exponent_of_more_than_six_bits(difference: Difference) -> Array:
    """An integer exponent from 64 on, or one that s32 cannot hold."""
    if not difference.kind.is_integer:
        return np.asarray(False)
    exponent = _wide(difference.operands[1])
    return np.asarray((exponent >= 64) | (exponent <= -(2.0**31)))


def has_exponent_with_top_bit(difference: Difference) -> Array:
    """An exponent that is negative when its top bit counts as a sign; the base is -1 or unsigned."""
    kind = difference.kind
    if not kind.is_integer:
        return np.asarray(False)
    base, exponent = (operand.astype(np.int64) for operand in difference.operands)
    has_top_bit = (exponent >> (kind.bits - 1)) & 1 == 1
    return np.asarray(has_top_bit & ((base == -1) | kind.is_unsigned))


def is_negative(difference: Difference) -> Array:
    """A negative operand of a type below a byte."""
    if difference.kind.bits >= 8:
        return np.asarray(False)
    return np.asarray(difference.operands[0].astype(np.int64) < 0)


def is_six(difference: Difference) -> Array:
    """The largest f4e2m1fn, made an integer."""
    if difference.source is not ElementType.F4E2M1FN or not difference.kind.is_integer:
        return np.asarray(False)
    return np.asarray(np.abs(_wide(difference.operands[0])) == 6)


def is_neighbour(difference: Difference) -> Array:
    """One step apart, in a type of eight bits."""
    if difference.kind.bits > 8 or not difference.kind.is_floating:
        return np.asarray(False)
    return np.asarray(ulp_distance(difference.ours, difference.theirs, difference.kind) <= 1)


def is_below_minus_eleven(difference: Difference) -> Array:
    """Where exp(-x) is infinite in f16, or nearly so."""
    if difference.kind is not ElementType.F16:
        return np.asarray(False)
    return np.asarray(_wide(difference.operands[0]) < -10)


_FNUZ = (ElementType.F8E4M3FNUZ, ElementType.F8E4M3B11FNUZ, ElementType.F8E5M2FNUZ)


def is_tiny_fnuz(difference: Difference) -> Array:
    """A zero that XLA makes NaN, or a number below the normal ones of f16; or a zero of the other sign."""
    if not difference.kind.is_floating:
        return np.asarray(False)
    ours, theirs = (_wide(a) for a in (difference.ours, difference.theirs))
    if difference.kind in _FNUZ:
        return np.asarray(((ours == 0) & np.isnan(theirs)) | (np.abs(ours) < 2.0**-14))
    return np.asarray((ours == 0) & (theirs == 0) & (difference.source in _FNUZ))


def has_zero_part(difference: Difference) -> Array:
    """A complex operand with a real or imaginary part of zero."""
    if difference.source is None or not difference.source.is_complex:
        return np.asarray(False)
    operand = difference.operands[0]
    return np.asarray((operand.imag == 0) | (operand.real == 0))


def is_not_finite(difference: Difference) -> Array:
    """A complex operand or result with a part that is infinite or NaN."""
    complexes = [a for a in (*difference.operands, difference.ours) if a.dtype.kind == "c"]
    return np.logical_or.reduce([~np.isfinite(a) for a in complexes]) if complexes else np.asarray(False)


def is_zero(difference: Difference) -> Array:
    """Zeros of either sign."""
    return np.asarray((difference.ours == 0) & (difference.theirs == 0))


def is_nan_made_infinite(difference: Difference) -> Array:
    """NaN here, infinite there, where no mantissa bit is left."""
    left = difference.case.instruction.attributes.get("mantissa_bits")
    return np.asarray(np.isnan(_wide(difference.ours)) & np.isinf(_wide(difference.theirs)) & (left == 0))


def is_scale_of_zero(difference: Difference) -> Array:
    """The scale that is to be zero: NaN here, the smallest one there."""
    if difference.kind is not ElementType.F8E8M0FNU:
        return np.asarray(False)
    return np.asarray(np.isnan(_wide(difference.ours)) & (_wide(difference.theirs) == 2.0**-127))


def reduces_one_element(difference: Difference) -> Array:
    """One element goes into each element of the result."""
    return np.asarray(difference.case.arguments[0].size == difference.ours.size)


def selects_an_equal_element(difference: Difference) -> Array:
    """Everything was scattered, though elsewhere, to elements of which there are equal ones."""
    values, counts = np.unique(difference.case.arguments[0], return_counts=True)
    if difference.ours.sum() != difference.theirs.sum():
        return np.asarray(False)
    return np.isin(difference.case.arguments[0], values[counts > 1])
