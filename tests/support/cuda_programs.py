"""Small programs for backends that run generated kernels, each for one thing that must go right."""

from __future__ import annotations

from typing import Any

import numpy as np

from hlotool.ir.arrays import dtype_of
from hlotool.ir.module import Module
from hlotool.ir.types import ArrayShape, Shape, TupleShape

_ADD = """
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT
}
"""

_LOOP = """
condition {
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)
  ROOT r = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  u = f32[1] slice(x), slice={[0:1]}
  v = f32[1] add(u, u)
  y = f32[8] dynamic-update-slice(x, v, i)
  ROOT r = (s32[], f32[8]) tuple(j, y)
}
ENTRY main {
  x = f32[8] parameter(0)
  zero = s32[] constant(0)
  t = (s32[], f32[8]) tuple(zero, x)
  w = (s32[], f32[8]) while(t), condition=condition, body=body
  ROOT y = f32[8] get-tuple-element(w), index=1
}
"""

_SORT = """
ENTRY main {
  x = f32[1000] parameter(0)
  y = f32[1000] add(x, x)
  s = f32[1000] sort(y), dimensions={0}, to_apply=less
  ROOT z = f32[1000] multiply(s, x)
}
"""

_IN_A_FUSION = """
fused {
  x = f32[40] parameter(0)
  y = f32[40] parameter(1)
  m = f32[40] multiply(x, y)
  ROOT r = f32[40] add(m, x)
}
ENTRY main {
  x = f32[40] parameter(0)
  y = f32[40] negate(x)
  ROOT f = f32[40] fusion(x, y), kind=kLoop, calls=fused
}
"""

#: The fusion holds a sort: only that goes to the host.
_SORT_IN_A_FUSION = """
fused {
  x = f32[40] parameter(0)
  y = f32[40] negate(x)
  ROOT s = f32[40] sort(y), dimensions={0}, to_apply=less
}
ENTRY main {
  x = f32[40] parameter(0)
  ROOT f = f32[40] fusion(x), kind=kInput, calls=fused
}
"""

#: Nothing here moves an element.
_SAME_DATA = """
ENTRY main {
  x = f32[4,6] parameter(0)
  a = f32[24] reshape(x)
  b = s32[2,12] bitcast(a)
  c = s32[2,12] copy(b)
  t = (s32[2,12], f32[24]) tuple(c, a)
  u = s32[2,12] get-tuple-element(t), index=0
  v = (s32[2,12]) tuple(u)
  ROOT r = ((s32[2,12]), f32[24]) tuple(v, a)
}
"""

_LAYOUTS = """
ENTRY main {
  x = f32[4,6]{0,1} parameter(0)
  a = f32[6,4]{1,0} bitcast(x)
  b = f32[3,2,4]{2,0,1} bitcast(a)
  c = f32[6,1,4]{2,0,1} reshape(a)
  s = f32[3,2,4] negate(b)
  ROOT r = (f32[3,2,4], f32[6,1,4]) tuple(s, c)
}
"""

_CONSTANTS = """
ENTRY main {
  x = f32[8] parameter(0)
  c = f32[8] constant({1,2,3,4,5,6,7,8})
  y = f32[8] add(x, c)
  p = s32[] constant(1)
  two = f32[] constant(2)
  w = f32[8] broadcast(two), dimensions={}
  z = f32[8] multiply(y, w)
  ROOT r = (f32[8], f32[8], s32[]) tuple(z, c, p)
}
"""

_DYNAMIC = """
ENTRY main {
  x = f32[10] parameter(0)
  n = s32[] constant(6)
  d = f32[<=10] set-dimension-size(x, n), dimensions={0}
  e = f32[<=10] add(d, d)
  zero = f32[] constant(0)
  s = f32[] reduce(e, zero), dimensions={0}, to_apply=add
  k = s32[] get-dimension-size(e), dimensions={0}
  ROOT r = (f32[<=10], f32[], s32[]) tuple(e, s, k)
}
"""

_EMPTY = """
ENTRY main {
  x = f32[0,4] parameter(0)
  y = f32[0,4] add(x, x)
  zero = f32[] constant(7)
  s = f32[4] reduce(y, zero), dimensions={0}, to_apply=add
  p = f32[2,4] pad(x, zero), padding=1_1x0_0
  t = token[] after-all()
  n = (token[], f32[0,4]) tuple(t, x)
  ROOT r = (f32[0,4], f32[4], f32[2,4], (token[], f32[0,4])) tuple(y, s, p, n)
}
"""

_BRANCHES = """
first {
  x = f32[8] parameter(0)
  ROOT r = f32[8] add(x, x)
}
second {
  x = f32[8] parameter(0)
  ROOT r = f32[8] multiply(x, x)
}
ENTRY main {
  x = f32[8] parameter(0)
  n = s32[] parameter(1)
  one = s32[] constant(1)
  which = s32[] add(one, n)
  r = f32[8] conditional(which, x, x), branch_computations={first, second}
  yes = pred[] compare(which, one), direction=EQ
  s = f32[8] conditional(yes, r, r), true_computation=first, false_computation=second
  ROOT t = (f32[8], f32[8]) tuple(r, s)
}
"""

