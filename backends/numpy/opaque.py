"""Stand-ins for custom calls that nobody but their authors can execute: `hlotool run --opaque`.

A stand-in is a function of its key (target, config, shapes) and its operands, the same wherever it occurs, so
that everything around such calls can be compared. It is smooth in floats: operands that differ by rounding
give results that do; and every operand has a say in every element, so that a wrong one shows. Integers and
preds decide with all their bits.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

from hlotool.backends.base import TOKEN, Value
from hlotool.backends.numpy.accumulation import finish, native
from hlotool.backends.numpy.registry import Kernel
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape, Shape, TupleShape, strip_layouts

#: Values of integer results, below which every array that matters has an index.
_INTEGERS = 2


def key_of(call: Instruction) -> str:
    """What tells an opaque call from others: equal keys and operands give equal values."""
    shapes = [str(strip_layouts(part.shape)) for part in (call, *call.operands)]
    return "\n".join([call.custom_call_target, call.config_text, *shapes])


def stand_in(call: Instruction) -> Kernel:
    """The kernel of an opaque call."""
    seed = zlib.crc32(key_of(call).encode("utf-8", "surrogateescape"))
    shape = call.shape
    kinds = [o.array_type for o in call.operands]

    def kernel(*operands: Value) -> Value:
        pairs = [(native(np.asarray(x), kind), n) for n, (x, kind) in enumerate(zip(operands, kinds)) if kind]
        floats = [(x, n) for x, n in pairs if x.dtype.kind in "fc"]
        exact = [zlib.crc32(np.ascontiguousarray(x).tobytes()) for x, _ in pairs if x.dtype.kind not in "fc"]
        return _value(shape, [seed, *exact], sum((_projection(x, [seed, n]) for x, n in floats), 0.0))

    return kernel


def _projection(x: Array, key: Sequence[int]) -> float:
    """A number in which every element counts about alike; what is common to all of them cancels out."""
    draw = np.random.default_rng(key)
    weights = draw.uniform(0.5, 1.5, x.shape) * draw.choice((-1.0, 1.0), x.shape)
    parts = x.real + x.imag if x.dtype.kind == "c" else x
    return float(np.sum(weights * parts.astype(np.float64))) / max(1.0, float(np.sqrt(x.size)))


def _value(shape: Shape, key: list[int], projection: float) -> Value:
    if isinstance(shape, TupleShape):
        return tuple(_value(part, [*key, n], projection) for n, part in enumerate(shape.elements))
    if not isinstance(shape, ArrayShape):
        return TOKEN
    draw = np.random.default_rng(key)
    if shape.element_type.is_integer or shape.element_type.name == "PRED":
        return finish(draw.integers(0, _INTEGERS, shape.dims), shape.element_type)
    phases = draw.uniform(0, 2 * np.pi, shape.dims)
    return finish(np.asarray(np.sin(phases + projection)), shape.element_type)
