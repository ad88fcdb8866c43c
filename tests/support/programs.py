"""Small programs as files of a dump."""

from __future__ import annotations

from pathlib import Path

BEFORE = "before_optimizations"
AFTER = "cpu_after_optimizations"

DOUBLE = """HloModule jit_f, entry_computation_layout={(f32[4]{0})->f32[4]{0}}

ENTRY main.1 {
  x = f32[4]{0} parameter(0)
  two = f32[] constant(2)
  twos = f32[4]{0} broadcast(two), dimensions={}
  ROOT y = f32[4]{0} multiply(x, twos), metadata={op_name="jit(f)/mul" source_file="model.py" source_line=7}
}
"""

#: The same program as a compiler may write it.
SUM = """HloModule jit_f, is_scheduled=true, entry_computation_layout={(f32[4]{0})->f32[4]{0}}

ENTRY main.1 {
  x = f32[4]{0} parameter(0)
  ROOT y = f32[4]{0} add(x, x), metadata={op_name="jit(f)/mul" source_file="model.py" source_line=7}
}
"""

#: A miscompiled one.
SQUARE = SUM.replace("add(x, x)", "multiply(x, x)")

UNKNOWN_CALL = SUM.replace("add(x, x)", 'custom-call(x), custom_call_target="my_kernel"')

BROKEN = "HloModule jit_f\n\nENTRY main.1 {\n  x = f32[4]{0} parameter(0\n}\n"

PAIR = """HloModule jit_g

ENTRY main.1 {
  x = f32[4]{0} parameter(0)
  n = s32[] constant(7)
  y = f32[4]{0} add(x, x)
  ROOT r = (s32[], f32[4]{0}) tuple(n, y)
}
"""

#: 3.9 x (1 - x), two hundred times: every ulp grows into a difference.
CHAOS = """
body {
  s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[4] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  c = f32[] constant(3.9)
  cs = f32[4] broadcast(c), dimensions={}
  u = f32[] constant(1)
  us = f32[4] broadcast(u), dimensions={}
  d = f32[4] subtract(us, x)
  p = f32[4] multiply(x, d)
  y = f32[4] multiply(cs, p)
  ROOT t = (s32[], f32[4]) tuple(j, y)
}
condition {
  s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(200)
  ROOT b = pred[] compare(i, n), direction=LT
}
ENTRY e {
  x = f32[4] parameter(0)
  z = s32[] constant(0)
  t = (s32[], f32[4]) tuple(z, x)
  w = (s32[], f32[4]) while(t), condition=condition, body=body
  ROOT r = f32[4] get-tuple-element(w), index=1
}"""


def write_module(
    folder: Path, number: int, before: str | None, after: str | None, name: str = "jit_f"
) -> str:
    """Write the stages of one module; returns its name in reports."""
    title = f"module_{number:04d}.{name}"
    for stage, text in ((BEFORE, before), (AFTER, after)):
        if text is not None:
            (folder / f"{title}.{stage}.txt").write_text(text, encoding="utf-8")
    return title
