"""A program whose instructions and arguments all change in the same way: to other sizes, to another type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hlotool.errors import HlotoolError
from hlotool.ir.edit_clone import clone_module
from hlotool.ir.module import Instruction
from hlotool.ir.verifier import verify_or_raise
from hlotool.ir.walk import call_order
from hlotool.search.reduction.case import Case


def rewritten(
    case: Case, change: Callable[[Instruction], None], change_array: Callable[[Any], Any]
) -> Case | None:
    """A changed copy of a program; None where it is no valid one.

    Args:
        case: the program.
        change: is given every instruction of the copy, callees before callers; raises where it cannot be.
        change_array: what becomes of each array in the arguments.
    """
    module = clone_module(case.module).module
    # What the header says of shapes is no longer so.
    module.attributes = {n: v for n, v in module.attributes.items() if n != "entry_computation_layout"}
    try:
        for computation in call_order(module):
            for instruction in computation.instructions:
                change(instruction)
        verify_or_raise(module)
    except HlotoolError:
        return None
    return case.changed(module, lambda row: [_each_array(argument, change_array) for argument in row])


def _each_array(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, tuple):
        return tuple(_each_array(part, change) for part in value)
    return change(value) if isinstance(value, np.ndarray | np.generic) else value
