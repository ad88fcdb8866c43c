"""Sums whose terms cancel: what is left of them in f64, and executions in which nothing else is left.

Where terms of 0.03 add up to 0, a sum in f32 is 1e-9: the rounding of its terms, and no digit of it means
anything. Stochastic arithmetic calls it a computed zero (Vignes, "Discrete stochastic arithmetic for
validating results of numerical software", 2004). `FindingBackend` runs a program in f64 and notes every
element of a sum that is tiny beside its terms. `SettledBackend` runs it in its declared types, as any legal
execution, but with the noted value in the place of each such element, as long as that is no further off than
rounding of terms that are sound. What such executions still differ in has other causes.

A sum of terms that are no longer sound themselves stays as it is: a program that amplifies rounding step by
step gets no remedy from its sums.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hlotool.backends.numpy.executions.noise import Member, Noise
from hlotool.backends.numpy.executions.policy import KernelPolicy, Policy
from hlotool.backends.numpy.executions.varied import VariedBackend
from hlotool.backends.numpy.plan import Run
from hlotool.backends.numpy.registry import Calling, Executed, Kernel, Reading
from hlotool.errors import Unsupported
from hlotool.facts.float_order import epsilon
from hlotool.facts.retyping import Retyped
from hlotool.facts.scalar_form import monoid_opcodes, scalar_form
from hlotool.ir.arrays import Array
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape, ElementType

#: Elements of all sums together that are kept.
_MOST: Final = 1 << 22
#: The share of its terms up to which a sum in f64 is 0, and the same in ulps of its declared type: a program
#: in f64 has no more digits to tell with.
_ZERO: Final = 1e-12
_ZERO_ULPS: Final = 64

#: One visit of a device to an instruction finds what an earlier execution found there.
_Place: TypeAlias = tuple[Instruction, int]


@dataclass(frozen=True, slots=True, eq=False)
class Rest:
    """What is left of one sum, where its terms cancel.

    Attributes:
        places: of the elements, in the flat result.
        values: in f64 (or c128); exact zeros where f64 cannot tell them from zero.
        terms: the sum of the magnitudes of the terms, of each.
    """

    places: npt.NDArray[np.intp]
    values: Array
    terms: npt.NDArray[np.float64]


@dataclass(slots=True, eq=False)
class Noted:
    """How far the sums of one instruction are off where their terms cancel.

    Attributes:
        elements: how often one was off by as much as it is itself, or more.
        noise: how far the worst of them is off.
        terms: what cancels there: the sum of the magnitudes.
        value: what is left there in f64.
    """

    elements: int = 0
    noise: float = 0.0
    terms: float = 0.0
    value: float = 0.0

    def add(self, rest: Rest, off: Array) -> None:
        """How far the elements of one visit are off."""
        is_noise = (off > 0) & (off >= np.abs(rest.values))
        self.elements += int(is_noise.sum())
        worst = int(np.argmax(np.where(is_noise, off, 0)))
        if is_noise[worst] and off[worst] > self.noise:
            self.noise, self.terms = float(off[worst]), float(rest.terms[worst])
            self.value = float(np.abs(rest.values[worst]))


class Rests:
    """What is left of all sums of one execution in f64, by instruction and device, in the order of visits."""

    def __init__(self) -> None:
        self._found: dict[_Place, list[Rest]] = defaultdict(list)
        self._count = 0

    def add(self, place: _Place, rest: Rest) -> None:
        """Note one visit.

        Raises:
            Unsupported: more elements than are kept.
        """
        self._count += rest.places.size
        if self._count > _MOST:
            raise Unsupported(f"more than {_MOST} elements are what cancellations left")
        self._found[place].append(rest)

    def of(self, place: _Place, visit: int) -> Rest | None:
        """That of one visit; None where there was none, or nothing cancelled."""
        found = self._found.get(place, [])
        return found[visit] if visit < len(found) and found[visit].places.size else None


class FindingBackend(VariedBackend):
    """Executes in f64 and notes what cancellations left; what is 0 there, but for rounding, becomes 0.

    Args:
        rests: where it is noted.
    """

    def __init__(self, rests: Rests) -> None:
        super().__init__(Policy(wide=True), keeps_wide=True)
        self._rests = rests

    def kernels(self, program: Retyped, module: Module) -> KernelPolicy:
        """See `VariedBackend`."""
        return _Finding(self._rests, self.noise, program, module)


class SettledBackend(VariedBackend):
    """Executes with those sums as they are in f64.

    Args:
        rests: what an execution in f64 found.
        product_unit: see `Policy`.

    Attributes:
        released: instructions whose sums keep their errors.
        noted: how far sums were off in all executions so far that were noted.
        is_noting: executions are.
    """

    def __init__(self, rests: Rests, product_unit: float = 0.0) -> None:
        super().__init__(Policy(varied=True, product_unit=product_unit))
        self.noise = _Counting(Member())
        self.released: frozenset[Instruction] = frozenset()
        self.noted: dict[Instruction, Noted] = {}
        self.is_noting = True
        self._rests = rests
        self._unit = product_unit

    @property
    def _visits(self) -> _Counting:
        assert isinstance(self.noise, _Counting)
        return self.noise

    def kernels(self, program: Retyped, module: Module) -> KernelPolicy:
        """See `VariedBackend`."""
        return _Settling(self, program, module)

    def settled(self, origin: Instruction, device: int, result: Any) -> Any:
        """`result` of one visit with what is left in f64 in place of what rounding left."""
        place = origin, device
        rest = self._rests.of(place, self._visits.next(place))
        size = np.size(result)
        if rest is None or rest.places[-1] >= size:
            return result
        array = np.array(result)
        flat = array.reshape(-1)
        own = flat[rest.places]
        values = rest.values.astype(own.dtype)
        limit = cancelled(origin.array_shape.element_type, self._unit)
        with np.errstate(all="ignore"):
            off = np.abs(own.astype(rest.values.dtype) - rest.values)
            is_sound = off <= limit * rest.terms
        if self.is_noting:
            self.noted.setdefault(origin, Noted()).add(rest, np.where(is_sound, off, 0))
        if origin in self.released:
            return result
        flat[rest.places] = np.where(is_sound, values, own)
        return array[()]


def cancelled(element_type: ElementType, product_unit: float = 0.0) -> float:
    """The share of its terms below which a sum has lost half of its digits, or more, at once."""
    return min(0.25, sqrt(max(epsilon(element_type), product_unit)))


class _Counting(Noise):
    """Noise that counts visits, from the start of every execution on."""

    def __init__(self, member: Member) -> None:
        super().__init__(member)
        self._visits: dict[_Place, int] = {}

    def restart(self) -> None:
        """See `Noise`."""
        super().restart()
        self._visits = {}

    def next(self, place: _Place) -> int:
        """The number of this visit."""
        number = self._visits.get(place, 0)
        self._visits[place] = number + 1
        return number


class _Finding(KernelPolicy):
    def __init__(self, rests: Rests, noise: Noise, program: Retyped, module: Module) -> None:
        super().__init__(Policy(wide=True), noise, program, module)
        self._rests = rests

    def kernel(self, instruction: Instruction, kernel: Kernel) -> Kernel:
        """`kernel`, and a note of what it leaves of its terms."""
        origin = self._origins.get(instruction)
        if origin is None or isinstance(kernel, Reading) or (own := summed(origin)) is None:
            return kernel
        if instruction.shape == origin.shape and origin.element_type.real_part is not ElementType.F64:
            return kernel
        run_once = _calling(kernel)

        def noting(values: list[Any], run: Run) -> Any:
            magnitudes = [_magnitude(v) if number in own else v for number, v in enumerate(values)]
            result = run_once(values, run)
            if origin.opcode in ("add", "subtract"):
                terms = magnitudes[0] + magnitudes[1]
            else:
                terms = run_once(magnitudes, run)
            return self._noted((origin, _device(run)), np.asarray(result), np.asarray(terms).real)[()]

        return Calling(noting)

    def _noted(self, place: _Place, result: Array, terms: Array) -> Array:
        kind = place[0].array_shape.element_type
        flat, sizes = result.reshape(-1), terms.reshape(-1)
        if flat.size != sizes.size:
            self._rests.add(place, Rest(np.empty(0, np.intp), flat[:0], sizes[:0]))
            return result
        with np.errstate(all="ignore"):
            small = np.abs(flat) <= cancelled(kind) * sizes
            places = np.flatnonzero(small & (sizes > 0) & np.isfinite(sizes))
            left = flat[places]
            is_zero = np.abs(left) <= min(_ZERO, _ZERO_ULPS * epsilon(kind)) * sizes[places]
        left = np.where(is_zero, 0, left)
        self._rests.add(place, Rest(places, left, sizes[places].astype(np.float64)))
        if not is_zero.any():
            return result
        changed = flat.copy()
        changed[places] = left
        return changed.reshape(result.shape)


class _Settling(KernelPolicy):
    def __init__(self, backend: SettledBackend, program: Retyped, module: Module) -> None:
        super().__init__(backend._policy, backend.noise, program, module)
        self._backend = backend

    def kernel(self, instruction: Instruction, kernel: Kernel) -> Kernel:
        """`kernel` as in any legal execution, and its sums settled."""
        varied = super().kernel(instruction, kernel)
        origin = self._origins.get(instruction)
        if origin is None or isinstance(varied, Reading) or summed(origin) is None:
            return varied
        run_once = _calling(varied)
        return Calling(lambda values, run: self._backend.settled(origin, _device(run), run_once(values, run)))


def summed(instruction: Instruction) -> Sequence[int] | None:
    """The operands that are terms of sums, or factors of such terms; None for what is no plain sum of floats.

    What factorises, solves and transforms adds up inside, and so do calls of libraries: no plain sums.
    """
    shape = instruction.shape
    if not isinstance(shape, ArrayShape) or not shape.element_type.is_inexact:
        return None
    match instruction.opcode:
        case "add" | "subtract" | "dot" | "ragged-dot" | "convolution":
            return range(2)
        case "reduce" | "reduce-window" | "all-reduce" | "reduce-scatter" if _adds(instruction, "to_apply"):
            return range(len(instruction.operands))
        case "scatter" if _adds(instruction, "to_apply"):
            return (0, 2)
        case "select-and-scatter" if _adds(instruction, "scatter"):
            return (1, 2)
    return None


def _adds(instruction: Instruction, name: str) -> bool:
    form = scalar_form(instruction.computation(name))
    return form is not None and monoid_opcodes(form) == ["add"]


def _magnitude(value: Any) -> Any:
    """In the type of `value`, complex ones included: kernels expect it."""
    return np.abs(value).astype(np.asarray(value).dtype)[()]


def _calling(kernel: Executed) -> Callable[[list[Any], Run], Any]:
    if isinstance(kernel, Calling):
        return kernel.function
    return lambda values, run: kernel(*values)


def _device(run: Run) -> int:
    return 0 if run.device is None else run.device.number
