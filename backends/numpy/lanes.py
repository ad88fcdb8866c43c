"""Scalar computations on whole arrays (every scalar is an array of lanes), and updates combined at
positions in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from hlotool.backends.numpy.floats import has_negative_zero
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.ordering import Monoid, find_monoids
from hlotool.backends.numpy.registry import Kernel
from hlotool.facts.scalar_form import ScalarForm, is_choice, scalar_form
from hlotool.ir.arrays import Array, dtype_of
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


#: Changes targets of shape [positions, row] in place at `positions` by updates of shape [updates, row].
Combine: TypeAlias = Callable[[Sequence[Array], Array, Sequence[Array]], None]

#: Index entries that `ufunc.at` gets at once.
_CHUNK = 1 << 22


def combiner(combine: Lanes) -> Combine:
    """How to apply f(current…, updates…) to one update after the other.

    Each application rounds to the declared type, as XLA's CPU code does. The order of the updates to one
    position is kept.
    """
    forwarded = _forwarded(combine)
    if forwarded is not None:
        return lambda targets, positions, updates: _overwrite(targets, positions, updates, forwarded)
    monoids = combine.monoids
    in_rounds = _in_rounds(combine)
    if monoids is None or not all(map(_has_native_type, monoids)):
        return in_rounds

    def at(targets: Sequence[Array], positions: Array, updates: Sequence[Array]) -> None:
        if any(_zeros_matter(m, t, u) for m, t, u in zip(monoids, targets, updates)):
            return in_rounds(targets, positions, updates)
        for monoid, target, update in zip(monoids, targets, updates):
            _at(monoid.ufunc, target, positions, update)
        return None

    return at


def _forwarded(combine: Lanes) -> tuple[bool, ...] | None:
    """For f that returns its arguments: which outputs are the update (False: the current value)."""
    form = combine.form
    if form is None or len(form.parameters) != 2 * len(form.outputs):
        return None
    count = len(form.outputs)
    own = zip(form.outputs, form.parameters[:count], form.parameters[count:])
    if not all(output in (current, update) for output, current, update in own):
        return None
    return tuple(o is u for o, u in zip(form.outputs, form.parameters[count:]))


def _overwrite(
    targets: Sequence[Array], positions: Array, updates: Sequence[Array], forwarded: Sequence[bool]
) -> None:
    """The last update wins (NumPy assigns in order)."""
    for target, update, taken in zip(targets, updates, forwarded):
        if taken:
            target[positions] = update


def _has_native_type(monoid: Monoid) -> bool:
    """Whether the ufunc works on the declared type itself, so that it rounds at each step."""
    kind = monoid.element_type
    return not kind.is_narrow_float and kind.bits >= 8


def _zeros_matter(monoid: Monoid, target: Array, update: Array) -> bool:
    return monoid.is_float_extremum and (has_negative_zero(update) or has_negative_zero(target))


def _at(ufunc: np.ufunc, target: Array, positions: Array, update: Array) -> None:
    """`ufunc.at` element by element, which NumPy does much faster than row by row."""
    row = target.shape[1]
    flat = target.reshape(-1)
    step = max(1, _CHUNK // max(1, row))
    for start in range(0, len(positions), step):
        part = positions[start : start + step]
        index = (part[:, None] * row + np.arange(row)).reshape(-1) if row != 1 else part
        ufunc.at(flat, index, update[start : start + step].reshape(-1))


def _in_rounds(combine: Lanes) -> Combine:
    """Round r applies the r-th update of every position: all at once, yet in order for each position."""

    def apply(targets: Sequence[Array], positions: Array, updates: Sequence[Array]) -> None:
        for chosen in _rounds(positions):
            where = positions[chosen]
            values = combine(*(t[where] for t in targets), *(u[chosen] for u in updates))
            for target, value in zip(targets, values):
                target[where] = value

    return apply


def _rounds(positions: Array) -> Iterator[Array]:
    """Indices of the first update of every position, of the second, and so on."""
    if not len(positions):
        return
    order = np.argsort(positions, kind="stable")
    ordered = positions[order]
    is_first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    indices = np.arange(len(ordered))
    rank = indices - np.maximum.accumulate(np.where(is_first, indices, 0))
    by_rank = order[np.argsort(rank, kind="stable")]
    yield from np.split(by_rank, np.cumsum(np.bincount(rank))[:-1])
