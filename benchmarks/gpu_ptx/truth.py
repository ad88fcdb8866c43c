"""Does a fault in a dump change a legal result? Decided without the judge, and without its inputs.

The dump with the fault and the one without are executed on inputs that are drawn here. Integers that differ
are a change; floats are one where the error against the program in f64 is some times what it was before, by
its largest magnitude or relative to the values. An execution that does what no GPU defines is a change, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hlotool.backends.base import Value
from hlotool.backends.gpu_ptx.dump import read_dump
from hlotool.backends.gpu_ptx.executable import GpuExecutable
from hlotool.backends.numpy import NumpyBackend
from hlotool.errors import BackendTimeout, HlotoolError, KernelFault, Unsupported
from hlotool.facts.retyping import to_f64, widened
from hlotool.ir.arrays import dtype_of, flatten
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape, ElementType
from hlotool.parser.reader import parse_module
from hlotool.system.resources import TooSlow, time_limit

#: How much larger an error has to be than that of the program without the fault.
_TIMES = 4.0
#: Seconds for one execution with a fault.
_SECONDS = 20.0


class NotPtx(Exception):
    """The fault made a text that no assembler takes."""


@dataclass
class Known:
    """What a program gives on one set of inputs: the values, in f64, and its own errors against that."""

    arguments: list[Value]
    values: list[Any]
    exact: list[Any]


def stage(folder: Path, ending: str) -> Path:
    """The file of a dump with this ending."""
    [path] = [path for path in folder.iterdir() if path.name.endswith(ending)]
    return path


class Truth:
    """Of one dump without a fault.

    Args:
        folder: of the dump.
        seed: of the inputs.

    Attributes:
        sets: what it gives on each set of inputs.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        path = stage(folder, "before_optimizations.txt")
        module = parse_module(path.read_text(), str(path))
        self._root = module.entry.root
        wide = NumpyBackend().compile(widened(module).module)
        self.sets: list[Known] = []
        for arguments in input_sets(module, seed):
            given = [
                wide_of(a, p.array_shape.element_type) for a, p in zip(arguments, module.entry.parameters)
            ]
            with np.errstate(all="ignore"):
                exact = self._leaves(wide.run(given))
            self.sets.append(Known(arguments, self._leaves(run(folder, arguments)), exact))

    def _leaves(self, value: Value) -> list[Any]:
        return [
            np.asarray(part)
            for _, shape, part in flatten(self._root.shape, value)
            if isinstance(shape, ArrayShape)
        ]

    def change(self, folder: Path) -> str:
        """How the dump with a fault differs: `value`, `fault`, `endless`, or nothing.

        Raises:
            NotPtx: it cannot be executed.
        """
        for known in self.sets:
            try:
                with time_limit(_SECONDS):
                    found = self._leaves(run(folder, known.arguments))
            except (KernelFault, BackendTimeout, TooSlow) as error:
                return "fault" if isinstance(error, KernelFault) else "endless"
            except Unsupported as error:
                raise NotPtx(str(error)) from error
            if any(map(_differs, found, known.values, known.exact)):
                return "value"
        return ""


def run(folder: Path, arguments: Sequence[Value]) -> Value:
    """Execute the program of a dump."""
    dump = read_dump(str(stage(folder, "gpu_after_optimizations.txt")))
    return GpuExecutable(dump, 0).run(arguments)


def _differs(found: Any, kept: Any, exact: Any) -> bool:
    """Whether a leaf is off by more than what the kept one is off by."""
    if kept.dtype.kind in "biu" or str(kept.dtype) in ("int4", "uint4", "int2", "uint2"):
        return not np.array_equal(found, kept)
    wide = np.complex128 if kept.dtype.kind == "c" else np.float64
    found, own, exact = (np.asarray(each).astype(wide).reshape(-1) for each in (found, kept, exact))
    usual = np.isfinite(own) & np.isfinite(exact)
    if not np.isfinite(found[usual]).all():
        return True
    found, own, exact = found[usual], own[usual], exact[usual]
    if not found.size or np.array_equal(found, own):
        return False
    bits = 52 if kept.dtype.itemsize >= 8 and kept.dtype.kind == "f" else _fraction_bits(kept.dtype)
    with np.errstate(all="ignore"):
        size = np.abs(exact)
        absolute = [float(np.abs(each - exact).max()) for each in (own, found)]
        relative = [float((np.abs(each - exact) / (size + 1e-30)).max()) for each in (own, found)]
    floor = 2.0 ** (-bits - 1)
    return absolute[1] > _TIMES * max(absolute[0], floor * float(size.max())) or (
        relative[1] > _TIMES * max(relative[0], floor)
    )


def _fraction_bits(dtype: np.dtype[Any]) -> int:
    named = {"float16": 10, "bfloat16": 7, "float8_e4m3fn": 3, "float8_e5m2": 2, "complex128": 52}
    return named.get(str(dtype), 23)


def wide_of(array: Any, kind: ElementType) -> Any:
    """An argument as the program in f64 takes it."""
    return np.asarray(array).astype(dtype_of(to_f64(kind)))


def input_sets(module: Module, seed: int) -> Iterator[list[Value]]:
    """Ordinary numbers, larger ones, few different ones, and integers of all sizes."""
    for number, draw in enumerate((_ordinary, _larger, _few, _wide)):
        random = np.random.default_rng((seed, number))
        yield [_drawn(draw, random, parameter) for parameter in module.entry.parameters]


def _drawn(draw: Any, random: np.random.Generator, parameter: Instruction) -> Any:
    shape = parameter.array_shape
    kind = shape.element_type
    values = draw(random, shape.dims, kind.is_floating or kind.is_complex)
    if kind.is_complex:
        values = values + 1j * draw(random, shape.dims, True)
    dtype = dtype_of(kind)
    if kind.value == "pred":
        return random.random(shape.dims) < 0.5
    if not (kind.is_floating or kind.is_complex):
        low, high = (
            (0, 2**kind.bits - 1)
            if not kind.is_signed
            else (-(2 ** (kind.bits - 1)), 2 ** (kind.bits - 1) - 1)
        )
        values = np.clip(values, low, min(high, 2**62))
    with np.errstate(all="ignore"):
        return np.asarray(values).astype(dtype)


def _ordinary(random: np.random.Generator, dims: tuple[int, ...], floats: bool) -> Any:
    return random.standard_normal(dims) if floats else random.integers(-9, 10, dims)


def _larger(random: np.random.Generator, dims: tuple[int, ...], floats: bool) -> Any:
    return 12 * random.standard_normal(dims) if floats else random.integers(-300, 300, dims)


def _few(random: np.random.Generator, dims: tuple[int, ...], floats: bool) -> Any:
    return random.integers(-2, 3, dims) / (2 if floats else 1)


def _wide(random: np.random.Generator, dims: tuple[int, ...], floats: bool) -> Any:
    signs = random.choice([-1, 1], dims)
    if floats:
        return signs * 2.0 ** random.uniform(-12, 6, dims)
    return signs * (2.0 ** random.uniform(0, 62, dims)).astype(np.int64)


def truths(folders: Sequence[Path], seed: int) -> Iterator[tuple[Path, Truth]]:
    """Of the programs that can be executed on these inputs."""
    for folder in folders:
        try:
            with time_limit(1.5 * _SECONDS):
                made = Truth(folder, seed)
        except (HlotoolError, TooSlow, ValueError) as error:
            print(f"left out: {folder.name}: {str(error)[:160]}")
            continue
        yield folder, made
