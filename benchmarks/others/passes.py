"""A compiler with faults: legal rewrites that round otherwise, wrong ones, and ones that end the process.

The wrong ones are those of `benchmarks.fuzz.planted_passes`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.fuzz.planted_passes import PLANTED, pass_of, plug_in
from hlotool.ir.edit import editing
from hlotool.ir.module import Instruction, Module
from hlotool.rewrite.passes.base import Context, Pass

#: Wrong rewrites in the compiler: they look for what many programs have.
WRONG = (
    "planted-negate-of-negate",
    "planted-subtract-of-broadcast",
    "planted-compare-with-broadcast",
    "planted-multiply-by-broadcast",
    "planted-select-with-broadcast",
    "planted-pad-low-and-high",
    "planted-slice-with-stride",
    "planted-reverse-of-two",
    "planted-shift-with-sign",
    "planted-concatenate-of-two",
)
#: Opcodes that end the process, by the pass that does it.
DEADLY = {"planted-death-of-sort": "sort", "planted-death-of-popcnt": "popcnt"}
LEGAL = "other-order-of-sums"


def fires(module: Module, name: str) -> bool:
    """Whether a pass does something to a program."""
    if name in DEADLY:
        return any(i.opcode == DEADLY[name] for i in module.instructions())
    opcode, rewrite = PLANTED[name]
    return any(i.opcode == opcode and rewrite(i) is not None for i in module.instructions())


@dataclass(frozen=True)
class OtherOrderOfSums:
    """a + (b + c) for (a + b) + c, of floats: legal, and rounded otherwise."""

    name: ClassVar[str] = LEGAL

    def run(self, module: Module, context: Context) -> None:
        """Change the first such sum of each computation."""
        for computation in module.computations:
            with editing(computation) as edit:
                for i in edit:
                    inner = i.operands[0] if i.opcode == "add" else None
                    if inner is None or inner.opcode != "add" or not _is_of_floats(i):
                        continue
                    (a, b), c = inner.operands, i.operands[1]
                    tail = edit.add(_like(i, (b, c)), i)
                    edit.replace(i, edit.add(_like(i, (a, tail)), i))
                    break


def _is_of_floats(i: Instruction) -> bool:
    return str(i.shape).startswith(("f32", "f64", "f16", "bf16"))


def _like(i: Instruction, operands: tuple[Instruction, ...]) -> Instruction:
    from dataclasses import replace

    return replace(i, operands=operands, control_predecessors=())


def _deadly(planted: str) -> type[Pass]:
    @dataclass(frozen=True)
    class Deadly:
        """Ends the process at its pattern."""

        name: ClassVar[str] = planted

        def run(self, module: Module, context: Context) -> None:
            if fires(module, planted):
                os.abort()

    return Deadly


def __getattr__(name: str) -> Any:
    """The passes by name, with underscores: what the entry points of the plug-in load."""
    planted = name.replace("_", "-")
    if planted in DEADLY:
        return _deadly(planted)
    if planted == LEGAL:
        return OtherOrderOfSums
    if planted not in PLANTED:
        raise AttributeError(name)
    return pass_of(planted)


def install(folder: Path) -> str:
    """Install the passes as a plug-in; the spec of the compiler that has them."""
    plug_in(folder)
    info = folder / "planted_passes-0.dist-info" / "entry_points.txt"
    names = (LEGAL, *WRONG, *DEADLY)
    lines = [f"{name} = benchmarks.others.passes:{name.replace('-', '_')}" for name in names]
    info.write_text("\n".join(["[hlotool.passes]", *lines, ""]))
    return f"opt:passes=simplify-tuples+{'+'.join(names)}+dce"
