"""`hlotool.load`, `parse` and `run`, and functions of frameworks that are called and replayed at once."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hlotool.backends.registry import get_backend, get_devices_backend
from hlotool.errors import InputDataError, Unsupported, UsageError
from hlotool.inputs.given import fit_value
from hlotool.interface.api.calls import Ending, options_from
from hlotool.interface.api.replay import Replayed, ReplayResult, record_of, replay_on
from hlotool.ir.arrays import Array, flatten
from hlotool.ir.devices import DeviceGrid
from hlotool.ir.module import Module
from hlotool.ir.partitioning import is_per_device
from hlotool.ir.types import ArrayShape
from hlotool.ir.verifier import verify_or_raise
from hlotool.parser.jax_stages import is_stage, stage_proto
from hlotool.parser.proto.module import parse_module_proto
from hlotool.parser.reader import parse_module
from hlotool.runs.options.parsers import values_path
from hlotool.runs.records import REALITY
from hlotool.sources.directory import open_dump
from hlotool.sources.loading import load_stage
from hlotool.system.files import brief_folder

if TYPE_CHECKING:
    from hlotool.interface.report.records import RunRecord
    from hlotool.runs.options.kept import RunOptions
    from hlotool.runs.records import ModuleRecord
    from hlotool.system.pool import Pool


def parse(text: str | Any, path: str | None = None, *, verify: bool = True) -> Module:
    """The module that HLO text stands for, parsed and verified.

    Args:
        text: as XLA prints it; or what JAX traced, lowered or compiled.
        path: of the file it comes from, for messages.
        verify: refuse what breaks a rule of the language. A module that does can be looked at and printed;
            what else becomes of it is not promised.

    Raises:
        HloSyntaxError: it is not HLO.
        Unsupported: a program of JAX has no HLO.
        VerificationError: it breaks a rule of the language.

    >>> parse("HloModule m ENTRY e { ROOT c = s32[] constant(7) }").entry.root.opcode
    'constant'
    """
    module = parse_module_proto(stage_proto(text)) if is_stage(text) else parse_module(text, path)
    if verify:
        verify_or_raise(module)
    return module


def load(path: str | os.PathLike[str], *, verify: bool = True) -> Module:
    """The module in a file: HLO text or a binary proto, compressed or not, parsed and verified.

    Constants that the text elides (`{...}`) are filled in from the files beside it where that is certain, and
    stay elided elsewhere: such a module can be looked at and rewritten, but not run.

    Args:
        path: of one file of HLO, not of a dump with several modules.
        verify: refuse what breaks a rule of the language, as in `parse`.

    Raises:
        DumpError: it cannot be read.
        UsageError: it holds several modules or stages.
        InputError: it is no valid HLO.
        Unsupported: the text ends too early.
    """
    dump = open_dump(path)
    found = [(module, stage) for module in dump.modules for stage in (*module.stages, *module.others)]
    if len(found) != 1:
        raise UsageError(f"{dump.path}: load() takes one program, here are {len(found)}")
    module = load_stage(*found[0], may_be_elided=True)
    if verify:
        verify_or_raise(module)
    return module


def run(
    module: Module | Any,
    inputs: Sequence[Any],
    backend: str = "numpy",
    replicas: int = 1,
    partitions: int = 1,
) -> list[Any]:
    """Execute a module on one device, or on several that exchange values.

    Args:
        module: parsed and verified, or what JAX traced, lowered or compiled. A program that is not
            partitioned yet takes and returns global arrays: it runs on one device, whatever its header says.
        inputs: one array (or what NumPy makes an array of) per entry parameter; for a tuple a nested tuple.
            Values must be exact in the parameter's element type; plain Python numbers are rounded to it.
            With several devices a list of such inputs, one per device: replica * partitions + partition.
        backend: a backend, with options if any: `numpy`, `xla`, `xla:disable=algsimp+cse,opt=0`.
        replicas: copies of the program, each with its own inputs.
        partitions: devices that share the work of one replica.

    Returns:
        the arrays of the result, tuples flattened depth first; bf16, f8 and int4 have dtypes of `ml_dtypes`.
        With several devices a list of such results, one per device.

    Raises:
        InputDataError: inputs that do not fit the parameters or the number of devices.
        Unsupported: the backend cannot execute the module, or not on so many devices.
        BackendDeadlock: devices wait for each other for ever.
        UsageError: no such backend, no device.

    >>> swap = parse('''HloModule swap
    ... ENTRY main {
    ...   p = (f32[2], s32[]) parameter(0)
    ...   a = f32[2] get-tuple-element(p), index=0
    ...   b = s32[] get-tuple-element(p), index=1
    ...   ROOT r = (s32[], f32[2]) tuple(b, a)
    ... }''')
    >>> run(swap, [([0.5, 1.5], 3)])
    [array(3, dtype=int32), array([0.5, 1.5], dtype=float32)]
    >>> shift = parse('''HloModule shift, num_partitions=2
    ... ENTRY main {
    ...   x = f32[2] parameter(0)
    ...   ROOT r = f32[2] collective-permute(x), channel_id=1, source_target_pairs={{0,1},{1,0}}
    ... }''')
    >>> run(shift, [[[1, 2]], [[3, 4]]], partitions=2)
    [[array([3., 4.], dtype=float32)], [array([1., 2.], dtype=float32)]]
    """
    if is_stage(module):
        module = parse(module)
    if replicas < 1 or partitions < 1:
        raise UsageError(f"{replicas} replicas of {partitions} partitions are no devices")
    grid = DeviceGrid(replicas, partitions)
    if len(grid) == 1:
        return _run_one(module, inputs, backend)
    if len(inputs) != len(grid):
        raise InputDataError(f"{grid} take {len(grid)} lists of inputs, got {len(inputs)}")
    executable = get_devices_backend(backend).compile_devices(module, grid)
    results = executable.run_devices([fitted_arguments(module, own) for own in inputs])
    return [_arrays(module, result) for result in results]


def _run_one(module: Module, inputs: Sequence[Any], backend: str) -> list[Array]:
    if is_per_device(module):
        raise Unsupported(
            f"a program for {module.replica_count} replicas of {module.num_partitions} partitions:"
            " say replicas=, partitions= and give the inputs of each device"
        )
    executable = get_backend(backend).compile(module)
    return _arrays(module, executable.run(fitted_arguments(module, inputs)))


def _arrays(module: Module, result: Any) -> list[Array]:
    """The arrays of a result, depth first."""
    leaves = flatten(module.entry.root.shape, result)
    return [np.asarray(leaf) for _, part, leaf in leaves if isinstance(part, ArrayShape)]


def fitted_arguments(module: Module, inputs: Sequence[Any]) -> list[Any]:
    """The inputs in the parameters' element types."""
    parameters = module.entry.parameters
    if len(inputs) != len(parameters):
        raise InputDataError(f"{module.name} takes {len(parameters)} arguments, got {len(inputs)}")
    return [fit_value(p.shape, value, f"argument {p.name}") for p, value in zip(parameters, inputs)]


