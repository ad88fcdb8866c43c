"""Where values come from: callers, what only hands values on, equal values, dependence on arguments.

A part of a value is an instruction with a shape index. What only hands values on (tuples, calls, loops,
branches) has the parts of other values: one, where it is always the same; several, where control flow
decides (what the body of a loop returns and what the loop starts with, the branches of a conditional, the
arguments of all callers). What computes something has none.

An optimised program computes a value in several fusions, which read it as parameters. Two instructions have
the same value number if they apply the same operation, elementwise or one that moves data, or the same
reduction, to the same numbers. Conversions between float types do not count: values are taken for real
numbers.

What does not depend on a program's arguments is the same in every run. Dependence goes through data (an
operand, a part of a tuple, the state of a loop) and through control (how often a loop runs, which branch is
taken).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeAlias

from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.opcodes import Class, Trait, opcodes_with
from hlotool.ir.types import ArrayShape, ShapeIndex, leaves, subshape
from hlotool.ir.walk import (
    Context,
    async_start,
    branches,
    context_of_callees,
    has_own_side_effect,
    reachable,
    through_tuple,
)


class CallGraph:
    """What the entry of a module reaches; computations that are never called are left out.

    The module must not change meanwhile.

    Attributes:
        module: the program.
        computations: callees before callers; the entry is the last.
        home: the computation that each instruction stands in, in that order.
        callers: the instructions that call each computation, each once; none for the entry.

    Raises:
        ValueError: a computation calls itself.
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self.computations = reachable(module.entry)
        self.home = {i: c for c in self.computations for i in c.instructions}
        self.callers: dict[Computation, list[Instruction]] = {c: [] for c in self.computations}
        for instruction in self.home:
            for callee in dict.fromkeys(instruction.called):
                self.callers[callee].append(instruction)

    def only_caller(self, computation: Computation) -> Instruction | None:
        """The one instruction that calls `computation`; None where there are several, or none."""
        callers = self.callers[computation]
        return callers[0] if len(callers) == 1 else None

    def enclosing(self, instruction: Instruction) -> Iterator[Instruction]:
        """The calls that run an instruction, innermost first, as far as there is a single one.

        What is applied to elements, such as a reducer, is not run step by step and has none.
        """
        call = self.only_caller(self.home[instruction])
        while call is not None and context_of_callees(call) is not Context.EMBEDDED:
            yield call
            call = self.only_caller(self.home[call])

    def in_order_of_execution(self) -> Iterator[Instruction]:
        """All instructions that run step by step, those of a computation after the first call to it."""
        seen = {self.module.entry}
        stack = [iter(self.module.entry.instructions)]
        while stack:
            instruction = next(stack[-1], None)
            if instruction is None:
                stack.pop()
                continue
            yield instruction
            if context_of_callees(instruction) is not Context.EMBEDDED:
                new = [callee for callee in dict.fromkeys(instruction.called) if callee not in seen]
                seen.update(new)
                stack += [iter(callee.instructions) for callee in reversed(new)]


#: A part of the value of an instruction; the index `()` means all of it.
Part: TypeAlias = "tuple[Instruction, ShapeIndex]"

#: Calls whose result is that of the computation, given the operands as its parameters.
INLINED = opcodes_with(Trait.INLINED)
#: Their value is that of their first operand.
_IDENTITIES = opcodes_with(Trait.FORWARDS)
_HAND_ON = _IDENTITIES | INLINED | opcodes_with(Trait.CONTROL_FLOW, Class.TUPLE) | {"async-done", "parameter"}


def handed_on(part: Part, calls: CallGraph) -> Iterator[Part]:
    """The parts of other values that `part` may have the value of; none where it is computed, or an argument.

    Args:
        part: of an instruction that the entry reaches.
        calls: of the program.
    """
    instruction, index = part
    opcode, operands = instruction.opcode, instruction.operands
    if opcode not in _HAND_ON:
        return
    if (source := through_tuple(instruction, index)) is not None:
        yield source
    elif opcode in _IDENTITIES:
        yield operands[0], index
    elif opcode in INLINED:
        yield next(instruction.called).root, index
    elif opcode == "async-done":
        yield next(async_start(instruction).called).root, index
    elif opcode == "while":
        yield from _state(instruction, index)
    elif opcode == "conditional":
        yield from ((branch.root, index) for branch in branches(instruction))
    elif opcode == "parameter":
        home = calls.home[instruction]
        for caller in calls.callers[home]:
            yield from arguments(caller, home, instruction.parameter_number or 0, index)


def arguments(caller: Instruction, callee: Computation, number: int, index: ShapeIndex) -> Iterator[Part]:
    """What a part of parameter `number` of `callee` is when `caller` runs it."""
    if caller.opcode == "while":
        yield from _state(caller, index)
    elif caller.opcode == "conditional":
        for branch, operand in zip(branches(caller), caller.operands[1:]):
            if branch is callee:
                yield operand, index
    elif caller.opcode in INLINED or caller.opcode == "async-start":
        yield caller.operands[number], index


