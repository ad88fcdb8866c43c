"""Idioms of host memory: what is moved there, read or updated there, and moved back.

Compilers for TPUs alone take them. Where they refuse a program, that is an answer.
"""

from __future__ import annotations

from hlotool.checks.offload.positions import PLACEMENT_ATTRIBUTE, PLACEMENT_TARGET
from hlotool.ir.attributes import FrontendAttributes, SliceDim
from hlotool.ir.module import Instruction
from hlotool.lab.fuzz.programs.graph import Graph
from hlotool.lab.fuzz.programs.idioms.indices import dynamic_slice, somewhere, update
from hlotool.lab.fuzz.programs.idioms.table import idiom


def _placed(g: Graph, x: Instruction, where: str) -> Instruction:
    return g.op(
        "custom-call",
        x,
        shape=x.shape,
        custom_call_target=PLACEMENT_TARGET,
        custom_call_has_side_effect=True,
        frontend_attributes=FrontendAttributes(((PLACEMENT_ATTRIBUTE, f'"{where}"'),)),
    )


def _row(g: Graph, x: Instruction) -> tuple[int, ...]:
    """One element of the first dimension, all of the others."""
    return (1, *x.array_shape.dims[1:])


@idiom("to the host and back", 1, bits=8, offloads=True)
def _there_and_back(g: Graph, x: Instruction) -> None:
    _placed(g, _placed(g, x, "pinned_host"), "device")


@idiom("slice of what lies on the host", 1, bits=8, offloads=True)
def _slice_on_host(g: Graph, x: Instruction) -> None:
    lies, sizes = _placed(g, x, "pinned_host"), _row(g, x)
    _placed(g, dynamic_slice(g, lies, somewhere(g, x.array_shape.dims, sizes), sizes), "device")


@idiom("update of what lies on the host", 1, bits=8, offloads=True)
def _update_on_host(g: Graph, x: Instruction) -> None:
    """A buffer that is made there, or moved; all of it is moved back, or a row."""
    dims, sizes = x.array_shape.dims, _row(g, x)
    if g.chance():
        buffer = g.broadcast(g.constant(g.choose([0, 1]), x.array_shape.element_type), dims, ())
    else:
        buffer = _placed(g, x, "pinned_host")
    made = g.op("slice", x, slice=tuple(SliceDim(0, n) for n in sizes))
    part = _placed(g, made, "pinned_host")
    for _ in range(g.choose([1, 1, 2])):
        buffer = update(g, buffer, part, somewhere(g, dims, sizes))
    if g.chance():
        buffer = dynamic_slice(g, buffer, somewhere(g, dims, sizes), sizes)
    _placed(g, buffer, "device")