#: `ModuleRecord.tested` of what the function gives where every operation is compiled alone.
OP_BY_OP = "op by op"


class CheckedCall(ReplayResult):
    """What became of one call: a row for each side that was judged by the program as it was lowered.

    Args:
        record: as `hlotool run` prints it.
        value: what the function returned.
        program: the HLO as it was lowered, and as it was compiled, as protos; None where that is not known.

    Attributes:
        value: see above.
    """

    def __init__(self, record: RunRecord, value: Any, program: tuple[bytes, bytes | None]) -> None:
        super().__init__(record)
        self.value = value
        self._program = program

    @property
    def compiled(self) -> ModuleRecord | None:
        """The program that XLA made, executed on the reference; None where it is not known."""
        if self._program[1] is None:
            return None
        return next((row for row in self.rows if row.stage_tested != REALITY), None)

    @property
    def device(self) -> ModuleRecord | None:
        """What the device returned."""
        return next((r for r in self.rows if r.stage_tested == REALITY and r.tested != OP_BY_OP), None)

    @property
    def op_by_op(self) -> ModuleRecord | None:
        """What the function returns where every operation is compiled alone; None where that failed."""
        return next((row for row in self.rows if row.tested == OP_BY_OP), None)

    @property
    def lowered_module(self) -> Module:
        """The program as the frontend made it."""
        return _module(self._program[0])

    @property
    def compiled_module(self) -> Module:
        """The program as XLA compiled it.

        Raises:
            Unsupported: the framework does not give it.
        """
        if self._program[1] is None:
            raise Unsupported("the program that XLA compiled is not known: the notes say why")
        return _module(self._program[1])


