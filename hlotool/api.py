"""The Python API: the command line's powers as functions.

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

from hlotool.backends.registry import get_backend
from hlotool.dump.directory import open_dump
from hlotool.dump.loading import load_stage
from hlotool.errors import InputDataError, Unsupported, UsageError
from hlotool.ir.dtypes import Array, element_type_of
from hlotool.ir.module import Module
from hlotool.ir.types import ArrayShape, Shape, TupleShape
from hlotool.ir.verifier import verify_or_raise
from hlotool.numerics.compare import compare_values
from hlotool.numerics.dataflow import leaf_facts
from hlotool.numerics.verdict import Comparison
from hlotool.parse.reader import parse_module
from hlotool.values.fit import fit
from hlotool.values.flatten import flatten, unflatten


def parse(text: str, path: str | None = None) -> Module:
    """The module that HLO text stands for, parsed and verified.

    Args:
        text: as XLA prints it.
        path: of the file it comes from, for messages.

    Raises:
        HloSyntaxError: it is not HLO.
        VerificationError: it breaks a rule of the language.

    >>> parse("HloModule m ENTRY e { ROOT c = s32[] constant(7) }").entry.root.opcode
    'constant'
    """
    module = parse_module(text, path)
    verify_or_raise(module)
    return module


def load(path: str | os.PathLike[str]) -> Module:
    """The module in a file: HLO text or a binary proto, compressed or not, parsed and verified.

    Constants that the text elides (`{...}`) are filled in from the files beside it where that is certain.

    Args:
        path: of one file of HLO, not of a dump with several modules.

    Raises:
        DumpError: it cannot be read.
        UsageError: it holds several modules or stages.
        InputError: it is no valid HLO.
        ElidedConstant: the value of a constant is nowhere to be found.
    """
    dump = open_dump(path)
    found = [(module, stage) for module in dump.modules for stage in (*module.stages, *module.others)]
    if len(found) != 1:
        raise UsageError(f"{dump.path}: load() takes one program, here are {len(found)}")
    module = load_stage(*found[0])
    verify_or_raise(module)
    return module


def run(module: Module, inputs: Sequence[Any], backend: str = "numpy") -> list[Array]:
    """Execute a module on one device.

    Args:
        module: parsed and verified.
        inputs: one array (or what NumPy makes an array of) per entry parameter; for a tuple a nested tuple.
            Values must be exact in the parameter's element type; plain Python numbers are rounded to it.
        backend: name of a backend.

    Returns:
        the arrays of the result, tuples flattened depth first; bf16, f8 and int4 have dtypes of `ml_dtypes`.

    Raises:
        InputDataError: inputs that do not fit the parameters.
        Unsupported: the backend cannot execute the module.
        UsageError: no such backend.

    >>> swap = parse('''HloModule swap
    ... ENTRY main {
    ...   p = (f32[2], s32[]) parameter(0)
    ...   a = f32[2] get-tuple-element(p), index=0
    ...   b = s32[] get-tuple-element(p), index=1
    ...   ROOT r = (s32[], f32[2]) tuple(b, a)
    ... }''')
    >>> run(swap, [([0.5, 1.5], 3)])
    [array(3, dtype=int32), array([0.5, 1.5], dtype=float32)]
    """
    devices = module.replica_count * module.num_partitions
    if devices > 1:
        raise Unsupported(f"compiled for {devices} devices; programs of one device are run")
    executable = get_backend(backend).compile(module)
    result = executable.run(_arguments(module, inputs))
    leaves = flatten(module.entry.root.shape, result)
    return [np.asarray(leaf) for _, part, leaf in leaves if isinstance(part, ArrayShape)]


def compare(
    expected: Sequence[Any],
    actual: Sequence[Any],
    *,
    module: Module | None = None,
    rtol: float | None = None,
    atol: float | None = None,
) -> Comparison:
    """Compare two results, leaf by leaf.

    Args:
        expected: arrays of the reference, as `run` returns them.
        actual: arrays to be judged.
        module: whose results they are: the tolerance then follows from what each output is computed from.
        rtol: relative to the larger magnitude; with `atol`, instead of the tolerance of each element type.
        atol: absolute; one of the two given, the other one is 0.

    Raises:
        InputDataError: an array of a dtype that HLO has no element type for.

    Returns:
        a verdict with its reason, and the same for each leaf with the numbers behind it.

    >>> import numpy as np
    >>> compare([np.float32([1, 2])], [np.float32([1, 2])]).verdict
    <Verdict.IDENTICAL: 'identical'>
    >>> result = compare([np.float32([1, 2])], [np.float32([1, 2.5])])
    >>> result.verdict, result.leaves[0].metrics.worst_absolute.index
    (<Verdict.DIFFERS: 'differs'>, (1,))
    """
    shapes = [_shape(side, arrays) for side, arrays in (("expected", expected), ("actual", actual))]
    facts = leaf_facts(module) if module is not None else None
    if facts is not None and len(facts) != len(expected):
        raise InputDataError(f"{module} returns {len(facts)} arrays, {len(expected)} are expected")
    return compare_values(
        shapes[0], _tuple(expected), _tuple(actual), actual_shape=shapes[1], facts=facts, rtol=rtol, atol=atol
    )


def _arguments(module: Module, inputs: Sequence[Any]) -> list[Any]:
    """The inputs in the parameters' element types."""
    parameters = module.entry.parameters
    if len(inputs) != len(parameters):
        raise InputDataError(f"{module.name} takes {len(parameters)} arguments, got {len(inputs)}")
    return [_argument(p.shape, value, f"argument {p.name}") for p, value in zip(parameters, inputs)]


def _argument(shape: Shape, value: Any, label: str) -> Any:
    try:
        parts = list(flatten(shape, value))
    except TypeError as error:
        raise InputDataError(f"{label}: {error}") from error
    arrays = [
        fit(leaf, part, "".join([label, *(f".{i}" for i in index)])) if isinstance(part, ArrayShape) else None
        for index, part, leaf in parts
    ]
    return unflatten(shape, arrays)


def _shape(side: str, arrays: Sequence[Any]) -> TupleShape:
    """The shape of a flat result."""
    parts: list[Shape] = []
    for number, value in enumerate(map(np.asarray, arrays)):
        element_type = element_type_of(value.dtype)
        if element_type is None:
            raise InputDataError(f"{side}[{number}]: HLO has no element type for dtype {value.dtype}")
        parts.append(ArrayShape(element_type, value.shape))
    return TupleShape(tuple(parts))


def _tuple(arrays: Sequence[Any]) -> tuple[Array, ...]:
    return tuple(np.asarray(array) for array in arrays)
