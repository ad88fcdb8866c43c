"""What XLA divides among devices, as the generator knows it (`limits.partitions`) and as XLA says."""

from __future__ import annotations

from math import prod

import pytest
from support.oracle import need_xla

from hlotool.backends.xla.backend import XlaBackend
from hlotool.backends.xla.options import XlaOptions
from hlotool.errors import BackendFailed, Unsupported
from hlotool.lab.fuzz.programs.limits import partitions
from hlotool.parser.reader import parse_module

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

_INTO = (
    "update_window_dims={1}, inserted_window_dims={1,2}, scatter_dims_to_operand_dims={2,0}, "
    "index_vector_dim=1"
)
_FROM = (
    "offset_dims={1}, collapsed_slice_dims={0,2}, start_index_map={2,0}, index_vector_dim=1, "
    "slice_sizes={1,8,1}"
)
_GROUPED = "convolution(x, v), window={size=1}, dim_labels=bf0_io0->0bf, feature_group_count=2"

#: The root of a program, and whether XLA divides it among the devices however its operands are divided.
ROOTS = [
    ("s32[8] reduce(x, z), dimensions={1}, to_apply=largest", True),
    ("s32[8] reduce(x, z), dimensions={1}, to_apply=common", False),
    ("s32[8] reduce(x, z), dimensions={1}, to_apply=last", False),
    ("pred[8] reduce(p, f), dimensions={1}, to_apply=either", True),
    ("pred[8] reduce(p, f), dimensions={1}, to_apply=differ", False),
    (f"s32[8,8,2] scatter(t, i, y), {_INTO}, to_apply=largest", True),
    (f"s32[8,8,2] scatter(t, j, y), {_INTO}, to_apply=largest", False),
    (f"s32[3,8] gather(d, i), {_FROM}", True),
    (f"s32[3,8] gather(d, b), {_FROM}", False),
    ("s32[8,8] convolution(x, w), dim_labels=bf_io->bf", True),
    (f"s32[7,2,6] {_GROUPED.replace('x', 'c')}", False),
    ("s32[8,20] pad(x, z), padding=0_0x-1_2_2", False),
    ("s32[8,24] pad(x, z), padding=0_0x0_2_2", True),
    ("s32[8,1] slice(x), slice={[0:8], [3:4:3]}", False),
    ("s32[8,2] slice(x), slice={[0:8], [3:7:3]}", True),
    ("s32[8,15] reduce-window(u, z), window={size=1x3 pad=0_0x1_1 lhs_dilate=1x2}, to_apply=largest", False),
    ("s32[8,8] reduce-window(u, z), window={size=1x3 pad=0_0x1_1}, to_apply=largest", True),
    ("s32[8,8] add(x, w)", True),
]

_DEVICES = (2, 4, 8)


def test_an_argmax_may_become_a_function_of_two_arguments() -> None:
    text = """arg {
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  less = pred[] compare(a, b), direction=LT
  x = f32[] select(less, a, b)
  k = s32[] select(less, i, j)
  ROOT t = (f32[], s32[]) tuple(x, k)
}
ENTRY e {
  x = f32[8] parameter(0)
  i = s32[8] iota(), iota_dimension=0
  z = f32[] constant(inf)
  zero = s32[] constant(0)
  ROOT r = (f32[], s32[]) reduce(x, i, z, zero), dimensions={0}, to_apply=arg
}"""
    assert not partitions(parse_module(text).entry.root)


def program(root: str, devices: int) -> str:
    """A program for so many devices whose arrays are divided in several ways."""

    def tiled(*tiles: int) -> str:
        copies = devices // prod(tiles)
        dims = ",".join(map(str, (*tiles, copies) if copies > 1 else tiles))
        replicated = " last_tile_dim_replicate" if copies > 1 else ""
        return f"sharding={{devices=[{dims}]<=[{devices}]{replicated}}}"

    columns = tiled(1, devices)
    both = tiled(2, 2, 1) if devices > 2 else tiled(2, 1, 1)
    of_root = {2: f", {columns}", 3: f", {tiled(1, 1, 2)}"}.get(root.partition("]")[0].count(",") + 1, "")
    return f"""HloModule m, num_partitions={devices}
{_REDUCERS}
ENTRY e {{
  x = s32[8,8] parameter(0), {columns}
  w = s32[8,8] parameter(1), {columns}
  c = s32[2,4,7] parameter(2), {tiled(1, 2, 1)}
  v = s32[2,6,1] parameter(3), {both}
  p = pred[8,8] parameter(4), {columns}
  t = s32[8,8,2] parameter(5), sharding={{replicated}}
  i = s32[3,2] parameter(6), {tiled(2, 1)}
  j = s64[3,2] parameter(7), {tiled(2, 1)}
  b = u8[3,2] parameter(8), {tiled(2, 1)}
  y = s32[3,8] parameter(9)
  u = s32[8,8] parameter(10), sharding={{replicated}}
  d = s32[8,8,2] parameter(11), {tiled(2, 1, 1)}
  z = s32[] constant(0)
  f = pred[] constant(false)
  ROOT r = {root}{of_root}
}}"""


@pytest.mark.parametrize(("root", "fits"), ROOTS)
def test_what_is_known(root: str, fits: bool) -> None:
    assert partitions(parse_module(program(root, _DEVICES[0])).entry.root) is fits


@pytest.mark.xla
@pytest.mark.parametrize(("root", "fits"), ROOTS)
def test_what_xla_says(root: str, fits: bool) -> None:
    need_xla()
    xla = XlaBackend(XlaOptions())
    is_divided = []
    for devices in _DEVICES:
        try:
            xla.compile(parse_module(program(root, devices)))
            is_divided.append(True)
        except (Unsupported, BackendFailed):
            is_divided.append(False)
    assert all(is_divided) is fits
