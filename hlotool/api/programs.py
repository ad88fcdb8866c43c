"""Programs: read, and executed.

>>> import hlotool, numpy as np
>>> module = hlotool.parse('''
... HloModule double
... ENTRY main {
...   x = f32[3] parameter(0)
...   ROOT y = f32[3] add(x, x)
... }
... ''')
>>> hlotool.run(module, [np.array([1, 2, 3], np.float32)])
[array([2., 4., 6.], dtype=float32)]
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from hlotool.backends.registry import get_backend, get_devices_backend
from hlotool.dump.directory import open_dump
from hlotool.dump.loading import load_stage
from hlotool.errors import InputDataError, Unsupported, UsageError
from hlotool.ir.devices import DeviceGrid
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Module
from hlotool.ir.partitioning import is_per_device
from hlotool.ir.types import ArrayShape
from hlotool.ir.verifier import verify_or_raise
from hlotool.parse.jax_stages import is_stage, stage_proto
from hlotool.parse.proto.module import parse_module_proto
from hlotool.parse.reader import parse_module
from hlotool.values.fit import fit_value
from hlotool.values.flatten import flatten


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
