"""From a number that one element should have back to the arguments that give it.

The way goes through data movement by indices, through arithmetic by its inverse (`inverses`), through sums
and products of matrices by one of their terms, through tuples, calls and the first iteration of loops, by the
values of a run on other inputs. It ends at elements of entry parameters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from hlotool.facts.flow import CallGraph, handed_on
from hlotool.facts.work import of_drawing, of_following
from hlotool.inputs.adversarial.inverses import inverted
from hlotool.inputs.evaluation import OnReference
from hlotool.ir.arrays import Array
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Class, Trait, opcodes_with
from hlotool.ir.types import ArrayShape, ElementType, ShapeIndex
from hlotool.system.resources import spend

#: Instructions visited for one element at most: products of many choices must not blow up.
_MOST_VISITS: Final = 160
#: Units of work of a visit, and of a look at how an instruction moves positions.
_VISIT: Final = 10_000
_MOVE: Final = 100_000
#: Terms of a sum that are changed together.
_MOST_TERMS: Final = 64
#: Their elements are elements of operands; start indices and the like stay as they were.
_MOVED: Final = opcodes_with(Trait.MOVES, Class.INDEXING) - {"scatter"}

#: Sums beyond it are not taken apart into squares: with their parts they are exact in f32, and mostly in f16.
_LARGEST_SUM: Final = 1 << 16
#: Looks for the squares of a sum: four do for any, so that few are needed.
_MOST_TRIES: Final = 500

_Indices: TypeAlias = npt.NDArray[np.uint64]


class Assignment(Struct, frozen=True):
    """An element of an argument and the number that it should be.

    Attributes:
        number: of the parameter.
        index: of the leaf within it.
        element: in row-major order.
        value: wanted.
    """

    number: int
    index: ShapeIndex
    element: int
    value: float


class Backwards:
    """Solves for the arguments of one program.

    Args:
        module: the program.
        values: of its instructions on other arguments, as `record.first_values` has them.
        is_exact: prefer numbers of which nothing is rounded on the way, even where more of them change.
    """

    def __init__(self, module: Module, values: Mapping[Instruction, Array], is_exact: bool = False) -> None:
        self._is_exact = is_exact
        spend(of_following(module))
        self.calls = CallGraph(module)
        self._values = values
        self._evaluator = OnReference()
        self._indices: dict[Instruction, _Indices | None] = {}
        self._left = 0

    def solve(self, instruction: Instruction, element: int, wanted: float) -> list[Assignment]:
        """Elements of arguments that, changed together, give one element of an instruction a number.

        Returns:
            none where no way back was found.
        """
        self._left = _MOST_VISITS
        return self._solve(instruction, (), element, wanted) or []

    def _solve(
        self, instruction: Instruction, index: ShapeIndex, element: int, wanted: float
    ) -> list[Assignment] | None:
        spend(_VISIT)
        self._left -= 1
        if self._left < 0:
            return None
        if instruction.opcode == "parameter" and self.calls.home[instruction] is self.calls.module.entry:
            return [Assignment(instruction.parameter_number or 0, index, element, wanted)]
        handed = list(handed_on((instruction, index), self.calls))
        # Of a loop's state the last source is what it starts with.
        for source, part in reversed(handed):
            if found := self._solve(source, part, element, wanted):
                return found
        if handed or not isinstance(instruction.shape, ArrayShape):
            return None
        for ways in self._steps(instruction, element, wanted):
            found = self._all_of(ways)
            if found:
                return found
        return None

    def _all_of(self, ways: list[tuple[Instruction, int, float]]) -> list[Assignment] | None:
        """The assignments for several elements together; None where one has none."""
        result: list[Assignment] = []
        for operand, element, wanted in ways:
            found = self._solve(operand, (), element, wanted)
            if not found:
                return None
            result += found
        return result

    def _steps(
        self, instruction: Instruction, element: int, wanted: float
    ) -> Iterator[list[tuple[Instruction, int, float]]]:
        """Choices of what to ask of operands: each a list of elements that change together."""
        opcode = instruction.opcode
        if opcode in _MOVED:
            place = self._source(instruction, element)
            if place is not None:
                yield [(*place, wanted)]
        elif opcode in ("reduce", "reduce-window"):
            yield from self._reduced(instruction, element, wanted)
        elif opcode == "dot":
            yield from self._product(instruction, element, wanted)
        elif instruction.row.opcode_class is Class.ELEMENTWISE:
            numbers = [self._number(o, instruction, element) for o in instruction.operands]
            if all(n is not None for n in numbers):
                for number, value in inverted(instruction, [n for n in numbers if n is not None], wanted):
                    operand = instruction.operands[number]
                    yield [(operand, element if operand.dims else 0, value)]

    def _number(self, operand: Instruction, reader: Instruction, element: int) -> float | None:
        """The number of an operand at the reader's element."""
        value = self.value_of(operand)
        if value is None or np.iscomplexobj(value) or not value.size:
            return None
        flat = value.reshape(-1)
        if len(flat) == 1:
            return _plain(flat[0])
        return _plain(flat[element]) if element < len(flat) and value.shape == reader.dims else None

    def _handed_value(self, operand: Instruction) -> Array | None:
        """The value of what is only handed on, and is thus seen by no probe: a parameter of a fusion, say."""
        part = (operand, ())
        for _ in range(20):
            sources = list(handed_on(part, self.calls))
            if not sources:
                return None
            part = sources[-1]  # type: ignore[assignment]
            if not part[1] and (part[0] in self._values or part[0].literal is not None):
                return self.value_of(part[0])
        return None

    def value_of(self, instruction: Instruction) -> Array | None:
        """The value that an instruction had; None where it is not known, or smaller than its shape says.

        Elements are counted in the declared dimensions, which an array of dynamic size need not fill.
        """
        literal = instruction.literal
        if literal is not None and isinstance(instruction.shape, ArrayShape) and not literal.has_elided:
            return literal.array
        value = self._values.get(instruction)
        if value is None:
            value = self._handed_value(instruction)
        if value is None or (isinstance(instruction.shape, ArrayShape) and value.shape != instruction.dims):
            return None
        return value

    def _source(self, instruction: Instruction, element: int) -> tuple[Instruction, int] | None:
        """The operand and its element that reappear as an element of moved data."""
        if instruction not in self._indices:
            self._indices[instruction] = self._moved_indices(instruction)
        indices = self._indices[instruction]
        if indices is None or element >= indices.size:
            return None
        place = int(indices.reshape(-1)[element])
        for number in instruction.row.carried(len(instruction.operands)):
            operand = instruction.operands[number]
            size = operand.array_shape.size
            if place < size:
                return operand, place
            place -= size
        return None

    def _moved_indices(self, instruction: Instruction) -> _Indices | None:
        """The same movement of positions, which count through all moved operands."""
        if any(o.element_type is not instruction.element_type for o in instruction.operands[:1]):
            return None
        moved = instruction.row.carried(len(instruction.operands))
        operands: list[Instruction] = []
        values: list[Array] = []
        start = 0
        for number, operand in enumerate(instruction.operands):
            if number in moved:
                shape = operand.array_shape
                words = ArrayShape(ElementType.U64, shape.dims, layout=shape.layout)
                positions = np.arange(start, start + shape.size, dtype=np.uint64)
                operands.append(Instruction(f"p{number}", "parameter", words, parameter_number=number))
                values.append(positions.reshape(shape.dims))
                start += shape.size
                continue
            value = self.value_of(operand)
            if value is None:
                return None
            operands.append(operand)
            values.append(value)
        own = instruction.array_shape
        words = ArrayShape(ElementType.U64, own.dims, layout=own.layout)
        moving = Instruction("moved", instruction.opcode, words, tuple(operands), instruction.attributes)
        spend(_MOVE + of_drawing(sum(value.size for value in values)))
        found = self._evaluator.apply(moving, values)
        return None if found is None else np.asarray(found, np.uint64)

    def _reduced(
        self, instruction: Instruction, element: int, wanted: float
    ) -> Iterator[list[tuple[Instruction, int, float]]]:
        """One term of a sum makes the difference; of an extremum all terms beyond it give way."""
        if len(instruction.operands) != 2:
            return
        terms, opcode = instruction.operands[0], next(instruction.called).root.opcode
        value = self.value_of(terms)
        if value is None or np.iscomplexobj(value):
            return
        group = self._group(instruction, element)
        numbers = [_plain(n) for n in value.reshape(-1)[group]]
        if not numbers:
            return
        if opcode == "add":
            if self._is_exact and len(group) <= _MOST_TERMS and (parts := _squares(wanted, len(group))):
                yield [(terms, int(place), number) for place, number in zip(group, parts)]
            rest = wanted - sum(numbers)
            for place in (0, len(group) // 2, len(group) - 1):
                yield [(terms, int(group[place]), numbers[place] + rest)]
            if sum(numbers) and len(group) <= _MOST_TERMS:
                factor = wanted / sum(numbers)
                yield [(terms, int(place), number * factor) for place, number in zip(group, numbers)]
        elif opcode in opcodes_with(Trait.IDEMPOTENT):
            is_upper = opcode in ("maximum", "or")
            best = max(numbers) if is_upper else min(numbers)
            if (wanted >= best) if is_upper else (wanted <= best):
                for place in (0, len(group) - 1):
                    yield [(terms, int(group[place]), wanted)]
            else:
                beyond = [
                    (int(g), n) for g, n in zip(group, numbers) if (n > wanted) is is_upper and n != wanted
                ]
                yield [(terms, g, wanted) for g, _ in beyond]

    def _group(self, instruction: Instruction, element: int) -> npt.NDArray[np.int64]:
        """The elements that are reduced to one; of a window the one at its place."""
        shape = instruction.operands[0].dims
        if instruction.opcode == "reduce-window":
            same = shape == instruction.dims
            return np.array([element] if same else [], np.int64)
        axes = instruction.integers("dimensions")
        kept = [d for d in range(len(shape)) if d not in axes]
        places = np.arange(int(np.prod(shape, dtype=np.int64))).reshape(shape).transpose(*kept, *axes)
        rows = places.reshape(int(np.prod([shape[d] for d in kept], dtype=np.int64)), -1)
        return np.asarray(rows[element] if element < len(rows) else [], np.int64)

    def _product(
        self, instruction: Instruction, element: int, wanted: float
    ) -> Iterator[list[tuple[Instruction, int, float]]]:
        """The factor beside the largest one makes the difference."""
        old = self.value_of(instruction)
        sides = [self.value_of(o) for o in instruction.operands]
        if old is None or np.iscomplexobj(old) or any(s is None for s in sides):
            return
        rows = [_terms(instruction, n, element) for n in (0, 1)]
        flat = [np.asarray(s, np.float64).reshape(-1)[row] for s, row in zip(sides, rows) if s is not None]
        rest = wanted - _plain(old.reshape(-1)[element])
        for number in (0, 1):
            others = np.abs(flat[1 - number])
            if not others.size or not np.isfinite(others).any() or not np.nanmax(others):
                continue
            place = int(np.nanargmax(others))
            with np.errstate(all="ignore"):
                new = flat[number][place] + rest / flat[1 - number][place]
            yield [(instruction.operands[number], int(rows[number][place]), float(new))]


def _terms(dot: Instruction, side: int, element: int) -> npt.NDArray[np.int64]:
    """The elements of one factor of a dot that an element of the result is made of."""
    names = ("lhs", "rhs")
    dims = [o.dims for o in dot.operands]
    batch = [dot.integers(f"{n}_batch_dims", ()) for n in names]
    contracted = [dot.integers(f"{n}_contracting_dims", ()) for n in names]
    free = [[d for d in range(len(dims[s])) if d not in (*batch[s], *contracted[s])] for s in (0, 1)]
    place = np.unravel_index(element, dot.dims) if dot.dims else ()
    count = len(batch[0])
    own_place = place[count : count + len(free[0])] if side == 0 else place[count + len(free[0]) :]
    size = int(np.prod(dims[side], dtype=np.int64))
    positions = np.arange(size).reshape(dims[side])
    ordered = positions.transpose(*batch[side], *free[side], *contracted[side])
    return np.asarray(ordered[(*place[:count], *own_place)], np.int64).reshape(-1)


def _squares(total: float, count: int) -> list[float]:
    """`count` squares with the sum `total`, none of them 0 if possible; none where there are no such ones.

    Their roots are as exact as they are, so that a sum of squares is this number to the last bit.
    """
    for is_positive in (True, False):
        for scale in (1, 4, 16, 64):
            left = total * scale
            if not 0 <= left < _LARGEST_SUM or left != int(left):
                continue
            if parts := _parts(int(left), count, int(is_positive), [_MOST_TRIES]):
                return [part / scale for part in parts]
    return []


def _parts(total: int, count: int, least: int, tries: list[int]) -> list[int]:
    """Squares of integers from `least` on, the largest first, as long as there are `tries` left."""
    tries[0] -= 1
    if count == 1:
        return [total] if math.isqrt(total) ** 2 == total and total >= least else []
    for root in range(math.isqrt(max(0, total - least * (count - 1))), least - 1, -1):
        if tries[0] > 0 and (rest := _parts(total - root * root, count - 1, least, tries)):
            return [root * root, *rest]
    return []


def _plain(number: object) -> float:
    """A Python number: exact for integers."""
    if isinstance(number, np.integer):
        return int(number)
    return float(number)  # type: ignore[arg-type]
