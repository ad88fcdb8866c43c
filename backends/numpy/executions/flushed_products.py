"""Products of denormal size that are flushed to zero before they are added up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlotool.backends.numpy.executions.changes import flushed
from hlotool.backends.numpy.executions.noise import Noise
from hlotool.backends.numpy.executions.sums import contracted_by, rows_held, terms_of, zeros_for
from hlotool.facts.float_order import flush_threshold
from hlotool.facts.result_facts import sum_length
from hlotool.ir.arrays import Array
from hlotool.ir.module import Instruction
from hlotool.ir.types import array_shapes

#: Products of a whole contraction beyond which none is looked at by itself.
_FLUSHED_PRODUCTS_MOST = 1 << 25


def sums_products(origin: Instruction) -> bool:
    """Whether it adds up products of floats, and not too many of them."""
    if origin.opcode not in ("dot", "convolution"):
        return False
    shape = array_shapes(origin.shape)[0]
    is_inexact = shape.element_type.is_inexact and not any(kind.is_integer for kind in origin.operand_types)
    return is_inexact and 0 < shape.size * sum_length(origin, shape) <= _FLUSHED_PRODUCTS_MOST


@dataclass(frozen=True, slots=True)
class FlushedProducts:
    """A dot or convolution that makes zeros of denormal products where an execution flushes what is denormal.

    Those that are perturbed besides flush results alone: with sums that are zero in some and not in others
    they would say that nothing can be said, where the one that only flushes tells that this is what happened.

    Attributes:
        noise: which execution it is.
        kernel: of `held`.
        held: the instruction, in the types in which it is executed.
    """

    noise: Noise
    kernel: Callable[..., Any]
    held: Instruction

    def __call__(self, lhs: Array, rhs: Array) -> Any:
        member, tiny = self.noise.member, flush_threshold(self.held.element_type)
        is_flushing = member.flushes and member.seed is None and tiny
        if not is_flushing or _smallest(lhs) * _smallest(rhs) >= tiny:
            return self.kernel(lhs, rhs)
        return contracted_by(self.held, lambda left, right: _flushing(left, right, tiny))(lhs, rhs)


def _smallest(value: Array) -> float:
    """The smallest magnitude but zero, of a part of a complex number, too; infinity where there is none."""
    parts = np.concatenate([value.real.ravel(), value.imag.ravel()]) if value.dtype.kind == "c" else value
    magnitudes = np.abs(parts)
    return float(np.min(magnitudes, initial=np.inf, where=magnitudes > 0))


def _flushing(lhs: Array, rhs: Array, tiny: float) -> Array:
    """lhs [batch…, m, k] times rhs [batch…, k, n], whose terms are flushed."""
    total = zeros_for(lhs, rhs)
    with np.errstate(all="ignore"):
        for terms in terms_of(lhs, rhs, rows_held(total.size)):
            total += flushed(terms, tiny).sum(0, dtype=total.dtype)
    return total
