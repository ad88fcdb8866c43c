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


def write_module(
    folder: Path, number: int, before: str | None, after: str | None, name: str = "jit_f"
) -> str:
    """Write the stages of one module; returns its name in reports."""
    title = f"module_{number:04d}.{name}"
    for stage, text in ((BEFORE, before), (AFTER, after)):
        if text is not None:
            (folder / f"{title}.{stage}.txt").write_text(text, encoding="utf-8")
    return title
