"""What a backend is, and the values that flow in and out of it.

Backends are compilers: `compile(module)` does all the work that does not depend on the data, the executable
then runs as often as wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

import numpy as np

from hlotool.ir.arrays import Array
from hlotool.ir.devices import DeviceGrid
from hlotool.ir.module import Instruction, Module


class Token:
    """The value of a `token[]`: orders side effects, holds nothing."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "token"


TOKEN: Final = Token()

#: An array (or NumPy scalar) per array shape, a tuple per tuple shape, TOKEN per token. A dynamic array is
#: held at its actual size, which is at most the bound in its shape.
Value: TypeAlias = "Array | np.generic[Any] | tuple[Value, ...] | Token"


class Probe(Protocol):
    """Sees every instruction's value as it is computed; must not change it."""

    def __call__(self, instruction: Instruction, value: Value) -> None:
        """Look at `value`, the result of `instruction`."""


#: Looks at a result.
ResultReader: TypeAlias = Callable[[Value], None]
#: Looks at operand values just before an instruction runs; returns what wants to see the result, if any.
#: It must not change them. What it keeps cannot be updated in place.
OperandReader: TypeAlias = "Callable[[Sequence[Value]], ResultReader | None]"


class ReadingProbe:
    """A probe of the numpy backend that is shown what some instructions read, and nothing else.

    Attributes:
        readers: what looks at the operands of each instruction of interest; they may drop out of it during
            the execution.
    """

    def __init__(self) -> None:
        self.readers: dict[Instruction, OperandReader] = {}

    def __call__(self, instruction: Instruction, value: Value) -> None:
        """See `Probe`: results alone tell it nothing."""


class Executable(Protocol):
    """A compiled module."""

    def run(self, arguments: Sequence[Value], probe: Probe | None = None) -> Value:
        """Execute once.

        Args:
            arguments: one value per entry parameter; they are not modified.
            probe: called for every instruction executed.

        Raises:
            InputDataError: an argument does not fit its parameter.
            Unsupported: data-dependent limits of the backend.
            BackendFailed: the execution died.
        """


class DevicesExecutable(Protocol):
    """A module compiled for several devices."""

    def run_devices(
        self, arguments: Sequence[Sequence[Value]], probes: Sequence[Probe | None] | None = None
    ) -> list[Value]:
        """Execute once on all devices; device = replica * partitions + partition.

        Args:
            arguments: per device, one value per entry parameter; they are not modified.
            probes: one per device, called for every instruction executed there.

        Returns:
            the result of each device.

        Raises:
            InputDataError: an argument does not fit its parameter.
            BackendDeadlock: devices wait for each other for ever.
            Unsupported: data-dependent limits of the backend.
            BackendFailed: the execution died.
        """


def notes_of(executable: object) -> tuple[str, ...]:
    """What a backend says of how it runs a program: the attribute `notes`, where there is one."""
    return tuple(getattr(executable, "notes", ()))


def target_of(backend: object) -> str:
    """What a backend compiles for, where that rounds as no other processor does: its attribute `target`."""
    found: str = getattr(backend, "target", "")
    return found


class Backend(Protocol):
    """A way to execute HLO."""

    @property
    def name(self) -> str:
        """The name that the command line takes, with its options, such as `numpy:wide`."""

    @property
    def version(self) -> str:
        """What reports cite, such as `numpy 2.4.6`."""

    def compile(self, module: Module) -> Executable:
        """Prepare `module`.

        Raises:
            Unsupported: naming the first instruction that the backend cannot execute.
        """


@runtime_checkable
class SlowToStart(Protocol):
    """A backend that can begin to set itself up while its user still does something else."""

    def warm_up(self) -> None:
        """Begin to set up in the background, and return at once."""


@runtime_checkable
class CompilingBackend(Backend, Protocol):
    """A backend whose compiler makes HLO: that can be looked at as any program can."""

    @property
    def runs(self) -> str | Backend:
        """The backend that executes what it makes, or its name."""

    def made_of(self, module: Module) -> Module | None:
        """The program that the compiler ends with; None where it takes and returns other values.

        Raises:
            Unsupported: the compiler refuses `module`.
            BackendFailed: it died of it.
        """


@runtime_checkable
class DumpingBackend(Protocol):
    """A backend that can have its compiler write the program after each pass."""

    def dumping(self, folder: Path, passes: str = ".*") -> Backend:
        """The same backend, which leaves a dump in `folder`; it has the passes whose names match."""


@runtime_checkable
class DevicesBackend(Backend, Protocol):
    """A backend that executes programs for several devices, too."""

    def compile_devices(self, module: Module, grid: DeviceGrid) -> DevicesExecutable:
        """Prepare `module` for all devices of `grid`.

        Raises:
            Unsupported: naming the first instruction that the backend cannot execute.
            VerificationError: a collective whose groups do not fit the devices.
        """
