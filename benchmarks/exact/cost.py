"""What an evaluation in the field costs beside NumPy in the declared types, in f64, and an ensemble.

One instruction on vectors of a million elements, and whole programs before and after optimisation. Processor
time and wall time, each the least of several runs; on a machine that others use, too, only the former can be
compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hlotool.backends.base import Backend
from hlotool.backends.field.constants import Constants
from hlotool.backends.field.executable import FieldBackend
from hlotool.backends.field.trial import Trial
from hlotool.backends.field.unknown import with_drawn_floats
from hlotool.backends.registry import get_backend
from hlotool.errors import HlotoolError
from hlotool.inputs.generate import generate_inputs
from hlotool.ir.builder import Builder, array
from hlotool.ir.module import Computation, Module
from hlotool.judge.rules.ensemble import Ensemble
from hlotool.judge.rules.judgement import side_of
from hlotool.sources.directory import open_dump
from hlotool.sources.loading import load_stage

#: Programs that are measured where none are given.
PROGRAMS = (
    "train_transformer", "transformer_bf16", "train_mnist_mlp", "train_mnist_cnn", "special_functions",
    "sorts",
)  # fmt: skip
_UNARY = (
    "negate", "abs", "sign", "floor", "sqrt", "rsqrt", "cbrt", "exponential", "log", "tanh", "logistic",
    "sine", "erf",
)  # fmt: skip
_BINARY = ("add", "subtract", "multiply", "divide", "power", "maximum", "remainder")
#: Runs of which the least time counts, unless they take longer than _ENOUGH_S together.
_RUNS = 5
_ENOUGH_S = 3.0
#: Members that nearly every verdict with an ensemble needs.
_MEMBERS = 4


@dataclass(frozen=True, slots=True)
class Cost:
    """One row.

    Attributes:
        name: opcode or program.
        side: `before` or `after` optimisation; empty for one instruction.
        instructions: of the program.
        cpu_ms: processor time by backend.
        wall_ms: wall time by backend.
        refused: why the field does not evaluate it.
    """

    name: str
    side: str
    instructions: int
    cpu_ms: dict[str, float]
    wall_ms: dict[str, float]
    refused: str = ""

    def __str__(self) -> str:
        if self.refused:
            return f"| {self.name} | {self.side} | {self.instructions} | {self.refused} |||||"
        cells = [f"{self.cpu_ms[name]:.3g}" for name in ("numpy", "f64", "ensemble", "field")]
        cells.append(f"{self.wall_ms['field']:.3g}")
        cells.append(f"{self.cpu_ms['field'] / max(self.cpu_ms['numpy'], 1e-6):.1f}")
        return f"| {self.name} | {self.side} | {self.instructions} | {' | '.join(cells)} |"


HEADING = """| what | side | size | numpy, cpu ms | f64 | ensemble | field | field, wall ms | field / numpy |
|---|---|---|---|---|---|---|---|---|"""


def least(run: Callable[[], object]) -> tuple[float, float]:
    """The least milliseconds of processor and of wall time of several runs, after one that is not counted."""
    run()
    cpu, wall, began = [], [], time.perf_counter()
    while len(cpu) < _RUNS and (not cpu or time.perf_counter() - began < _ENOUGH_S):
        before = time.process_time(), time.perf_counter()
        run()
        cpu.append(time.process_time() - before[0])
        wall.append(time.perf_counter() - before[1])
    return min(cpu) * 1e3, min(wall) * 1e3


def cost(name: str, side: str, module: Module, reference: Module | None = None) -> Cost:
    """Measure one module, on generated arguments."""
    size = sum(len(c.instructions) for c in module.computations)
    cpu: dict[str, float] = {}
    wall: dict[str, float] = {}
    try:
        values = generate_inputs(module, 0).values
        for title, run in _runs(module, reference or module, values):
            cpu[title], wall[title] = least(run)
    except HlotoolError as error:
        return Cost(name, side, size, cpu, wall, refused=str(error).splitlines()[0])
    return Cost(name, side, size, cpu, wall)


def _runs(
    module: Module, reference: Module, values: Sequence[Any]
) -> Iterator[tuple[str, Callable[[], object]]]:
    """The module on each backend; the field begins a new trial in each run."""
    trial = Trial(Constants(reference, module), remembers_exp=_takes_logarithms(module))
    words = with_drawn_floats(module, values, 0)
    backends: dict[str, Backend] = {
        "numpy": get_backend("numpy"),
        "f64": get_backend("numpy:wide"),
        "field": FieldBackend(trial),
    }
    for title, backend in backends.items():
        executable = backend.compile(module)
        arguments = words if title == "field" else values

        def run(
            title: str = title, executable: Any = executable, arguments: Sequence[Any] = arguments
        ) -> None:
            if title == "field":
                trial.restart(0)
            executable.run(list(arguments))

        yield title, run
    yield "ensemble", lambda: Ensemble(side_of(module, values), 0).members(_MEMBERS)


def _takes_logarithms(module: Module) -> bool:
    return any(i.opcode.startswith("log") and i.opcode != "logistic" for i in module.instructions())


def single_instructions(elements: int) -> Iterator[tuple[str, Module]]:
    """One instruction each, on vectors of so many elements or on matrices with as many."""
    vector = array("f32", elements)
    for opcode in (*_UNARY, *_BINARY):
        builder = Builder(opcode)
        operands = [builder.parameter(n, vector, f"p{n}") for n in range(1 if opcode in _UNARY else 2)]
        yield opcode, builder.build_module(builder.op(opcode, *operands))
    builder = Builder("compare")
    x, y = (builder.parameter(n, vector, f"p{n}") for n in range(2))
    yield "compare", builder.build_module(builder.op("compare", x, y, direction="LT"))
    for opcode in ("add", "maximum"):
        builder = Builder(f"reduce {opcode}")
        x, zero = builder.parameter(0, vector, "x"), builder.constant(0, "f32")
        reduced = builder.op("reduce", x, zero, dimensions=(0,), to_apply=_reducer(opcode))
        yield f"reduce {opcode}", builder.build_module(reduced)
    side = max(1, int(elements**0.5))
    builder = Builder("dot")
    a, b = (builder.parameter(n, array("f32", side, side), f"p{n}") for n in range(2))
    product = builder.op("dot", a, b, lhs_contracting_dims=(1,), rhs_contracting_dims=(0,))
    yield f"dot [{side},{side}]", builder.build_module(product)


def _reducer(opcode: str) -> Computation:
    builder = Builder(opcode)
    a, b = (builder.parameter(n, array("f32"), f"p{n}") for n in range(2))
    return builder.build(builder.op(opcode, a, b))


def programs(paths: Sequence[Path]) -> Iterator[tuple[str, Module, Module]]:
    """Title and both sides of every module of the dumps that has two."""
    for path in paths:
        for dumped in open_dump(str(path)).modules:
            if dumped.pair is None:
                continue
            try:
                before, after = (load_stage(dumped, stage) for stage in dumped.pair)
            except HlotoolError:  # constants that are elided for good
                continue
            yield dumped.title, before, after


def costs(paths: Sequence[Path], elements: int) -> Iterator[Cost]:
    """All rows."""
    for name, module in single_instructions(elements):
        yield cost(name, "", module)
    for title, before, after in programs(paths):
        yield cost(title, "before", before)
        yield cost(title, "after", after, before)
