"""How far legal executions of a program lie apart, found without the judge.

Three sources, none of which the judge uses:

- the inputs moved by up to one unit in the last place of their type, at random, `MEMBERS` times, and the
  program run on them as it is: what the program makes of errors that small is its condition; and as often
  moved by `FACTOR` units, of which the tenth part counts: nearly a tie is no better than a tie;
- the program rewritten to f64 throughout and run once: what all of its own roundings add up to;
- what real XLA returned at several optimisation levels and in several versions, where that is known.

The *legal spread* of an element is its largest distance from the reference over all of them, plus the root
mean square of that over the array (one element may be lucky) and four units in the last place.

An array is *well-conditioned* when its spread is small against its values (`_CONDITION`), nothing in it is
NaN or infinite in one legal execution and not in another and, for integers and preds, all legal executions
agree.

A planted fault *counts* when it changes an element of a well-conditioned array by more than `FACTOR` legal
spreads, or makes an integer, a pred, a NaN or an infinity another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from benchmarks.verdicts.peers import is_inexact
from benchmarks.verdicts.runs import Leaves, leaves_of
from hlotool.backends.numpy import NumpyBackend
from hlotool.errors import HlotoolError
from hlotool.ir.arrays import Array, Literal, dtype_of
from hlotool.ir.edit_programs import clone_module
from hlotool.ir.module import Module
from hlotool.ir.types import ArrayShape, ElementType, Shape, TupleShape

Doubles = npt.NDArray[np.float64]

MEMBERS = 16
FACTOR = 10.0

#: Largest spread of a well-conditioned array over its largest value, in units in the last place.
_CONDITION = 1024.0


@dataclass(frozen=True, slots=True)
class LeafSpread:
    """Legal executions of one array of the result.

    Attributes:
        reference: what the numpy backend returns.
        limit: legal spread by element, in the unit of the values; None where not well-conditioned.
    """

    reference: Array
    limit: Doubles | None

    def ratio(self, actual: Array) -> float:
        """Largest change over the legal spread; infinite where only equality is legal; 0 if not known."""
        if self.limit is None:
            return 0.0
        if actual.shape != self.reference.shape:
            return np.inf
        if not is_inexact(self.reference.dtype):
            return 0.0 if np.array_equal(actual, self.reference) else np.inf
        return max(_ratio(a, r, self.limit) for a, r in zip(_parts(actual), _parts(self.reference)))


def _ratio(actual: Doubles, reference: Doubles, limit: Doubles) -> float:
    if not np.array_equal(np.isfinite(actual), np.isfinite(reference)):
        return float(np.inf)
    finite = np.isfinite(reference)
    if not np.array_equal(actual[~finite], reference[~finite], equal_nan=True):
        return float(np.inf)
    return float(np.max(np.abs(actual[finite] - reference[finite]) / limit[finite], initial=0.0))


def legal_spread(module: Module, arguments: Sequence[Any], seen: Sequence[Leaves]) -> list[LeafSpread]:
    """The legal executions of a program, array by array.

    Args:
        module: the program.
        arguments: its inputs.
        seen: what real compilers returned for them.
    """
    executable = NumpyBackend().compile(module)
    reference = leaves_of(module, executable.run(arguments))
    rng = np.random.default_rng(20261121)
    near, far = (
        [leaves_of(module, executable.run(_moved(arguments, rng, scale))) for _ in range(MEMBERS)]
        for scale in (1.0, FACTOR)
    )
    wide = _run_wide(module, arguments)
    near += [*seen, *([wide] if wide is not None else [])]
    return [_leaf(r, [m[n] for m in near], [m[n] for m in far]) for n, r in enumerate(reference)]


def _leaf(reference: Array, near: list[Array], far: list[Array]) -> LeafSpread:
    members = [*near, *far]
    if any(m.shape != reference.shape for m in members):
        return LeafSpread(reference, None)
    if not is_inexact(reference.dtype):
        stable = all(np.array_equal(m, reference) for m in members)
        return LeafSpread(reference, np.zeros(reference.shape) if stable else None)
    unit = _unit(reference.dtype)
    limit = np.zeros(reference.shape)
    for position, part in enumerate(_parts(reference)):
        others = [_parts(m)[position] for m in members]
        weights = [1.0] * len(near) + [1 / FACTOR] * len(far)
        finite = np.isfinite(part)
        if any(not np.array_equal(np.isfinite(o), finite) for o in others):
            return LeafSpread(reference, None)
        known = np.where(finite, part, 0)
        away = [w * np.abs(np.where(finite, o, 0) - known) for w, o in zip(weights, others)]
        spread = np.max(away, axis=0, initial=0.0)
        smooth = np.sqrt(np.mean(spread**2)) if spread.size else 0.0
        largest = np.max(np.abs(known), initial=0.0)
        if smooth > _CONDITION * unit * largest:
            return LeafSpread(reference, None)
        limit = np.maximum(limit, spread + smooth + 4 * unit * np.abs(known))
    return LeafSpread(reference, limit + float(np.finfo(np.float32).tiny))


def _parts(array: Array) -> list[Doubles]:
    """The array as doubles; real and imaginary part of a complex one."""
    if np.iscomplexobj(array):
        return [array.real.astype(np.float64), array.imag.astype(np.float64)]
    return [array.astype(np.float64)]


def _unit(dtype: np.dtype[Any]) -> float:
    """One unit in the last place of 1."""
    finfo = np.finfo if dtype.type.__module__ == "numpy" else ml_dtypes.finfo
    return float(finfo(dtype).eps)


def _moved(value: Any, rng: np.random.Generator, scale: float) -> Any:
    """Floats moved by up to `scale` units in the last place."""
    if isinstance(value, tuple | list):
        return type(value)(_moved(part, rng, scale) for part in value)
    if not isinstance(value, np.ndarray | np.generic) or not is_inexact(value.dtype):
        return value
    array = np.asarray(value)
    factors = 1 + scale * _unit(array.dtype) * rng.uniform(-1, 1, array.shape)
    wide = array if np.iscomplexobj(array) else array.astype(np.float64)
    with np.errstate(all="ignore"):
        return (wide * factors).astype(array.dtype)


#: They see the bits of a float, or a library has them in one type only.
_NOT_WIDE = frozenset({"bitcast-convert", "custom-call", "rng", "stochastic-convert"})


def _run_wide(module: Module, arguments: Sequence[Any]) -> Leaves | None:
    """The result of the program in f64, None where it cannot be written in f64."""
    if any(i.opcode in _NOT_WIDE for i in module.instructions()):
        return None
    wide = clone_module(module).module
    wide.attributes = {k: v for k, v in wide.attributes.items() if k != "entry_computation_layout"}
    for instruction in wide.instructions():
        instruction.shape = _wide_shape(instruction.shape)
        instruction.attributes = {k: v for k, v in instruction.attributes.items() if k != "algorithm"}
        if instruction.literal is not None:
            instruction.literal = _wide_literal(instruction.literal)
    try:
        return leaves_of(wide, NumpyBackend().compile(wide).run([_wide_value(a) for a in arguments]))
    except HlotoolError:
        return None


def _wide_shape(shape: Shape) -> Shape:
    if isinstance(shape, TupleShape):
        return TupleShape(tuple(map(_wide_shape, shape.elements)))
    if isinstance(shape, ArrayShape):
        return replace(shape, element_type=_wide_type(shape.element_type))
    return shape


def _wide_type(element_type: ElementType) -> ElementType:
    if element_type.is_complex:
        return ElementType.C128
    return ElementType.F64 if element_type.is_floating else element_type


def _wide_literal(literal: Literal) -> Literal:
    shape = _wide_shape(literal.shape)
    if isinstance(shape, ArrayShape):
        return Literal(shape, literal.array.astype(dtype_of(shape.element_type)))
    if isinstance(shape, TupleShape):
        return Literal(shape, tuple(map(_wide_literal, literal.elements)))
    return literal


def _wide_value(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return tuple(map(_wide_value, value))
    if isinstance(value, np.ndarray | np.generic) and is_inexact(value.dtype):
        return np.asarray(value).astype(np.complex128 if np.iscomplexobj(value) else np.float64)
    return value
