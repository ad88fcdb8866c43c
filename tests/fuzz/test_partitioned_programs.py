"""What XLA divides among devices, as the generator knows it (`limits.partitions`) and as XLA says."""

from __future__ import annotations

import pytest
from support.oracle import need_xla

from hlotool.backends.xla.backend import XlaBackend
from hlotool.backends.xla.options import XlaOptions
from hlotool.errors import BackendFailed, Unsupported
from hlotool.fuzz.programs.limits import partitions
from hlotool.parse.reader import parse_module

_REDUCERS = "".join(
    f"""{name} {{
  a = {kind}[] parameter(0)
  b = {kind}[] parameter(1)
  ROOT r = {kind}[] {body}
}}
"""
    for name, kind, body in (
        ("largest", "s32", "maximum(a, b)"),
        ("common", "s32", "and(a, b)"),
        ("last", "s32", "copy(b)"),
        ("either", "pred", "or(a, b)"),
        ("differ", "pred", "xor(a, b)"),
    )
)

_WHERE = (
    "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
    "input_batching_dims={1}, scatter_indices_batching_dims={1}, index_vector_dim=2"
)

#: The root of a program, and whether XLA divides it among four devices however its operands are divided.
ROOTS = [
    ("s32[8] reduce(x, z), dimensions={1}, to_apply=largest", True),
    ("s32[8] reduce(x, z), dimensions={1}, to_apply=common", False),
    ("s32[8] reduce(x, z), dimensions={1}, to_apply=last", False),
    ("pred[8] reduce(p, f), dimensions={1}, to_apply=either", True),
    ("pred[8] reduce(p, f), dimensions={1}, to_apply=differ", False),
    (f"s32[8,8] scatter(x, i, y), {_WHERE}, to_apply=largest", True),
    (f"s32[8,8] scatter(x, i, y), {_WHERE}, to_apply=common", False),
    (f"pred[8,8] scatter(p, i, b), {_WHERE}, to_apply=either", False),
    ("s32[8,8] convolution(x, w), dim_labels=bf_io->bf", True),
    ("s32[8,8] convolution(x, v), dim_labels=bf_io->bf, feature_group_count=4", False),
    ("s32[8,8] add(x, w)", True),
]

_SHARDINGS = ("[4,1]<=[4]", "[1,4]<=[4]", "[2,2]<=[4]")


def program(root: str, sharding: str) -> str:
    """A program for four devices whose matrices are divided like this."""
    parts = f"sharding={{devices={sharding}}}"
    return f"""HloModule m, num_partitions=4
{_REDUCERS}
ENTRY e {{
  x = s32[8,8] parameter(0), {parts}
  w = s32[8,8] parameter(1), {parts}
  v = s32[2,8] parameter(2), sharding={{devices=[1,4]<=[4]}}
  p = pred[8,8] parameter(3), {parts}
  i = s32[4,8,1] parameter(4), sharding={{devices=[4,1,1]<=[4]}}
  y = s32[4,8] parameter(5), {parts}
  b = pred[4,8] parameter(6), {parts}
  z = s32[] constant(0)
  f = pred[] constant(false)
  ROOT r = {root}
}}"""


@pytest.mark.parametrize(("root", "fits"), ROOTS)
def test_what_is_known(root: str, fits: bool) -> None:
    assert partitions(parse_module(program(root, _SHARDINGS[0])).entry.root) is fits


@pytest.mark.xla
@pytest.mark.parametrize(("root", "fits"), ROOTS)
def test_what_xla_says(root: str, fits: bool) -> None:
    need_xla()
    xla = XlaBackend(XlaOptions())
    is_divided = []
    for sharding in _SHARDINGS:
        try:
            xla.compile(parse_module(program(root, sharding)))
            is_divided.append(True)
        except (Unsupported, BackendFailed):
            is_divided.append(False)
    assert all(is_divided) is fits
