"""The trivial program that an optimised one takes the place of: the same parameters and results, no work."""

from __future__ import annotations

from hlotool.ir.builder import Builder
from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import ArrayShape, array_shapes


def host_module(module: Module) -> Module:
    """A program that takes what `module` takes and returns arrays of ones of the shapes of its result.

    Args:
        module: with a flat signature.
    """
    b = Builder("main")
    for number, parameter in enumerate(module.entry.parameters):
        b.parameter(number, parameter.shape)
    # One is a value that every element type has; f8e8m0fnu has no zero.
    results = [_ones(b, shape) for shape in array_shapes(module.entry.root.shape)]
    root = results[0] if len(results) == 1 else b.op("tuple", *results)
    return b.build_module(root)


def _ones(b: Builder, shape: ArrayShape) -> Instruction:
    one = b.constant(1, shape.element_type)
    return b.op("broadcast", one, shape=shape.without_layout(), dimensions=()) if shape.rank else one
