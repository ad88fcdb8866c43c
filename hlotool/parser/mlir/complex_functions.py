"""Functions of complex numbers that HLO has for real ones only, written by the parts of their operands.

Source: Kahan, "Branch cuts for complex elementary functions", 1987. XLA's own expansion, of
ChloLegalizeToStablehlo, is twenty times as long. It differs from this one by a few ulps, but
for `sinh` and `cosh`, which XLA takes from exponentials that cancel, and for the real part of `atanh` beyond
1.8e19, which is 0 here and 1 / |z| there. Infinite operands give NaN here.
"""

from __future__ import annotations

from typing import NamedTuple

from hlotool.ir.types import ElementType
from hlotool.parser.mlir.arithmetic import Value
from hlotool.parser.mlir.elementwise import plain
from hlotool.parser.mlir.frames import Context, Results, operation


class _Parts(NamedTuple):
    """A complex number."""

    re: Value
    im: Value

    @staticmethod
    def of(whole: Value) -> _Parts:
        part = whole.kind.real_part
        return _Parts(whole.of("real", kind=part), whole.of("imag", kind=part))

    def whole(self) -> Value:
        """The number in one piece."""
        return self.re.of("complex", self.im, kind=_COMPLEX[self.re.kind])

    def root(self) -> _Parts:
        """The square root."""
        return _Parts.of(self.whole().of("sqrt"))


_COMPLEX = {kind.real_part: kind for kind in (ElementType.C64, ElementType.C128)}


def _roots_around(z: _Parts) -> tuple[_Parts, _Parts]:
    """The square roots of `1 - z` and of `1 + z`."""
    return _Parts(1 + -z.re, -z.im).root(), _Parts(1 + z.re, z.im).root()


def _asin(z: _Parts) -> _Parts:
    kernel = _kernel(z)
    return _Parts(z.re.of("atan2", kernel.re), kernel.im)


def _kernel(z: _Parts) -> _Parts:
    """What the real part of asin has in its denominator, and the imaginary part."""
    a, b = _roots_around(z)
    return _Parts(a.re * b.re - a.im * b.im, (a.re * b.im - a.im * b.re).of("asinh"))


def _unsigned_kernel(z: _Parts) -> _Parts:
    kernel = _kernel(z)
    return _Parts(kernel.re, abs(kernel.im))


def _acos(z: _Parts) -> _Parts:
    a, b = _roots_around(z)
    return _Parts(2 * a.re.of("atan2", b.re), (b.re * a.im - b.im * a.re).of("asinh"))


def _acosh(z: _Parts) -> _Parts:
    a, b = _Parts(-1 + z.re, z.im).root(), _Parts(1 + z.re, z.im).root()
    return _Parts((a.re * b.re + a.im * b.im).of("asinh"), 2 * a.im.of("atan2", b.re))


def _atanh(z: _Parts) -> _Parts:
    # An odd function: the logarithm of what is near 0 would lose the digits that that of what is large has.
    size = abs(z.re)
    below = 1 + -size
    growth = (4 * size / (below * below + z.im * z.im)).of("log-plus-one")
    angles = z.im.of("atan2", 1 + z.re) + z.im.of("atan2", 1 + -z.re)
    return _Parts(z.re.of("sign") * (0.25 * growth), 0.5 * angles)


def _sinh(z: _Parts) -> _Parts:
    return _Parts(z.re.of("sinh") * z.im.of("cosine"), z.re.of("cosh") * z.im.of("sine"))


def _cosh(z: _Parts) -> _Parts:
    return _Parts(z.re.of("cosh") * z.im.of("cosine"), z.re.of("sinh") * z.im.of("sine"))


def _square(z: _Parts) -> _Parts:
    # Of equal sizes the difference is 0, also where the product of sum and difference overflows.
    is_even = z.re.of("is-finite", kind=ElementType.PRED) & abs(z.re).compared("EQ", abs(z.im))
    return _Parts(is_even.select(z.re.like(0), (z.re - z.im) * (z.re + z.im)), 2 * (z.re * z.im))


_FUNCTIONS = {
    "asin": _asin, "acos": _acos, "acosh": _acosh, "atanh": _atanh, "sinh": _sinh, "cosh": _cosh,
    "square": _square, "_asin_acos_kernel": _unsigned_kernel,
}  # fmt: skip
#: `f(z) = -i g(i z)`: what an inverse function is to its hyperbolic twin.
_TURNED = {"asinh": _asin, "atan": _atanh}
#: Those in which XLA has no signs of zeros, which tell the sides of a cut apart.
_WITHOUT_SIDES = frozenset({_asin, _acos, _acosh, _unsigned_kernel})


@operation(*_FUNCTIONS, *_TURNED)
def _function(context: Context) -> Results:
    name = context.operation.name.rpartition(".")[2]
    operand = Value(context, context.operand(0))
    if not operand.kind.is_complex:
        if name == "_asin_acos_kernel":
            raise context.error(f"is no function of {operand.kind}")
        if name == "square":
            return context.main("multiply", operand.made, operand.made)
        return (
            context.main("atan2", operand.made, operand.like(1).made)
            if name == "atan"
            else plain(name)(context)
        )
    z = _Parts.of(operand)
    if _FUNCTIONS.get(name, _TURNED.get(name)) in _WITHOUT_SIDES:
        z = _Parts(0 + z.re, 0 + z.im)
    if name in _FUNCTIONS:
        return context.main("complex", *(part.made for part in _FUNCTIONS[name](z)))
    found = _TURNED[name](_Parts(-z.im, z.re))
    return context.main("complex", found.im.made, (-found.re).made)
