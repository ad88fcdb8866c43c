"""Reductions and windows of products whose factors are sorted: the orders that overflow first, and last.

In which order a reduction multiplies is open. 8·8·8·7·8·8·0 is infinite in f16 before it meets the 0, and
then NaN; with the 0 in front it is 0. Of all orders that take one factor after the other, that of falling
magnitudes is NaN if any is, and that of rising ones is finite if any is. Each product is rounded to the
declared type, as code does that has no wider register for it.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TypeAlias

import numpy as np

from hlotool.analysis.monoids import monoid_opcodes
from hlotool.analysis.scalar_form import scalar_form
from hlotool.backends.numpy import DevicesExecutable, LogicalExecutable, NumpyBackend, NumpyExecutable
from hlotool.backends.numpy.kernels.reduce import rows_of
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.registry import Kernel, Reading
from hlotool.backends.numpy.window_slices import output_sizes, window_slices
from hlotool.ir.devices import ONE_DEVICE, DeviceGrid
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction, Module
from hlotool.ir.partitioning import is_one_program_with_regions
from hlotool.ir.types import ArrayShape

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
    """What tells the factors of each result; None where they are too many."""
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
