"""A program that a GPU's compiler made, executed without the GPU."""

from __future__ import annotations

from collections.abc import Sequence

from hlotool.backends.base import Probe, Value
from hlotool.backends.gpu_ptx.device import Device
from hlotool.backends.gpu_ptx.dump import GpuDump
from hlotool.backends.gpu_ptx.stepping import Counts, Stepping
from hlotool.backends.numpy.lockstep import Device as Place
from hlotool.backends.numpy.lockstep import World
from hlotool.errors import InputDataError, Unsupported
from hlotool.ir.devices import DeviceGrid
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
        found = self.counts.notes
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


class GpusExecutable:
    """A program for several devices: each has a memory of its own, and executes all steps in its own thread.

    Args:
        dump: the program.
        seed: of what the hardware may choose.
        grid: the devices.

    Attributes:
        counts: of the last execution, one for each device.

    Raises:
        Unsupported: a kernel without PTX.
    """

    def __init__(self, dump: GpuDump, seed: int, grid: DeviceGrid) -> None:
        self._dump, self._grid = dump, grid
        self._stepping = Stepping(dump, seed, grid)
        self.counts = [Counts()] * len(grid)

    @property
    def notes(self) -> tuple[str, ...]:
        """What ran otherwise than on GPUs."""
        return tuple(self.counts[0].notes)

    def run_devices(
        self, arguments: Sequence[Sequence[Value]], probes: Sequence[Probe | None] | None = None
    ) -> list[Value]:
        """Execute once on all devices; see `DevicesExecutable.run_devices`. `probes` must be None."""
        module = self._dump.module
        given = module.entry.parameters
        if probes is not None:
            raise Unsupported("kernels do not show the values of single instructions")
        if any(len(row) != len(given) for row in arguments) or len(arguments) != len(self._grid):
            raise InputDataError(f"{len(self._grid)} devices take {len(given)} arguments each")
        self.counts = [Counts() for _ in arguments]
        world = World(self._grid)

        def body(number: int) -> Value:
            device = Device(module, self._dump.assignment, Place(world, number))
            for parameter, argument in zip(given, arguments[number]):
                device.write(parameter, argument)
            self._stepping.run(self._dump.steps, device, self.counts[number])
            return device.read(module.entry.root)

        return world.run(body)
