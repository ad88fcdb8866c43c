"""Does `run --repeat` name class and instruction of programs whose runs differ?

    python -m benchmarks.repeat --seed 1 --count 20 [--json]

Of programs of the corpus and drawn ones one instruction is marked, and `racing.py` lets it race, or sum in
another order, in 15 to 60 % of its runs; a fifth are left alone. A race counts as planted where it moves an
output by more than a thousandth of its largest element, an order where it changes bits, as the arrays say.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import hlotool
from benchmarks import ROOT
from benchmarks.others.archive import apart
from benchmarks.repeat.racing import PLANTED, RacingBackend, install
from hlotool.backends.numpy import NumpyBackend
from hlotool.errors import HlotoolError
from hlotool.inputs.generate import generate_inputs
from hlotool.inputs.given import arrays_in
from hlotool.ir.attributes import FrontendAttributes
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape, array_shapes
from hlotool.lab.fuzz.programs import Source
from hlotool.parser.reader import parse_module
from hlotool.runs.records import ModuleRecord
from hlotool.sources.directory import open_dump
from hlotool.sources.loading import load_stage

KINDS = ("race", "order", "none")
#: Runs of each program: of a rate of 15 % all of them are alike once in 700 programs.
_RUNS = 40
#: Characters of a program of the corpus.
_LONGEST = 30_000
#: They hand on what others computed.
_NO_WORK = {"parameter", "constant", "iota", "get-tuple-element", "bitcast", "reshape", "broadcast"}


@dataclass(frozen=True)
class Made:
    """A program: its text, what is planted in which instruction, and how often that shows."""

    text: str
    kind: str
    instruction: str = ""
    rate: float = 0.5


def programs(seed: int, count: int) -> Iterator[Made]:
    """Draw them: two fifths races, two fifths orders, the rest as they are; half of each from the corpus.

    No integers race: their loops might never end.
    """
    rng = random.Random(seed)
    source = Source(seed, origins={"graph": 1.0, "idioms": 1.0}, max_instructions=100)
    real = sorted(path for path in (ROOT / "corpus/jax").iterdir() if path.is_dir())
    rng.shuffle(real)
    index = 0
    for number in range(count):
        kind = "none" if number % 5 == 4 else KINDS[number % 2]
        while True:
            index += 1
            try:
                module = _of_dump(real.pop()) if number % 4 < 2 and real else source.draw(index).module
            except HlotoolError:
                continue
            if (
                module is not None
                and len(module.to_text()) < _LONGEST
                and (made := _planted(module, kind, rng)) is not None
            ):
                yield made
                break


def _of_dump(folder: Path) -> Module | None:
    """The largest program of a folder of the corpus that is short and for one device."""
    owners = (owner for owner in open_dump(folder).modules if owner.stages)
    sizes = {len(owner.stages[0].source.read_bytes()): owner for owner in owners}
    size = max((size for size in sizes if size < _LONGEST), default=0)
    module = load_stage(sizes[size], sizes[size].stages[0]) if size else None
    return module if module is not None and module.replica_count * module.num_partitions == 1 else None


def _planted(module: Module, kind: str, rng: random.Random) -> Made | None:
    """The program with a mark that shows in its outputs; None where there is no place for one."""
    if any(i.opcode.startswith(("rng", "custom-call")) or _ends_by_floats(i) for i in module.instructions()):
        return None
    if kind == "none":
        return Made(module.to_text(), kind)
    places = [i for c in module.computations for i in c.instructions if _fits(i, kind)]
    for instruction in rng.sample(places, min(len(places), 6)):
        before = dict(instruction.attributes)
        instruction.attributes = {
            **before,
            "frontend_attributes": FrontendAttributes(((PLANTED, f'"{kind}"'),)),
        }
        rate = round(rng.uniform(0.15, 0.6), 2)
        if _shows(text := module.to_text(), kind):
            return Made(text, kind, instruction.name, rate)
        instruction.attributes = before
    return None


def _ends_by_floats(instruction: Instruction) -> bool:
    """Whether it is a loop that may go on for ever where a number is another one."""
    if instruction.opcode != "while":
        return False
    parts = (
        part for i in instruction.computation("condition").instructions for part in array_shapes(i.shape)
    )
    return any(part.element_type.is_inexact for part in parts)


def _fits(instruction: Instruction, kind: str) -> bool:
    shape = instruction.shape
    if not isinstance(shape, ArrayShape) or not shape.element_type.is_floating or 0 in shape.dims:
        return False
    if kind == "race":
        return instruction.opcode not in _NO_WORK
    if instruction.opcode == "reduce":
        return instruction.computation("to_apply").root.opcode == "add"
    return instruction.opcode == "dot"


def _shows(text: str, kind: str) -> bool:
    """Whether each of three runs with the fault is another one, by as much as it should be."""
    try:
        module = parse_module(text)
        arguments = list(generate_inputs(module, 0).values)
        with np.errstate(all="ignore"):
            [right] = [list(arrays_in((NumpyBackend().compile(module).run(arguments),)))]
            faulty = RacingBackend(1.0, 0).compile(module)
            off = [
                max((apart(a, b) for a, b in zip(right, arrays_in((faulty.run(arguments),)))), default=0.0)
                for _ in range(3)
            ]
    except (HlotoolError, RecursionError):
        return False
    finite = all(np.isfinite(a).all() for a in right if a.dtype.kind in "fc")
    return finite and (min(off) > 1e-3 if kind == "race" else 0 < max(off) < 1e-5)


def measured(made: Made, folder: Path, seed: int) -> dict[str, Any]:
    """What `run --repeat` says of a program."""
    (path := folder / "program.hlo").write_text(made.text)
    began = time.perf_counter()
    backend = f"racing:rate={made.rate},seed={seed}"
    [row] = hlotool.replay(path, backend=backend, repeat=_RUNS, cache=False).rows
    said = _said(row)
    wanted = {"race": "illegal", "order": "legal spread", "none": "identical"}[made.kind]
    named = row.divergence.source.instruction if row.divergence is not None else ""
    repeat = row.repeated
    cases = 0 if repeat is None else repeat.wrong or repeat.runs - repeat.usual
    instructions = sum(len(c.instructions) for c in parse_module(made.text).computations)
    return {
        "planted": made.kind, "rate": made.rate, "instructions": instructions, "said": said,
        "cases": cases,
        "class": said == wanted,
        "instruction": named == made.instruction,
        "named": named, "wanted": made.instruction, "verdict": row.verdict.value,
        "finding": row.divergence.finding if row.divergence else row.divergence_missing,
        "seconds": round(time.perf_counter() - began, 1),
    }  # fmt: skip


def _said(row: ModuleRecord) -> str:
    if row.repeated is None:
        return row.verdict.value
    if row.repeated.results == 1:
        return "identical"
    return "illegal" if row.repeated.wrong else "legal spread"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of programs, places, rates and runs [0]")
    parser.add_argument("--count", type=int, default=20, help="programs [20]")
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        install(Path(folder, "plug-in"))
        found = []
        for number, made in enumerate(programs(asked.seed, asked.count)):
            found.append(measured(made, Path(folder), asked.seed + number))
            print(json.dumps(found[-1]), file=sys.stderr, flush=True)
    figures = {
        "programs": len(found),
        "right class": sum(one["class"] for one in found),
        "right instruction": sum(one["instruction"] for one in found),
        "false": sum(not one["instruction"] and bool(one["named"]) for one in found),
        "median_seconds": float(np.median([one["seconds"] for one in found])),
    }
    print(json.dumps(figures) if asked.json else "\n".join(f"{k}: {v}" for k, v in figures.items()))


if __name__ == "__main__":
    main()
