"""`hlotool compare` of two programs of one purpose: what both return is compared."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlotool
from hlotool.errors import ExitCode, UsageError

#: A sum of squares and the sum, and the mean beside them.
PLAIN = """\
HloModule plain
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
ENTRY e {
  x = f32[4,8] parameter(0)
  w = f32[8] parameter(1)
  z = f32[] constant(0)
  v = f32[4,8] broadcast(w), dimensions={1}
  p = f32[4,8] multiply(x, v)
  ROOT r = f32[4] reduce(p, z), dimensions={1}, to_apply=add
}
"""
#: The same as a product, with the arguments the other way round, and beside something else.
SERVER = """\
HloModule server
ENTRY e {
  w = f32[8] parameter(0)
  x = f32[4,8] parameter(1)
  c = f32[4,8] exponential(x)
  d = f32[4] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (f32[4,8], f32[4]) tuple(c, d)
}
"""


def compared(folder: Path, left: str, right: str) -> hlotool.CompareDumpsResult:
    for name, text in (("left", left), ("right", right)):
        (folder / f"{name}.hlo").write_text(text, encoding="utf-8")
    return hlotool.compare_dumps([folder / "left.hlo", folder / "right.hlo"])


def test_what_both_return_is_compared(tmp_path: Path) -> None:
    found = compared(tmp_path, PLAIN, SERVER)
    assert [row.conclusion for row in found] == ["both correct"]
    assert found.exit_code == ExitCode.AGREE
    assert "only the second returns out[0]" in found.record.notes
    assert any("in another order" in note for note in found.record.notes)


def test_a_difference_is_found(tmp_path: Path) -> None:
    found = compared(tmp_path, PLAIN, SERVER.replace("dot(x, w)", "dot(c, w)"))
    assert [row.conclusion for row in found] == ["other program"]
    assert found.exit_code == ExitCode.MISMATCH


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("x = f32[4,8]", "y = s32[] parameter(2)\n  x = f32[4,8]", "arrays: of 2 and 3, 2 have a partner"),
        (
            "w = f32[8] parameter(0)",
            "w = f32[8] parameter(0)\n  u = s32[] parameter(2)",
            "of 2 and 3, 2 have",
        ),
        ("(f32[4,8], f32[4]) tuple(c, d)", "(f32[4,8]) tuple(c)", "return no array of one shape"),
    ],
)
def test_other_interfaces_are_refused(old: str, new: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        compared(tmp_path, PLAIN, SERVER.replace(old, new))