#: Nothing moves: what is asynchronous runs as kernels, what only annotates does nothing.
_ASYNC = """
doubled {
  x = f32[8] parameter(0)
  ROOT r = f32[8] add(x, x)
}
ENTRY main {
  x = f32[8] parameter(0)
  a = f32[8] custom-call(x), custom_call_target="Sharding", sharding={replicated}
  s = ((f32[8]), f32[8], s32[]) async-start(a), calls=doubled
  u = ((f32[8]), f32[8], s32[]) async-update(s)
  d = f32[8] async-done(u)
  c = (f32[8], f32[8], u32[]) copy-start(d)
  e = f32[8] copy-done(c)
  ROOT r = f32[8] multiply(e, a)
}
"""

#: 12 arrays of 8 kB are needed at the end.
_MANY_ALIVE = (
    "\nENTRY main {\n  x = f32[2048] parameter(0)\n"
    + "".join(
        f"  a{n} = f32[2048] {op}({'x' if n == 0 else f'a{n - 1}'}, x)\n"
        for n, op in enumerate(["add", "multiply", "subtract"] * 4)
    )
    + f"  ROOT r = ({', '.join(['f32[2048]'] * 12)}) tuple({', '.join(f'a{n}' for n in range(12))})\n}}\n"
)

_TOO_LARGE = """
ENTRY main {
  x = f32[] parameter(0)
  b = f32[4000,4000] broadcast(x), dimensions={}
  ROOT r = (f32[4000,4000]) tuple(b)
}
"""

_CHAIN = """
ENTRY main {
  x = f32[100] parameter(0)
  y = f32[100] add(x, x)
  ROOT z = f32[100] multiply(y, x)
}
"""

_ALL = {
    "chain": _CHAIN,
    "loop": _LOOP,
    "sort": _SORT,
    "in a fusion": _IN_A_FUSION,
    "sort in a fusion": _SORT_IN_A_FUSION,
    "same data": _SAME_DATA,
    "layouts": _LAYOUTS,
    "constants": _CONSTANTS,
    "dynamic": _DYNAMIC,
    "empty": _EMPTY,
    "branches": _BRANCHES,
    "async": _ASYNC,
    "many alive": _MANY_ALIVE,
}

#: Programs by name.
PROGRAMS = {name: f"HloModule program\n{_ADD}{text}" for name, text in _ALL.items()}

#: Needs 64 MB at once.
TOO_LARGE = f"HloModule program\n{_TOO_LARGE}"


_GROUPS = "{{0,1}}"

#: For two devices: what each has, its number, and a sum over both.
SPREAD = f"""HloModule spread, num_partitions=2
{_ADD}
ENTRY main {{
  x = f32[64] parameter(0)
  n = u32[] partition-id()
  f = f32[] convert(n)
  b = f32[64] broadcast(f), dimensions={{}}
  y = f32[64] add(x, b)
  r = f32[64] all-reduce(y), replica_groups={_GROUPS}, channel_id=1, use_global_device_ids=true, to_apply=add
  z = f32[64] multiply(r, y)
  ROOT t = (f32[64], f32[64]) tuple(z, y)
}}
"""


def _dot(kind: str, left: str, right: str, result: str, dimensions: str, result_kind: str = "") -> str:
    return f"""HloModule product
ENTRY main {{
  x = {kind}[{left}] parameter(0)
  y = {kind}[{right}] parameter(1)
  ROOT z = {result_kind or kind}[{result}] dot(x, y), {dimensions}
}}
"""


_ROWS_BY_COLUMNS = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"

#: Dots that are large enough for a library. Those called `moved` need transpositions first.
DOTS = {
    "plain": _dot("f32", "128,130", "130,136", "128,136", _ROWS_BY_COLUMNS),
    "transposed": _dot(
        "f32", "130,128", "136,130", "128,136", "lhs_contracting_dims={0}, rhs_contracting_dims={1}"
    ),
    "f64": _dot("f64", "128,130", "130,136", "128,136", _ROWS_BY_COLUMNS),
    "bf16": _dot("bf16", "128,130", "130,136", "128,136", _ROWS_BY_COLUMNS),
    "bf16 to f32": _dot("bf16", "128,130", "130,136", "128,136", _ROWS_BY_COLUMNS, "f32"),
    "f16": _dot("f16", "128,130", "130,136", "128,136", _ROWS_BY_COLUMNS),
    "c64": _dot("c64", "128,130", "130,136", "128,136", _ROWS_BY_COLUMNS),
    "c128": _dot("c128", "128,130", "130,136", "128,136", _ROWS_BY_COLUMNS),
    "batched": _dot(
        "f32", "4,64,2,96", "4,2,96,64", "4,2,64,64",
        "lhs_batch_dims={0,2}, rhs_batch_dims={0,1}, lhs_contracting_dims={3}, rhs_contracting_dims={2}",
    ),
    "moved": _dot(
        "f32", "8,64,96,3", "96,64,3", "8,64,64",
        "lhs_contracting_dims={2,3}, rhs_contracting_dims={0,2}",
    ),
    "vector": _dot("f32", "2048,1100", "1100", "2048", _ROWS_BY_COLUMNS),
}  # fmt: skip


def arguments_for(module: Module) -> list[Any]:
    """Numbers for the parameters."""
    rng = np.random.default_rng(0)
    return [_numbers(parameter.shape, rng) for parameter in module.entry.parameters]


def _numbers(shape: Shape, rng: np.random.Generator) -> Any:
    if isinstance(shape, TupleShape):
        return tuple(_numbers(element, rng) for element in shape.elements)
    assert isinstance(shape, ArrayShape)
    numbers = rng.standard_normal(shape.dims) * 4
    is_complex = shape.element_type.is_complex
    return (numbers + 1j * numbers[..., ::-1] if is_complex else numbers).astype(dtype_of(shape.element_type))
