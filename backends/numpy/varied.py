"""The numpy backend under a policy: `numpy:wide`, `numpy:perturbed=SEED`, `numpy:flush`, `numpy:excess`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlotool.backends.base import DevicesExecutable as DevicesProtocol
from hlotool.backends.base import Executable, Probe, Value
from hlotool.backends.numpy.changes import flushed
from hlotool.backends.numpy.executables import DevicesExecutable, NumpyExecutable, check_arguments
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.noise import Member, Noise
from hlotool.backends.numpy.policy import KernelPolicy, Policy
from hlotool.backends.numpy.region_programs import LogicalExecutable
from hlotool.backends.spec import Options
from hlotool.errors import UsageError
from hlotool.ir.devices import DeviceGrid
from hlotool.ir.module import Instruction, Module
from hlotool.ir.partitioning import is_one_program_with_regions
from hlotool.ir.types import ArrayShape, ElementType, Shape, TupleShape
from hlotool.numerics.retyping import Retyped, retyped_value
from hlotool.numerics.ulp import flush_threshold


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
