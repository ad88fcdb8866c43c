"""Writes backends/numpy/OPCODES.md: what the numpy backend executes, found out by executing it.

PYTHONPATH=tests python -m spec.opcode_table --write
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from spec.minimal_modules import minimal_texts

from hlotool.backends.base import TOKEN
from hlotool.backends.numpy import NumpyBackend
from hlotool.errors import Unsupported
from hlotool.ir.arrays import dtype_of
from hlotool.ir.module import Module
from hlotool.ir.opcodes import OPCODES
from hlotool.ir.types import ArrayShape, ElementType, Shape, TupleShape
from hlotool.ir.verifier import verify
from hlotool.lab.conformance.agreement import DEPARTURES, Departure
from hlotool.parser.reader import parse_module

FILE = Path(__file__).resolve().parents[2] / "backends" / "numpy" / "OPCODES.md"

#: Columns: heading and element types.
CLASSES: dict[str, tuple[ElementType, ...]] = {
    "pred": (ElementType.PRED,),
    "s1…s64": tuple(t for t in ElementType if t.is_signed),
    "u1…u64": tuple(t for t in ElementType if t.is_unsigned),
    "f4…f8": tuple(t for t in ElementType if t.is_narrow_float and t.bits <= 8),
    "f16, bf16": (ElementType.F16, ElementType.BF16),
    "f32, f64": (ElementType.F32, ElementType.F64),
    "c64, c128": (ElementType.C64, ElementType.C128),
}

RUNS, NOT_HLO, REFUSED = "✓", "–", "✗"

HEAD = """# Opcodes on the numpy backend

Made by `PYTHONPATH=tests python -m spec.opcode_table --write`, which compiles and runs a small module for
every opcode and element type. What each opcode must do stands in `hlotool/lab/conformance/spec/<opcode>.hlo`.

✓ runs · – is not HLO: the verifier refuses it, and so does XLA · ✗ is HLO, but refused with an error that
says why. The notes give the reason behind each mark.

"""


@cache
def status(opcode: str, kind: ElementType) -> tuple[str, str]:
    """RUNS, NOT_HLO or REFUSED, and the reason why it does not run."""
    modules = [parse_module(text) for text in minimal_texts(opcode, kind)]
    valid = [module for module in modules if not verify(module)]
    if not valid:
        return NOT_HLO, verify(modules[0])[0].message
    try:
        NumpyBackend().compile(valid[0]).run(arguments(valid[0]))
    except Unsupported as error:
        return REFUSED, error.reason
    return RUNS, ""


def arguments(module: Module) -> list[Any]:
    """Ones for everything."""
    return [_argument(parameter.shape) for parameter in module.entry.parameters]


def _argument(shape: Shape) -> Any:
    if isinstance(shape, TupleShape):
        return tuple(_argument(element) for element in shape.elements)
    if not isinstance(shape, ArrayShape):
        return TOKEN
    return np.ones(shape.dims, dtype_of(shape.element_type))


def cell(opcode: str, kinds: Sequence[ElementType]) -> str:
    """One word if all types of a column agree, else what runs and what does not."""
    marks = {kind: status(opcode, kind)[0] for kind in kinds}
    if len(set(marks.values())) == 1:
        return marks[kinds[0]]
    common = max(set(marks.values()), key=list(marks.values()).count)
    others = {mark: [str(k) for k in kinds if marks[k] == mark] for mark in marks.values() if mark != common}
    return common + "".join(f" ({mark} {' '.join(names)})" for mark, names in others.items())


def notes(opcode: str) -> str:
    """The reason behind each mark of what does not run, and the rules by which XLA differs."""
    found = ((*status(opcode, kind), kind) for kind in ElementType)
    reasons = dict.fromkeys(f"{mark} {_without_type(reason, kind)}" for mark, reason, kind in found if reason)
    rules = [f"[{rule.id}](#{rule.id})" for rule in DEPARTURES.values() if opcode in rule.opcodes]
    return "; ".join([*reasons, *rules])


def _without_type(reason: str, kind: ElementType) -> str:
    """A reason that names the element type, in words that fit all of them."""
    reason = reason.partition(f", not {kind}")[0]
    for words in ("on", "give"):
        reason = reason.replace(f" {words} {kind}", f" {words} these types")
    return reason


def table() -> str:
    """A row per opcode."""
    heads = ["opcode", *CLASSES, "notes"]
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for opcode in OPCODES:
        cells = [cell(opcode, kinds) for kinds in CLASSES.values()]
        lines.append(f"| {' | '.join([f'`{opcode}`', *cells, notes(opcode)])} |")
    return "\n".join(lines)


def departures(side: str) -> str:
    """The rules of one side, as a list."""
    return "\n".join(_departure(rule) for rule in DEPARTURES.values() if rule.side == side)


def _departure(rule: Departure) -> str:
    where = "everywhere" if "*" in rule.opcodes else ", ".join(f"`{opcode}`" for opcode in rule.opcodes)
    return (
        f'- <a id="{rule.id}"></a>**{rule.id}** ({where}; {rule.types}). XLA: {rule.xla}. Here: {rule.ours}.'
    )


def document() -> str:
    """The whole file."""
    return (
        f"{HEAD}{table()}\n\n## Where XLA's CPU compiler gives something else\n\n"
        "Measured with jaxlib 0.10.2. `hlotool` is the reference in these cases: a difference of this kind "
        f"between two stages of a dump is known, and not the fault of the program.\n\n{departures('cpu')}\n\n"
        "## Where XLA's evaluator gives something else\n\n"
        "The evaluator folds constants, so that the same instruction may give one result on constants and "
        f"another one at run time.\n\n{departures('evaluator')}\n\n"
        "## Where the compilers of GPUs and TPUs give something else\n\n"
        "Measured on what jaxlib 0.10.2 compiles for an H100 and libtpu 0.0.42 for a TPU v5e.\n\n"
        f"{departures('gpu')}\n{departures('tpu')}\n"
    )


def main() -> None:
    """Print the file, or write it."""
    if sys.argv[1:] == ["--write"]:
        FILE.write_text(document(), encoding="utf-8")
    else:
        print(document())


if __name__ == "__main__":
    main()
