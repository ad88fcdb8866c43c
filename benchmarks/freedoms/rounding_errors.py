"""How far XLA's CPU code and NumPy are off: measured for
`backends/numpy/executions/rounding_errors.py`.

    python -m benchmarks.freedoms.rounding_errors            (needs jaxlib)

Every elementwise opcode computes some hundred thousand numbers from all over its domain, in f16, f32 and f64,
in XLA and in NumPy. The truth is NumPy's function in the next wider type (x87's 80 bits for f64). The table
shows the largest error in units in the last place of the result, and the row that must cover it together with
the rounding of the result. A difference is what counts: where both sides are off in the same way, no verdict
depends on it. The exit status is 1 where a row is too small.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.special

from hlotool.backends.numpy import NumpyBackend
from hlotool.backends.numpy.executions.rounding_errors import ROWS, row_of
from hlotool.backends.registry import get_backend
from hlotool.errors import Unsupported
from hlotool.ir.arrays import Array
from hlotool.parser.reader import parse_module

_COUNT = 200_000
_MODULE = "HloModule m\nENTRY e {{\n{parameters}\n  ROOT r = {kind}[{count}] {opcode}({names})\n}}\n"


@dataclass(frozen=True, slots=True)
class Case:
    """One opcode.

    Attributes:
        truth: the function, in any NumPy float type.
        domain: bounds of its arguments; both bounds positive: drawn by magnitude.
    """

    truth: Callable[..., Any]
    domain: tuple[float, float]


def _logistic(x: Array) -> Any:
    return 1 / (1 + np.exp(-x))


def _erf(x: Array) -> Any:
    """In f64 at most: nothing wider knows it."""
    return scipy.special.erf(x.astype(np.float64))


def _rsqrt(x: Array) -> Any:
    return 1 / np.sqrt(x)


CASES: dict[str, Case] = {
    "acos": Case(np.arccos, (-1, 1)),
    "acosh": Case(np.arccosh, (1.001, 1e6)),
    "add": Case(np.add, (1e-3, 1e3)),
    "asin": Case(np.arcsin, (-1, 1)),
    "asinh": Case(np.arcsinh, (-1e3, 1e3)),
    "atan2": Case(np.arctan2, (-10, 10)),
    "atanh": Case(np.arctanh, (-0.999, 0.999)),
    "cbrt": Case(np.cbrt, (1e-6, 1e6)),
    "cosh": Case(np.cosh, (-20, 20)),
    "cosine": Case(np.cos, (-100, 100)),
    "divide": Case(np.divide, (1e-3, 1e3)),
    "erf": Case(_erf, (-4, 4)),
    "exponential": Case(np.exp, (-80, 80)),
    "exponential-minus-one": Case(np.expm1, (-10, 10)),
    "log": Case(np.log, (1e-6, 1e6)),
    "log-plus-one": Case(np.log1p, (-0.9, 10)),
    "logistic": Case(_logistic, (-30, 30)),
    "multiply": Case(np.multiply, (1e-3, 1e3)),
    "power": Case(np.power, (1e-2, 20)),
    "remainder": Case(np.fmod, (1e-1, 1e2)),
    "rsqrt": Case(_rsqrt, (1e-6, 1e6)),
    "sine": Case(np.sin, (-100, 100)),
    "sinh": Case(np.sinh, (-20, 20)),
    "sqrt": Case(np.sqrt, (1e-6, 1e6)),
    "subtract": Case(np.subtract, (1e-3, 1e3)),
    "tan": Case(np.tan, (-100, 100)),
    "tanh": Case(np.tanh, (-9, 9)),
}

_TYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
_WIDER = {"f16": np.float64, "f32": np.float64, "f64": np.longdouble}
#: Where f16 is another matter: exp(-x) is infinite there (`f16-logistic-overflows`).
_ELSEWHERE = {("logistic", "f16"): (-11.0, 30.0)}
#: What any result of f16 may be off by before it is rounded, whatever its row says.
_OF_F16 = 1.0
_BINARY = frozenset(("add", "atan2", "divide", "multiply", "power", "remainder", "subtract"))


def measured(opcode: str, kind: str, backend: str) -> float:
    """The largest error in units in the last place; NaN where the backend does not know the opcode."""
    case = CASES[opcode]
    arguments = _arguments(opcode, kind, _ELSEWHERE.get((opcode, kind), case.domain))
    names = [f"x{i}" for i in range(len(arguments))]
    parameters = "\n".join(f"  {n} = {kind}[{_COUNT}] parameter({i})" for i, n in enumerate(names))
    text = _MODULE.format(
        parameters=parameters, kind=kind, count=_COUNT, opcode=opcode, names=", ".join(names)
    )
    engine = NumpyBackend() if backend == "numpy" else get_backend(backend)
    try:
        result: Any = engine.compile(parse_module(text)).run(arguments)
    except Unsupported:
        return math.nan
    wide = _WIDER[kind]
    with np.errstate(all="ignore"):
        truth = case.truth(*(a.astype(wide) for a in arguments))
        nearest = truth.astype(result.dtype)
        ulp = np.spacing(np.abs(nearest)).astype(wide)
        error = np.abs(result.astype(wide) - truth) / ulp
    usable = np.isfinite(error) & (np.abs(nearest) > np.finfo(result.dtype).tiny)
    return float(error[usable].max())


def _arguments(opcode: str, kind: str, domain: tuple[float, float]) -> list[Array]:
    rng = np.random.default_rng(0)
    low, high = domain
    count = 2 if opcode in _BINARY else 1
    dtype = _TYPES[kind]
    if low > 0:
        drawn = np.exp(rng.uniform(np.log(low), np.log(high), (count, _COUNT)))
    else:
        drawn = rng.uniform(low, high, (count, _COUNT))
    return [row.astype(dtype) for row in drawn]


def main() -> int:
    """Print the table."""
    short = []
    print(
        f"{'opcode':24}{'XLA f16':>9}{'NumPy f16':>11}{'XLA f32':>9}{'NumPy f32':>11}"
        f"{'XLA f64':>9}{'NumPy f64':>11}{'row + 1/2':>18}  why"
    )
    for opcode in CASES:
        errors = [measured(opcode, kind, backend) for kind in _WIDER for backend in ("xla", "numpy")]
        row = row_of(opcode)
        of_f64 = row.ulps if row.f64 is None else row.f64
        covered = [row.f16 + _OF_F16 + 0.5, row.ulps + 0.5, of_f64 + 0.5]
        is_short = any(error > covered[i // 2] for i, error in enumerate(errors))
        short += [opcode] if is_short else []
        numbers = "".join(f"{e:>{width}.2f}" for e, width in zip(errors, (9, 11) * 3))
        allowed = ", ".join(f"{ulps:.1f}" for ulps in covered)
        print(f"{opcode:24}{numbers}{allowed:>18}  {row.reason}{'  TOO SMALL' if is_short else ''}")
    unmeasured = sorted(set(ROWS) - set(CASES))
    print(f"not measured: {', '.join(unmeasured)}" if unmeasured else "all rows are measured")
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
