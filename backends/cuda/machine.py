"""What runs generated kernels: a GPU, or the CPU that emulates one.

A plan is the numpy backend's: steps over slots that hold values. A machine says what these values are, and
makes the steps that compute them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from hlotool.backends.base import Value
from hlotool.backends.cuda.codegen.partition import KernelProgram
from hlotool.backends.cuda.codegen.precision import Precision
from hlotool.backends.cuda.codegen.schedules import Kernel
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.plan import Plan
from hlotool.backends.numpy.registry import Kernel as Step
from hlotool.backends.numpy.run import Run
from hlotool.ir.module import Instruction


class Loading(Protocol):
    """The part of a machine that belongs to one compiled module.

    Attributes:
        precision: of narrow floats inside of fusions.
    """

    precision: Precision

    @property
    def moved(self) -> int | None:
        """Bytes that the last run moved for what the host executes; None where memory is shared."""

    def build(self, kernels: Iterable[Kernel]) -> None:
        """Compile and load what the steps made so far launch.

        Raises:
            BackendCrashed: the compiler refuses a kernel.
            BackendTimeout: it takes too long.
        """

    def launch(self, instruction: Instruction, program: KernelProgram, positions: Sequence[int]) -> Step:
        """The step that runs a program.

        Args:
            instruction: that it executes.
            program: its kernels.
            positions: for each input of the program the number of the operand that it is.

        Raises:
            NotGenerated: the machine cannot run it.
        """

    def library_call(self, instruction: Instruction, host: Lowering) -> tuple[Step, Sequence[Kernel]] | None:
        """The step that has a library compute it, and the kernels that it launches besides.

        Args:
            instruction: what is to be computed.
            host: makes steps of the numpy backend.

        Returns:
            None where generated kernels are to do it.
        """

    def same_data(self, instruction: Instruction, step: Step) -> Step | None:
        """The step of an operation that moves no data (reshape, bitcast, copy).

        Args:
            instruction: such an operation.
            step: what the numpy backend does.

        Returns:
            None where a kernel has to move data after all.
        """

    def fall_back(self, step: Step) -> Step:
        """The step that has the host execute `step` of the numpy backend."""

    def constant(self, value: Any) -> Any:
        """What a slot holds of a constant."""

    def begin(self) -> None:
        """A run begins: `moved` counts from here."""

    def run(self, plan: Plan, arguments: Sequence[Any], run: Run) -> Value:
        """Execute a plan in this thread; arguments and result are NumPy arrays, and so is what probes see."""


class SharedMemory:
    """What a machine does whose values are the numpy backend's: nothing moves."""

    moved: int | None = None

    def same_data(self, instruction: Instruction, step: Step) -> Step | None:
        return step

    def fall_back(self, step: Step) -> Step:
        return step

    def constant(self, value: Any) -> Any:
        return value

    def begin(self) -> None:
        pass


class Machine(Protocol):
    """Where kernels run."""

    def loading(self) -> Loading:
        """The part of it that belongs to one module."""
