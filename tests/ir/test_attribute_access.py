"""Attributes and shapes read by their kind; expected values are written in the program below."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import hlotool
from hlotool.backends.numpy import NumpyBackend
from hlotool.errors import Unsupported, VerificationError
from hlotool.ir.attributes import PaddingDim, ReplicaGroups, Sharding, SliceDim, Window, WindowDim
from hlotool.ir.module import MISFITS, Instruction, Module

TEXT = """HloModule made, replica_count=2, input_output_alias={ {}: (0, {}, may-alias) }

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}

ENTRY main {
  x = f32[4,6] parameter(0), frontend_attributes={place="host"}
  zero = f32[] constant(0)
  pair = (f32[4,6], f32[]) tuple(x, zero)
  taken = f32[4,6] get-tuple-element(pair), index=0, dimensions=odd
  less = pred[4,6] compare(x, taken), direction=LT
  cut = f32[2,6] slice(x), slice={[0:4:2], [0:6]}
  wide = f32[4,9] pad(x, zero), padding=1_2x0_0_0
  total = f32[4] reduce(x, zero), dimensions={1}, to_apply=add
  pool = f32[4,5] reduce-window(x, zero), window={size=1x2}, to_apply=add
  all = f32[4,6] all-reduce(x), replica_groups={{0,1}}, to_apply=add
  called = f32[4,6] custom-call(x), custom_call_target="Known", backend_config="{\\"n\\": 1}"
  ordered = (f32[4,6]) sort(x), dimensions={0}, is_stable=true, to_apply=add
  norm = f32[4,6] batch-norm-inference(x, x, x, x, x), epsilon=0.5, feature_index=1
  ROOT out = f32[4,6] add(x, called)
}
"""


@pytest.fixture(scope="module")
def module() -> Module:
    """The program above, read but not verified: it holds only what the accessors need."""
    text = TEXT.replace("1_2x0_0_0", "0_0x1_2_0")
    return hlotool.load_text(text) if hasattr(hlotool, "load_text") else hlotool.parse(text)


def named(module: Module, name: str) -> Instruction:
    """The instruction of the entry with this name."""
    return next(i for i in module.entry.instructions if i.name == name)
