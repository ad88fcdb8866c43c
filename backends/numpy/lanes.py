"""Vectorised evaluation of scalar computations: every scalar is an array of lanes.

The computations that reduce, map, scatter, sort, reduce-window and select-and-scatter apply are compiled once
and then called on whole arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from hlotool.analysis.monoids import is_choice
from hlotool.analysis.scalar_form import ScalarForm, scalar_form
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.monoids import Monoid, find_monoids
from hlotool.backends.numpy.registry import Kernel
from hlotool.ir.dtypes import Array, dtype_of
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.types import ArrayShape, leaves

_Evaluate = Callable[[Sequence[Array], tuple[int, ...]], Sequence[Any]]


class Lanes:
    """A computation on scalars, callable on arrays.

    Attributes:
        form: its normal form; None when it contains something that cannot be vectorised, such as a loop or
            an array. It is then evaluated lane by lane.
        on_numbers: arrays hold its arguments as the numbers that they are, not as something else.
    """

    def __init__(self, form: ScalarForm | None, evaluate: _Evaluate, on_numbers: bool = True) -> None:
        self.form = form
        self.on_numbers = on_numbers
        self._evaluate = evaluate

    def __call__(self, *arguments: Array) -> tuple[Array, ...]:
        """One array per output, all of the common (broadcast) shape of the arguments."""
        shape = np.broadcast_shapes(*(a.shape for a in arguments))
        same = [a if a.shape == shape else np.broadcast_to(a, shape) for a in arguments]
        results = self._evaluate(same, shape)
        return tuple(r if r.shape == shape else np.broadcast_to(r, shape) for r in results)

    def reads(self, number: int) -> bool:
        """Whether the result may depend on a parameter."""
        return self._read is None or self._read[number]

    @cached_property
    def _read(self) -> list[bool] | None:
        if self.form is None:
            return None
        read = {*self.form.outputs, *(o for operation in self.form.operations for o in operation.operands)}
        return [parameter in read for parameter in self.form.parameters]

    @cached_property
    def monoids(self) -> tuple[Monoid, ...] | None:
        """A monoid for each output of f(accumulators…, elements…); None unless they are independent.

        Monoids calculate with numbers: None where the arrays do not hold any.
        """
        return find_monoids(self.form) if self.form is not None and self.on_numbers else None

    @cached_property
    def is_choice(self) -> bool:
        """Whether f(accumulators…, elements…) chooses each output from its two arguments, as an argmax."""
        return self.form is not None and is_choice(self.form)


def lanes(computation: Computation, lowering: Lowering) -> Lanes:
    """Compile `computation`, whose parameters and results are scalars.

    Raises:
        Unsupported: one of its instructions has no lowering.
    """
    form = scalar_form(computation)
    if form is not None:
        return vectorised(form, lowering)
    return Lanes(None, _lane_by_lane(computation, lowering))


def vectorised(form: ScalarForm, lowering: Lowering) -> Lanes:
    """Compile a computation that is in normal form already."""

    def kernel(instruction: Instruction) -> Kernel:
        return _make_tuple if instruction.opcode == "tuple" else lowering.kernel(instruction)

    plan = lowering.build(form.computation, kernel)

    def evaluate(arguments: Sequence[Array], shape: tuple[int, ...]) -> Sequence[Any]:
        results: tuple[Any, ...] = plan(list(arguments))
        return results

    on_numbers = all(lowering.held_in(p.element_type) is p.element_type for p in form.parameters)
    return Lanes(form, evaluate, on_numbers)


def _make_tuple(*values: Any) -> tuple[Any, ...]:
    return values


def _lane_by_lane(computation: Computation, lowering: Lowering) -> _Evaluate:
    """One execution of the computation for every lane, in row-major order."""
    plan = lowering.plan(computation)
    dtypes = [
        dtype_of(lowering.held_in(leaf.element_type))
        for _, leaf in leaves(computation.root.shape)
        if isinstance(leaf, ArrayShape)
    ]

    def evaluate(arguments: Sequence[Array], shape: tuple[int, ...]) -> Sequence[Array]:
        results = [np.empty(shape, dtype) for dtype in dtypes]
        for index in np.ndindex(shape):
            value = plan([a[(*index, ...)] for a in arguments])
            for result, part in zip(results, value if isinstance(value, tuple) else (value,)):
                result[index] = part
        return results

    return evaluate
