"""Programs in f64, with constants that can be moved and functions that saturate nowhere.

erf(40) is 1 and exp(-800) is 0, whatever rounding did to the 40: where a function saturates no value shows
what it was made of. Here functions without laws are others, which never stop growing; exp and log have
another base, in which the numbers at hand are moderate. What holds for the one by its laws holds for the
other: exp(a + b) = exp(a) exp(b), erf(-x) = -erf(x). Two programs that return the same here need not be the
same function, but those that are return the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from hlotool.backends.numpy.noise import Member, Noise
from hlotool.backends.numpy.policy import KernelPolicy, Policy
from hlotool.backends.numpy.registry import Calling, Kernel, Reading
from hlotool.backends.numpy.varied import VariedBackend
from hlotool.ir.dtypes import Array
from hlotool.ir.literal import Literal
from hlotool.ir.module import Instruction, Module
from hlotool.numerics.retyping import Retyped

#: Larger exponents are those of masks: exp may be 0 there.
_MASK: Final = 1e7
#: Bases that are tried, as powers of ten, the usual one first.
_RATES: Final = (0, *(sign * power for power in range(1, 7) for sign in (-1, 1)))
#: The largest exponents that show most: neither is exp a straight line up to there, nor does it saturate.
_LEAST, _MOST = 0.1, 6.0


@dataclass(slots=True)
class Base:
    """That of exp and log.

    Attributes:
        rate: exp(x) is e^(rate x).
        largest: exponent of e so far, but for masks; -1 as long as there was none.
    """

    rate: float = 1.0
    largest: float = -1.0

    def choose(self, run: Callable[[], object]) -> None:
        """Take the first base in which the exponents of a run are moderate, or nearly so.

        Larger bases are no remedy everywhere, nor are smaller ones: in exp(log(x)^2) it is the other way.
        """
        found: dict[float, float] = {}
        for power in _RATES:
            self.rate, self.largest = 10.0**power, -1.0
            run()
            largest = self.largest
            if largest < 0 or _LEAST <= largest <= _MOST:
                return
            found[self.rate] = max(largest / _MOST, _LEAST / largest) if largest else np.inf
        self.rate = min(found, key=lambda rate: found[rate])

    def exponent(self, x: Array) -> Array:
        """What e is raised to."""
        exponents = np.asarray(x * self.rate)
        sizes = np.abs(exponents)
        self.largest = float(sizes.max(initial=max(self.largest, 0.0), where=sizes < _MASK))
        return exponents


class MovedBackend(VariedBackend):
    """Executes HLO in f64, with other constants.

    Args:
        constants: positive values of small constants, and what takes their place.
    """

    def __init__(self, constants: Mapping[float, float] | None = None) -> None:
        policy = _WithConstants(wide=True, constants=constants or {})
        super().__init__(policy, Member(), name="numpy:moved", keeps_wide=True)


class SmoothBackend(MovedBackend):
    """The same, with functions that saturate nowhere.

    Args:
        base: of exp and log, which programs share that are compared; it may be changed between runs.
        constants: see `MovedBackend`.
    """

    def __init__(self, base: Base, constants: Mapping[float, float] | None = None) -> None:
        super().__init__(constants)
        self._base = base

    def kernels(self, program: Retyped, module: Module) -> KernelPolicy:
        """See `VariedBackend`."""
        return _Kernels(self._base, program, module)


class _Kernels(KernelPolicy):
    def __init__(self, base: Base, program: Retyped, module: Module) -> None:
        super().__init__(Policy(wide=True), Noise(Member()), program, module)
        self._base = base
        self._folded = _of_constants(program.module)

    def kernel(self, instruction: Instruction, kernel: Kernel) -> Kernel:
        """Another function in the place of `kernel`, but where a compiler computes it."""
        function = _FUNCTIONS.get(instruction.opcode)
        if function is None or isinstance(kernel, Calling | Reading) or instruction in self._folded:
            return kernel
        base = self._base

        def smooth(x: Array) -> Any:
            with np.errstate(all="ignore"):
                return function(base, np.asarray(x))

        return smooth


def _of_constants(module: Module) -> frozenset[Instruction]:
    """What is computed from constants alone."""
    found: set[Instruction] = set()
    for computation in module.computations:
        for instruction in computation.instructions:
            if instruction.opcode == "constant" or (
                instruction.operands and all(operand in found for operand in instruction.operands)
            ):
                found.add(instruction)
    return frozenset(found)


def _even(base: Base, x: Array) -> Any:
    return 1 + np.log1p(x * x)


def _odd(base: Base, x: Array) -> Any:
    return x / np.sqrt(1 + np.abs(x))


#: Opcode → function of an array. No two are the same.
_FUNCTIONS: Final[Mapping[str, Callable[[Base, Array], Any]]] = {
    "cosine": _even,
    "erf": lambda base, x: np.arcsinh(x),
    "exponential": lambda base, x: np.exp(base.exponent(x)),
    "exponential-minus-one": lambda base, x: np.expm1(base.exponent(x)),
    "log": lambda base, x: np.log(x) / base.rate,
    "log-plus-one": lambda base, x: np.log1p(x) / base.rate,
    "logistic": lambda base, x: 1 / (1 + np.exp(-base.exponent(x))),
    "sine": _odd,
    "tan": lambda base, x: _odd(base, x) / _even(base, x),
    "tanh": lambda base, x: np.tanh(base.exponent(x)),
}


@dataclass(frozen=True, slots=True)
class _WithConstants(Policy):
    """A program in f64 whose small constants of some sizes are others.

    Attributes:
        constants: what takes the place of each size.
    """

    constants: Mapping[float, float] = field(default_factory=dict)

    def program(self, module: Module) -> Retyped:
        """See `Policy`."""
        retyped = Policy.program(self, module)
        for instruction in retyped.module.instructions() if self.constants else ():
            if instruction.literal is not None:
                instruction.literal = self._changed(instruction.literal)
        return retyped

    def _changed(self, literal: Literal) -> Literal:
        if isinstance(literal.value, tuple):
            return replace(literal, value=tuple(map(self._changed, literal.value)))
        if literal.value is None or literal.value.dtype.kind not in "fc":
            return literal
        array = literal.value.copy()
        parts = array.reshape(-1).view(array.real.dtype)
        for size, other in self.constants.items():
            for sign in (1, -1):
                parts[parts == sign * size] = sign * other
        return replace(literal, value=array)
