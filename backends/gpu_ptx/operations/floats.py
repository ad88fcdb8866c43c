"""Floating-point arithmetic that is defined to the bit (PTX ISA, "Floating Point Instructions", "Half
Precision ...").
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hlotool.backends.gpu_ptx.lowering import Site, Step, elementwise, executes
from hlotool.backends.gpu_ptx.rounding import (
    MODES,
    fma_f64,
    fma_odd,
    narrow,
    quotient_f64,
    quotient_odd,
    root_odd,
    sum_f64,
    to_odd,
    two_sum,
)
from hlotool.backends.gpu_ptx.types import Type, Values, type_of

_TINY = np.float32(2.0**-126)


def flushed(values: Values) -> Values:
    """`.ftz`: subnormal f32 become zeros with their sign."""
    small = np.abs(values) < _TINY
    return np.where(small, np.copysign(np.float32(0), values), values) if small.any() else values


def finished(site: Site, function: Callable[..., Values]) -> Callable[..., Values]:
    """`function` with what `.ftz`, `.sat` and `.relu` do before and after it."""
    flush = site.instruction.has("ftz") and site.type().element == "f32"
    saturates, relu = site.instruction.has("sat"), site.instruction.has("relu")
    if not (flush or saturates or relu):
        return function

    def whole(*operands: Values) -> Values:
        if flush:
            operands = tuple(flushed(operand) for operand in operands)
        found = function(*operands)
        if flush:
            found = flushed(found)
        if saturates:  # NaN becomes zero
            found = np.where(found > 0, np.minimum(found, found.dtype.type(1)), found.dtype.type(0))
        if relu:
            found = np.where(found < 0, found.dtype.type(0), found)
        return found

    return whole


def _sum(kind: Type, mode: str) -> Callable[[Values, Values], Values]:
    if mode == "rn":
        return np.add
    if kind.bits == 64:
        return lambda a, b: sum_f64(a, b, mode)

    def function(a: Values, b: Values) -> Values:
        exact = to_odd(*two_sum(a.astype(np.float64), b.astype(np.float64)))
        found = narrow(exact, kind.element, mode)
        if mode == "rm":  # what cancels is -0 when rounding down
            found = np.where(
                (found == 0) & (a == -b) & ((a != 0) | (np.signbit(a) != np.signbit(b))),
                np.float32(-0.0),
                found,
            )
        return found

    return function


@executes("add", "sub", "mul", family="float")
def arithmetic(site: Site) -> Step:
    """Sum, difference and product, rounded once."""
    site.accept(*MODES, "ftz", "sat")
    kind, opcode = site.type(0), site.instruction.opcode
    mode = site.choice(*MODES) or "rn"
    if kind.element in ("f16", "bf16") and mode != "rn":
        raise site.unsupported(f".{mode} of .{kind.name}")
    function: Callable[..., Values]
    if opcode == "mul":
        if mode == "rn":
            function = np.multiply
        elif kind.bits == 64:
            function = lambda a, b: fma_f64(a, b, np.copysign(0.0, a * b), mode)  # noqa: E731
        else:
            function = lambda a, b: narrow(a.astype(np.float64) * b.astype(np.float64), "f32", mode)  # noqa: E731
    else:
        add = _sum(kind, mode)
        function = add if opcode == "add" else np.subtract if mode == "rn" else lambda a, b: add(a, -b)
    return elementwise(site, kind, _operands(site, 2), finished(site, function))


def _operands(site: Site, count: int) -> list[Type]:
    """The types of the operands: all but the last are of the narrower one in `add.f32.bf16`."""
    wide, thin = site.type(0), site.type()
    if wide != thin and (wide.name != "f32" or site.instruction.has("ftz")):
        raise site.unsupported("these types are not known together")
    return [*[thin] * (count - 1), wide]


@executes("fma", "mad", family="float")
def fma(site: Site) -> Step:
    """`a × b + c`, rounded once."""
    site.accept(*MODES, "ftz", "sat", "relu")
    kind = site.type(0)
    mode = site.choice(*MODES) or "rn"

    def function(a: Values, b: Values, c: Values) -> Values:
        a, b = (operand.astype(c.dtype, copy=False) for operand in (a, b))
        found = narrow(fma_odd(a, b, c), kind.element, mode)
        if mode == "rm":
            cancels = (found == 0) & (a.astype(np.float64) * b == -c.astype(np.float64)) & (c != 0)
            found = np.where(cancels, np.float32(-0.0), found)
        return found

    if kind.bits == 64:
        return elementwise(site, kind, [kind] * 3, lambda a, b, c: fma_f64(a, b, c, mode))
    return elementwise(site, kind, _operands(site, 3), finished(site, function))


def divide(site: Site) -> Step:
    """`div.rn` and the other modes."""
    site.accept(*MODES, "ftz")
    kind = site.type()
    mode = site.choice(*MODES) or "rn"
    if kind.bits == 64:
        return elementwise(site, kind, [kind, kind], lambda a, b: quotient_f64(a, b, mode))
    if mode == "rn":
        return elementwise(site, kind, [kind, kind], finished(site, np.divide))
    return elementwise(
        site, kind, [kind, kind], finished(site, lambda a, b: narrow(quotient_odd(a, b), "f32", mode))
    )


def reciprocal(site: Site) -> Step:
    """`rcp.rn` and the other modes."""
    site.accept(*MODES, "ftz")
    kind = site.type()
    mode = site.choice(*MODES) or "rn"
    if kind.bits == 64:
        return elementwise(site, kind, [kind], lambda a: quotient_f64(np.ones_like(a), a, mode))
    if mode == "rn":
        return elementwise(site, kind, [kind], finished(site, np.reciprocal))
    return elementwise(
        site, kind, [kind], finished(site, lambda a: narrow(quotient_odd(np.ones_like(a), a), "f32", mode))
    )


def root(site: Site) -> Step:
    """`sqrt.rn` and the other modes."""
    site.accept(*MODES, "ftz")
    kind = site.type()
    mode = site.choice(*MODES) or "rn"
    if mode == "rn":
        return elementwise(site, kind, [kind], finished(site, np.sqrt))
    if kind.bits == 64:
        raise site.unsupported("a square root of .f64 in this mode")
    return elementwise(site, kind, [kind], finished(site, lambda a: narrow(root_odd(a), "f32", mode)))


def smaller(a: Values, b: Values) -> Values:
    """The smaller number; -0 is smaller than +0, and any number than NaN."""
    found = np.fmin(a, b)
    zero = (a == 0) & (b == 0)
    return np.where(zero, np.where(np.signbit(a), a, b), found) if zero.any() else found


def larger(a: Values, b: Values) -> Values:
    """The larger number; +0 is larger than -0, and any number than NaN."""
    found = np.fmax(a, b)
    zero = (a == 0) & (b == 0)
    return np.where(zero, np.where(np.signbit(a), b, a), found) if zero.any() else found


@executes("min", "max", family="float")
def minmax(site: Site) -> Step:
    """Smaller and larger of two, or of three; `.NaN`: NaN if one is; `.xorsign.abs`: of the sizes, with the
    product's sign.
    """
    words = site.accept("ftz", "NaN", "xorsign", "abs")
    kind = site.type()
    choose = smaller if site.instruction.opcode == "min" else larger

    def function(*operands: Values) -> Values:
        sizes = [np.abs(operand) for operand in operands] if "abs" in words else list(operands)
        found = sizes[0]
        for size in sizes[1:]:
            found = choose(found, size)
        if "xorsign" in words:
            sign = np.signbit(operands[0]) ^ np.signbit(operands[1])
            found = np.where(sign, -found, found)
        if "NaN" in words:
            nan = np.isnan(operands[0])
            for operand in operands[1:]:
                nan = nan | np.isnan(operand)
            found = np.where(nan, found.dtype.type(np.nan), found) if nan.any() else found
        return found

    return elementwise(site, kind, [kind] * (len(site.operands) - 1), finished(site, function))


@executes("abs", "neg", family="float")
def sign(site: Site) -> Step:
    """The sign cleared, or turned; of NaN, too, whose payload is unspecified."""
    site.accept("ftz")
    kind = site.type()
    bits = type_of(f"b{kind.bits}")
    mask = sum(1 << (kind.bits // kind.lanes * (lane + 1) - 1) for lane in range(kind.lanes))
    turns = site.instruction.opcode == "neg"
    if site.instruction.has("ftz") and kind.element == "f32":
        return elementwise(site, kind, [kind], finished(site, np.negative if turns else np.abs))
    signs = bits.unsigned(mask)
    return elementwise(site, bits, [bits], lambda a: a ^ signs if turns else a & ~signs)


@executes("copysign")
def copysign(site: Site) -> Step:
    """The second operand with the sign of the first."""
    site.accept()
    kind = site.type()
    bits = type_of(f"b{kind.bits}")
    signs = bits.unsigned(1 << (kind.bits - 1))
    return elementwise(site, bits, [bits, bits], lambda a, b: (a & signs) | (b & ~signs))


@executes("testp")
def classify(site: Site) -> Step:
    """Whether an operand is of a class."""
    (word,) = site.accept("finite", "infinite", "number", "notanumber", "normal", "subnormal")
    kind = site.type()
    tiny = np.finfo(np.float32 if kind.bits == 32 else np.float64).tiny
    tests: dict[str, Callable[[Values], Values]] = {
        "finite": np.isfinite,
        "infinite": np.isinf,
        "number": lambda a: ~np.isnan(a),
        "notanumber": np.isnan,
        "normal": lambda a: np.isfinite(a) & (np.abs(a) >= tiny),
        "subnormal": lambda a: (np.abs(a) < tiny) & (a != 0),
    }
    return elementwise(site, type_of("pred"), [kind], tests[word])
