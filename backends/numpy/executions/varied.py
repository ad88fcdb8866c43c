"""The numpy backend under a policy: `numpy:wide`, `numpy:perturbed=SEED`, `numpy:flush`, `numpy:excess`,
smooth in f64.

A smooth program has constants that can be moved and functions that saturate nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from hlotool.backends.base import DevicesExecutable as DevicesProtocol
from hlotool.backends.base import Executable, Probe, Value
from hlotool.backends.numpy.executables import (
    DevicesExecutable,
    LogicalExecutable,
    NumpyExecutable,
    check_arguments,
)
from hlotool.backends.numpy.executions.changes import flushed
from hlotool.backends.numpy.executions.noise import Member, Noise
from hlotool.backends.numpy.executions.policy import KernelPolicy, Policy
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.registry import Calling, Kernel, Reading
from hlotool.backends.registry import Options
from hlotool.errors import UsageError
from hlotool.facts.float_order import flush_threshold
from hlotool.facts.retyping import Retyped, retyped_value
from hlotool.ir.arrays import Array, Literal
from hlotool.ir.devices import DeviceGrid
from hlotool.ir.module import Instruction, Module
from hlotool.ir.partitioning import is_one_program_with_regions
from hlotool.ir.types import ArrayShape, ElementType, Shape, TupleShape


class VariedBackend:
    """Executes HLO as another legal execution would, or in other types.

    Args:
        policy: what is unlike the default.
        member: which execution of many; `noise.member` chooses another one for later runs.
        keeps_wide: results of a wide execution stay in f64.

    Attributes:
        name: as on the command line.
        noise: shared by all executables of this backend.
    """

    def __init__(
        self, policy: Policy, member: Member | None = None, *, name: str = "numpy", keeps_wide: bool = False
    ) -> None:
        self.name = name
        self.noise = Noise(member or Member())
        self._policy = policy
        self._keeps_wide = keeps_wide

    @property
    def version(self) -> str:
        """`numpy:wide (numpy X.Y.Z)`."""
        return f"{self.name} (numpy {np.__version__})"

    def compile(self, module: Module) -> Executable:
        """See `Backend.compile`."""
        program, policy = self._prepare(module)
        changed = program.module
        inner: Executable
        if is_one_program_with_regions(module):
            inner = LogicalExecutable(changed, policy)
        else:
            inner = NumpyExecutable(changed, Lowering(changed, policy=policy).plan(changed.entry))
        return _Varied(inner, _Translation(module, program, self.noise, self._keeps_wide))

    def compile_devices(self, module: Module, grid: DeviceGrid) -> DevicesProtocol:
        """See `DevicesBackend.compile_devices`."""
        program, policy = self._prepare(module)
        changed = program.module
        plan = Lowering(changed, grid, policy).plan(changed.entry)
        inner = DevicesExecutable(changed, plan, grid)
        return _VariedDevices(inner, _Translation(module, program, self.noise, self._keeps_wide))

    def _prepare(self, module: Module) -> tuple[Retyped, KernelPolicy | None]:
        """What is executed, and how its kernels are wrapped."""
        program = self._policy.program(module)
        return program, self.kernels(program, module)

    def kernels(self, program: Retyped, module: Module) -> KernelPolicy | None:
        """How kernels of `program`, which stands for `module`, are wrapped; None where only types change."""
        if self._policy.wide and not self._policy.varied:
            return None
        return KernelPolicy(self._policy, self.noise, program, module)


@dataclass(frozen=True, slots=True)
class _Translation:
    """Arguments, results and probes between a module and the program that stands for it."""

    module: Module
    program: Retyped
    noise: Noise
    keeps_wide: bool

    def arguments(self, values: Sequence[Value]) -> list[Any]:
        """The arguments in the program's types; denormal numbers are zero for code that takes them so."""
        checked = check_arguments(self.module, values)
        if self.noise.member.flushes:
            checked = [_flushed(v, p.shape) for v, p in zip(checked, self.module.entry.parameters)]
        parameters = self.program.module.entry.parameters
        return [retyped_value(value, p.shape) for value, p in zip(checked, parameters)]

    def result(self, value: Value) -> Any:
        """The result in its declared types, unless they stay wide."""
        return value if self.keeps_wide else retyped_value(value, self.module.entry.root.shape)

    def probe(self, probe: Probe | None) -> Probe | None:
        """One that shows `probe` the instructions of the module with the program's values."""
        if probe is None:
            return None
        origins = self.program.origins

        def translated(instruction: Instruction, value: Value) -> None:
            if instruction in origins:
                probe(origins[instruction], value)

        return translated


def _flushed(value: Any, shape: Shape) -> Any:
    if isinstance(shape, TupleShape):
        return tuple(_flushed(part, element) for part, element in zip(value, shape.elements))
    if not isinstance(shape, ArrayShape):
        return value
    kind = shape.element_type
    if kind is ElementType.BF16:
        return flushed(value.astype(np.float32), flush_threshold(kind)).astype(value.dtype)
    is_flushed = kind.real_part in (ElementType.F32, ElementType.F64)
    return flushed(value, flush_threshold(kind)) if is_flushed else value


@dataclass(frozen=True, slots=True)
class _Varied:
    """An executable for one device."""

    inner: Executable
    translation: _Translation

    def run(self, arguments: Sequence[Value], probe: Probe | None = None) -> Value:
        """See `Executable.run`."""
        self.translation.noise.restart()
        result = self.inner.run(self.translation.arguments(arguments), self.translation.probe(probe))
        final: Value = self.translation.result(result)
        return final


@dataclass(frozen=True, slots=True)
class _VariedDevices:
    """An executable for several devices."""

    inner: DevicesExecutable
    translation: _Translation

    def run_devices(
        self, arguments: Sequence[Sequence[Value]], probes: Sequence[Probe | None] | None = None
    ) -> list[Value]:
        """See `DevicesExecutable.run_devices`."""
        translation = self.translation
        translation.noise.restart()
        shown = None if probes is None else [translation.probe(probe) for probe in probes]
        results = self.inner.run_devices([translation.arguments(own) for own in arguments], shown)
        return [translation.result(result) for result in results]


def variant(options: Options) -> VariedBackend:
    """The backend that one option of the spec names.

    Raises:
        UsageError: several options, or a seed that is no number.
    """
    if len(options) > 1:
        raise UsageError(f"backend numpy takes one option, got {', '.join(options)}")
    ((option, value),) = options.items()
    match option:
        case "wide":
            return VariedBackend(Policy(wide=True), name="numpy:wide")
        case "flush":
            return VariedBackend(Policy(), Member(flushes=True), name="numpy:flush")
        case "excess":
            return VariedBackend(Policy(fused_excess=True), name="numpy:excess")
    if not value.isdecimal():
        raise UsageError(f"backend numpy: the seed of {option}={value} is no number")
    return VariedBackend(Policy(varied=True), Member(int(value)), name=f"numpy:{option}={value}")


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
