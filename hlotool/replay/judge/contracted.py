"""The same program with products contracted into the sums that they enter: a · b + c rounded once (fma).

Where a product overflows that makes more of a difference than rounding: `a · a - b · b` is infinity less
infinity, NaN, where both are rounded, and an infinity where one is not. Which of two products is contracted
is open. A product of complex numbers is two such sums, a dot of them four dots of their parts: what libraries
leave of an infinity depends on how they put them together.

LLVM contracts in XLA's CPU and GPU code (`AllowFPOpFusion`); measured with jaxlib 0.10.2. Products of f32 are
kept in f64 here, which holds them exactly; those of f64 have no wider type, and stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from hlotool.backends.numpy import NumpyBackend, RewritingBackend
from hlotool.ir.edit import Editor, editing
from hlotool.ir.edit_clone import clone_module
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape, ElementType
from hlotool.ir.walk import Context, contexts
from hlotool.numerics.facts import origin_of

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


@dataclass(frozen=True, slots=True)
class _Writer:
    """Puts instructions before another one."""

    editor: Editor
    place: Instruction

    def write(self, opcode: str, kind: ElementType, *operands: Instruction) -> Instruction:
        """An elementwise operation on arrays of one shape."""
        shape = operands[0].array_shape
        layout = shape.layout and replace(shape.layout, element_bits=0)
        new = Instruction(self.place.name, opcode, replace(shape, element_type=kind, layout=layout), operands)
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
        shape = replace(self.place.array_shape, element_type=ElementType.F32)
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
