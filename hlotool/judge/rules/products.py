"""Legal rewrites of products: contracted into sums (fma), multiplied in other orders, sorted.

Contraction, a · b + c rounded once: where a product overflows that makes more of a difference than
rounding. `a · a - b · b` is infinity less infinity, NaN, where both are rounded, and an infinity where one
is not. Which of two products is contracted is open. A product of complex numbers is two such sums, a dot of
them four dots of their parts: what libraries leave of an infinity depends on how they put them together.
LLVM contracts in XLA's CPU and GPU code (`AllowFPOpFusion`); measured with jaxlib 0.10.2. Products of f32
are kept in f64 here, which holds them exactly; those of f64 have no wider type, and stay as they are.

Orders: `x · 1e30 · 1e-30 · 1e30` is 1e30 from the left, and infinite where the two large numbers meet
first. Compilers merge constant factors, so the order in the text is not the one that runs. Nor is it in a
reduction of products: `Π (x[i] · 0.25)` is `Π x[i] · 0.25⁵` where LLVM takes the factor out of the loop,
and XLA:CPU lets it, since it marks the multiplications of a reducer as those whose order is open.

Sorted factors: 8·8·8·7·8·8·0 is infinite in f16 before it meets the 0, and then NaN; with the 0 in front it
is
0. Of all orders that take one factor after the other, that of falling magnitudes is NaN if any is, and that
   of rising ones is finite if any is. Each product is rounded to the declared type, as code does that has
   no wider register for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import TypeAlias

import numpy as np
from msgspec import Struct, structs

from hlotool.backends.numpy import (
    DevicesExecutable,
    LogicalExecutable,
    NumpyBackend,
    NumpyExecutable,
    RewritingBackend,
)
from hlotool.backends.numpy.executions.departures import has_its_own_start
from hlotool.backends.numpy.kernels.reduce import rows_of
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.registry import Kernel, Reading
from hlotool.backends.numpy.windows import output_sizes, window_slices
from hlotool.facts.result_facts import origin_of
from hlotool.facts.scalar_form import monoid_opcodes, scalar_form
from hlotool.ir.arrays import Array
from hlotool.ir.devices import ONE_DEVICE, DeviceGrid
from hlotool.ir.edit import Editor, editing
from hlotool.ir.edit_programs import clone_module
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.partitioning import is_one_program_with_regions
from hlotool.ir.types import ArrayShape, ElementType
from hlotool.ir.walk import Context, contexts

#: In place of which product is contracted: complex ones are made of three real products of sums, not of four.
#: The TPU's compiler does that (libtpu 0.0.11 to 0.0.52), and a sum of two large parts overflows.
_OF_SUMS = 2


def contractions(module: Module) -> Iterator[NumpyBackend]:
    """Backends that contract one product of each sum, or the other; none where there is none."""
    found = [instruction.opcode for instruction in module.instructions() if _is_contracted(instruction)]
    if found:
        yield from (_contracting(chosen) for chosen in (0, 1))
    if "multiply" in found:
        yield _contracting(None)
    if "dot" in found:
        yield _contracting(_OF_SUMS)


def _contracting(chosen: int | None) -> NumpyBackend:
    return RewritingBackend(lambda module: contracted(module, chosen))


def contracted_text(module: Module) -> str:
    """What is contracted, in words: the sum, or the product of complex numbers, and how many more."""
    first, *others = filter(_is_contracted, module.instructions())
    more = f" and {len(others)} more" if others else ""
    return f"a contraction (fma) gives the same bits: {origin_of(first)}{more}"


def contracted(module: Module, chosen: int | None) -> Module:
    """A copy in which one product of each sum of f32 is not rounded; reducers stay as they are.

    Args:
        module: to be copied.
        chosen: which of two products in a sum is contracted: the first (0) or the second one (1); None: none
            of those of parts of complex numbers, and no other, either; or `_OF_SUMS`.
    """
    copy = clone_module(module).module
    kinds = contexts(copy)
    for computation in copy.computations:
        if not kinds.get(computation, set()) - {Context.EMBEDDED}:
            continue
        with editing(computation) as editor:
            for instruction in editor:
                if _is_contracted(instruction):
                    editor.replace(instruction, _rewritten(_Writer(editor, instruction), chosen))
    return copy


def _is_contracted(instruction: Instruction) -> bool:
    shape = instruction.shape
    if not isinstance(shape, ArrayShape):
        return False
    if instruction.opcode in ("dot", "multiply"):
        return all(one.array_type is ElementType.C64 for one in (instruction, *instruction.operands))
    is_sum = instruction.opcode in ("add", "subtract") and shape.element_type is ElementType.F32
    return is_sum and any(operand.opcode == "multiply" for operand in instruction.operands)


class _Writer(Struct, frozen=True):
    """Puts instructions before another one."""

    editor: Editor
    place: Instruction

    def write(self, opcode: str, kind: ElementType, *operands: Instruction) -> Instruction:
        """An elementwise operation on arrays of one shape."""
        shape = operands[0].array_shape
        layout = shape.layout and structs.replace(shape.layout, element_bits=0)
        new = Instruction(
            self.place.name, opcode, structs.replace(shape, element_type=kind, layout=layout), operands
        )
        return self.editor.add(new, before=self.place)

    def fused(self, opcode: str, one: Instruction, other: Instruction, chosen: int | None) -> Instruction:
        """The sum or difference of two values of f32, of which one product is not rounded."""
        if chosen is None:
            return self.write(opcode, ElementType.F32, one, other)
        values = [one, other]
        numbers = [n for n, value in enumerate(values) if value.opcode == "multiply"]
        exact = numbers[-1 if chosen else 0]
        for number, value in enumerate(values):
            if number == exact:
                factors = (self.write("convert", ElementType.F64, factor) for factor in value.operands)
                values[number] = self.write("multiply", ElementType.F64, *factors)
            else:
                values[number] = self.write("convert", ElementType.F64, value)
        return self.write("convert", ElementType.F32, self.write(opcode, ElementType.F64, *values))

    def parts(self, value: Instruction) -> tuple[Instruction, Instruction]:
        """Real and imaginary part of complex numbers."""
        return self.write("real", ElementType.F32, value), self.write("imag", ElementType.F32, value)

    def product(self, one: Instruction, other: Instruction) -> Instruction:
        """As the instruction in place multiplies, of real numbers."""
        if self.place.opcode == "multiply":
            return self.write("multiply", ElementType.F32, one, other)
        shape = structs.replace(self.place.array_shape, element_type=ElementType.F32)
        new = replace(self.place, shape=shape, operands=(one, other), control_predecessors=())
        return self.editor.add(new, before=self.place)


def _rewritten(writer: _Writer, chosen: int | None) -> Instruction:
    """What takes the place of a sum, or of a product of complex numbers."""
    opcode, (one, other) = writer.place.opcode, writer.place.operands[:2]
    if opcode in ("add", "subtract"):
        return writer.fused(opcode, one, other, chosen)
    (a, b), (c, d) = writer.parts(one), writer.parts(other)
    if chosen == _OF_SUMS:
        return _of_three(writer, (a, b), (c, d))
    products = [writer.product(*factors) for factors in ((a, c), (b, d), (a, d), (b, c))]
    if opcode == "dot":
        real = writer.write("subtract", ElementType.F32, *products[:2])
        imag = writer.write("add", ElementType.F32, *products[2:])
    else:
        real = writer.fused("subtract", products[0], products[1], chosen)
        imag = writer.fused("add", products[2], products[3], chosen)
    return writer.write("complex", ElementType.C64, real, imag)


def _of_three(
    writer: _Writer, one: tuple[Instruction, Instruction], other: tuple[Instruction, Instruction]
) -> Instruction:
    """(a + bi)(c + di) as c(a + b) - b(c + d) and c(a + b) + a(d - c)."""
    (a, b), (c, d) = one, other
    f32 = ElementType.F32
    shared = writer.product(writer.write("add", f32, a, b), c)
    real = writer.product(b, writer.write("add", f32, c, d))
    imag = writer.product(a, writer.write("subtract", f32, d, c))
    parts = writer.write("subtract", f32, shared, real), writer.write("add", f32, shared, imag)
    return writer.write("complex", ElementType.C64, *parts)


#: Orders that are tried: of `n` factors every one comes first in one of `n` of them.
ORDERS = 4


def other_orders(module: Module) -> Iterator[NumpyBackend]:
    """Backends that multiply in other orders than the reference does; none where nothing is multiplied."""
    instructions = list(module.instructions())
    takes_apart = any(map(_reduces_a_product, instructions))
    if takes_apart or any(any(_chains(c)) for c in module.computations):
        yield from (RewritingBackend(partial(reordered, turns=turns)) for turns in range(1, ORDERS))
    if any(map(multiplies_elements, instructions)):
        yield from map(SortedProducts, (True, False))
    if takes_apart:
        yield from (SortedProducts(falling, lambda given: reordered(given, 0)) for falling in (True, False))


def reordered(module: Module, turns: int) -> Module:
    """A copy in which the factors of every product of floats are rotated by `turns` places.

    Where a reduction multiplies what is a product itself, each of the two factors is reduced alone.
    """
    copy = clone_module(module).module
    for computation in copy.computations:
        chains = list(_chains(computation))
        with editing(computation) as editor:
            for chain in chains:
                _rotate(editor, chain, turns)
            for instruction in editor:
                if _reduces_a_product(instruction):
                    _take_apart(editor, instruction)
    return copy


def _chains(computation: Computation) -> Iterator[list[Instruction]]:
    """Multiplications that make one product, the last one at the end."""
    readers: dict[Instruction, list[Instruction]] = {}
    for instruction in computation.instructions:
        for operand in instruction.operands:
            readers.setdefault(operand, []).append(instruction)
    inner: dict[Instruction, list[Instruction]] = {}
    for instruction in computation.instructions:
        if not _multiplies_floats(instruction):
            continue
        parts = [part for o in instruction.operands for part in inner.get(o, ())]
        inner[instruction] = [*parts, instruction]
        is_last = len(readers.get(instruction, ())) != 1 or not _multiplies_floats(readers[instruction][0])
        if is_last or instruction is computation.root:
            if len(inner[instruction]) > 1:
                yield inner[instruction]
            inner[instruction] = []


def _reduces_a_product(instruction: Instruction) -> bool:
    """Whether it multiplies the elements of a product of floats, and begins with 1."""
    if instruction.opcode != "reduce" or not _multiplies_floats(instruction.operands[0]):
        return False
    return multiplies_elements(instruction) and not has_its_own_start(instruction)


def _take_apart(editor: Editor, reduction: Instruction) -> None:
    """Put the product of two reductions in its place, one of each factor."""
    product, one = reduction.operands
    parts = [
        editor.add(replace(reduction, operands=(factor, one), control_predecessors=()), before=reduction)
        for factor in product.operands
    ]
    whole = Instruction(reduction.name, "multiply", reduction.shape, tuple(parts))
    editor.replace(reduction, editor.add(whole, before=reduction))


def _multiplies_floats(instruction: Instruction) -> bool:
    shape = instruction.shape
    return (
        instruction.opcode == "multiply" and isinstance(shape, ArrayShape) and shape.element_type.is_inexact
    )


def _rotate(editor: Editor, chain: Sequence[Instruction], turns: int) -> None:
    """Multiply the factors of `chain` one after the other, beginning `turns` places further."""
    factors = [o for link in chain for o in link.operands if o not in chain]
    turns %= len(factors)
    first, *rest = factors[turns:] + factors[:turns]
    for link, factor in zip(chain, rest):
        editor.set_operands(link, (first, factor))
        first = link


# Reductions and windows of products whose factors are sorted: the orders that overflow first, and last.
#
# In which order a reduction multiplies is open. 8·8·8·7·8·8·0 is infinite in f16 before it meets the 0, and
# then NaN; with the 0 in front it is 0. Of all orders that take one factor after the other, that of falling
# magnitudes is NaN if any is, and that of rising ones is finite if any is. Each product is rounded to the
# declared type, as code does that has no wider register for it.

#: From an operand to the factors of its products, along the first dimension of what is returned.
_Factors: TypeAlias = Callable[[Array], Array]

#: Factors of all windows of an instruction beyond which they stay as they are.
_MOST = 1 << 24


def multiplies_elements(instruction: Instruction) -> bool:
    """Whether it is a reduction, over whole dimensions or in windows, that multiplies floats."""
    shape = instruction.shape
    if instruction.opcode not in ("reduce", "reduce-window") or not isinstance(shape, ArrayShape):
        return False
    form = scalar_form(instruction.computation("to_apply"))
    is_product = form is not None and monoid_opcodes(form) == ["multiply"]
    return is_product and shape.element_type.is_inexact


class SortedProducts(NumpyBackend):
    """Multiplies the factors of reductions and windows sorted by magnitude.

    Programs with manual regions are executed as ever.

    Args:
        falling: the largest one first.
        prepared: makes the program that is executed.
    """

    def __init__(self, falling: bool, prepared: Callable[[Module], Module] = lambda module: module) -> None:
        super().__init__()
        self._falling = falling
        self._prepared = prepared

    def compile(self, module: Module) -> NumpyExecutable | LogicalExecutable:
        """See `Backend.compile`."""
        if is_one_program_with_regions(module):
            return super().compile(module)
        module = self._prepared(module)
        lowering = _SortingLowering(module, ONE_DEVICE, self._falling)
        return NumpyExecutable(module, lowering.plan(module.entry))

    def compile_devices(self, module: Module, grid: DeviceGrid) -> DevicesExecutable:
        """See `DevicesBackend.compile_devices`."""
        module = self._prepared(module)
        lowering = _SortingLowering(module, grid, self._falling)
        return DevicesExecutable(module, lowering.plan(module.entry), grid)


class _SortingLowering(Lowering):
    """Lowers reductions that multiply so that their factors are sorted."""

    def __init__(self, module: Module, grid: DeviceGrid, falling: bool) -> None:
        super().__init__(module, grid)
        self._falling = falling

    def kernel(self, instruction: Instruction) -> Kernel:
        kernel = super().kernel(instruction)
        if isinstance(kernel, Reading) or not multiplies_elements(instruction):
            return kernel
        factors = _factors(instruction)
        return kernel if factors is None else _product_of(factors, self._falling)


def _factors(instruction: Instruction) -> _Factors | None:
    """A key of the factors of each result; None where they are too many."""
    if instruction.opcode == "reduce":
        axes = tuple(sorted(instruction.integers("dimensions")))
        return lambda x: rows_of(x, axes)
    dims = instruction.window.dims
    sizes = output_sizes(dims, instruction.operands[0].dims)
    if prod(d.size for d in dims) * prod(sizes) > _MOST:
        return None

    def in_windows(x: Array) -> Array:
        seen = list(window_slices(dims, x.shape, sizes))
        factors = np.ones((len(seen), *sizes), x.dtype)
        for row, (_, outputs, elements) in zip(factors, seen):
            row[outputs] = x[elements]
        return factors

    return in_windows


def _product_of(factors: _Factors, falling: bool) -> Kernel:
    def product(x: Array, start: Array) -> Array:
        rows = factors(x)
        magnitudes = np.abs(rows).astype(np.float64)
        order = np.argsort(-magnitudes if falling else magnitudes, axis=0, kind="stable")
        first = np.broadcast_to(start, rows.shape[1:]).astype(rows.dtype)[None]
        with np.errstate(all="ignore"):
            rows = np.concatenate([first, np.take_along_axis(rows, order, axis=0)])
            found: Array = np.multiply.accumulate(rows, axis=0, dtype=rows.dtype)[-1]
        return found

    return product
