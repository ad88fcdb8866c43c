"""Transcendental functions against XLA: how many units in the last place apart, and where XLA is elsewhere.

NumPy and XLA approximate independently; each is within a few ulp of the true value. LIMITS is the measured
distance (jaxlib 0.10.2, NumPy 2.4 on AVX-512) over 90,000 values of all magnitudes, with a margin of one to
two ulp for other instruction sets; larger entries have a reason.
"""

from __future__ import annotations

import numpy as np
import pytest
from support.differential import Array, run
from support.elementwise import Operation, both, by_speed, ulp_distance

from hlotool.ir.arrays import DTYPES
from hlotool.ir.types import ELEMENT_TYPES
from hlotool.lab.conformance.agreement import flushed
from hlotool.lab.conformance.generators.cases import corner_values

TYPES = ("f16", "bf16", "f32", "f64")

#: Largest distance in ulp per opcode, for the types in TYPES.
LIMITS = {
    "atan2": (1, 0, 4, 3),
    "cbrt": (1, 0, 4, 5),
    "cosine": (1, 0, 3, 2),
    "erf": (1, 0, 7, 5),
    "exponential": (1, 1, 7, 4),
    # XLA's CPU code computes the f16 one in f16, term by term.
    "exponential-minus-one": (3, 1, 8, 6),
    "log": (1, 0, 5, 3),
    # XLA's f64 polynomial loses digits around -0.41: 128 ulp measured, NumPy is within one of the truth.
    "log-plus-one": (1, 0, 5, 150),
    # In f16, XLA's exp(11.1) is infinite and the result 0, where f32 still has 1.5e-5 (255 steps of f16).
    "logistic": (280, 0, 6, 5),
    "power": (1, 0, 3, 3),
    "rsqrt": (1, 0, 3, 3),
    "sine": (1, 0, 3, 2),
    "sqrt": (0, 0, 0, 0),
    "tan": (1, 0, 5, 3),
    # XLA's rational approximation of f64 ends at ±20: up to 7 ulp below 1.
    "tanh": (1, 0, 6, 9),
}
#: XLA's CPU code generator has these for types below f16 and bf16 only.
ONLY_BF16 = ("acos", "acosh", "asin", "asinh", "atanh", "cosh", "sinh")
BINARY = ("atan2", "power")


def samples(name: str, seed: int) -> Array:
    """Numbers of all magnitudes, and the corner values."""
    rng = np.random.default_rng(seed)
    drawn = [
        rng.standard_normal(20_000),
        rng.uniform(-1, 1, 20_000),
        rng.uniform(-100, 100, 20_000),
        np.exp(rng.uniform(-40, 40, 20_000)),
        -np.exp(rng.uniform(-30, 30, 10_000)),
    ]
    dtype = DTYPES[ELEMENT_TYPES[name]]
    with np.errstate(all="ignore"):
        numbers = np.concatenate(drawn).astype(np.float64 if name == "f64" else np.float32).astype(dtype)
    return np.concatenate([numbers, corner_values(name)])


@pytest.mark.xla
@pytest.mark.parametrize("name", by_speed(TYPES, "bf16 f32"))
def test_distance_from_xla(name: str) -> None:
    column = TYPES.index(name)
    operations = [Operation(o, name, (0, 1) if o in BINARY else (0,)) for o in LIMITS]
    if name == "bf16":
        operations += [Operation(opcode, name, (0,)) for opcode in ONLY_BF16]
    arguments = [samples(name, 0), np.random.default_rng(1).permutation(samples(name, 2))]
    for operation, (ours, theirs) in zip(operations, both(operations, [name] * 2, arguments)):
        operands = [arguments[i] for i in operation.operands]
        distance = np.where(flushed(ours, theirs, operands), 0, ulp_distance(ours, theirs))
        worst = int(np.argmax(distance))
        limit = LIMITS.get(operation.opcode, (0,) * 4)[column]
        shown = f"{operation.opcode}{[o[worst] for o in operands]}: ours {ours[worst]}, XLA's {theirs[worst]}"
        assert distance[worst] <= limit, shown


def complex_samples(name: str) -> Array:
    """Finite numbers off the branch cuts: distinct magnitudes, all quadrants."""
    rng = np.random.default_rng(0)
    size = np.exp(rng.uniform(-6, 1.5, 4000))
    direction = np.exp(1j * rng.uniform(-np.pi, np.pi, 4000))
    return np.asarray(size * direction).astype(DTYPES[ELEMENT_TYPES[name]])


#: Largest distance from XLA in units of eps · |result|, measured and doubled.
COMPLEX_LIMITS = {
    "abs": 1,
    # The logarithm of a number close to 1: XLA's formula and NumPy's cancel differently.
    "atan2": 50_000,
    "cosine": 20,
    "divide": 6,
    "exponential": 4,
    "exponential-minus-one": 6,
    # XLA takes log(|z|), which cancels where |z| is close to 1; NumPy does not.
    "log": 300,
    "log-plus-one": 300,
    "logistic": 10,
    "multiply": 4,
    # exp(b · log(a)) magnifies the rounding of its exponent.
    "power": 200,
    "rsqrt": 6,
    "sign": 4,
    # XLA subtracts exp(-y) from exp(y), which cancels for small y.
    "sine": 1500,
    "sqrt": 4,
    "tan": 30,
    "tanh": 10,
}


