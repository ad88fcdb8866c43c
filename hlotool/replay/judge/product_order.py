"""The same products in other orders: what overflows in one need not in another.

`x · 1e30 · 1e-30 · 1e30` is 1e30 from the left, and infinite where the two large numbers meet first.
Compilers merge constant factors, so the order in the text is not the one that runs. Nor is it in a reduction
of products: `Π (x[i] · 0.25)` is `Π x[i] · 0.25⁵` where LLVM takes the factor out of the loop, and XLA:CPU
lets it, since it marks the multiplications of a reducer as those whose order is open. Of these the orders in
`sorted_products` are tried besides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from hlotool.backends.numpy import NumpyBackend, RewritingBackend
from hlotool.backends.numpy.departures import has_its_own_start
from hlotool.ir.edit import Editor, editing
from hlotool.ir.edit_clone import clone_module
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.types import ArrayShape
from hlotool.replay.judge.sorted_products import SortedProducts, multiplies_elements

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
