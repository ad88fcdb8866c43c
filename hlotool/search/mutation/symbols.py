"""Programs as terms: two with the same term for every element of the result are the same, whatever they run
on.

Every element of every array gets a symbol, a hash of how it is computed of the parameters. Data movement
moves symbols, operations on elements hash those of their operands, everything else hashes all of them. What
depends on constants alone is computed, and a few laws that hold for every bit (`laws`) are applied. Equal
symbols are a proof, up to collisions of 64 bits; different ones say nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from hlotool.analysis.machine_range import MachineRange, of_integers, of_type, of_value
from hlotool.analysis.machine_rules import range_of
from hlotool.analysis.trip_counts import ceilings, counter_limits
from hlotool.analysis.value_numbers import reducing_opcode
from hlotool.errors import Unsupported
from hlotool.ir.dtypes import Array, dtype_of
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.opcodes import COMMON_ATTRIBUTES, Class
from hlotool.ir.types import ArrayShape, ElementType, Shape, TupleShape, leaves
from hlotool.ir.walk import branches
from hlotool.locate.evaluation import OnReference
from hlotool.search.mutation.assumptions import assumed, is_elementwise, nan_source, with_cases
from hlotool.search.mutation.hashing import (
    Symbols,
    along,
    bag,
    combined,
    key_of,
    numbered,
    of_values,
    set_along,
    whole,
)
from hlotool.search.mutation.invariants import Bounds, bounded, invariant, reduced
from hlotool.search.mutation.terms import Law, Term, Terms, elementwise, flat

#: Elements of all arrays together, so that a proof takes about as long as a run.
_MOST_ELEMENTS: Final = 8_000_000

_MOVEMENT = frozenset(
    {"broadcast", "reshape", "bitcast", "transpose", "slice", "reverse", "concatenate", "pad", "copy"}
)
#: What never depends on constants alone, whatever its operands.
_NOT_COMPUTED = frozenset({"rng", "custom-call", "infeed", "recv", "partition-id", "replica-id"})
_HANDED_ON = frozenset({"opt-barrier", "domain", "add-dependency", "copy"})


def result_symbols(module: Module, laws: Sequence[Law]) -> list[Symbols]:
    """The symbols of all arrays that a program returns.

    Args:
        module: of static shapes.
        laws: tried on every operation, in this order.

    Raises:
        Unsupported: it is too large, or of shapes that depend on data.
    """
    reader = _Reader(laws)
    return [term.symbols for term in flat(reader.result(module.entry, reader.fresh(module.entry)))]


class _Reader:
    def __init__(self, laws: Sequence[Law]) -> None:
        self._laws = laws
        self._evaluator = OnReference()
        self._meanings: dict[tuple[Computation, Bounds | None], Symbols] = {}
        self._elements = 0

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
            if instruction.opcode == "parameter":
                terms[instruction] = arguments[instruction.parameter_number or 0]
            else:
                terms[instruction] = self._term(instruction, [terms[o] for o in instruction.operands])
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
        if opcode == "conditional" and (chosen := self._branch(instruction, operands)) is not None:
            return chosen
        flat = [o for o in operands if isinstance(o, Term)]
        if not isinstance(instruction.shape, ArrayShape) or len(flat) < len(operands):
            return self._opaque(instruction, operands)
        self._count(instruction.shape)
        return self._array(instruction, instruction.shape, flat)

    def _count(self, shape: ArrayShape) -> None:
        if shape.is_dynamic:
            raise Unsupported("shapes that depend on data")
        self._elements += shape.size
        if self._elements > _MOST_ELEMENTS:
            raise Unsupported(f"more than {_MOST_ELEMENTS} elements")

    def _branch(self, instruction: Instruction, operands: Sequence[Terms]) -> Terms | None:
        """The branch that is always taken."""
        index = operands[0]
        if not isinstance(index, Term) or index.known is None:
            return None
        ways = branches(instruction)
        if instruction.operands[0].element_type is ElementType.PRED:
            number = 0 if index.known else 1
        else:
            number = int(index.known)
            number = number if 0 <= number < len(ways) else len(ways) - 1
        return self.result(ways[number], [operands[1 + number]])

    def _array(self, instruction: Instruction, shape: ArrayShape, operands: Sequence[Term]) -> Terms:
        if instruction.opcode == "constant":
            return self._constant(instruction)
        known = self._computed(instruction, operands)
        if known is not None:
            return self.of_known(known)
        by_element = partial(self._elementwise, instruction)
        for law in self._laws:
            if (found := law(instruction, operands)) is not None:
                return (
                    found
                    if found.cases or found.known is not None
                    else with_cases(found, instruction, operands, by_element)
                )
        operands = assumed(instruction, operands)
        bounds = range_of(instruction, [o.bounds for o in operands])
        if instruction.opcode == "select" and np.array_equal(operands[1].symbols, operands[2].symbols):
            return Term(operands[1].symbols, bounds)
        symbols = self._symbols(instruction, operands)
        if symbols is None:
            opaque = self._opaque(instruction, operands)
            return replace(opaque, bounds=bounds) if isinstance(opaque, Term) else opaque
        term = Term(symbols, bounds, nan_of=nan_source(instruction, operands))
        return with_cases(term, instruction, operands, by_element)

    def _constant(self, instruction: Instruction) -> Terms:
        literal = instruction.literal
        if literal is None or literal.has_elided:
            return self._unknown(key_of("elided", instruction.name), instruction.shape)
        return self.of_known(literal.array)

    def of_known(self, value: Array) -> Term:
        """The term of a constant."""
        value = np.asarray(value)
        return Term(of_values(value), of_value(value), value)

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
        opcode = instruction.opcode
        if opcode in _MOVEMENT and self._keeps_type(instruction):
            return self._moved(instruction, [o.symbols for o in operands], [])
        if opcode in ("dynamic-slice", "dynamic-update-slice"):
            return self._sliced(instruction, operands)
        if opcode == "gather":
            return self._gathered(instruction, operands)
        if opcode == "scatter" and len(operands) == 3:
            return self._scattered(instruction, operands)
        if opcode == "dot":
            return self._dot(instruction, operands)
        if opcode == "reduce" and len(operands) == 2:
            key = key_of("reduce", instruction.shape, self._meaning(next(instruction.called), None))
            # The largest of several numbers is the same, however often each is there, and in which order.
            is_choice = reducing_opcode(next(instruction.called)) in ("maximum", "minimum")
            together = set_along if is_choice else along
            terms = together(operands[0].symbols, instruction.integers("dimensions"))
            return combined(key, terms, operands[1].symbols)
        if is_elementwise(instruction, operands):
            return self._elementwise(instruction, [o.symbols for o in operands])
        return None

    def _elementwise(self, instruction: Instruction, operands: Sequence[Symbols]) -> Symbols:
        said = self._said(instruction)
        found = elementwise(instruction.opcode, instruction.element_type, said, operands)
        return np.broadcast_to(found, instruction.dims)

    def _keeps_type(self, instruction: Instruction) -> bool:
        return all(o.element_type is instruction.element_type for o in instruction.operands)

    def _moved(
        self, instruction: Instruction, arrays: Sequence[Symbols], starts: Sequence[Any]
    ) -> Symbols | None:
        """The same movement of symbols."""
        words = tuple(
            Instruction(f"s{n}", "parameter", _as_words(o.shape), parameter_number=n)
            if n < len(arrays)
            else o
            for n, o in enumerate(instruction.operands)
        )
        moving = Instruction(
            instruction.name, instruction.opcode, _as_words(instruction.shape), words, instruction.attributes
        )
        value = self._evaluator.apply(moving, [*(np.array(a, order="C") for a in arrays), *starts])
        return None if value is None else np.asarray(value, np.uint64)

    def _sliced(self, instruction: Instruction, operands: Sequence[Term]) -> Symbols | None:
        """The part at known starts; at others, what it is depends on where XLA's clamp puts them."""
        count = 1 if instruction.opcode == "dynamic-slice" else 2
        starts = operands[count:]
        sizes = instruction.dims if count == 1 else instruction.operands[1].dims
        if len(starts) != len(sizes):
            return None
        limits = [dim - size for dim, size in zip(instruction.operands[0].dims, sizes)]
        effective = [_clamped(start, limit) for start, limit in zip(starts, limits)]
        parts = [o.symbols for o in operands[:count]]
        if all(start.known is not None for start in effective):
            places = [
                np.asarray(start.known).astype(dtype_of(o.element_type))
                for start, o in zip(effective, instruction.operands[count:])
            ]
            return self._moved(instruction, parts, places)
        key = key_of(instruction.opcode, instruction.shape)
        whole_key = combined(key, *map(whole, parts), *(start.symbols for start in effective))
        return numbered(np.uint64(whole_key), instruction.dims)

    def _gathered(self, instruction: Instruction, operands: Sequence[Term]) -> Symbols | None:
        """XLA clamps: what an index is beyond the end does not matter."""
        operand, index = operands
        mapped = instruction.integers("start_index_map")
        if len(mapped) != 1:
            return None
        limit = instruction.operands[0].dims[mapped[0]] - instruction.integers("slice_sizes")[mapped[0]]
        key = key_of("gather", instruction.shape, *self._said(instruction))
        parts = whole(operand.symbols), whole(_clamped(index, limit).symbols)
        return numbered(np.uint64(combined(key, *parts)), instruction.dims)

    def _scattered(self, instruction: Instruction, operands: Sequence[Term]) -> Symbols | None:
        """Where all updates are one number, their order does not matter."""
        operand, index, updates = operands
        if not updates.symbols.size or (updates.symbols != updates.symbols.flat[0]).any():
            return None
        dimension = instruction.integer("index_vector_dim")
        rows = index.symbols if dimension == index.symbols.ndim else along(index.symbols, (dimension,))
        key = key_of("scatter of one number", instruction.shape, *self._said(instruction))
        parts = whole(operand.symbols), bag(rows), np.asarray(updates.symbols.flat[0])
        return numbered(np.uint64(combined(key, *parts)), instruction.dims)

    def _dot(self, instruction: Instruction, operands: Sequence[Term]) -> Symbols:
        """A row and a column make an element, whatever their product is."""
        sides = []
        for side, term in zip(("lhs", "rhs"), operands):
            batch = instruction.integers(f"{side}_batch_dims", ())
            contracted = instruction.integers(f"{side}_contracting_dims", ())
            free = [d for d in range(term.symbols.ndim) if d not in (*batch, *contracted)]
            ordered = term.symbols.transpose(*batch, *free, *contracted)
            axes = tuple(range(ordered.ndim - len(contracted), ordered.ndim))
            sides.append((along(ordered, axes), len(batch)))
        (left, batches), (right, _) = sides
        left_free, right_free = left.ndim - batches, right.ndim - batches
        left = left.reshape((*left.shape, *([1] * right_free)))
        right = right.reshape((*right.shape[:batches], *([1] * left_free), *right.shape[batches:]))
        types = [o.element_type.value for o in instruction.operands]
        said = [
            v for k, v in sorted(instruction.attributes.items()) if k in ("operand_precision", "algorithm")
        ]
        key = key_of("dot", instruction.element_type.value, *types, *said)
        return combined(key, *np.broadcast_arrays(left, right))

    def _opaque(self, instruction: Instruction, operands: Sequence[Terms]) -> Terms:
        """Every element depends on everything."""
        bounds = self._invariant(instruction, operands)
        key = key_of(instruction.opcode, instruction.shape, *self._said(instruction, bounds))
        if instruction.opcode in _NOT_COMPUTED:
            key = key_of(key, instruction.name)
        parts = [whole(term.symbols) for operand in operands for term in flat(operand)]
        found = self._unknown(np.uint64(combined(key, *parts)), instruction.shape)
        return bounded(found, bounds) if instruction.opcode in ("while", "reduce") else found

    def _invariant(self, instruction: Instruction, operands: Sequence[Terms]) -> Bounds | None:
        """What holds of the state of a loop, or of the numbers that a reducer gets; None of others."""
        if instruction.opcode == "while":
            return self._loop_invariant(instruction, flat(operands[0]))
        if (values := reduced(instruction, operands)) is None:
            return None
        reducer = instruction.computation("to_apply")
        return invariant(values, {}, lambda held: self._bounds_after(reducer, (*held, *held)))

    def _loop_invariant(self, loop: Instruction, state: Sequence[Term]) -> Bounds | None:
        """What holds of the state of a loop, before each iteration and after the last one."""
        body, places = loop.computation("body"), [index for index, _ in leaves(loop.shape)]
        counters, most = counter_limits(loop), ceilings(loop)
        fixed = {n: of_integers(*counters[at]) for n, at in enumerate(places) if at in counters}
        # Up to the number that ends the loop; an iteration takes place below it only.
        below = {n: of_integers(-math.inf, most[at] - 1) for n, at in enumerate(places) if at in most}
        start = [
            term.bounds.union(of_integers(term.bounds.low, most[at])) if at in most else term.bounds
            for at, term in zip(places, state)
        ]

        def iteration(held: Bounds) -> Bounds:
            entered = (one.intersection(below[n]) if n in below else one for n, one in enumerate(held))
            return self._bounds_after(body, tuple(entered))

        return invariant(start, fixed, iteration)

    def _bounds_after(self, computation: Computation, bounds: Bounds) -> Bounds:
        returned = self.result(computation, self.fresh(computation, bounds))
        return tuple(term.bounds for term in flat(returned))

    def _unknown(self, key: np.uint64, shape: Shape) -> Terms:
        """Symbols of their own for every element of a shape."""
        if isinstance(shape, TupleShape):
            return tuple(self._unknown(key_of(key, n), part) for n, part in enumerate(shape.elements))
        if not isinstance(shape, ArrayShape):
            return Term(np.asarray(key, np.uint64), MachineRange())
        self._count(shape)
        return Term(numbered(key, shape.dims), of_type(shape.element_type))

    def _said(self, instruction: Instruction, bounds: Bounds | None = None) -> list[object]:
        """What the attributes of an instruction say about its result.

        `bounds` hold of what its computations get.
        """
        if bounds is not None and instruction.opcode != "while":
            bounds = (*bounds, *bounds)
        return [
            (name, self._attribute(value, bounds))
            for name, value in sorted(instruction.attributes.items())
            if name not in COMMON_ATTRIBUTES or name == "backend_config"
        ]

    def _attribute(self, value: object, bounds: Bounds | None) -> object:
        if isinstance(value, Computation):
            return self._meaning(value, bounds)
        if isinstance(value, tuple):
            return tuple(self._attribute(part, bounds) for part in value)
        return value

    def _meaning(self, computation: Computation, bounds: Bounds | None) -> Symbols:
        """A symbol for a function, the same for functions of the same terms."""
        key = computation, bounds
        if key not in self._meanings:
            returned = flat(self.result(computation, self.fresh(computation, bounds)))
            self._meanings[key] = combined(key_of("function"), *(whole(t.symbols) for t in returned))
        return self._meanings[key]


def _clamped(start: Term, limit: int) -> Term:
    """Where slices really start, of each index."""
    if start.clamped is not None and start.clamped[1] <= 0 and start.clamped[2] >= limit:
        start = start.clamped[0]
    low, high = (min(max(int(end), 0), limit) for end in (start.bounds.low, start.bounds.high))
    if low == high:
        value = np.full(start.symbols.shape, low)
        return Term(of_values(value), of_integers(low, high), value)
    if start.bounds.within(0, limit):
        return start
    return Term(combined(key_of("start", limit), start.symbols), of_integers(low, high))


def _as_words(shape: Shape) -> Shape:
    assert isinstance(shape, ArrayShape)
    return replace(shape, element_type=ElementType.U64)