@pytest.mark.xla
@pytest.mark.parametrize("name", by_speed(("c64", "c128"), "c64"))
def test_complex_distance_from_xla(name: str) -> None:
    part = {"c64": "f32", "c128": "f64"}[name]
    two = ("divide", "multiply", "power", "atan2")
    operations = [
        Operation(o, part if o == "abs" else name, (0, 1) if o in two else (0,)) for o in COMPLEX_LIMITS
    ]
    z = complex_samples(name)
    arguments = [z, np.random.default_rng(1).permutation(z)]
    eps = float(np.finfo(z.dtype).eps)
    for operation, (ours, theirs) in zip(operations, both(operations, [name] * 2, arguments)):
        size = np.abs(theirs.astype(np.complex128))
        distance = np.abs(ours.astype(np.complex128) - theirs) / (eps * np.maximum(size, 1e-300))
        worst = int(np.argmax(distance))
        limit = COMPLEX_LIMITS[operation.opcode]
        shown = (
            f"{operation.opcode} of {[arguments[i][worst] for i in operation.operands]}: {distance[worst]}"
        )
        assert distance[worst] <= limit, f"{shown}, ours {ours[worst]}, XLA's {theirs[worst]}"


def apply(opcode: str, *numbers: complex) -> complex:
    """One complex operation on the numpy backend."""
    parameters = "\n".join(f"  p{i} = c128[] parameter({i})" for i in range(len(numbers)))
    operands = ", ".join(f"p{i}" for i in range(len(numbers)))
    text = f"HloModule m\nENTRY e {{\n{parameters}\n  ROOT r = c128[] {opcode}({operands})\n}}"
    return complex(run(text, [np.complex128(z) for z in numbers])[0])


def same(a: complex, b: complex) -> bool:
    """Equal with the signs of zeros."""
    pairs = ((a.real, b.real), (a.imag, b.imag))
    return all((x != x and y != y) or (x == y and np.signbit(x) == np.signbit(y)) for x, y in pairs)


MINUS = complex(-1.0, -0.0)


@pytest.mark.parametrize(
    ("opcode", "operands", "expected"),
    [
        # C99 branch cuts: continuous with the side that the sign of the zero names.
        ("sqrt", (MINUS,), complex(0.0, -1.0)),
        ("sqrt", (complex(-1.0, 0.0),), complex(0.0, 1.0)),
        ("log", (MINUS,), complex(0.0, -np.pi)),
        ("log", (complex(-1.0, 0.0),), complex(0.0, np.pi)),
        ("exponential", (complex(0.0, -0.0),), complex(1.0, -0.0)),
        # XLA: sign(0) is 0 with its signs.
        ("sign", (complex(-0.0, 0.0),), complex(-0.0, 0.0)),
        ("sign", (complex(3.0, -4.0),), complex(0.6, -0.8)),
        # XLA: x^0 = 1^x = 1, 0^(c > 0) = 0, inf to a real power.
        ("power", (0j, 0j), 1 + 0j),
        ("power", (complex(np.nan, 1.0), 0j), 1 + 0j),
        ("power", (1 + 0j, complex(np.inf, np.nan)), 1 + 0j),
        ("power", (0j, 2 + 0j), 0j),
        ("power", (complex(np.inf, 0.0), 2 + 0j), complex(np.inf, 0.0)),
        ("power", (complex(np.inf, 0.0), -2 + 0j), 0j),
        # C99 annex G: infinities survive division.
        ("divide", (complex(np.inf, 1.0), 1 + 1j), complex(np.inf, -np.inf)),
        ("divide", (1 + 1j, complex(np.inf, np.inf)), complex(0.0, 0.0)),
        ("log-plus-one", (complex(1e-20, 0.0),), complex(1e-20, 0.0)),
        ("log-plus-one", (complex(-1.0, 0.0),), complex(-np.inf, 0.0)),
    ],
)
def test_complex_corners(opcode: str, operands: tuple[complex, ...], expected: complex) -> None:
    actual = apply(opcode, *operands)
    assert same(actual, expected), actual


@pytest.mark.xla
def test_xla_loses_the_sign_of_a_zero_imaginary_part() -> None:
    """Its CPU code takes the branch above the cut for -1 - 0i; its evaluator, as we do, the one below."""
    ((ours, theirs),) = both([Operation("sqrt", "c64", (0,))], ["c64"], [np.array([MINUS], np.complex64)])
    assert same(complex(ours[0]), complex(0.0, -1.0))
    assert same(complex(theirs[0]), complex(0.0, 1.0))
