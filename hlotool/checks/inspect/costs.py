"""Arithmetic and memory traffic of a program, counted as XLA counts them. XLA: hlo_cost_analysis.cc.

One floating-point operation per element, two per multiply-add; functions such as `exp` are counted apart. An
instruction reads its operands and writes its result once; inside a fusion nothing touches memory. A loop
counts as one iteration, a conditional as its most expensive branch. What a custom call does is unknown: it
counts as nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import prod
from typing import TypeAlias

import msgspec

from hlotool.checks.inspect.traffic import fusion_bytes, is_custom
from hlotool.facts.buffers import Sizes, table_bytes
from hlotool.facts.work import CONTRACTIONS
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.opcodes import Class, Trait, by_opcode, opcodes_with
from hlotool.ir.types import UNBOUNDED, ArrayShape, Shape, array_shapes
from hlotool.ir.walk import branches


class Cost(msgspec.Struct, frozen=True, gc=False):
    """What executing something once takes.

    Attributes:
        flops: arithmetic operations, of integers too.
        transcendentals: evaluations of functions such as `exp`, square roots and random numbers included.
        bytes_accessed: read from memory and written to it.
        unknown: custom calls, and operations on arrays of unbounded size, of which nothing is counted.
    """

    flops: int = 0
    transcendentals: int = 0
    bytes_accessed: int = 0
    unknown: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.flops + other.flops,
            self.transcendentals + other.transcendentals,
            self.bytes_accessed + other.bytes_accessed,
            self.unknown + other.unknown,
        )

    def arithmetic(self, times: int) -> Cost:
        """Its arithmetic so many times, in registers."""
        times = max(0, times)
        return Cost(self.flops * times, self.transcendentals * times)

    def times(self, count: int) -> Cost:
        """All of it so many times."""
        return Cost(
            self.flops * count,
            self.transcendentals * count,
            self.bytes_accessed * count,
            self.unknown * count,
        )


_NOTHING = Cost()

Rule: TypeAlias = "Callable[[CostAnalysis, Instruction], Cost]"

_RULES: dict[str, Rule] = {}

_TRANSCENDENTAL = opcodes_with(Trait.TRANSCENDENTAL)
#: What moves nothing.
_FREE = opcodes_with(Trait.ORDERS, Trait.STRUCTURE) - {"tuple"} | {"bitcast", "domain"}


class CostAnalysis:
    """Costs of the computations and instructions of a program, each worked out once.

    Args:
        iterations: of a `while`; one, as XLA counts, where nothing is given.
        known: what the program costs with other iterations; what calls nothing costs the same.

    Attributes:
        iterations: of a `while`.
        sizes: of the shapes of the program.
    """

    def __init__(
        self, iterations: Callable[[Instruction], int] = lambda loop: 1, known: CostAnalysis | None = None
    ) -> None:
        self.iterations = iterations
        self.sizes: Sizes = known.sizes if known is not None else Sizes()
        self._plain = known
        self._computations: dict[Computation, Cost] = {}
        self._instructions: dict[Instruction, Cost] = {}

    def of_computation(self, computation: Computation) -> Cost:
        """The sum over its instructions."""
        known = self._computations.get(computation)
        if known is None:
            flops = transcendentals = moved = unknown = 0
            for cost in map(self.of_instruction, computation.instructions):
                if cost is not _NOTHING:
                    flops += cost.flops
                    transcendentals += cost.transcendentals
                    moved += cost.bytes_accessed
                    unknown += cost.unknown
            known = self._computations[computation] = Cost(flops, transcendentals, moved, unknown)
        return known

    def of_instruction(self, instruction: Instruction) -> Cost:
        """With all that it calls."""
        known = self._instructions.get(instruction)
        if known is None:
            if self._plain is not None and not any(instruction.called):
                known = self._plain.of_instruction(instruction)
            else:
                known = self._cost(instruction)
            self._instructions[instruction] = known
        return known

    def operand_and_result_bytes(self, instruction: Instruction) -> int:
        """Operands read once, of a tuple its table of pointers; the arrays of the result written once."""
        table = self.sizes.table
        return self.sizes.total(instruction.shape) + sum([table(o.shape) for o in instruction.operands])

    def _cost(self, instruction: Instruction) -> Cost:
        opcode = instruction.opcode
        if opcode in _FREE:
            return _NOTHING
        if any(_is_unbounded(one.shape) for one in (instruction, *instruction.operands)):
            return Cost(unknown=1)
        if (rule := _RULES.get(opcode)) is not None:
            return rule(self, instruction)
        if (moved := _TRAFFIC.get(opcode)) is not None:
            return Cost(0, 0, moved(self, instruction))
        traffic = self.operand_and_result_bytes(instruction)
        if (times := _APPLICATIONS.get(opcode)) is not None:
            applied = self.of_computation(instruction.computation("to_apply"))
            return applied.arithmetic(times(instruction)) + Cost(0, 0, traffic)
        if (flops := CONTRACTIONS.get(opcode)) is not None:
            return Cost(flops(instruction), 0, traffic)
        if instruction.row.opcode_class is not Class.ELEMENTWISE and opcode != "bitcast-convert":
            return Cost(0, 0, traffic)
        elements = _elements(instruction)
        if opcode in _TRANSCENDENTAL:
            return Cost(0, elements, traffic)
        return Cost(elements, 0, traffic)


def _is_unbounded(shape: Shape) -> bool:
    return any(one.is_dynamic and UNBOUNDED in one.dims for one in array_shapes(shape))


def _costs(*opcodes: str) -> Callable[[Rule], Rule]:
    """Register the rule for `opcodes`."""
    return by_opcode(_RULES, opcodes)


def _elements(instruction: Instruction) -> int:
    """How many elements the result has; its first part where there are several."""
    shape = instruction.shape
    if isinstance(shape, ArrayShape):
        return shape.size
    return next((part.size for part in array_shapes(shape)), 0)


@_costs("call", "async-start")
def _call(analysis: CostAnalysis, instruction: Instruction) -> Cost:
    return analysis.of_computation(next(instruction.called))


@_costs("while")
def _while(analysis: CostAnalysis, instruction: Instruction) -> Cost:
    body, condition = instruction.computation("body"), instruction.computation("condition")
    once = analysis.of_computation(body) + analysis.of_computation(condition)
    return once.times(analysis.iterations(instruction))


@_costs("conditional")
def _conditional(analysis: CostAnalysis, instruction: Instruction) -> Cost:
    return _most([analysis.of_computation(branch) for branch in branches(instruction)])


def _most(costs: Iterable[Cost]) -> Cost:
    """The largest of each kind."""
    columns = zip(*((c.flops, c.transcendentals, c.bytes_accessed, c.unknown) for c in costs))
    return Cost(*map(max, columns))


@_costs("fusion")
def _fusion(analysis: CostAnalysis, instruction: Instruction) -> Cost:
    computation = next(instruction.called)
    if is_custom(instruction):
        indexed = (i for i in computation.instructions if i.opcode in ("gather", "scatter"))
        if (found := next(indexed, None)) is not None:
            return analysis.of_instruction(found)
    inside = analysis.of_computation(computation)
    return Cost(inside.flops, inside.transcendentals, fusion_bytes(instruction, computation), inside.unknown)


@_costs("custom-call")
def _custom_call(analysis: CostAnalysis, instruction: Instruction) -> Cost:
    return Cost(unknown=1)


def _window_combinations(instruction: Instruction) -> int:
    """One less than the window has elements, for each result; a sum over a whole dimension is done once."""
    elements = _elements(instruction)
    if (whole := _whole_dimension(instruction)) is not None:
        size = instruction.dims[whole]
        return elements // size + size - 1
    return (_window_size(instruction) - 1) * elements


def _whole_dimension(instruction: Instruction) -> int | None:
    """The dimension of which every window sees everything, if it is the only one that is reduced."""
    dims = instruction.window.dims
    wide = [n for n, dim in enumerate(dims) if dim.size != 1]
    padded = [n for n, dim in enumerate(dims) if dim.pad_low or dim.pad_high]
    if len(wide) != 1 or wide != padded or not isinstance(instruction.shape, ArrayShape):
        return None
    dim = dims[wide[0]]
    is_whole = dim.pad_low == dim.pad_high == instruction.shape.dims[wide[0]] - 1
    return wide[0] if is_whole and dim.size == 2 * dim.pad_low + 1 else None


def _window_size(instruction: Instruction) -> int:
    return prod(dim.size for dim in instruction.window.dims)


def _scan_steps(instruction: Instruction) -> int:
    """One call for each step. XLA multiplies by the size of what is carried instead."""
    (dimension,) = instruction.integers("dimensions")
    return instruction.operands[0].dims[dimension]


#: How often `to_apply` is executed, in registers.
_APPLICATIONS: Mapping[str, Callable[[Instruction], int]] = {
    "map": _elements,
    "reduce": lambda reduce: _elements(reduce.operands[0]) - _elements(reduce),
    "reduce-window": _window_combinations,
    "scan": _scan_steps,
}


@_costs("select-and-scatter")
def _select_and_scatter(analysis: CostAnalysis, instruction: Instruction) -> Cost:
    sources = _elements(instruction.operands[1])
    select = analysis.of_computation(instruction.computation("select"))
    scatter = analysis.of_computation(instruction.computation("scatter"))
    return (
        select.arithmetic(sources * (_window_size(instruction) - 1))
        + scatter.arithmetic(sources)
        + Cost(bytes_accessed=analysis.operand_and_result_bytes(instruction))
    )


@_costs("scatter")
def _scatter(analysis: CostAnalysis, instruction: Instruction) -> Cost:
    """Updates are read, and so is what they change, which is written again."""
    count = len(instruction.operands) // 2
    indices, updates = instruction.operands[count], instruction.operands[count + 1 :]
    applied = analysis.of_computation(instruction.computation("to_apply")).arithmetic(_elements(updates[0]))
    changed = sum(table_bytes(update.shape) for update in updates)
    return applied + Cost(bytes_accessed=3 * changed + table_bytes(indices.shape))


def _operand_bytes(analysis: CostAnalysis, instruction: Instruction, number: int) -> int:
    operands = instruction.operands
    return analysis.sizes.table(operands[number].shape) if number < len(operands) else 0


def _keeps_memory(transpose: Instruction) -> bool:
    """Whether it changes the names of the dimensions only: the order in memory stays."""
    permutation = transpose.integers("dimensions")
    order = tuple(permutation[dimension] for dimension in transpose.array_shape.minor_to_major)
    return order == transpose.operands[0].array_shape.minor_to_major


#: Bytes by opcode of what only moves data, and not every operand and the result once.
_TRAFFIC: Mapping[str, Callable[[CostAnalysis, Instruction], int]] = {
    # The slice is read and written; of the indices XLA counts the first.
    "dynamic-slice": lambda of, i: 2 * of.sizes.table(i.shape) + _operand_bytes(of, i, 1),
    # In place: the update is read and written.
    "dynamic-update-slice": lambda of, i: 2 * _operand_bytes(of, i, 1) + _operand_bytes(of, i, 2),
    "gather": lambda of, i: 2 * of.sizes.table(i.shape) + _operand_bytes(of, i, 1),
    "infeed": lambda of, i: of.sizes.total(i.shape),
    "outfeed": lambda of, i: sum(of.sizes.total(operand.shape) for operand in i.operands),
    "slice": lambda of, i: 2 * of.sizes.table(i.shape),
    "transpose": lambda of, i: 0 if _keeps_memory(i) else of.operand_and_result_bytes(i),
    "tuple": lambda of, i: of.sizes.table(i.shape),
}


@_costs("all-reduce", "all-reduce-start")
def _all_reduce(analysis: CostAnalysis, instruction: Instruction) -> Cost:
    """As of two devices: one addition per element."""
    return Cost(_all_elements(instruction), 0, analysis.operand_and_result_bytes(instruction))


@_costs("rng", "rng-bit-generator")
def _random(analysis: CostAnalysis, instruction: Instruction) -> Cost:
    return Cost(0, _all_elements(instruction), analysis.operand_and_result_bytes(instruction))


def _all_elements(instruction: Instruction) -> int:
    return sum(shape.size for shape in array_shapes(instruction.shape))


@_costs("triangular-solve")
def _triangular_solve(analysis: CostAnalysis, instruction: Instruction) -> Cost:
    """Half of the matrix is read."""
    matrix, right = instruction.operands
    flops = 2 * matrix.dims[-1] * _elements(right)
    read = table_bytes(matrix.shape) // 2 + table_bytes(right.shape)
    return Cost(flops, 0, table_bytes(instruction.shape) + read)


@_costs("cholesky")
def _cholesky(analysis: CostAnalysis, instruction: Instruction) -> Cost:
    """Half of the matrix is read, half is written."""
    matrix = instruction.operands[0].array_shape
    return Cost(matrix.dims[-1] * matrix.size // 3, 0, table_bytes(matrix))
