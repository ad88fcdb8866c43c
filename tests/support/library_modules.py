"""Modules of one library call, as the pipelines of XLA print them after optimisation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from hlotool.ir.arrays import DTYPES
from hlotool.ir.types import ELEMENT_TYPES
from hlotool.lab.conformance.generators.cases import random_array

_SHAPE = re.compile(r"(\w+)\[([\d,]*)\]")


def call_module(target: str, result: str, operands: Sequence[str], config: str, more: str = "") -> str:
    """A module whose entry calls `target` on its parameters.

    Args:
        target: of the custom call.
        result: its shape; of a tuple, all elements are results of the module.
        operands: their shapes.
        config: its backend config.
        more: further attributes, each after a comma.
    """
    names = ", ".join(f"%p{i}" for i in range(len(operands)))
    parameters = "\n".join(f"  %p{i} = {shape} parameter({i})" for i, shape in enumerate(operands))
    return f"""HloModule jit_f, is_scheduled=true

ENTRY %main.1 {{
{parameters}
  ROOT %custom-call.1 = {result} custom-call({names}){more}, custom_call_target="{target}",
    backend_config={config}
}}
"""


def gpu_config(**sections: str) -> str:
    """The backend config of a GPU instruction."""
    listed = "".join(f'"{name}":{text},' for name, text in sections.items())
    queue = '"operation_queue_id":"0","wait_on_operation_queues":[]'
    return f'{{{queue},{listed}"force_earliest_schedule":false,"reification_cost":[]}}'


def operands_of(shapes: Sequence[str], seed: int = 3, limit: int = 4) -> list[Any]:
    """Random arrays of these shapes; integers below `limit`."""
    rng = np.random.default_rng(seed)
    return [random_array(rng, kind, sizes, limit) for kind, sizes in map(parts, shapes)]


def parts(shape: str) -> tuple[str, tuple[int, ...]]:
    """(element type, dimensions) of an array shape."""
    found = _SHAPE.match(shape)
    assert found is not None
    return found[1], tuple(int(size) for size in found[2].split(",") if size)


def rounded_to(kind: str, value: Any) -> Any:
    """An array of f64 in the type of that name."""
    return np.asarray(value).astype(DTYPES[ELEMENT_TYPES[kind]])
