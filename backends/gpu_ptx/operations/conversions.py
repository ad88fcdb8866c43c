"""`cvt`: between all types, rounded in any way (PTX ISA, "Data Movement and Conversion Instructions:
cvt").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from hlotool.backends.gpu_ptx.lowering import Site, Step, computed, elementwise, executes
from hlotool.backends.gpu_ptx.operations.floats import flushed
from hlotool.backends.gpu_ptx.rounding import MODES, narrow, sum_f64, to_odd, two_sum
from hlotool.backends.gpu_ptx.types import SIGNED, Type, Values, type_of

_TO_INTEGER: dict[str, Callable[[Values], Values]] = {
    "rni": np.rint,
    "rzi": np.trunc,
    "rmi": np.floor,
    "rpi": np.ceil,
}
_F8: dict[str, Any] = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}
_LARGEST = {
    "e4m3": 448.0,
    "e5m2": 57344.0,
    "f16": 65504.0,
    "bf16": 3.3895313892515355e38,
    "tf32": 3.4011621342146535e38,
}
F32 = type_of("f32")


@executes("cvt")
def convert(site: Site) -> Step:
    """A value of one type as another type."""
    if site.instruction.has("pack"):
        return _pack(site)
    words = site.accept(*MODES, *_TO_INTEGER, "rna", "ftz", "sat", "satfinite", "relu")
    if len(site.types) != 2:
        raise site.unsupported("these types are not known together")
    target, source = site.types
    if target == "tf32":
        return _to_tf32(site)
    if "x2" in target or "x2" in source:
        return _packed(site, target, source)
    try:
        result, operand = type_of(target), type_of(source)
    except KeyError:
        raise site.unsupported("these types are not known") from None
    if "rna" in words:
        raise site.unsupported(".rna is of .tf32 alone")
    if operand.kind != "f":
        function = _from_integer(site, result, operand)
    elif result.kind != "f":
        function = _to_integer(site, result, operand)
    else:
        function = _to_float(site, result, operand)
    return elementwise(site, result, [operand], function)


def _from_integer(site: Site, result: Type, operand: Type) -> Callable[[Values], Values]:
    mode = site.choice(*MODES) or "rn"
    saturates = site.instruction.has("sat")
    if result.kind == "f":

        def to_float(values: Values) -> Values:
            if mode == "rn" and result.bits in (32, 64):
                found = values.astype(np.float32 if result.bits == 32 else np.float64)
            else:
                wide = values.astype(np.int64 if values.dtype.kind == "i" else np.uint64)
                high = (wide >> wide.dtype.type(32)).astype(np.float64) * 2.0**32
                low = (wide & wide.dtype.type(0xFFFFFFFF)).astype(np.float64)
                if result.bits == 64:
                    found = sum_f64(high, low, mode)
                else:
                    found = narrow(to_odd(*two_sum(high, low)), result.element, mode)
            return np.clip(found, 0, 1) if saturates else found

        return to_float
    dtype = SIGNED[result.bits] if result.kind == "s" else result.unsigned
    if not saturates:
        return lambda values: values.astype(dtype)
    limits = np.iinfo(dtype)

    def clamp(values: Values) -> Values:
        own = np.iinfo(values.dtype)
        low, high = max(int(limits.min), int(own.min)), min(int(limits.max), int(own.max))
        return np.clip(values, values.dtype.type(low), values.dtype.type(high)).astype(dtype)

    return clamp


def _to_integer(site: Site, result: Type, operand: Type) -> Callable[[Values], Values]:
    """Out of range gives the nearest integer; NaN zero, or the highest bit of 64, or of what was f64."""
    word = site.choice(*_TO_INTEGER)
    if word is None:
        raise site.unsupported("it does not say how to round")
    rounded, flushes = _TO_INTEGER[word], site.instruction.has("ftz") and operand.bits == 32
    dtype: Any = SIGNED[result.bits] if result.kind == "s" else result.unsigned
    limits = np.iinfo(dtype)
    strange = operand.bits == 64 or result.bits == 64
    nan = dtype(limits.min if limits.min else 1 << (result.bits - 1)) if strange else dtype(0)

    def function(values: Values) -> Values:
        if flushes:
            values = flushed(values)
        whole = rounded(values.astype(np.float64))
        above, below = whole >= float(limits.max), whole <= float(limits.min)
        plain = np.where(above | below | np.isnan(whole), 0.0, whole).astype(dtype)
        found = np.where(above, dtype(limits.max), np.where(below, dtype(limits.min), plain))
        return np.where(np.isnan(whole), nan, found)

    return function


def _to_float(site: Site, result: Type, operand: Type) -> Callable[[Values], Values]:
    word, mode = site.choice(*_TO_INTEGER), site.choice(*MODES) or "rn"
    saturates, relu = site.instruction.has("sat"), site.instruction.has("relu")
    flushes = site.instruction.has("ftz")
    widens = result.bits > operand.bits or result.name == operand.name
    finite = _LARGEST.get(result.element) if site.instruction.has("satfinite") else None

    def function(values: Values) -> Values:
        if flushes and operand.bits == 32:
            values = flushed(values)
        if word is not None:
            values = _TO_INTEGER[word](values)
        if relu:
            values = np.where(values < 0, values.dtype.type(0), values)
        if finite is not None:
            values = np.where(np.isnan(values), values, np.clip(values, -finite, finite))
        if result.bits == 64:
            found = values.astype(np.float64)
        elif widens and values.dtype == np.float32:
            found = values.copy()
        else:
            found = narrow(values.astype(np.float64), result.element, mode)
        if saturates:
            found = np.where(found > 0, np.minimum(found, found.dtype.type(1)), found.dtype.type(0))
        return flushed(found) if flushes and result.bits == 32 else found

    return function


def _to_tf32(site: Site) -> Step:
    """f32 with ten bits of mantissa; `.rna`: to nearest, ties away from zero."""
    words = site.accept("rna", "rn", "rz", "relu", "satfinite")
    bits = type_of("b32")

    def function(raw: Values) -> Values:
        value = raw.view(np.float32)
        if "rna" in words:
            found = (raw + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
        elif "rz" in words:
            found = raw & np.uint32(0xFFFFE000)
        else:
            found = (raw + np.uint32(0xFFF) + ((raw >> np.uint32(13)) & np.uint32(1))) & np.uint32(0xFFFFE000)
        if "satfinite" in words:
            largest = np.uint32(0x7F7FE000) | (raw & np.uint32(0x80000000))
            found = np.where((found & np.uint32(0x7FFFFFFF)) >= np.uint32(0x7F800000), largest, found)
        if "relu" in words:
            found = np.where(value < 0, np.uint32(0), found)
        return np.where(np.isnan(value), np.uint32(0x7FFFFFFF), found)

    return elementwise(site, bits, [bits], function)


def f8_values(raw: Values, name: str) -> Values:
    """The f32 values of bytes of type `e4m3` or `e5m2`."""
    found: Values = np.ascontiguousarray(raw).view(_F8[name]).astype(np.float32)
    return found


def f8_bits(values: Values, name: str) -> Values:
    """The bytes nearest to f32 values; what is too large becomes the largest."""
    largest = np.float32(_LARGEST[name])
    found = np.clip(values, -largest, largest).astype(_F8[name]).view(np.uint8)
    return np.where(np.isnan(values), np.uint8(0x7F), found)


def _packed(site: Site, target: str, source: str) -> Step:
    """Two values: of f32 the first operand is the upper half of the result."""
    words = site.instruction.modifiers
    relu, finite = "relu" in words, "satfinite" in words

    def bounded(values: Values) -> Values:
        return np.where(values < 0, np.float32(0), values) if relu else values

    if source == "f32" and target in ("f16x2", "bf16x2"):
        mode = site.choice(*MODES) or "rn"
        result = type_of(target)
        largest = np.float32(_LARGEST[result.element])

        def halves(high: Values, low: Values) -> Values:
            both = np.stack(np.broadcast_arrays(bounded(low), bounded(high)))
            if finite:
                both = np.where(np.isnan(both), both, np.clip(both, -largest, largest))
            return both if mode == "rn" else narrow(both.astype(np.float64), result.element, mode)

        return computed([site.read(1, F32), site.read(2, F32)], site.write(0, result), halves)
    name = target[:4]
    if name in _F8 and finite and source in ("f32", "f16x2", "bf16x2"):
        result = type_of("b16")
        if source == "f32":
            reads = [site.read(2, F32), site.read(1, F32)]
            return computed(
                reads,
                site.write(0, result),
                lambda low, high: _joined(f8_bits(bounded(low), name), f8_bits(bounded(high), name)),
            )
        reads = [site.read(1, type_of(source))]
        return computed(reads, site.write(0, result), lambda both: _joined(*f8_bits(bounded(both), name)))
    if source[:4] in _F8 and target in ("f16x2", "bf16x2"):

        def widened(raw: Values) -> Values:
            both = np.ascontiguousarray(raw).reshape(-1, 1).view(np.uint8).T
            return bounded(f8_values(both, source[:4]))

        return computed([site.read(1, type_of("b16"))], site.write(0, type_of(target)), widened)
    raise site.unsupported("these types are not known together")


def _joined(low: Values, high: Values) -> Values:
    """Two bytes as 16 bits."""
    return low.astype(np.uint16) | (high.astype(np.uint16) << np.uint16(8))


def _pack(site: Site) -> Step:
    """`cvt.pack.sat`: two s32, clamped to few bits, below which stand those of the third operand."""
    site.accept("pack", "sat")
    target = site.types[0]
    bits = int(target[1:])
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if target[0] == "s" else (0, (1 << bits) - 1)
    s32, b32 = type_of("s32"), type_of("b32")

    def function(a: Values, b: Values, c: Values = None) -> Values:
        clipped = [np.clip(x, low, high).view(np.uint32) & np.uint32((1 << bits) - 1) for x in (a, b)]
        both = (clipped[0] << np.uint32(bits)) | clipped[1]
        return both if c is None else (c << np.uint32(2 * bits)) | both

    sources = [s32, s32] if bits == 16 else [s32, s32, b32]
    return elementwise(site, b32, sources, function)
