"""Functions of complex numbers that HLO has for real ones only, written by the parts of their operands.

Source: Kahan, "Branch cuts for complex elementary functions", 1987. XLA's own expansion, of
ChloLegalizeToStablehlo, is twenty times as long. It differs from this one by a few ulps, but
for `sinh` and `cosh`, which XLA takes from exponentials that cancel, and for the real part of `atanh` beyond
1.8e19, which is 0 here and 1 / |z| there. Infinite operands give NaN here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from hlotool.ir.module import Instruction
from hlotool.ir.types import ArrayShape
from hlotool.parser.mlir.elementwise import filled, plain
from hlotool.parser.mlir.frames import Context, Results, operation


class _Parts(NamedTuple):
    """A complex number."""

    re: Instruction
    im: Instruction


@dataclass(frozen=True, slots=True)
class _Real:
    """Arithmetic on the parts."""

    context: Context
    shape: ArrayShape

    def __call__(self, opcode: str, *operands: Instruction) -> Instruction:
        return self.context.emit(opcode, *operands, shape=self.shape)

    def times(self, value: float, operand: Instruction) -> Instruction:
        return self("multiply", filled(self.context, value, self.shape), operand)

    def plus(self, value: float, operand: Instruction) -> Instruction:
        return self("add", filled(self.context, value, self.shape), operand)

    def parts(self, whole: Instruction) -> _Parts:
        return _Parts(self("real", whole), self("imag", whole))

    def root(self, number: _Parts) -> _Parts:
        """The square root."""
        shape = ArrayShape(self.context.operand(0).element_type, self.shape.dims)
        whole = self.context.emit("complex", *number, shape=shape)
        return self.parts(self.context.emit("sqrt", whole, shape=shape))

    def sum_of_products(self, a: Instruction, b: Instruction, c: Instruction, d: Instruction) -> Instruction:
        return self("add", self("multiply", a, b), self("multiply", c, d))

    def difference_of_products(
        self, a: Instruction, b: Instruction, c: Instruction, d: Instruction
    ) -> Instruction:
        return self("subtract", self("multiply", a, b), self("multiply", c, d))

    def roots_around(self, z: _Parts) -> tuple[_Parts, _Parts]:
        """The square roots of `1 - z` and of `1 + z`."""
        negative = self("negate", z.im)
        below = _Parts(self.plus(1, self("negate", z.re)), negative)
        return self.root(below), self.root(_Parts(self.plus(1, z.re), z.im))


def _asin(real: _Real, z: _Parts) -> _Parts:
    a, b = real.roots_around(z)
    return _Parts(
        real("atan2", z.re, real.difference_of_products(a.re, b.re, a.im, b.im)),
        real("asinh", real.difference_of_products(a.re, b.im, a.im, b.re)),
    )


def _acos(real: _Real, z: _Parts) -> _Parts:
    a, b = real.roots_around(z)
    return _Parts(
        real.times(2, real("atan2", a.re, b.re)),
        real("asinh", real.difference_of_products(b.re, a.im, b.im, a.re)),
    )


def _acosh(real: _Real, z: _Parts) -> _Parts:
    a, b = real.root(_Parts(real.plus(-1, z.re), z.im)), real.root(_Parts(real.plus(1, z.re), z.im))
    return _Parts(
        real("asinh", real.sum_of_products(a.re, b.re, a.im, b.im)),
        real.times(2, real("atan2", a.im, b.re)),
    )


def _atanh(real: _Real, z: _Parts) -> _Parts:
    # An odd function: the logarithm of what is near 0 would lose the digits that that of what is large has.
    size = real("abs", z.re)
    below = real.plus(1, real("negate", size))
    distance = real.sum_of_products(below, below, z.im, z.im)
    growth = real("log-plus-one", real("divide", real.times(4, size), distance))
    left, right = real.plus(1, real("negate", z.re)), real.plus(1, z.re)
    angles = real("add", real("atan2", z.im, right), real("atan2", z.im, left))
    signed = real("multiply", real("sign", z.re), real.times(0.25, growth))
    return _Parts(signed, real.times(0.5, angles))


def _sinh(real: _Real, z: _Parts) -> _Parts:
    return _Parts(
        real("multiply", real("sinh", z.re), real("cosine", z.im)),
        real("multiply", real("cosh", z.re), real("sine", z.im)),
    )


def _cosh(real: _Real, z: _Parts) -> _Parts:
    return _Parts(
        real("multiply", real("cosh", z.re), real("cosine", z.im)),
        real("multiply", real("sinh", z.re), real("sine", z.im)),
    )


_FUNCTIONS = {"asin": _asin, "acos": _acos, "acosh": _acosh, "atanh": _atanh, "sinh": _sinh, "cosh": _cosh}
#: `f(z) = -i g(i z)`: what an inverse function is to its hyperbolic twin.
_TURNED = {"asinh": _asin, "atan": _atanh}
#: Those in which XLA has no signs of zeros, which tell the sides of a cut apart.
_WITHOUT_SIDES = frozenset({_asin, _acos, _acosh})


@operation(*_FUNCTIONS, *_TURNED)
def _function(context: Context) -> Results:
    name = context.operation.name.rpartition(".")[2]
    operand = context.operand(0)
    kind = operand.element_type
    if not kind.is_complex:
        if name != "atan":
            return plain(name)(context)
        return context.main("atan2", operand, filled(context, 1, operand.array_shape))
    real = _Real(context, ArrayShape(kind.real_part, operand.dims))
    z = real.parts(operand)
    if _FUNCTIONS.get(name, _TURNED.get(name)) in _WITHOUT_SIDES:
        z = _Parts(real.plus(0, z.re), real.plus(0, z.im))
    if name in _FUNCTIONS:
        return context.main("complex", *_FUNCTIONS[name](real, z))
    found = _TURNED[name](real, _Parts(real("negate", z.im), z.re))
    return context.main("complex", found.im, real("negate", found.re))
