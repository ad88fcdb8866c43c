"""From one element type to another."""

from __future__ import annotations

from hlotool.backends.numpy.casting import converter
from hlotool.backends.numpy.lowering import Lowering
from hlotool.backends.numpy.patterns import reinterpret
from hlotool.backends.numpy.registry import Kernel, lowers
from hlotool.ir.module import Instruction


@lowers("convert")
def convert(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The same value in another type; `casting` has the rules. XLA: #convertelementtype."""
    source = instruction.operands[0].element_type
    return converter(source, instruction.element_type)


@lowers("bitcast-convert")
def bitcast_convert(instruction: Instruction, lowering: Lowering) -> Kernel:
    """The same bits in another type.

    A wider type joins the elements of the last dimension, a narrower one adds a last dimension of its parts,
    lowest bits first. Of types of one width, scalars may be arrays of lanes.
    XLA: operation_semantics.md#bitcastconverttype.
    """
    source, target = instruction.operands[0].array_shape, instruction.array_shape
    old, new = source.element_type, target.element_type
    if source.is_dynamic or target.is_dynamic:
        raise lowering.unsupported(instruction, "bitcast-convert of an array of dynamic size")
    if source.size * old.bits != target.size * new.bits:
        raise lowering.unsupported(instruction, f"{source} and {target} have unequal numbers of bits")
    if old.bits == new.bits:
        return lambda x: reinterpret(x, old, new).reshape(x.shape)
    dims = target.dims
    return lambda x: reinterpret(x, old, new).reshape(dims)
