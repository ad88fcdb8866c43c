"""Programs as terms: two with the same term for every element of the result are the same, whatever they run
on.

Every element of every array gets a symbol, a hash of how it is computed of the parameters. Data movement
moves symbols, operations on elements hash those of their operands, everything else hashes all of them. What
depends on constants alone is computed, and a few laws that hold for every bit (`laws`) are applied. Equal
symbols are a proof, up to collisions of 64 bits; different ones say nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np

from hlotool.analysis.machine_range import MachineRange, of_integers, of_type, of_value
from hlotool.analysis.machine_rules import range_of
from hlotool.analysis.value_numbers import reducing_opcode
from hlotool.errors import Unsupported
from hlotool.ir.dtypes import Array, dtype_of
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.opcodes import COMMON_ATTRIBUTES, Class
from hlotool.ir.types import ArrayShape, ElementType, Shape, TupleShape
from hlotool.ir.walk import branches
from hlotool.locate.evaluation import OnReference
from hlotool.search.mutation.hashing import (
    Symbols,
    along,
    combined,
    key_of,
    numbered,
    of_values,
    set_along,
    unordered,
    whole,
)

#: Elements of all arrays together, so that a proof takes about as long as a run.
_MOST_ELEMENTS: Final = 8_000_000

_COMMUTATIVE = frozenset({"add", "multiply", "maximum", "minimum", "and", "or", "xor"})
_MOVEMENT = frozenset(
    {"broadcast", "reshape", "bitcast", "transpose", "slice", "reverse", "concatenate", "pad", "copy"}
)
#: What never depends on constants alone, whatever its operands.
_NOT_COMPUTED = frozenset({"rng", "custom-call", "infeed", "recv", "partition-id", "replica-id"})
_HANDED_ON = frozenset({"opt-barrier", "domain", "add-dependency", "copy"})


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """An array as the program computes it.

    Attributes:
        symbols: of its elements.
        bounds: what holds for all its elements.
        known: the elements, where they depend on constants alone.
        divisor: of a remainder, where that is one positive number everywhere.
        zero_like: symbols of an array that is 0 at the same places, where another one is.
        compared: of a comparison with 0: symbols of what is compared, and the direction.
        negated: symbols of what an integer is the negative of.
    """

    symbols: Symbols
    bounds: MachineRange
    known: Array | None = None
    divisor: int | None = None
    zero_like: Symbols | None = None
    compared: tuple[Symbols, str] | None = None
    negated: Symbols | None = None


#: A term per array shape, a tuple per tuple shape.
Terms: TypeAlias = "Term | tuple[Terms, ...]"
#: The term of an instruction where a law applies to it.
Law: TypeAlias = Callable[[Instruction, Sequence[Term]], "Term | None"]


def result_symbols(module: Module, laws: Sequence[Law]) -> list[Symbols]:
    """The symbols of all arrays that a program returns.

    Args:
        module: of static shapes.
        laws: tried on every operation, in this order.

    Raises:
        Unsupported: it is too large, or of shapes that depend on data.
    """
    reader = _Reader(laws)
    return [term.symbols for term in _flat(reader.result(module.entry, reader.fresh(module.entry)))]


def elementwise(
    opcode: str, element_type: ElementType, said: Sequence[object], operands: Sequence[Symbols]
) -> Symbols:
    """The symbols of an operation on elements.

    Args:
        opcode: of the operation.
        element_type: of its result.
        said: its attributes, names with values.
        operands: symbols of what it reads.
    """
    key = key_of(opcode, element_type.value, *said)
    return unordered(key, *operands) if opcode in _COMMUTATIVE else combined(key, *operands)


def _flat(terms: Terms) -> list[Term]:
    return [terms] if isinstance(terms, Term) else [one for part in terms for one in _flat(part)]


class _Reader:
    def __init__(self, laws: Sequence[Law]) -> None:
        self._laws = laws
        self._evaluator = OnReference()
        self._meanings: dict[Computation, Symbols] = {}
        self._elements = 0

    def fresh(self, computation: Computation) -> list[Terms]:
        """Arguments of which nothing is known but their types."""
        return [
            self._unknown(key_of("parameter", number), parameter.shape)
            for number, parameter in enumerate(computation.parameters)
        ]

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
        for law in self._laws:
            if (found := law(instruction, operands)) is not None:
                return found
        bounds = range_of(instruction, [o.bounds for o in operands])
        symbols = self._symbols(instruction, operands)
        if symbols is None:
            opaque = self._opaque(instruction, operands)
            return replace(opaque, bounds=bounds) if isinstance(opaque, Term) else opaque
        return Term(symbols, bounds)

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
        if opcode == "dot":
            return self._dot(instruction, operands)
        if opcode == "reduce" and len(operands) == 2:
            key = key_of("reduce", instruction.shape, self._meaning(next(instruction.called)))
            # The largest of several numbers is the same, however often each is there, and in which order.
            is_choice = reducing_opcode(next(instruction.called)) in ("maximum", "minimum")
            together = set_along if is_choice else along
            terms = together(operands[0].symbols, instruction.integers("dimensions"))
            return combined(key, terms, operands[1].symbols)
        if instruction.row.opcode_class is Class.ELEMENTWISE and not any(instruction.called):
            if any(o.symbols.shape not in (instruction.dims, ()) for o in operands):
                return None
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
        key = key_of(instruction.opcode, instruction.shape, *self._said(instruction))
        if instruction.opcode in _NOT_COMPUTED:
            key = key_of(key, instruction.name)
        parts = [whole(term.symbols) for operand in operands for term in _flat(operand)]
        return self._unknown(np.uint64(combined(key, *parts)), instruction.shape)

    def _unknown(self, key: np.uint64, shape: Shape) -> Terms:
        """Symbols of their own for every element of a shape."""
        if isinstance(shape, TupleShape):
            return tuple(self._unknown(key_of(key, n), part) for n, part in enumerate(shape.elements))
        if not isinstance(shape, ArrayShape):
            return Term(np.asarray(key, np.uint64), MachineRange())
        self._count(shape)
        return Term(numbered(key, shape.dims), of_type(shape.element_type))

    def _said(self, instruction: Instruction) -> list[object]:
        """What the attributes of an instruction say about its result."""
        return [
            (name, self._attribute(value))
            for name, value in sorted(instruction.attributes.items())
            if name not in COMMON_ATTRIBUTES or name == "backend_config"
        ]

    def _attribute(self, value: object) -> object:
        if isinstance(value, Computation):
            return self._meaning(value)
        if isinstance(value, tuple):
            return tuple(map(self._attribute, value))
        return value

    def _meaning(self, computation: Computation) -> Symbols:
        """A symbol for a function, the same for functions of the same terms."""
        if computation not in self._meanings:
            returned = _flat(self.result(computation, self.fresh(computation)))
            self._meanings[computation] = combined(key_of("function"), *(whole(t.symbols) for t in returned))
        return self._meanings[computation]


def _clamped(start: Term, limit: int) -> Term:
    """Where a slice really starts."""
    low, high = min(max(start.bounds.low, 0), limit), min(max(start.bounds.high, 0), limit)
    if low == high:
        value = np.asarray(int(low))
        return Term(of_values(value), of_integers(low, high), value)
    if start.bounds.within(0, limit):
        return start
    return Term(combined(key_of("start", limit), start.symbols), of_integers(low, high))


def _as_words(shape: Shape) -> Shape:
    assert isinstance(shape, ArrayShape)
    return replace(shape, element_type=ElementType.U64)
