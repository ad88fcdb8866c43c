"""What a backend is tried on: the cases of the specs, and random ones.

A trial is named so that it can be made again: `add:17` is the case on line 17 of `spec/add.hlo`, and
`add#1234/0` the random case of number 1234 with seed 0.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any

from hlotool.conformance.agreement import EXACT, Tolerance
from hlotool.conformance.generators.cases import Case, case, generators
from hlotool.conformance.spec_files import FOLDER, SpecCase, flat_arrays, read_spec
from hlotool.ir.devices import ONE_DEVICE, DeviceGrid
from hlotool.ir.effects import has_side_effect
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import OPCODES
from hlotool.ir.types import ElementType, array_shapes

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