@dataclass(frozen=True, slots=True, eq=False)
class Called:
    """A call that was executed.

    Attributes:
        lowered: the program as the frontend made it, as a binary proto.
        compiled: as XLA compiled it; None where that cannot be had.
        platform: that it was compiled for: `cpu`, `gpu`, ….
        arguments: of the program, in the order of its parameters.
        value: what the function returned.
        results: the same as the program's outputs, in their order.
        notes: about what is missing.
    """

    lowered: bytes
    compiled: bytes | None
    platform: str
    arguments: Sequence[Array]
    value: Any
    results: Sequence[Array]
    notes: Sequence[str] = ()


def judge(
    made: Called, alone: Callable[[], Sequence[Array]] | None, options: Mapping[str, Any], start: float
) -> CheckedCall:
    """Judge a call by the program as it was lowered, executed on hlotool's reference.

    Args:
        made: the call.
        alone: gives the results op by op; None where they are not wanted. What it raises becomes a note.
        options: of the judgement, as `hlotool.replay` has them.
        start: `time.perf_counter()` when the call began.
    """
    notes = list(made.notes)
    # The arguments are a file that all replays of the call read.
    given = {**_devices(made), **options, "inputs": values_path(list(made.arguments) or None)}
    chosen = _returning(given, ())
    with brief_folder() as folder, _pool(chosen) as pool:
        pool.start()  # what it imports overlaps with what is done here
        separate = _results(alone, notes)
        before = _write(folder, made)
        found = _replay(pool, str(folder), _returning(given, made.results), f"on {made.platform}")
        if separate is not None:
            again = _replay(pool, str(before), _returning(given, separate), OP_BY_OP)
            found.rows += [row for row in again.rows if row.tested == OP_BY_OP]
    elapsed = time.perf_counter() - start
    record = record_of([], chosen, found.rows, Ending(), [*found.notes, *notes], elapsed)
    return CheckedCall(record, made.value, (made.lowered, made.compiled))


def _results(alone: Callable[[], Sequence[Array]] | None, notes: list[str]) -> Sequence[Array] | None:
    if alone is None:
        return None
    try:
        return alone()
    except Exception as error:  # whatever the user's function raises there
        notes.append(f"{OP_BY_OP}: {type(error).__name__}: {error}")
        return None


def _devices(made: Called) -> dict[str, int]:
    """For how many devices the program is, where it is for several: as it was lowered it does not say."""
    compiled = _module(made.compiled or made.lowered)
    devices = {"replicas": compiled.replica_count, "partitions": compiled.num_partitions}
    return {} if max(devices.values()) == 1 else devices


def _returning(given: Mapping[str, Any], results: Sequence[Array]) -> RunOptions:
    """Of a replay of the call, which shall have given `results`."""
    return options_from({**given, "outputs": list(results) or None})


def _pool(options: RunOptions) -> Pool:
    from hlotool.runs.options.kept import PRELOAD
    from hlotool.system.executor import Limits
    from hlotool.system.pool import Pool

    return Pool(Limits(1, options.timeout, options.memory_limit), PRELOAD, options.reference)


def _write(folder: Path, made: Called) -> Path:
    """Write a dump of both stages; returns the path of the first."""
    title = re.sub(r"[^\w-]", "_", _module(made.lowered).name)[:100] or "program"
    before, after = (
        folder / f"module_0000.{title}.{stage}.hlo.pb"
        for stage in ("before_optimizations", f"{made.platform}_after_optimizations")
    )
    before.write_bytes(made.lowered)
    if made.compiled is not None:
        after.write_bytes(made.compiled)
    return before


def _replay(pool: Pool, path: str, options: RunOptions, origin: str) -> Replayed:
    """The rows of a path; those of the results say that these come from `origin`."""
    import msgspec

    found = Replayed()
    replay_on(pool, [path], options, found, resume=False)
    found.rows = [
        msgspec.structs.replace(row, tested=origin) if row.stage_tested == REALITY else row
        for row in found.rows
    ]
    return found


def _module(proto: bytes) -> Module:
    from hlotool.parser.proto.module import parse_module_proto

    return parse_module_proto(proto)
