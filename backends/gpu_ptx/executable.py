"""A program that a GPU's compiler made, executed without the GPU."""

from __future__ import annotations

from collections.abc import Sequence

from hlotool.backends.base import Probe, Value
from hlotool.backends.gpu_ptx.device import Device
from hlotool.backends.gpu_ptx.dump import GpuDump
from hlotool.backends.gpu_ptx.stepping import Counts, Stepping
from hlotool.errors import InputDataError, Unsupported
from hlotool.ir.module import Instruction


class GpuExecutable:
    """A program, or one instruction of it.

    Args:
        dump: the program.
        seed: of what the hardware may choose.
        alone: the instruction that is executed by itself; None for the whole program.

    Attributes:
        counts: of the last execution.

    Raises:
        Unsupported: a kernel without PTX, or an instruction without steps of its own.
    """

    def __init__(self, dump: GpuDump, seed: int, alone: Instruction | None = None) -> None:
        self._dump = dump
        self._stepping = Stepping(dump, seed)
        self.counts = Counts()
        self._is_part = alone is not None
        if alone is None:
            self._steps = dump.steps
            self._given: Sequence[Instruction] = dump.module.entry.parameters
            self._made = dump.module.entry.root
        else:
            self._steps = self._stepping.steps_of(alone.name)
            self._given = tuple(dict.fromkeys(alone.operands))
            self._made = alone
            if not self._steps:
                raise dump.module.unsupported(alone, "no step of the GPU's program was made for it")

    @property
    def notes(self) -> tuple[str, ...]:
        """What ran otherwise than on a GPU; of one instruction alone, the kernels that ran."""
        names = self.counts.by_reference
        found = [f"computed by the reference, as their code is no PTX: {', '.join(names)}"] if names else []
        if self._is_part:
            kernels = [step.launch.kernel for top in self._steps for step in top.all() if step.launch]
            places = [self._dump.kernels[name] for name in dict.fromkeys(kernels)]
            found += [f"kernel {each.name}: {each.program}:{each.line}" for each in places]
        return tuple(found)

    def run(self, arguments: Sequence[Value], probe: Probe | None = None) -> Value:
        """Execute once; see `Executable.run`. Kernels are not observed on the way: `probe` must be None."""
        if probe is not None:
            raise Unsupported("kernels do not show the values of single instructions")
        if len(arguments) != len(self._given):
            raise InputDataError(f"{len(self._given)} arguments are taken, got {len(arguments)}")
        self.counts = Counts()
        device = Device(self._dump.module, self._dump.assignment)
        for given, argument in zip(self._given, arguments):
            device.write(given, argument)
        self._stepping.run(self._steps, device, self.counts)
        return device.read(self._made)