def _state(loop: Instruction, index: ShapeIndex) -> Iterator[Part]:
    """What a part of the state of a loop is: after an iteration, or before the first."""
    yield loop.computation("body").root, index
    yield loop.operands[0], index


def computed_by(
    instruction: Instruction, calls: CallGraph, is_known: Callable[[Part], bool] = lambda _: False
) -> set[Part]:
    """The parts that compute a value, wherever it comes from; entry parameters stand for arguments.

    Args:
        instruction: that the entry reaches.
        calls: of the program.
        is_known: parts that are not followed further.
    """
    found: set[Part] = set()
    seen: set[Part] = set()
    pending: list[Part] = [(instruction, ())]
    while pending:
        part = pending.pop()
        if part in seen:
            continue
        seen.add(part)
        before = [] if is_known(part) else list(handed_on(part, calls))
        pending += before
        if not before:
            found.add(part)
    return found


#: Their value is that of their operand, as a real number.
_SAME_NUMBER = opcodes_with(Trait.CONVERTS) | {"copy"}
#: Attributes that say nothing about the value.
_NO_MEANING = frozenset(
    {"backend_config", "frontend_attributes", "operand_precision", "sharding", "statistics"}
)
_COMMUTE = opcodes_with(Trait.ASSOCIATIVE) - opcodes_with(Trait.BITWISE)


class ValueNumbers:
    """Numbers of the values of one program's instructions, given when first asked for.

    Args:
        calls: of the program, which must not change meanwhile.
    """

    def __init__(self, calls: CallGraph) -> None:
        self._calls = calls
        self._numbers: dict[Instruction, int] = {}
        self._known: dict[Hashable, int] = {}

    def same(self, a: Instruction, b: Instruction) -> bool:
        """Whether both have the same value and the same dimensions whenever both are computed."""
        return self.of(a) == self.of(b)

    def of(self, instruction: Instruction) -> int:
        """The number of the value of an instruction."""
        pending = [instruction]
        while pending:
            origin = self.origin(pending[-1])
            if origin in self._numbers:
                self._numbers.setdefault(pending.pop(), self._numbers[origin])
                continue
            unknown = [o for o in origin.operands if o not in self._numbers] if _is_pure(origin) else []
            if unknown:
                pending += unknown
                continue
            self._numbers[origin] = self._known.setdefault(self._key(origin), len(self._known))
        return self._numbers[instruction]

    def origin(self, instruction: Instruction) -> Instruction:
        """The instruction that computes the value: what only hands it on is looked through.

        Calls of a computation that others call, too, are not: their values are not one.
        """
        part: Part = (instruction, ())
        while True:
            one, index = part
            if not index and one.opcode in _SAME_NUMBER and _keeps_the_number(one):
                part = (one.operands[0], ())
                continue
            if one.opcode in INLINED and self._calls.only_caller(next(one.called)) is not one:
                return instruction if index else one
            sources = list(handed_on(part, self._calls))
            if len(sources) != 1:
                return instruction if index else one
            part = sources[0]
            if not part[1]:
                instruction = part[0]

    def _key(self, instruction: Instruction) -> Hashable:
        if not _is_pure(instruction):
            return instruction
        operands = [self._numbers[o] for o in instruction.operands]
        if instruction.opcode in _COMMUTE:
            operands.sort()
        shape, literal = instruction.shape, instruction.literal
        attributes = sorted(instruction.attributes.items(), key=lambda item: item[0])
        return (
            instruction.opcode,
            shape.dims if isinstance(shape, ArrayShape) else shape,
            # Between floats the type does not count; of integers it says where they wrap.
            None if isinstance(shape, ArrayShape) and shape.element_type.is_floating else shape,
            tuple(operands),
            tuple((k, _attribute(v)) for k, v in attributes if k not in _NO_MEANING),
            literal if literal is None or literal.has_elided else literal.key,
        )


def _attribute(value: Hashable) -> Hashable:
    return reducing_opcode(value) or value if isinstance(value, Computation) else value


def _keeps_the_number(instruction: Instruction) -> bool:
    """Whether source and result hold the same real numbers, up to rounding."""
    shape, source = instruction.shape, instruction.operands[0].shape
    if not isinstance(shape, ArrayShape) or not isinstance(source, ArrayShape):
        return False
    floats = shape.element_type.is_floating and source.element_type.is_floating
    return floats or shape.element_type is source.element_type


