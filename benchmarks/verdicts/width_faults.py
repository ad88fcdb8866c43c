"""Width that a compiler loses: is every such fault in its optimised texts seen?

    python -m benchmarks.verdicts.width_faults DUMP ... [--seed 0] [--sites 2] [--json]

The dumps are those of real compilers, text before and after optimisation (`benchmarks.gpu.dump_programs`,
`python -m benchmarks.dumps`). In the text after optimisation something is rounded to bf16 or f16 that the
program keeps in f32: the operands of a product, its result, a function, a sum, every step of a sum, what is
returned (losses, weights). By conversions there and back, as compilers do it; by a product of a narrow type;
by `reduce-precision` (`hlotool/lab/faults/rounding.py`).

A fault counts where the faulty text returns something else than the text without it: an output of f32 by
more than `_SHOWS` of its root mean square, one of a narrow type by two of its ulps. That is found without the
judge.
Operands of default-precision products are none on a TPU, and not planted there.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace

from hlotool.backends.numpy import NumpyBackend
from hlotool.backends.numpy.executions.rounding_errors import has_default_precision
from hlotool.blame.bisection.stages import stage_trials
from hlotool.errors import HlotoolError
from hlotool.facts.float_order import epsilon
from hlotool.ir.arrays import flatten
from hlotool.ir.module import Instruction, Module
from hlotool.ir.printer import print_module
from hlotool.ir.types import ArrayShape, ElementType
from hlotool.ir.verifier import verify
from hlotool.judge.rules.instructions import feeds_products_only
from hlotool.lab.faults import CATALOGUE, FaultKind
from hlotool.lab.faults.edit import Edit, Place
from hlotool.runs.options.kept import ReplayOptions
from hlotool.runs.run import replay_module
from hlotool.runs.task import Task, select_stages
from hlotool.sources.directory import open_dump
from hlotool.sources.loading import load_stage
from hlotool.sources.records import DumpModule
from hlotool.system.resources import TooSlow, time_limit

#: Share of an f32 output that a fault changes at least: 200 of its ulps.
_SHOWS = 2.0**-15
#: Seconds for one run.
_SECONDS = 60.0
_BF16, _F16 = ElementType.BF16, ElementType.F16


def _through(kind: ElementType) -> Callable[[Edit, Instruction], None]:
    """The result of an instruction converted there and back."""

    def rewrite(edit: Edit, target: Instruction) -> None:
        edit.after()
        edit.replace(_converted(edit, target, kind))

    return rewrite


def _converted(edit: Edit, value: Instruction, kind: ElementType) -> Instruction:
    shape = value.array_shape
    narrow = edit.op("convert", value, shape=_of(shape, kind))
    return edit.op("convert", narrow, shape=shape)


def _of(shape: ArrayShape, kind: ElementType) -> ArrayShape:
    layout = shape.layout and replace(shape.layout, element_bits=0)
    return replace(shape, element_type=kind, layout=layout)


def _operands(edit: Edit, target: Instruction) -> None:
    for number, operand in enumerate(target.operands[:2]):
        edit.set_operand(number, _converted(edit, operand, _BF16))


def _is_f32(place: Place) -> bool:
    return place.array is not None and place.array.element_type is ElementType.F32


def _fits(*opcodes: str) -> Callable[[Place], bool]:
    return lambda place: _is_f32(place) and place.instruction.opcode in opcodes


def _is_returned(place: Place) -> bool:
    root = place.computation.root
    is_leaf = place.instruction is root or (
        root.opcode == "tuple" and any(operand is place.instruction for operand in root.operands)
    )
    return _is_f32(place) and is_leaf and not place.callers and place.instruction.opcode != "parameter"


_SUMS = ("reduce", "reduce-window", "scatter", "select-and-scatter")
_FUNCTIONS = ("exponential", "log", "tanh", "logistic", "rsqrt", "sqrt", "divide", "power", "erf")
KINDS = (
    FaultKind("product returned in bf16", "", _fits("dot", "convolution"), _through(_BF16)),
    FaultKind("product returned in f16", "", _fits("dot", "convolution"), _through(_F16)),
    FaultKind("operands of a product through bf16", "", _fits("dot", "convolution"), _operands),
    FaultKind("function through bf16", "", _fits(*_FUNCTIONS), _through(_BF16)),
    FaultKind("sum returned in bf16", "", _fits(*_SUMS), _through(_BF16)),
    FaultKind("result through bf16", "", _is_returned, _through(_BF16)),
    FaultKind("result through f16", "", _is_returned, _through(_F16)),
    *(kind for kind in CATALOGUE if kind.pattern == "narrow precision"),
)


def _is_allowed(kind: FaultKind, module: Module, target: Instruction, is_tpu: bool) -> bool:
    """Whether a TPU may do so: to the operands of open products, and to what nothing else reads."""
    if not is_tpu:
        return False
    if "operands" in kind.name or kind.name == "product in bf16":
        return has_default_precision(target)
    return feeds_products_only(module, target, has_default_precision)


def _outputs(module: Module, arguments: Any) -> list[tuple[ArrayShape, Any]]:
    value = NumpyBackend().compile(module).run(arguments)
    found = flatten(module.entry.root.shape, value)
    return [(part, np.asarray(leaf)) for _, part, leaf in found if isinstance(part, ArrayShape)]


def _shows(ones: list[tuple[ArrayShape, Any]], others: list[tuple[ArrayShape, Any]]) -> bool:
    for (shape, one), (_, other) in zip(ones, others):
        if not shape.element_type.is_floating:
            continue
        a, b = one.astype(np.float64), other.astype(np.float64)
        finite = np.isfinite(a) & np.isfinite(b)
        size = float(np.sqrt(np.mean(a[finite] ** 2))) if finite.any() else 0.0
        moved = float(np.sqrt(np.mean((a - b)[finite] ** 2))) if finite.any() else 0.0
        if moved > max(_SHOWS, 2 * epsilon(shape.element_type)) * size:
            return True
    return False


def _modules(folders: list[str]) -> Iterator[DumpModule]:
    for folder in folders:
        try:
            yield from open_dump(folder).modules
        except HlotoolError as error:
            print(f"{folder}: {error}")


def _faults(module: DumpModule, seed: int, sites: int) -> Iterator[tuple[str, str, str, str]]:
    """Kind, place, verdict and reason of each fault that counts."""
    task = Task(module, ReplayOptions())
    selected = select_stages(module)
    before, after = selected.reference, selected.tested[-1]
    is_tpu = "after_codegen" in after.label or ".cl_" in str(after.source)
    with time_limit(_SECONDS):
        program = load_stage(module, after)
        trial = stage_trials(task)[0]
        right = _outputs(program, trial.arguments)
    for kind in KINDS:
        rng = np.random.default_rng(zlib.crc32(f"{seed} {module.name} {kind.name}".encode()))
        found = kind.sites(program)
        for index in rng.permutation(len(found))[:sites]:
            site = found[index]
            target = next(
                i
                for c in program.computations
                if c.name == site.computation
                for i in c.instructions
                if i.name == site.instruction
            )
            if _is_allowed(kind, program, target, is_tpu):
                continue
            try:
                faulty = kind.plant(program, site, seed)
                verify(faulty)
                with time_limit(_SECONDS):
                    if not _shows(right, _outputs(faulty, trial.arguments)):
                        continue
                    yield kind.name, str(site), *_judged(before.source, after.source, faulty, module)
            except (HlotoolError, TooSlow, ValueError) as error:
                print(f"  {module.name} {kind.name} {site}: {type(error).__name__}: {str(error)[:100]}")


def _judged(before: Any, after: Any, faulty: Module, module: DumpModule) -> tuple[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        names = [Path(str(source)).name for source in (before, after)]
        Path(folder, names[0]).write_bytes(before.read_bytes())
        Path(folder, names[1]).write_text(print_module(faulty), encoding="utf-8")
        [dumped] = open_dump(folder).modules
        [row, *_] = replay_module(Task(dumped, ReplayOptions()))
    reasons = [leaf.reason for leaf in row.leaves if leaf.verdict is row.verdict]
    return row.verdict.value, (reasons or [row.reason])[0]


def main() -> None:
    """Plant, judge, count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("dumps", nargs="+")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sites", type=int, default=1, help="of each kind in each program")
    parser.add_argument("--limit", type=int, default=0, help="programs")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    counts: Counter[tuple[str, str]] = Counter()
    records, programs = [], 0
    for module in _modules(options.dumps):
        if options.limit and programs >= options.limit:
            break
        try:
            for name, site, verdict, reason in _faults(module, options.seed, options.sites):
                counts[name, verdict] += 1
                records.append([module.name, name, site, verdict, reason])
                if verdict not in ("wrong", "range"):
                    print(f"{module.name}: {name} at {site}: {verdict}: {reason[:300]}", flush=True)
            programs += 1
        except (HlotoolError, TooSlow, IndexError) as error:
            print(f"{module.name}: {type(error).__name__}: {str(error)[:120]}", flush=True)
    verdicts = sorted({verdict for _, verdict in counts})
    print(f"\n{programs} programs, {len(records)} faults that show\n| fault | {' | '.join(verdicts)} |")
    for kind in KINDS:
        print(f"| {kind.name} | {' | '.join(str(counts[kind.name, v]) for v in verdicts)} |")
    total = {v: sum(n for (_, each), n in counts.items() if each == v) for v in verdicts}
    print(f"| all | {' | '.join(str(total[v]) for v in verdicts)} |")
    if options.json:
        options.json.write_text(json.dumps(records, indent=1))


if __name__ == "__main__":
    main()
