"""Arguments as XLA's own tool takes them: `run_hlo_module --input_literals_file=FILE`.

XLA: xla/tools/run_hlo_module.proto.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hlotool.ir.literal import Literal
from hlotool.ir.module import Module
from hlotool.ir.types import ArrayShape, Shape, TupleShape
from hlotool.parse.proto.literals import write_literal
from hlotool.parse.proto.schema import message_class


def tool_inputs(module: Module, arguments: Sequence[Any]) -> bytes:
    """A serialized RunHloModuleLiterals of one iteration.

    Args:
        module: the program.
        arguments: one value per parameter of its entry, tuples for tuples.
    """
    message = message_class("RunHloModuleLiterals")()
    iteration = message.iterations.add()
    for parameter, value in zip(module.entry.parameters, arguments):
        write_literal(iteration.arguments.add(), _literal(parameter.shape, value))
    return bytes(message.SerializeToString(deterministic=True))


def _literal(shape: Shape, value: Any) -> Literal:
    if isinstance(shape, TupleShape):
        return Literal(shape, tuple(map(_literal, shape.elements, value)))
    return Literal(shape, np.asarray(value, order="C") if isinstance(shape, ArrayShape) else None)