def _is_pure(instruction: Instruction) -> bool:
    """Whether equal operands make equal values."""
    if instruction.opcode == "reduce":
        return reducing_opcode(instruction.computation("to_apply")) is not None
    if instruction.opcode in ("constant", "iota"):
        return instruction.literal is None or not instruction.literal.has_elided
    pure = (Class.ELEMENTWISE, Class.DATA_MOVEMENT)
    return (
        bool(instruction.operands)
        and instruction.row.opcode_class in pure
        and isinstance(instruction.shape, ArrayShape)
        and not any(instruction.called)
    )


def reducing_opcode(computation: Computation) -> str | None:
    """The opcode of a reducer that is one operation on its two parameters, up to float conversions."""

    def stripped(instruction: Instruction) -> Instruction:
        while instruction.opcode in _SAME_NUMBER and _keeps_the_number(instruction):
            instruction = instruction.operands[0]
        return instruction

    root = stripped(computation.root)
    operands = [stripped(o) for o in root.operands]
    is_plain = (
        len(operands) == 2
        and {o.opcode for o in operands} == {"parameter"}
        and operands[0] is not operands[1]
    )
    return root.opcode if is_plain and root.opcode in _COMMUTE else None


#: Their results are not determined by their operands, or in a way that is not modelled here.
_UNDETERMINED = opcodes_with(Trait.UNDETERMINED)


class Dependence:
    """Answers for one program, which must not change meanwhile."""

    def __init__(self, calls: CallGraph) -> None:
        self._calls = calls
        self._varies: dict[Part, bool] = {}
        self._runs: dict[Computation, bool] = {}
        self._sources_behind: dict[Part, tuple[Part, ...]] = {}

    def varies(self, instruction: Instruction) -> bool:
        """Whether its value may be another one on other arguments, in the same iteration of loops."""
        parts = [(instruction, index) for index, _ in leaves(instruction.shape)]
        self._settle(parts)
        return any(self._varies[part] for part in parts)

    def runs_always_alike(self, instruction: Instruction) -> bool:
        """Whether it is executed equally often whatever the arguments are."""
        return self._is_steady(self._calls.home[instruction])

    def behind(self, instruction: Instruction, index: ShapeIndex) -> Iterator[Part]:
        """A leaf of a value, and all that it depends on: the nearest first."""
        pending = deque([(instruction, index)])
        seen = set(pending)
        while pending:
            part = pending.popleft()
            yield part
            if part not in self._sources_behind:
                self._sources_behind[part] = tuple(self._sources(part))
            for source in self._sources_behind[part]:
                if source not in seen:
                    seen.add(source)
                    pending.append(source)

    def _is_steady(self, computation: Computation) -> bool:
        if computation not in self._runs:
            self._runs[computation] = all(
                self._is_steady(self._calls.home[caller]) and not self._steers(caller)
                for caller in self._calls.callers[computation]
            )
        return self._runs[computation]

    def _steers(self, caller: Instruction) -> bool:
        """Whether the arguments decide how often it runs what it calls."""
        return any(self.varies(steering) for steering, _ in _steering(caller))

    def _settle(self, parts: Iterable[Part]) -> None:
        """Find out about `parts`, and about all that they depend on."""
        readers: dict[Part, list[Part]] = {}
        varying: list[Part] = []
        pending = [part for part in parts if part not in self._varies]
        seen = set(pending)
        while pending:
            part = pending.pop()
            if self._is_undetermined(part[0]):
                varying.append(part)
                continue
            for source in self._sources(part):
                if self._varies.get(source):
                    varying.append(part)
                elif source not in self._varies:
                    readers.setdefault(source, []).append(part)
                    if source not in seen:
                        seen.add(source)
                        pending.append(source)
        self._varies.update(dict.fromkeys(seen, False))
        while varying:
            part = varying.pop()
            if not self._varies[part]:
                self._varies[part] = True
                varying += readers.get(part, ())

    def _is_undetermined(self, instruction: Instruction) -> bool:
        if instruction.opcode == "parameter":
            return self._calls.home[instruction] is self._calls.module.entry
        return instruction.opcode in _UNDETERMINED or has_own_side_effect(instruction)

    def _sources(self, part: Part) -> Iterator[Part]:
        """What one part of a value depends on."""
        instruction, _ = part
        handed = [leaf for source in handed_on(part, self._calls) for leaf in _leaves(source)]
        if handed or instruction.opcode == "parameter":
            yield from handed
            yield from _steering(instruction)
            return
        for operand in instruction.operands:
            yield from _leaves((operand, ()))


def _steering(instruction: Instruction) -> Iterator[Part]:
    """What decides which computations an instruction runs, and how often."""
    if instruction.opcode == "while":
        yield instruction.computation("condition").root, ()
    elif instruction.opcode == "conditional":
        yield instruction.operands[0], ()


def _leaves(part: Part) -> Iterator[Part]:
    """The leaves of a part; of an array itself."""
    instruction, index = part
    for inner, _ in leaves(subshape(instruction.shape, index)):
        yield instruction, (*index, *inner)
