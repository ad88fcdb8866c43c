"""Thirty-two wrong rewrites as passes of a plug-in: does a campaign find each, and name the pass?

    python -m benchmarks.fuzz.planted_passes --programs 3000 --seed 1 --json

Each is the backend `opt:passes=simplify-tuples+PLANTED+dce`: our passes, one of which is wrong, then NumPy.
The generator knows nothing of them. Programs are drawn, judged and looked into as `hlotool fuzz` does it, but
that a program without the pattern of a pass is not judged with it, since it would change nothing.
`named`: a failure was confirmed, made small, blamed on the planted pass, and its bundle triggers.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from benchmarks import ROOT
from hlotool.ir.attributes import AttributeValue, PaddingDim, SliceDim
from hlotool.ir.edit import editing, with_attributes
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape
from hlotool.rewrite.passes.base import Context, Pass

#: What stands in the place of an instruction: an operand, or the opcode, operands and changed attributes of
#: another one of the same shape; None where the pattern does not fit.
Rewrite = Callable[[Instruction], "Instruction | tuple[str, tuple[Instruction, ...], dict[str, Any]] | None"]

#: Wrong rewrites by name: the opcode that each looks for, and what it does.
PLANTED: dict[str, tuple[str, Rewrite]] = {}


def _planted(name: str, opcode: str) -> Callable[[Rewrite], Rewrite]:
    def keep(rewrite: Rewrite) -> Rewrite:
        PLANTED[f"planted-{name}"] = (opcode, rewrite)
        return rewrite

    return keep


def _of_itself(name: str, opcode: str) -> None:
    """The outer one of two is taken for superfluous, where both together are."""

    @_planted(name, opcode)
    def rewrite(i: Instruction) -> Instruction | None:
        return i.operands[0] if i.operands[0].opcode == opcode else None


_of_itself("negate-of-negate", "negate")
_of_itself("not-of-not", "not")


@_planted("abs-of-negate", "abs")
def _abs_of_negate(i: Instruction) -> Any:
    return i.operands[0] if i.operands[0].opcode == "negate" else None


def _first_of_inner(name: str, outer: str, inner: str) -> None:
    """`outer(inner(a, b), c)` becomes `outer(a, c)`."""

    @_planted(name, outer)
    def rewrite(i: Instruction) -> Any:
        a, c = i.operands
        return (outer, (a.operands[0], c), {}) if a.opcode == inner else None


_first_of_inner("max-of-max", "maximum", "maximum")
_first_of_inner("and-of-or", "and", "or")


def _swapped(name: str, opcode: str, fits: Callable[[Instruction, Instruction], bool]) -> None:
    """Operands of what does not commute change places."""

    @_planted(name, opcode)
    def rewrite(i: Instruction) -> Any:
        if len(i.operands) != 2 or not fits(*i.operands) or i.operands[0].shape != i.operands[1].shape:
            return None
        return opcode, i.operands[::-1], {}


_swapped("subtract-of-broadcast", "subtract", lambda a, b: b.opcode in ("broadcast", "constant"))
_swapped("compare-with-broadcast", "compare", lambda a, b: b.opcode in ("broadcast", "constant"))
_swapped("concatenate-of-two", "concatenate", lambda a, b: True)
_swapped("dot-of-squares", "dot", lambda a, b: True)


@_planted("add-to-itself", "add")
def _add_to_itself(i: Instruction) -> Any:
    return i.operands[0] if i.operands[0] is i.operands[1] else None


@_planted("minimum-with-broadcast", "minimum")
def _minimum_with_broadcast(i: Instruction) -> Any:
    return i.operands[0] if i.operands[1].opcode in ("broadcast", "constant") else None


@_planted("multiply-by-broadcast", "multiply")
def _multiply_by_broadcast(i: Instruction) -> Any:
    return i.operands[0] if i.operands[1].opcode in ("broadcast", "constant") else None


@_planted("select-of-not", "select")
def _select_of_not(i: Instruction) -> Any:
    p, a, b = i.operands
    return ("select", (p.operands[0], a, b), {}) if p.opcode == "not" else None


@_planted("select-with-broadcast", "select")
def _select_with_broadcast(i: Instruction) -> Any:
    p, a, b = i.operands
    return ("select", (p, b, a), {}) if b.opcode in ("broadcast", "constant") else None


@_planted("less-or-equal", "compare")
def _less_or_equal(i: Instruction) -> Any:
    return ("compare", i.operands, {"direction": "LT"}) if i.attributes.get("direction") == "LE" else None


@_planted("clamp-from-above", "clamp")
def _clamp_from_above(i: Instruction) -> Any:
    _, x, high = i.operands
    return ("minimum", (x, high), {}) if x.shape == high.shape else None


@_planted("transpose-of-square", "transpose")
def _transpose_of_square(i: Instruction) -> Any:
    return i.operands[0] if i.operands[0].shape == i.shape else None


@_planted("reverse-of-two", "reverse")
def _reverse_of_two(i: Instruction) -> Any:
    dimensions = i.integers("dimensions")
    return ("reverse", i.operands, {"dimensions": dimensions[:1]}) if len(dimensions) > 1 else None


@_planted("slice-of-slice", "slice")
def _slice_of_slice(i: Instruction) -> Any:
    inner = i.operands[0]
    return ("slice", inner.operands, {}) if inner.opcode == "slice" else None


@_planted("slice-with-stride", "slice")
def _slice_with_stride(i: Instruction) -> Any:
    dims = i.listed("slice", SliceDim)
    if all(d.stride == 1 for d in dims):
        return None
    near = tuple(SliceDim(d.start, d.start + n) for d, n in zip(dims, i.array_shape.dims))
    return "slice", i.operands, {"slice": near}


@_planted("pad-low-and-high", "pad")
def _pad_low_and_high(i: Instruction) -> Any:
    dims = i.listed("padding", PaddingDim)
    if all(d.low == d.high for d in dims):
        return None
    return "pad", i.operands, {"padding": tuple(PaddingDim(d.high, d.low, d.interior) for d in dims)}


@_planted("pad-interior", "pad")
def _pad_interior(i: Instruction) -> Any:
    dims, sizes = i.listed("padding", PaddingDim), i.operands[0].array_shape.dims
    if not any(d.interior and n > 1 for d, n in zip(dims, sizes)):
        return None
    moved = tuple(PaddingDim(d.low, d.high + max(n - 1, 0) * d.interior) for d, n in zip(dims, sizes))
    return "pad", i.operands, {"padding": moved}


@_planted("iota-of-square", "iota")
def _iota_of_square(i: Instruction) -> Any:
    at, dims = i.integer("iota_dimension"), i.array_shape.dims
    other = next((d for d, n in enumerate(dims) if d != at and n == dims[at]), None)
    return None if other is None else ("iota", (), {"iota_dimension": other})


@_planted("dynamic-slice-positions", "dynamic-slice")
def _dynamic_slice_positions(i: Instruction) -> Any:
    x, *positions = i.operands
    return ("dynamic-slice", (x, *positions[::-1]), {}) if len(positions) > 1 else None


@_planted("update-of-update", "dynamic-update-slice")
def _update_of_update(i: Instruction) -> Any:
    inner, *others = i.operands
    return (i.opcode, (inner.operands[0], *others), {}) if inner.opcode == i.opcode else None


@_planted("broadcast-to-square", "broadcast")
def _broadcast_to_square(i: Instruction) -> Any:
    dimensions, dims = i.integers("dimensions", ()), i.array_shape.dims
    if len(dimensions) != 1 or len(dims) != 2 or dims[0] != dims[1]:
        return None
    return "broadcast", i.operands, {"dimensions": (1 - dimensions[0],)}


@_planted("reduce-of-broadcast", "reduce")
def _reduce_of_broadcast(i: Instruction) -> Any:
    inner = i.operands[0]
    fits = inner.opcode == "broadcast" and isinstance(i.shape, ArrayShape)
    return inner.operands[0] if fits and inner.operands[0].shape == i.shape else None


@_planted("sort-of-few", "sort")
def _sort_of_few(i: Instruction) -> Any:
    return i.operands[0] if len(i.operands) == 1 and i.shape == i.operands[0].shape else None


@_planted("convert-there-and-back", "convert")
def _convert_there_and_back(i: Instruction) -> Any:
    inner = i.operands[0]
    return inner.operands[0] if inner.opcode == "convert" and inner.operands[0].shape == i.shape else None


@_planted("shift-with-sign", "shift-right-arithmetic")
def _shift_with_sign(i: Instruction) -> Any:
    return "shift-right-logical", i.operands, {}


@_planted("root-of-square", "sqrt")
def _root_of_square(i: Instruction) -> Any:
    inner = i.operands[0]
    return inner.operands[0] if inner.opcode == "multiply" and len({*inner.operands}) == 1 else None


@_planted("remainder-of-remainder", "remainder")
def _remainder(i: Instruction) -> Any:
    a, b = i.operands
    return ("remainder", (b, a), {}) if a.shape == b.shape and a.opcode == "parameter" else None


def pass_of(planted: str) -> type[Pass]:
    """The pass that makes one of the wrong rewrites wherever its pattern stands."""
    opcode, rewrite = PLANTED[planted]

    @dataclass(frozen=True)
    class Planted:
        """A wrong rewrite."""

        name: ClassVar[str] = planted

        def run(self, module: Module, context: Context) -> None:
            for computation in module.computations:
                with editing(computation) as edit:
                    for i in edit:
                        found = rewrite(i) if i.opcode == opcode else None
                        if found is None or not context.spend(planted):
                            continue
                        edit.replace(
                            i, found if isinstance(found, Instruction) else edit.add(_made(i, found), i)
                        )

    return Planted


def _made(
    i: Instruction, found: tuple[str, tuple[Instruction, ...], dict[str, AttributeValue]]
) -> Instruction:
    opcode, operands, changes = found
    attributes = with_attributes(i.attributes if opcode == i.opcode else {}, **changes)
    return replace(i, opcode=opcode, operands=operands, attributes=attributes, control_predecessors=())


def __getattr__(name: str) -> type[Pass]:
    """The passes by name, with underscores: what the entry points of the plug-in load."""
    planted = name.replace("_", "-")
    if planted not in PLANTED:
        raise AttributeError(name)
    return pass_of(planted)


def plug_in(folder: Path) -> None:
    """Install the passes as a plug-in of this process and of those that it starts."""
    info = folder / "planted_passes-0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: planted-passes\nVersion: 0\n")
    lines = [f"{name} = benchmarks.fuzz.planted_passes:{name.replace('-', '_')}" for name in PLANTED]
    (info / "entry_points.txt").write_text("\n".join(["[hlotool.passes]", *lines, ""]))
    sys.path.insert(0, str(folder))
    os.environ["PYTHONPATH"] = os.pathsep.join([str(folder), str(ROOT), os.environ.get("PYTHONPATH", "")])


def main() -> None:
    """Draw programs until each planted pass is named, or there are no more."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=3000, help="drawn at most [3000]")
    parser.add_argument("--seed", type=int, default=0, help="of programs and inputs [0]")
    parser.add_argument("--only", default="", help="names of passes, with commas [all]")
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    arguments = parser.parse_args()
    names = arguments.only.split(",") if arguments.only else list(PLANTED)
    found: dict[str, dict[str, Any]] = {}
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        plug_in(Path(folder, "plug-in"))
        for name, row in _search(names, Path(folder), arguments.seed, arguments.programs):
            found[name] = row
            print(name, row, file=sys.stderr, flush=True)
    figures = {
        "planted": len(names),
        "found": sum(row["program"] >= 0 for row in found.values()),
        "named": sum(row["named"] for row in found.values()),
        "seed": arguments.seed,
        "programs": arguments.programs,
        "seconds": round(time.monotonic() - began),
        "passes": found,
    }
    print(json.dumps(figures) if arguments.json else f"{figures['named']} of {len(names)} named")


