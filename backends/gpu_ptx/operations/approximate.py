"""Functions whose results the ISA bounds and does not define: `.approx` and `.full`.

With seed 0 results are the nearest ones. Any other seed moves each by as much as the ISA allows, as a
function of the operands' bits: a GPU gives the same result for the same operands, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from hlotool.backends.gpu_ptx.lowering import Site, Step, executes
from hlotool.backends.gpu_ptx.operations.floats import divide, finished, reciprocal, root
from hlotool.backends.gpu_ptx.types import Values

if TYPE_CHECKING:
    from hlotool.backends.gpu_ptx.machine import Machine

#: Of f32 the largest relative error, and the largest absolute one, that the ISA documents; the larger counts.
_ERRORS: dict[str, tuple[float, float]] = {
    "ex2": (2.0**-22, 0.0),
    "lg2": (2.0**-22, 2.0**-22),
    "sin": (0.0, 2.0**-20.5),
    "cos": (0.0, 2.0**-20.5),
    "tanh": (2.0**-10.987, 0.0),
    "rcp": (2.0**-23, 0.0),
    "sqrt": (2.0**-23, 0.0),
    "rsqrt": (2.0**-22.9, 0.0),
    "div": (2.0**-22, 0.0),
}
#: Of f16 and bf16, likewise, besides rounding to them.
_NARROW_ERRORS = {"ex2.f16": 2.0**-9.9, "ex2.bf16": 2.0**-7, "tanh.f16": 2.0**-10.987, "tanh.bf16": 2.0**-8}
#: Of f64: results have the precision of their upper half alone.
_F64_ERRORS = {"rcp": 2.0**-20, "rsqrt": 2.0**-20}

_FUNCTIONS: dict[str, Callable[..., Values]] = {
    "ex2": np.exp2,
    "lg2": np.log2,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "rcp": np.reciprocal,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "div": np.divide,
}


def _drawn(seed: int, operands: tuple[Values, ...]) -> Values:
    """Numbers in [-1, 1] that depend on the seed and the operands alone."""
    mixed: Values = np.uint64(seed * 0x9E3779B97F4A7C15 % (1 << 64))
    for operand in operands:
        bits = np.ascontiguousarray(operand.astype(np.float64)).view(np.uint64)
        mixed = (mixed ^ bits ^ (bits >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0x94D049BB133111EB)
    return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1.0


def _approximate(site: Site) -> Step:
    """`.approx`, and `div.full`."""
    opcode = site.instruction.opcode
    site.accept("approx", "full", "ftz")
    kind = site.type()
    relative, absolute = _ERRORS[opcode]
    if kind.bits == 64:
        if opcode not in _F64_ERRORS:
            raise site.unsupported("this type is not known")
        relative = _F64_ERRORS[opcode]
    elif kind.element in ("f16", "bf16"):
        relative = _NARROW_ERRORS.get(f"{opcode}.{kind.element}", -1.0)
        if relative < 0:
            raise site.unsupported("this type is not known")
    exact = _FUNCTIONS[opcode]
    count = 2 if opcode == "div" else 1
    reads = [site.read(place + 1, kind) for place in range(count)]
    write = site.write(0, kind)

    def nearest(seed: int) -> Callable[..., Values]:
        def function(*operands: Values) -> Values:
            found = exact(*(operand.astype(np.float64) for operand in operands))
            if seed:
                room = np.maximum(np.abs(found) * relative, absolute)
                moved = found + _drawn(seed, operands) * room
                # Zeros, ones of 2^0, infinities and NaN are given exactly in the tables of the ISA.
                found = np.where((found == 0) | ~np.isfinite(found), found, moved)
            return found if kind.bits == 64 else found.astype(np.float32)

        return finished(site, function)

    def step(machine: Machine) -> None:
        write(machine, nearest(machine.seed)(*(read(machine) for read in reads)))

    return step


@executes("ex2", "lg2", "sin", "cos", "tanh", "rsqrt", family="float")
def approximate(site: Site) -> Step:
    """Functions that are approximate alone."""
    return _approximate(site)


@executes("div", family="float")
def divide_any(site: Site) -> Step:
    """`div.rn` and `div.approx`, `div.full`."""
    return _approximate(site) if site.choice("approx", "full") else divide(site)


@executes("rcp", family="float")
def reciprocal_any(site: Site) -> Step:
    """`rcp.rn` and `rcp.approx`."""
    return _approximate(site) if site.choice("approx") else reciprocal(site)


@executes("sqrt", family="float")
def root_any(site: Site) -> Step:
    """`sqrt.rn` and `sqrt.approx`."""
    return _approximate(site) if site.choice("approx") else root(site)
