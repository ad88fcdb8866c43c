"""How much work it is to execute something once, in units of about a nanosecond.

An estimate from opcodes and sizes, meant for the numpy backend: an instruction costs something by itself,
and then by its elements or its multiplications. What a run alone knows is no part of it: the iterations of
a loop and the branch of a conditional are counted as they are executed. `benchmarks/speed/work.py` compares
it with the clock. Who counts the units: `system/resources.py`.

XLA: hlo_cost_analysis.cc (products, convolutions, transforms, sorts).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Final

from hlotool.facts.trip_counts import loop_repetitions, trips_expected
from hlotool.ir.attributes import ConvolutionDimensions, WindowDim
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.opcodes import Class, Trait, opcodes_with
from hlotool.ir.types import ArrayShape, ElementType, TupleShape, array_shapes
from hlotool.ir.walk import branches, reachable

#: A multiplication and an addition.
_MULTIPLY_ADD = 2
#: Real multiplications of a complex one.
_COMPLEX = 4


def _dot(instruction: Instruction) -> int:
    """Of a ragged product each row belongs to one group: as if the result had no dimension for the groups."""
    groups = len(instruction.integers("rhs_group_dims", ()))
    contracted = instruction.integers("lhs_contracting_dims", ())
    width = prod(instruction.operands[0].dims[dimension] for dimension in contracted)
    return _MULTIPLY_ADD * prod(instruction.dims[groups:]) * width


def _fft(instruction: Instruction) -> int:
    factors = prod(length.bit_length() - 1 for length in instruction.integers("fft_length", ()))
    return _MULTIPLY_ADD * _COMPLEX * factors * instruction.operands[0].array_shape.size


def _sort(instruction: Instruction) -> int:
    """Comparisons, over all dimensions together."""
    elements = instruction.operands[0].array_shape.size
    return elements * max(0, elements - 1).bit_length()


def _convolution(instruction: Instruction) -> int:
    labels, window = instruction.attribute("dim_labels", ConvolutionDimensions), instruction.window
    left, kernel = (operand.dims for operand in instruction.operands)
    result = instruction.dims
    spatial = zip(window.dims, labels.input_spatial, labels.kernel_spatial, labels.output_spatial)
    positions = prod(_positions(dim, left[i], kernel[k], result[o]) for dim, i, k, o in spatial)
    features = left[labels.input_feature] // instruction.integer("feature_group_count", 1)
    batch = left[labels.input_batch] // instruction.integer("batch_group_count", 1)
    return _MULTIPLY_ADD * features * result[labels.output_feature] * batch * positions


def _positions(dim: WindowDim, inputs: int, kernel: int, outputs: int) -> int:
    """Pairs of a kernel and an output position that read an element, not padding and not a hole."""
    return sum(_hits(dim, inputs, outputs, tap * dim.window_dilation - dim.pad_low) for tap in range(kernel))


def _hits(dim: WindowDim, inputs: int, outputs: int, offset: int) -> int:
    """How many outputs read an element by one tap: at `output * stride + offset` of a dilated input."""
    if dim.base_dilation == 1:
        first = max(0, -(offset // dim.stride))
        last = min(outputs - 1, (inputs - 1 - offset) // dim.stride)
        return max(0, last - first + 1)
    places = (output * dim.stride + offset for output in range(outputs))
    limit = inputs * dim.base_dilation
    return sum(0 <= place < limit and place % dim.base_dilation == 0 for place in places)


#: Flops by opcode; they read their operands and write their result once.
CONTRACTIONS: Mapping[str, Callable[[Instruction], int]] = {
    "convolution": _convolution,
    "dot": _dot,
    "fft": _fft,
    "ragged-dot": _dot,
    "scaled-dot": _dot,
    "sort": _sort,
}


#: Of every step of a plan: slots are read, NumPy is called.
_STEP: Final = 3_000
#: Of a contraction, a sort, a call of a library; of an element in a library.
_LARGE_STEP: Final = 200_000
_LIBRARY: Final = 100
#: Of every element that is read or written, and of every multiplication.
_ELEMENT: Final = 1
_MULTIPLY: Final = 1
#: Of an element where a library function or a walk through indices takes longer.
_ELEMENTS: Final[Mapping[str, int]] = {
    **dict.fromkeys(opcodes_with(Trait.TRANSCENDENTAL, Trait.COSTLY), 20),
    "map": 50,
}
#: Of every instruction of a program: that it is parsed, verified and lowered; that it is lowered once more;
#: that an analysis of the whole program goes by.
_READ: Final = 60_000
_LOWERED: Final = 20_000
_FOLLOWED: Final = 20_000
#: Of an array that is drawn at random, and of each of its elements.
_DRAWN: Final = 60_000
_DRAWN_ELEMENT: Final = 20
#: What a plan does not execute.
_FREE: Final = frozenset({"constant", "parameter"})
#: Whose computations are counted when they are executed.
_COUNTED_LATER: Final = frozenset({"conditional", "while"})
#: Whose computation is executed once.
_ONCE: Final = opcodes_with(Trait.INLINED) | {"async-start"}


class Prices:
    """The work of computations, each worked out once."""

    def __init__(self) -> None:
        self._known: dict[Computation, int] = {}

    def of(self, computation: Computation) -> int:
        """One execution of a computation, without iterations of loops and branches of conditionals in it."""
        known = self._known.get(computation)
        if known is None:
            known = self._known[computation] = sum(map(self._of_instruction, computation.instructions))
        return known

    def _of_instruction(self, instruction: Instruction) -> int:
        opcode = instruction.opcode
        if opcode in _FREE:
            return 0
        if opcode in _COUNTED_LATER or instruction.row.opcode_class is Class.TUPLE:
            return _STEP
        if opcode in _ONCE:
            return _STEP + sum(map(self.of, instruction.called))
        if opcode in CONTRACTIONS:
            return _LARGE_STEP + _MULTIPLY * CONTRACTIONS[opcode](instruction)
        if instruction.row.opcode_class is Class.LIBRARY or opcode == "custom-call":
            return _LARGE_STEP + _LIBRARY * (_size(instruction) - _workspace(instruction))
        own = _ELEMENTS.get(opcode, _ELEMENT)
        steps = sum(len(called.instructions) for called in instruction.called)
        return _STEP * (1 + steps) + max(own, steps) * _size(instruction)


def of_reading(module: Module) -> int:
    """A program is parsed, verified and compiled for the numpy backend."""
    return _READ * _instructions(module)


def of_lowering(module: Module) -> int:
    """A program that was read before is compiled for the numpy backend."""
    return _LOWERED * _instructions(module)


def of_following(module: Module) -> int:
    """One analysis of a whole program: what is asked of arguments, what may be reached, what is decided."""
    return _FOLLOWED * _instructions(module)


def of_drawing(elements: int) -> int:
    """An array of random values."""
    return _DRAWN + _DRAWN_ELEMENT * elements


def _instructions(module: Module) -> int:
    return sum(len(computation.instructions) for computation in module.computations)


def once(computation: Computation) -> int:
    """The work of one execution in which every loop goes round once, and every branch is taken."""
    prices = Prices()
    inside = (
        once(called)
        for instruction in computation.instructions
        if instruction.opcode in _COUNTED_LATER
        for called in (branches(instruction) if instruction.opcode == "conditional" else instruction.called)
    )
    return prices.of(computation) + sum(inside)


def of_running(module: Module) -> int:
    """One execution of a whole program: loops count as often as they go round, or are expected to."""
    prices, repetitions = Prices(), loop_repetitions(module, trips_expected)
    own: dict[Computation, int] = {module.entry: 1}
    for computation in reachable(module.entry):
        for instruction in computation.instructions:
            if instruction.opcode in _COUNTED_LATER:
                own.update((called, repetitions.get(called, 1)) for called in instruction.called)
    return sum(times * prices.of(computation) for computation, times in own.items())


def _size(instruction: Instruction) -> int:
    """Elements of the result and of what is read."""
    shapes = (instruction.shape, *(operand.shape for operand in instruction.operands))
    return sum(shape.size for part in shapes for shape in array_shapes(part))


def _workspace(instruction: Instruction) -> int:
    """Bytes for a library to work in: the last result of XLA's calls on GPUs, which no program reads."""
    shape = instruction.shape
    last = shape.elements[-1] if isinstance(shape, TupleShape) and shape.elements else None
    if not isinstance(last, ArrayShape) or last.element_type not in (ElementType.S8, ElementType.U8):
        return 0
    return last.size if last.rank == 1 else 0
