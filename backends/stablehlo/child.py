"""Runs StableHLO's interpreter, which ends the process whenever it meets something unknown."""

from __future__ import annotations

from typing import Any

import numpy as np

from hlotool.backends.stablehlo.protocol import Converted, Evaluation
from hlotool.backends.xla import jaxlib_api
from hlotool.backends.xla.protocol import ArrayData, Results


def evaluate(evaluation: Evaluation) -> Results:
    """Run a program once, on one device."""
    from jax.interpreters import mlir
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    code = jaxlib_api.to_stablehlo(evaluation.text)
    # A context that knows the dialects of StableHLO.
    with mlir.make_ir_context(), ir.Location.unknown():
        module = ir.Module.parse(code)
        _generalise_dots(module)
        arguments = [_attribute(data) for data in evaluation.arguments]
        results = stablehlo.eval_module(module, arguments)
        return Results(True, [[ArrayData.of(np.array(result)) for result in results]])


def convert(text: str) -> Converted:
    """StableHLO for HLO text, or why XLA makes none of it."""
    try:
        return Converted(jaxlib_api.to_stablehlo(text))
    except jaxlib_api.Refused as refusal:
        return Converted("", str(refusal))


def _attribute(data: ArrayData) -> Any:
    from jaxlib.mlir import ir

    array: Any = data.to_array()
    return ir.DenseElementsAttr.get(array, signless=array.dtype.kind != "u")


def _generalise_dots(module: Any) -> None:
    """`dot_general` for every `dot`, which the interpreter does not know."""
    found: list[Any] = []

    def collect(operation: Any) -> Any:
        from jaxlib.mlir import ir

        if operation.name == "stablehlo.dot":
            found.append(operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(collect)
    for dot in found:
        _generalise(dot)


def _generalise(dot: Any) -> None:
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    left, right = dot.operands
    contracted = ir.RankedTensorType(left.type).rank - 1
    dimensions = stablehlo.DotDimensionNumbers.get([], [], [contracted], [0])
    with ir.InsertionPoint(dot):
        general = stablehlo.dot_general(dot.results[0].type, left, right, dimensions)
    dot.results[0].replace_all_uses_with(general)
    dot.erase()
