"""Reductions, windows and scatters.

Sums and products are exact, extrema go by rank; each is recognised as the numpy backend recognises it. Any
other computation is applied to whole arrays of words at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from hlotool.backends.field import words as w
from hlotool.backends.field.lowering import FieldLowering
from hlotool.backends.field.products import product_of, sum_of
from hlotool.backends.field.registry import means, plain
from hlotool.backends.field.trial import Trial
from hlotool.backends.field.values import held_instruction, is_complex, is_float, pair, parts
from hlotool.backends.field.words import P, Q, Words
from hlotool.backends.numpy.kernels.reduce import fold_pairs, reduce_monoid, rows_of
from hlotool.backends.numpy.lanes import lanes
from hlotool.backends.numpy.monoids import Monoid, find_monoids
from hlotool.backends.numpy.registry import RULES, Kernel
from hlotool.facts.scalar_form import scalar_form
from hlotool.ir.arrays import Array
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.types import ArrayShape, ElementType, TupleShape

#: From one input and its initial value to the result.
_Reduce: TypeAlias = Callable[[Any, Any], Any]

_EXTREMA = ("maximum", "minimum")


@means("reduce")
def reduce(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """Over whole dimensions; a computation that is no monoid is taken for associative."""
    axes = tuple(sorted(instruction.integers("dimensions")))
    computation = instruction.computation("to_apply")
    monoids = _monoids(computation)
    count = len(instruction.operands) // 2
    if monoids is None:
        combine = lanes(computation, lowering)

        def fold(*values: Any) -> tuple[Any, ...]:
            return tuple(fold_pairs(combine, [rows_of(v, axes) for v in values[:count]], values[count:]))

        return _as_result(instruction, fold)
    reduces = [_reduction(monoid, lowering.trial, axes) for monoid in monoids]

    def kernel(*values: Any) -> tuple[Any, ...]:
        return tuple(one(x, init) for one, x, init in zip(reduces, values[:count], values[count:]))

    return _as_result(instruction, kernel)


def _as_result(instruction: Instruction, kernel: Callable[..., tuple[Any, ...]]) -> Kernel:
    if isinstance(instruction.shape, TupleShape):
        return kernel
    return lambda *values: kernel(*values)[0]


def _monoids(computation: Computation) -> tuple[Monoid, ...] | None:
    """The monoids that the field can reduce by; None where one of them is another one."""
    form = scalar_form(computation)
    monoids = find_monoids(form) if form is not None else None
    return monoids if monoids is not None and all(map(_is_known, monoids)) else None


def _is_known(monoid: Monoid) -> bool:
    return not monoid.element_type.is_complex or monoid.opcode == "add"


def _reduction(monoid: Monoid, trial: Trial, axes: tuple[int, ...]) -> _Reduce:
    if monoid.element_type.is_complex:
        return lambda z, init: pair(
            *(w.add(sum_of(x, axes), start) for x, start in zip(parts(z), parts(init)))
        )
    if not monoid.element_type.is_floating:
        return lambda x, init: reduce_monoid(monoid, x, init, axes)
    if monoid.opcode == "add":
        return lambda x, init: w.add(sum_of(x, axes), init)
    if monoid.opcode == "multiply":
        return lambda x, init: w.multiply(product_of(x, axes), init)
    return lambda x, init: _extremum(trial, monoid.ufunc, x, init, axes)


def _extremum(trial: Trial, ufunc: np.ufunc, x: Words, init: Words, axes: tuple[int, ...]) -> Words:
    numbers, start, words = _ranked(trial, x, init)
    return words[ufunc.reduce(numbers, axis=axes, initial=start)]


def _ranked(trial: Trial, x: Words, init: Words) -> tuple[Array, Any, Words]:
    """The ranks of an array and of an initial value among each other, and the words by rank."""
    numbers, words = trial.kappa.ranks(np.append(np.ravel(x), init))
    return numbers[:-1].reshape(np.shape(x)), numbers[-1], words


@means("reduce-window")
def reduce_window(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """Over sliding windows; sums and extrema of floats by the numpy backend's own kernel on u64."""
    monoid = _single_float_monoid(instruction, "to_apply")
    if monoid is None or monoid.opcode not in ("add", *_EXTREMA):
        return RULES["reduce-window"](held_instruction(instruction), lowering)
    kernel = _on_u64(instruction, lowering, to_apply=_scalar(monoid.opcode))
    if monoid.opcode == "add":
        return lambda x, init: _by_residue(lambda a, b: kernel(a, b), x, init)
    trial = lowering.trial

    def extremum(x: Words, init: Words) -> Words:
        numbers, start, words = _ranked(trial, x, init)
        found: Words = words[kernel(numbers.astype(np.uint64), np.uint64(start)).astype(np.int64)]
        return found

    return extremum


@means("scatter")
def scatter(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """Sums of floats by the numpy backend's own kernel on u64; others update by update."""
    monoid = _single_float_monoid(instruction, "to_apply")
    if monoid is None or monoid.opcode != "add":
        return RULES["scatter"](held_instruction(instruction), lowering)
    kernel = _on_u64(instruction, lowering, to_apply=_scalar("add"))
    return lambda x, indices, updates: _by_residue(lambda a, b: kernel(a, indices, b), x, updates)


@means("select-and-scatter")
def select_and_scatter(instruction: Instruction, lowering: FieldLowering) -> Kernel:
    """The numpy backend's kernel, which calls both computations on whole arrays."""
    return RULES["select-and-scatter"](held_instruction(instruction), lowering)


def _single_float_monoid(instruction: Instruction, name: str) -> Monoid | None:
    """The monoid of an instruction on one array of floats."""
    if not is_float(instruction.shape) or is_complex(instruction.shape):
        return None
    monoids = _monoids(instruction.computation(name))
    return monoids[0] if monoids is not None else None


def _on_u64(
    instruction: Instruction, lowering: FieldLowering, **computations: Computation
) -> Callable[..., Array]:
    """The numpy backend's kernel on unsigned integers, with other computations."""
    return plain(RULES[instruction.opcode](held_instruction(instruction, computations), lowering.numbers))


def _scalar(opcode: str) -> Computation:
    """`opcode` of two u64."""
    shape = ArrayShape(ElementType.U64, ())
    operands = tuple(Instruction(name, "parameter", shape, parameter_number=n) for n, name in enumerate("ab"))
    root = Instruction(opcode, opcode, shape, operands)
    return Computation(f"u64.{opcode}", [*operands, root], root)


def _by_residue(function: Callable[[Words, Words], Array], a: Words, b: Words) -> Words:
    """What `function`, which adds up to 2^32 elements of either array, gives for both residues."""
    halves = zip(w.split(a), w.split(b), (P, Q))
    sums = [np.asarray(function(x.copy(), y)).astype(np.uint64) % np.uint64(m) for x, y, m in halves]
    return w.join(*sums)
