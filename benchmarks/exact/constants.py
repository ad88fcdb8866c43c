"""Drawn constants, folded as a compiler folds them, by which the thresholds of constants are calibrated.

What must be found: products that were rounded at every step. What must not: the same three ulps off, and
constants that have nothing to do with one another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

import hlotool
from benchmarks.exact.legal import Compilations
from hlotool.backends.field import words as w
from hlotool.backends.field.constants import Constants, constant_values
from hlotool.backends.field.snapping import Rule
from hlotool.ir.builder import Builder, array
from hlotool.ir.module import Instruction, Module
from hlotool.parser.reader import parse_module
from hlotool.runs.exact.result import Relation
from hlotool.runs.exact.task import compare_modules

#: Constants of a drawn program, and those of one that has many.
_FEW, _MANY = 10, 40
#: Draws for each count of factors, and programs that are compared as a whole.
_DRAWS, _PROGRAMS = 60, 8
_ULPS = 3
_DIMS = (4, 6)
#: Functions that compilers fold, and constants at which.
_FUNCTIONS: Final = (
    "exponential",
    "log",
    "erf",
    "tanh",
    "logistic",
    "sine",
    "cosine",
    "cbrt",
    "log-plus-one",
)
_AT: Final = 24


@dataclass(frozen=True, slots=True)
class Chain:
    """A product that a compiler made of constants of a program.

    Attributes:
        written: all constants of the program.
        factors: numbers of those in the product, and whether each divides.
        made: the product, rounded at every step.
    """

    written: npt.NDArray[np.float32]
    factors: tuple[tuple[int, bool], ...]
    made: np.float32

    @property
    def units(self) -> float:
        """By how many units `made` is off."""
        exact = 1.0
        for number, divides in self.factors:
            value = float(self.written[number])
            exact = exact / value if divides else exact * value
        return abs(float(self.made) / exact - 1) * 2.0**24


def chain(count: int, seed: int, constants: int = _FEW) -> Chain:
    """A product of `count` factors; reciprocals are rounded for themselves."""
    rng = np.random.default_rng((seed, count, constants))
    written = np.exp(rng.uniform(-3, 3, constants)).astype(np.float32)
    numbers = rng.choice(constants, count, replace=False)
    factors = tuple((int(n), bool(d)) for n, d in zip(numbers, rng.random(count) < 0.5))
    made = np.float32(1)
    for number, divides in factors:
        made = made * (np.float32(1) / written[number] if divides else written[number])
    return Chain(written, factors, made)


def relations() -> str:
    """How many products are explained, how many that are 3 ulps off, and how many unrelated constants."""
    chains = [chain(count, seed) for count in (2, 3, 4) for seed in range(_DRAWS)]
    right = sum(_is_explained(one, one.made) for one in chains)
    off = sum(_is_explained(one, _moved(one.made)) for one in chains)
    strange = [chain(2, _DRAWS + seed, _MANY) for seed in range(_DRAWS)]
    accidents = sum(_rule(one.written[1:], one.written[0]) is Rule.RELATION for one in strange)
    return f"{right} of {len(chains)}, {off}, {accidents} of {len(strange)}"


def _moved(value: np.float32) -> np.float32:
    return np.float32(value + _ULPS * np.spacing(value))


def _is_explained(one: Chain, made: np.float32) -> bool:
    """Whether a constant is read as the product that it is."""
    constants = Constants(_program(one.written.tolist()), _program([float(made)]))
    expected = w.ONE
    for number, divides in one.factors:
        word = constants.reading(float(one.written[number])).word
        expected = w.divide(expected, word) if divides else w.multiply(expected, word)
    return bool(constants.reading(float(made)).word == expected)


def _rule(written: npt.NDArray[np.float32], value: np.float32) -> Rule:
    return Constants(_program(written.tolist()), _program([float(value)])).reading(float(value)).rule


def _program(values: list[float], function: str = "") -> Module:
    """f(x · all constants); the constants are summands where there is no function."""
    builder = Builder("constants")
    root = builder.parameter(0, array("f32", *_DIMS), "x")
    for value in values:
        constant = builder.op("broadcast", builder.constant(value, "f32"), shape=root.shape, dimensions=())
        root = builder.op("multiply" if function else "add", root, constant)
    return builder.build_module(builder.op(function, root) if function else root)


def fits() -> str:
    """Whole programs whose constants no relation explains: how many are in doubt, and how many 3 ulps off."""
    found = {0: 0, _ULPS: 0}
    for seed in range(_PROGRAMS):
        one = chain(6, seed)
        factors = [float(one.written[n]) for n, _ in one.factors]
        made = np.float32(1)
        for factor in factors:
            made = made * np.float32(factor)
        function = ("erf", "exponential", "tanh", "sine")[seed % 4]
        for ulps in found:
            other = float(made + ulps * np.spacing(made))
            proved = compare_modules(_program(factors, function), _program([other], function))
            found[ulps] += proved.relation is Relation.REFUSED
    return f"{found[0]} of {_PROGRAMS}, {found[_ULPS]}"


def functions(folder: Path) -> Callable[[], str]:
    """What counts functions of constants that XLA folds to what NumPy computes, about."""
    compared = list(_folded(folder))

    def counted() -> str:
        found = sum(
            w.equal(constants.reading(folded).word, constants.reading(ours).word)
            for constants, folded, ours in compared
        )
        return f"{int(found)} of {len(compared)}"

    return counted


def _folded(folder: Path) -> Iterator[tuple[Constants, float, float]]:
    rng = np.random.default_rng(0)
    for function in _FUNCTIONS:
        values = rng.uniform(0.05, 3, _AT).astype(np.float32)
        module = _tuple_of(function, values.tolist())
        stages = Compilations(folder / "stages").stages(module, "xla", "")
        if isinstance(stages, str):
            raise RuntimeError(f"{function}: {stages}")
        yield from _compared(module, parse_module(stages[-1][1], function))


def _tuple_of(function: str, values: list[float]) -> Module:
    """x · f(c) for every constant."""
    builder = Builder("folded")
    x = builder.parameter(0, array("f32"), "x")
    results: list[Instruction] = []
    for value in values:
        results.append(builder.op("multiply", x, builder.op(function, builder.constant(value, "f32"))))
    return builder.build_module(builder.op("tuple", *results))


def _compared(module: Module, folded: Module) -> Iterator[tuple[Constants, float, float]]:
    own = {abs(v) for v in constant_values(folded)} - {abs(v) for v in constant_values(module)}
    ours = hlotool.run(module, [np.float32(1)])
    constants = Constants(module, folded)
    constants.folded(np.array(ours))
    for value in sorted(own):
        nearest = min((float(v) for v in ours), key=lambda v: abs(abs(v) - value))
        yield constants, value, abs(nearest)


def rooted(roots: int) -> tuple[Module, Module]:
    """√s √s, and s: the same at points at which all `roots` elements of s are squares."""
    dims = array("f32", roots)

    def program(is_root: bool) -> Module:
        builder = Builder("roots")
        x, y = (builder.parameter(n, dims, name) for n, name in enumerate("xy"))
        s = builder.op("add", builder.op("multiply", x, x), builder.op("multiply", y, y))
        q = builder.op("sqrt", s)
        return builder.build_module(builder.op("multiply", q, q) if is_root else s)

    return program(False), program(True)


def roots() -> str:
    """Programs of 2 to 8 roots that are equal, and of 32 that are."""
    few = [compare_modules(*rooted(n), seed=seed).relation for n in (2, 4, 6, 7, 8) for seed in range(3)]
    many = [compare_modules(*rooted(32), seed=seed).relation for seed in range(3)]
    return f"{few.count(Relation.EQUAL)} of {len(few)}, {many.count(Relation.EQUAL)} of {len(many)}"
