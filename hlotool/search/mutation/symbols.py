"""Programs as terms: two with the same term for every element of the result are the same, whatever they run
on.

Every element of every array gets a symbol, a hash of how it is computed of the parameters. Data movement
moves symbols, operations on elements hash those of their operands, everything else hashes all of them. What
depends on constants alone is computed, and a few laws that hold for every bit (`laws`) are applied. Equal
symbols are a proof, up to collisions of 64 bits and to signs of zeros that nothing reads; different ones say
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial, reduce
from typing import Final

import numpy as np

from hlotool.analysis.machine_range import MachineRange, of_type
from hlotool.analysis.machine_rules import range_of, ranges_of_parts
from hlotool.analysis.trip_counts import most_trips
from hlotool.errors import Unsupported
from hlotool.ir.attribute_kinds import COMMON_ATTRIBUTES
from hlotool.ir.dtypes import Array, dtype_of
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.opcodes import Class, Trait, opcodes_with
from hlotool.ir.types import ArrayShape, ElementType, Shape, TupleShape, leaves
from hlotool.ir.walk import branches
from hlotool.locate.evaluation import OnReference
from hlotool.search.mutation import loops, predicates, reducers
from hlotool.search.mutation.arrays import MOVEMENT, Arrays, gathered
from hlotool.search.mutation.assumptions import assumed, in_case, is_elementwise, nan_source, with_cases
from hlotool.search.mutation.both_cases import of_both
from hlotool.search.mutation.choices import Choices
from hlotool.search.mutation.hashing import (
    Symbols,
    combined,
    key_of,
    numbered,
    numbers,
    whole,
)
from hlotool.search.mutation.integer_laws import plus, zero
from hlotool.search.mutation.libraries import with_facts
from hlotool.search.mutation.low_bits import remembered
from hlotool.search.mutation.reducers import Bounds, bounded
from hlotool.search.mutation.reductions import Reductions
from hlotool.search.mutation.row_choices import chosen_rows
from hlotool.search.mutation.sorting import order_of_rows
from hlotool.search.mutation.split import Split, settled
from hlotool.search.mutation.terms import Law, Term, Terms, constant, elementwise, flat, of_predicate
from hlotool.search.mutation.zero_signs import sign_of_zero_is_read

#: Elements of all arrays together, so that a proof takes about as long as a run.
_MOST_ELEMENTS: Final = 16_000_000
#: Elements that are asked one by one whether they are known.
_MOST_NUMBERS: Final = 16

#: What never depends on constants alone, whatever its operands.
_NOT_COMPUTED = opcodes_with(Trait.UNDETERMINED)
_HANDED_ON = opcodes_with(Trait.FORWARDS) | {"copy"}


class Reader:
    """Reads one program.

    Args:
        module: the program.
        laws: tried on every operation, in this order.
        split: cases that are told apart wherever elements stay at their places.
        unrolled: whether loops are followed iteration by iteration, as far as their conditions are known.

    Attributes:
        watched: a comparison …
        seen: … and what it compared, each time that it was read.
        loops: a symbol for each loop of which it is not known that it ends.
    """

    def __init__(
        self, module: Module, laws: Sequence[Law], split: Split | None = None, unrolled: bool = False
    ) -> None:
        self._split = split
        self._iterations = loops.Iterations() if unrolled else None
        self.watched: Instruction | None = None
        self.seen: list[tuple[Term, Term]] = []
        self._laws = laws
        self._evaluator = OnReference()
        self._arrays = Arrays(self._evaluator)
        self._reductions = Reductions()
        self._meanings: dict[tuple[Computation, Bounds | None, tuple[int, ...]], Symbols] = {}
        self.loops: set[int] = set()
        self._choices = Choices()
        self._elements = 0

        @cache
        def reads_signs(instruction: Instruction) -> bool:
            return sign_of_zero_is_read(module, lambda other: other is instruction)

        self._reads_signs = reads_signs

    def fresh(self, computation: Computation, bounds: Bounds | None = None) -> list[Terms]:
        """Arguments of which nothing is known but their types, and bounds of their arrays."""
        found = tuple(
            self._unknown(key_of("parameter", number), parameter.shape)
            for number, parameter in enumerate(computation.parameters)
        )
        known = bounded(found, bounds)
        assert isinstance(known, tuple)
        return list(known)

    def result(self, computation: Computation, arguments: Sequence[Terms]) -> Terms:
        """What a computation returns for arguments."""
        terms: dict[Instruction, Terms] = {}
        for instruction in computation.instructions:
            if self._iterations is not None:
                self._iterations.read += 1
            if instruction.opcode == "parameter":
                terms[instruction] = arguments[instruction.parameter_number or 0]
            else:
                terms[instruction] = self._term(instruction, [terms[o] for o in instruction.operands])
            if self._split is not None and isinstance(found := terms[instruction], Term):
                terms[instruction] = self._split.told_apart(found)
        return terms[computation.root]

    def _term(self, instruction: Instruction, operands: Sequence[Terms]) -> Terms:
        opcode = instruction.opcode
        if opcode == "tuple":
            return tuple(operands)
        if opcode == "get-tuple-element":
            assert isinstance(operands[0], tuple)
            return operands[0][instruction.integer("index")]
        if opcode in ("call", "fusion"):
            return self.result(next(instruction.called), operands)
        if opcode in _HANDED_ON:
            return operands[0]
        if instruction.row.opcode_class is not Class.ELEMENTWISE and opcode != "conditional":
            operands = [settled(o, self._split) for o in operands]
        if opcode == "conditional":
            return self._conditional(instruction, operands)
        if opcode == "while":
            return self._loop(instruction, operands[0])
        arrays = [o for o in operands if isinstance(o, Term)]
        is_array = isinstance(instruction.shape, ArrayShape) and len(arrays) == len(operands)
        if not is_array or any(map(_is_dynamic, (instruction, *instruction.operands))):
            return self._opaque(instruction, operands)
        return self._array(instruction, arrays)

    def _count(self, shape: ArrayShape) -> None:
        self._elements += shape.size
        if self._elements > _MOST_ELEMENTS:
            raise Unsupported(f"more than {_MOST_ELEMENTS} elements")

    def _conditional(self, instruction: Instruction, operands: Sequence[Terms]) -> Terms:
        """The branch that is always taken, or what all of them return, and what decides."""
        index, *arguments = operands
        assert isinstance(index, Term)
        index = settled(index, self._split)
        ways = branches(instruction)
        if index.known is not None:
            number = int(index.known)
            if instruction.operands[0].element_type is ElementType.PRED:
                number = 1 - number
            number = number if 0 <= number < len(ways) else len(ways) - 1
            return self.result(ways[number], [arguments[number]])
        results = [flat(self.result(way, [argument])) for way, argument in zip(ways, arguments)]
        if len(ways) == 2 and index.predicate is not None:
            is_first = instruction.operands[0].element_type is ElementType.PRED
            for number, result in enumerate(results):
                holds = (number == 0) is is_first
                results[number] = [in_case(term, index.predicate, holds) for term in result]
        results = [[settled(term, self._split) for term in result] for result in results]
        key = key_of("conditional", len(ways))

        def chosen(parts: Sequence[Term]) -> Term:
            first, *others = parts
            if all(np.array_equal(first.symbols, other.symbols) for other in others):
                return reduce(of_both, parts)
            bounds = reduce(MachineRange.union, (part.bounds for part in parts))
            return Term(combined(key, index.symbols, *(part.symbols for part in parts)), bounds)

        return _packed(instruction.shape, [chosen(parts) for parts in zip(*results)])

    def _loop(self, loop: Instruction, state: Terms) -> Terms:
        """A function of what the state is at first, of the body and of the condition."""
        body, condition = loop.computation("body"), loop.computation("condition")
        start, shapes = flat(state), [shape for _, shape in leaves(loop.shape)]

        def run(computation: Computation, arrays: Sequence[Term]) -> list[Term]:
            return flat(self.result(computation, [_packed(loop.shape, arrays)]))

        if self._iterations is not None:
            start, is_over = self._iterations.followed(start, partial(run, condition), partial(run, body))
            if is_over:
                return _packed(loop.shape, start)
        begun = combined(key_of("state"), *(whole(term.symbols) for term in start))

        def fresh(number: int) -> Term:
            found = self._unknown(key_of(begun, number), shapes[number])
            assert isinstance(found, Term)
            return found

        held = loops.invariant(loop, start, fresh, partial(run, body))
        parts = [*held.after, *run(condition, held.before)]
        key = combined(key_of("while", loop.shape), begun, *(whole(term.symbols) for term in parts))
        if most_trips(loop) is None:
            self.loops.add(int(key))

        def returned(number: int) -> Term:
            term, place = held.before[number], held.like[number]
            if held.stays[number]:
                return term
            return Term(numbered(key_of(key, place), term.symbols.shape), term.bounds)

        return _packed(loop.shape, [returned(number) for number in range(len(start))])

    def _array(self, instruction: Instruction, operands: Sequence[Term]) -> Term:
        if instruction.opcode == "constant":
            return self._constant(instruction)
        if instruction is self.watched:
            self.seen.append((operands[0], operands[1]))
        return with_cases(instruction, operands, self._operation)

    def _operation(self, instruction: Instruction, operands: Sequence[Term]) -> tuple[Term, Sequence[Term]]:
        """Its term, and the operands as they are where it reads them."""
        operands = assumed(instruction, operands, self._reads_signs)
        is_choice = instruction.opcode == "select" and is_elementwise(instruction, operands)
        if is_choice:
            operands = self._choices.seen_through(operands)
        term = self._simplified(instruction, operands)
        if is_choice:
            parts = [operand.symbols for operand in operands]
            plain = elementwise("select", instruction.element_type, self._said(instruction), parts)
            self._choices.note(term.symbols, np.broadcast_to(plain, instruction.dims), parts)
        word = remembered(instruction, operands, term)
        return term if word is term.word else replace(term, word=word), operands

    def _simplified(self, instruction: Instruction, operands: Sequence[Term]) -> Term:
        self._count(instruction.array_shape)
        known = self._computed(instruction, operands)
        if known is not None:
            return constant(known)
        for law in self._laws:
            if (found := law(instruction, operands)) is not None:
                return found
        if (start := reducers.start_of_sum(instruction, operands)) is not None:
            summed = self._simplified(instruction, [operands[0], zero(())])
            return plus(instruction.element_type, summed, start)
        bounds = range_of(instruction, [o.bounds for o in operands])
        bounds = self._reductions.bounded(instruction, operands, bounds)
        symbols = self._symbols(instruction, operands)
        if symbols is None:
            opaque = self._opaque(instruction, operands)
            assert isinstance(opaque, Term)
            return replace(opaque, bounds=bounds)
        if (moved := self._moved_predicate(instruction, operands)) is not None:
            return moved
        if (known_now := _numbers(instruction, symbols)) is not None:
            return constant(known_now)
        said = self._said(instruction) if instruction.opcode == "gather" else ()
        nan_of = nan_source(instruction, operands)
        return Term(symbols, bounds, nan_of=nan_of, gathered=gathered(instruction, operands, said))

    def _moved_predicate(self, instruction: Instruction, operands: Sequence[Term]) -> Term | None:
        """What a pred says does not depend on its place."""
        if instruction.element_type is not ElementType.PRED or operands[0].predicate is None:
            return None
        is_alone = reducers.takes_one_each(instruction, operands)
        if not is_alone and (len(operands) != 1 or instruction.opcode not in MOVEMENT):
            return None

        def move(symbols: Symbols) -> Symbols:
            if is_alone:
                return symbols.reshape(instruction.dims)
            found = self._arrays.moved(instruction, [symbols], [])
            assert found is not None
            return found

        return of_predicate(predicates.moved(operands[0].predicate, move), instruction.dims)

    def _constant(self, instruction: Instruction) -> Term:
        literal = instruction.literal
        if literal is None or literal.has_elided:
            found = self._unknown(key_of("elided", instruction.name), instruction.shape)
            assert isinstance(found, Term)
            return found
        return constant(literal.array)

    def _computed(self, instruction: Instruction, operands: Sequence[Term]) -> Array | None:
        """The value of what depends on constants alone."""
        if instruction.opcode == "iota":
            dimension = instruction.integer("iota_dimension")
            values = np.arange(instruction.dims[dimension])
            along_it = [1] * len(instruction.dims)
            along_it[dimension] = -1
            wide = np.broadcast_to(values.reshape(along_it), instruction.dims)
            return wide.astype(dtype_of(instruction.element_type))
        values_known = [o.known for o in operands]
        if not operands or any(v is None for v in values_known) or instruction.opcode in _NOT_COMPUTED:
            return None
        if instruction.row.opcode_class in (Class.COLLECTIVE, Class.HOST, Class.RANDOM):
            return None
        value = self._evaluator.apply(instruction, [v for v in values_known if v is not None])
        return None if value is None or isinstance(value, tuple) else np.asarray(value)

    def _symbols(self, instruction: Instruction, operands: Sequence[Term]) -> Symbols | None:
        """The symbols of an operation whose elements depend on some elements of its operands only."""
        if instruction.opcode == "reduce" and len(operands) == 2:
            meaning = self._meaning(next(instruction.called), None)
            return self._reductions.symbols(instruction, operands, meaning)
        if is_elementwise(instruction, operands):
            said = self._said(instruction)
            parts = [o.symbols for o in operands]
            found = elementwise(instruction.opcode, instruction.element_type, said, parts)
            return np.broadcast_to(found, instruction.dims)
        return self._arrays.symbols(instruction, operands, self._said(instruction))

    def _opaque(self, instruction: Instruction, operands: Sequence[Terms]) -> Terms:
        """Every element depends on everything."""
        terms = flat(tuple(operands))
        bounds = self._reduced(instruction, terms)
        rising = reducers.rising(instruction, terms)
        if (rows := self._chosen_rows(instruction, terms, rising)) is not None:
            pairs = enumerate(zip(terms, terms[len(terms) // 2 :]))
            chosen = [Term(combined(key_of(n), rows), a.bounds.union(b.bounds)) for n, (a, b) in pairs]
            return _packed(instruction.shape, chosen)
        key = key_of(instruction.opcode, instruction.shape, *self._said(instruction, bounds, rising))
        if instruction.opcode in _NOT_COMPUTED:
            key = key_of(key, instruction.name)
        parts = [whole(term.symbols) for term in terms]
        if instruction.opcode == "sort" and not any(map(_is_dynamic, instruction.operands)):
            comparator = next(instruction.called)
            before = self.result(comparator, self.fresh(comparator))
            assert isinstance(before, Term)
            parts = order_of_rows(instruction, terms, before, self.fresh(comparator)) or parts
        found = self._unknown(np.uint64(combined(key, *parts)), instruction.shape)
        if instruction.opcode == "custom-call":
            found = with_facts(instruction, found)
        if bounds is None:
            bounds = ranges_of_parts(instruction, [term.bounds for term in terms])
        return bounded(found, bounds)

    def _chosen_rows(
        self, instruction: Instruction, terms: Sequence[Term], rising: Sequence[int]
    ) -> Symbols | None:
        """Of a reduction of several arrays that depends on nothing but the rows that there are."""
        if instruction.opcode != "reduce" or len(terms) < 4 or any(map(_is_dynamic, instruction.operands)):
            return None
        is_told = any(term.bounds.negative_zero for term in terms) and self._reads_signs(instruction)
        return None if is_told else chosen_rows(instruction, terms, rising)

    def _reduced(self, instruction: Instruction, terms: Sequence[Term]) -> Bounds | None:
        """What holds of the numbers that a reducer gets; None of what has no reducer."""
        if (values := reducers.first_step(instruction, terms)) is None:
            return None
        reducer = instruction.computation("to_apply")

        def step(held: Bounds) -> Bounds:
            returned = self.result(reducer, self.fresh(reducer, (*held, *held)))
            return tuple(term.bounds for term in flat(returned))

        return reducers.invariant(values, step)

    def _unknown(self, key: np.uint64, shape: Shape) -> Terms:
        """Symbols of their own for every element of a shape."""
        if isinstance(shape, TupleShape):
            return tuple(self._unknown(key_of(key, n), part) for n, part in enumerate(shape.elements))
        if not isinstance(shape, ArrayShape):
            return Term(np.asarray(key, np.uint64), MachineRange())
        self._count(shape)
        if 0 in shape.dims and not shape.is_dynamic:
            return constant(np.zeros(shape.dims, dtype_of(shape.element_type)))
        return Term(numbered(key, shape.dims), of_type(shape.element_type))

    def _said(
        self, instruction: Instruction, bounds: Bounds | None = None, rising: tuple[int, ...] = ()
    ) -> list[object]:
        """What the attributes of an instruction say about its result.

        Args:
            instruction: of the program.
            bounds: hold of what its computations get, each twice.
            rising: places of what its computations get in ascending order.
        """
        if bounds is not None:
            bounds = (*bounds, *bounds)

        def said(value: object) -> object:
            if isinstance(value, Computation):
                return self._meaning(value, bounds, rising)
            return tuple(map(said, value)) if isinstance(value, tuple) else value

        return [
            (name, said(value))
            for name, value in sorted(instruction.attributes.items())
            if name not in COMMON_ATTRIBUTES or name == "backend_config"
        ]

    def _meaning(
        self, computation: Computation, bounds: Bounds | None, rising: tuple[int, ...] = ()
    ) -> Symbols:
        """A symbol for a function, the same for functions of the same terms."""
        key = computation, bounds, rising
        if key not in self._meanings:
            arguments = reducers.ordered(self.fresh(computation, bounds), rising)
            returned = flat(self.result(computation, arguments))
            self._meanings[key] = combined(key_of("function"), *(whole(t.symbols) for t in returned))
        return self._meanings[key]


def _numbers(instruction: Instruction, symbols: Symbols) -> Array | None:
    """The integers that a result is, where each of a few elements is known to be one."""
    if not instruction.element_type.is_integer or not 0 < symbols.size <= _MOST_NUMBERS:
        return None
    if None in numbers(symbols.reshape(-1)[:1]) or None in (found := numbers(symbols)):
        return None
    return np.array(found).astype(dtype_of(instruction.element_type)).reshape(instruction.dims)


def _is_dynamic(instruction: Instruction) -> bool:
    return isinstance(instruction.shape, ArrayShape) and instruction.shape.is_dynamic


def _packed(shape: Shape, terms: Sequence[Term]) -> Terms:
    """The terms of all arrays of a shape, in its tuples."""
    waiting = iter(terms)

    def part(one: Shape) -> Terms:
        return tuple(map(part, one.elements)) if isinstance(one, TupleShape) else next(waiting)

    return part(shape)
