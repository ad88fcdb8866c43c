"""XLA:GPU's own code on any machine: of a dump that holds it, or compiled here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from hlotool._version import __version__
from hlotool.backends.aot.backend import AotBackend
from hlotool.backends.aot.options import parse_options
from hlotool.backends.base import DevicesBackend, Executable
from hlotool.backends.gpu_ptx.dump import GpuDump, copy_dump, program_at, read_dump
from hlotool.backends.gpu_ptx.executable import GpuExecutable, GpusExecutable
from hlotool.backends.registry import Options
from hlotool.errors import Unsupported, UsageError
from hlotool.ir.devices import DeviceGrid
from hlotool.ir.module import Module
from hlotool.ir.types import Shape, strip_layouts
from hlotool.system.files import passing_folder


class DumpedPtx:
    """Executes the PTX that lies beside a program in a dump.

    Args:
        seed: of what the hardware may choose.
        name: its spec.
        folder: gets the dump of each program that is executed; None for none.
    """

    target = "gpu"

    def __init__(self, seed: int, name: str, folder: Path | None = None) -> None:
        self.name = name
        self._seed = seed
        self._folder = folder

    @property
    def version(self) -> str:
        """What executes it."""
        return f"gpu-ptx {__version__}"

    def dumping(self, folder: Path, passes: str = ".*") -> DumpedPtx:
        """See `DumpingBackend.dumping`: the dump that there is, with what passes it has."""
        return DumpedPtx(self._seed, self.name, folder)

    def compile(self, module: Module) -> GpuExecutable:
        """Read the PTX of a program that `module` is a stage of, or that it is one instruction of.

        Raises:
            Unsupported: there is none, or `module` is neither.
        """
        if module.num_partitions * module.replica_count > 1:
            raise Unsupported("it is for several GPUs, which execute it together")
        path, dump = _dump_of(module)
        if _is_part(module, dump.module):
            name = module.entry.root.name
            alone = next((i for i in dump.module.instructions() if i.name == name), None)
            if alone is None:
                raise Unsupported(f"{Path(path).name} has no instruction {name}")
            return GpuExecutable(dump, self._seed, alone)
        self._take(module, path, dump)
        return GpuExecutable(dump, self._seed)

    def compile_devices(self, module: Module, grid: DeviceGrid) -> GpusExecutable:
        """Read the PTX of a program for several devices that `module` is a stage of; raises as `compile`."""
        path, dump = _dump_of(module)
        self._take(module, path, dump)
        return GpusExecutable(dump, self._seed, grid)

    def _take(self, module: Module, path: str, dump: GpuDump) -> None:
        """Refuse a program of other sizes than the dump's; keep the dump where one is wanted."""
        if _signature(module) != _signature(dump.module):
            raise Unsupported(
                f"{Path(path).name} is a program of other sizes: the PTX cannot be scaled (--scale)"
            )
        if self._folder is not None:
            copy_dump(path, self._folder)


def _dump_of(module: Module) -> tuple[str, GpuDump]:
    """The dump that a program is a stage of, or an instruction, and its file; raises Unsupported."""
    path = program_at(module.path)
    if not path:
        raise Unsupported(
            f"{module.path or module.name} has no PTX beside it: name a dump of XLA:GPU, or a GPU to "
            "compile for, as in gpu-ptx:h100"
        )
    return path, _dump_at(path)


def _signature(module: Module) -> list[Shape]:
    return [strip_layouts(i.shape) for i in (*module.entry.parameters, module.entry.root)]


def _is_part(module: Module, program: Module) -> bool:
    """Whether `module` is one instruction that was cut out of the program, and no other stage of it."""
    names = [
        [i.name for i in each.entry.instructions if i.opcode != "parameter"] for each in (module, program)
    ]
    return module.path == program.path and names[0] != names[1]


@lru_cache(maxsize=2)
def _dump_at(path: str) -> GpuDump:
    """Of several instructions of one program that are executed alone it is read once."""
    return read_dump(path)


class CompiledPtx(AotBackend):
    """XLA's compiler for GPUs, whose PTX is executed; see `AotBackend`."""

    target = "gpu"
    #: Of what the hardware may choose.
    seed = 0

    @property
    def runs(self) -> DevicesBackend:  # type: ignore[override]
        """What executes the PTX that lies beside the program that it made."""
        return DumpedPtx(self.seed, self.name)

    def compile(self, module: Module) -> Executable:
        """See `AotBackend.compile`. A part of what was made here is executed as it was made."""
        if module.path in _MADE:
            return self.runs.compile(module)
        return super().compile(module)

    def _made_of(self, module: Module, grid: DeviceGrid, is_manual: bool = False) -> Module:
        """The program in a folder that stays while this process lives: the PTX is read from there."""
        if self._folder is None:
            return self.dumping(passing_folder(), "")._made_of(module, grid, is_manual)
        made = super()._made_of(module, grid, is_manual)
        _MADE.add(made.path)
        return made


#: The files of programs that were made by this process.
_MADE: set[str | None] = set()


#: What Triton's override takes beside the tiles: what XLA's autotuner tries first for large products.
_TUNED = "block_m: {} block_n: {} block_k: {} split_k: 1 num_stages: 3 num_warps: 4 num_ctas: 1"


def executing(options: Options, spec: str) -> DumpedPtx:
    """The backend that executes the PTX of dumps; raises UsageError for a seed that is no number."""
    return DumpedPtx(_seed(options), spec)


def compiling(options: Options, forms: Mapping[str, str], spec: str) -> CompiledPtx:
    """The backend that compiles what it executes.

    Raises:
        UsageError: unknown options, values that make no sense, or no GPU among them.
    """
    own = {key: value for key, value in options.items() if key not in ("seed", "autotune")}
    if tiles := options.get("autotune"):
        if not re.fullmatch(r"\d+x\d+x\d+", tiles):
            raise UsageError("backend gpu-ptx: autotune is written MxNxK, as in autotune=64x128x64")
        own["xla_gpu_override_gemm_autotuner"] = _TUNED.format(*tiles.split("x"))
    # Newer compilers write PTX only where they are asked to.
    own.setdefault("xla_dump_emitter_re", ".*")
    parsed = parse_options(own, forms, "gpu-ptx")
    if parsed.target is None:
        raise UsageError("backend gpu-ptx: say for which GPU it compiles, as in gpu-ptx:h100,triton=off")
    made = CompiledPtx(parsed, spec)
    made.seed = _seed(options)
    return made


def _seed(options: Options) -> int:
    text = options.get("seed", "0")
    if not text.isdecimal():
        raise UsageError(f"backend gpu-ptx: seed={text} is no number")
    return int(text)
