"""Loops that are followed, iteration by iteration: what one more does, and whether there is an end."""

from __future__ import annotations

import numpy as np
import pytest

from hlotool.backends.base import Value
from hlotool.backends.numpy import NumpyBackend
from hlotool.directed.plan import directed_sets
from hlotool.errors import Unsupported
from hlotool.ir.dtypes import Array
from hlotool.ir.module import Module
from hlotool.parse.reader import parse_module
from hlotool.search.mutation.laws import LAWS
from hlotool.search.mutation.reading import read
from hlotool.values.generate import generate_inputs
from hlotool.values.npz import arrays_in

_ROWS = """HloModule m
second {{ a = s32[] parameter(0) ROOT b = s32[] parameter(1) }}
body {{
  s = (s32[], s32[4], s32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = s32[4] get-tuple-element(s), index=1
  y = s32[4] get-tuple-element(s), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  {update}
  ROOT r = (s32[], s32[4], s32[4]) tuple(next, x, made)
}}
condition {{
  s = (s32[], s32[4], s32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(4)
  ROOT more = pred[] compare(i, n), direction={direction}
}}
ENTRY e {{
  x = s32[4] parameter(0)
  zero = s32[] constant(0)
  zeros = s32[4] broadcast(zero), dimensions={{}}
  start = (s32[], s32[4], s32[4]) tuple(zero, x, zeros)
  end = (s32[], s32[4], s32[4]) while(start), condition=condition, body=body
  ROOT y = s32[4] get-tuple-element(end), index=2
}}
"""
_TAKEN = "part = s32[1] dynamic-slice(x, i), dynamic_slice_sizes={1}\n"
_BEFORE = """zero = s32[] constant(0)
  first = pred[] compare(i, zero), direction=EQ
  less = s32[] subtract(i, one)
  at = s32[] select(first, zero, less)
  last = s32[1] dynamic-slice(y, at), dynamic_slice_sizes={1}
  bit = pred[1] convert(part)
"""
_PUT = "made = s32[4] dynamic-update-slice(y, new, i)"
_SCATTERED = """value = s32[] reshape(part)
  made = s32[4] scatter(y, new, value), update_window_dims={}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=0, to_apply=second
"""
#: What an iteration does, and whether none sees one more, after the last row.
_UPDATES = (
    # The last row is written again, as it is, or with another number.
    (_TAKEN + "new = s32[1] copy(part) " + _PUT, True),
    (_TAKEN + "p = s32[1] reshape(i) new = s32[1] add(part, p) " + _PUT, False),
    # What was chosen for the last row is chosen again of the same two; a sum grows.
    (_TAKEN + _BEFORE + "new = s32[1] select(bit, part, last) " + _PUT, True),
    (_TAKEN + _BEFORE + "new = s32[1] add(last, part) " + _PUT, False),
    # An update beyond the end is dropped; the one before it is not.
    (_TAKEN + "new = s32[1] reshape(i) " + _SCATTERED, True),
    (_TAKEN + "less = s32[] subtract(i, one) new = s32[1] reshape(less) " + _SCATTERED, False),
)


def results(module: Module, values: tuple[Value, ...]) -> list[Array]:
    return list(arrays_in(NumpyBackend().compile(module).run(values)))


@pytest.mark.parametrize(("update", "equal"), _UPDATES, ids=[str(n) for n in range(len(_UPDATES))])
def test_one_more_iteration(update: str, equal: bool) -> None:
    one, other = (parse_module(_ROWS.format(update=update, direction=d)) for d in ("LT", "LE"))
    assert read(one, LAWS, unrolled=True).covers(read(other, LAWS, unrolled=True)) is equal
    plain = generate_inputs(one, 0).values
    sets = [plain, *(one.values for one in directed_sets(one, plain, 0))][:40]
    found = [
        [b"".join(a.tobytes() for a in results(module, values)) for values in sets] for module in (one, other)
    ]
    assert (found[0] == found[1]) is equal


def test_a_loop_without_an_end_is_not_followed() -> None:
    update = "made = s32[4] copy(y)"
    text = _ROWS.format(update=update, direction="LT")
    with pytest.raises(Unsupported, match="without an end"):
        read(parse_module(text.replace("add(i, one)", "copy(i)")), LAWS, unrolled=True)
    with pytest.raises(Unsupported, match="would be read"):
        read(parse_module(text.replace("add(i, one)", "subtract(i, one)")), LAWS, unrolled=True)


def test_what_no_loop_changes_is_no_proof_that_it_ends() -> None:
    """Of a loop with an end that is not known only the counter counts; without it, it goes on for ever."""
    text = _ROWS.format(update="made = s32[4] copy(y)", direction="NE")
    text = text.replace("n = s32[] constant(4)", "x = s32[4] get-tuple-element(s), index=1 "
                        "p = s32[1] slice(x), slice={[0:1]} n = s32[] reshape(p)")  # fmt: skip
    counts, stays = (parse_module(text.replace("add(i, one)", next)) for next in ("add(i, one)", "copy(i)"))
    one, other = (read(module, LAWS) for module in (counts, stays))
    assert all(map(np.array_equal, one.results, other.results))
    assert not one.covers(other)
    assert one.covers(one)


_LU = """HloModule m
ENTRY e {{
  a = f32[{rows},{columns}] parameter(0)
  lu = (f32[{rows},{columns}], s32[{least}], s32[]) custom-call(a), custom_call_target="lapack_sgetrf_ffi"
  pivots = s32[{least}] get-tuple-element(lu), index=1
  last = s32[1] slice(pivots), slice={{[{place}:{least}]}}
  number = s32[1] constant({{{rows}}})
  ROOT r = s32[1] copy({result})
}}
"""


@pytest.mark.parametrize(("rows", "columns", "known"), [(3, 3, True), (2, 4, True), (4, 2, False)])
def test_the_last_pivot_is_the_last_row(rows: int, columns: int, known: bool) -> None:
    """LAPACK exchanges row i with one from i on: of 4 rows and 2 columns the last pivot is any from 2 on."""
    least = min(rows, columns)
    one, other = (
        read(
            parse_module(_LU.format(rows=rows, columns=columns, least=least, place=least - 1, result=name)),
            LAWS,
        )
        for name in ("last", "number")
    )
    assert one.covers(other) is known