def _search(
    names: Sequence[str], folder: Path, seed: int, programs: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Passes that are found, each with the number of the first program that shows it."""
    from hlotool.lab.fuzz.oracle import FAILURES, Question, judge_program
    from hlotool.lab.fuzz.programs import Source
    from hlotool.runs.options.kept import RunOptions

    source, open_ = Source(seed), list(names)
    for index in range(programs):
        module = source.draw(index).module
        for name in [n for n in open_ if _has_pattern(module, n)]:
            options = RunOptions(
                backend=f"opt:passes=simplify-tuples+{name}+dce", seed=seed + index, timeout=60.0
            )
            judged = judge_program(Question(module.to_text(), options))
            if judged.kind in FAILURES:
                open_.remove(name)
                yield name, _looked_into(folder / name, index, module.to_text(), judged, options, name)
        if not open_:
            return
    yield from ((name, {"program": -1, "named": False}) for name in open_)


def _has_pattern(module: Module, planted: str) -> bool:
    opcode, rewrite = PLANTED[planted]
    return any(i.opcode == opcode and rewrite(i) is not None for i in module.instructions())


def _looked_into(
    folder: Path, index: int, text: str, judged: Any, options: Any, planted: str
) -> dict[str, Any]:
    """What the campaign would say of a failure."""
    from hlotool.interface.report.lab_records import FailureRecord
    from hlotool.lab.fuzz.triage import Settings, Triage

    folder.mkdir()
    path = folder / "program.hlo"
    path.write_text(text)
    if judged.inputs:
        path.with_suffix(".npz").write_bytes(judged.inputs)
    failure = FailureRecord(
        index=index,
        kind=judged.kind,
        failure=judged.failure,
        reason=judged.reason,
        backend=judged.backend,
        program=str(path),
    )
    fault = Triage(Settings(options, folder)).look_into(failure)
    return {
        "program": index,
        "kind": fault.kind,
        "pass": fault.pass_name,
        "named": fault.status == "new" and fault.pass_name == planted and fault.triggers,
        "instructions": [fault.before, fault.instructions],
        "problems": fault.problems,
    }


if __name__ == "__main__":
    main()
