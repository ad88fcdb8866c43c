"""Programs whose kernels hand values from thread to thread: sums, orders, transposes, large products."""

from __future__ import annotations

from collections.abc import Iterator

_ADD = """%add (a: {t}[], b: {t}[]) -> {t}[] {{
  %a = {t}[] parameter(0)
  %b = {t}[] parameter(1)
  ROOT %r = {t}[] {op}(%a, %b)
}}
"""
_SUM = """
ENTRY %main (x: {t}[{m},{n}]) -> {t}[{out}] {{
  %x = {t}[{m},{n}] parameter(0)
  %zero = {t}[] constant({zero})
  ROOT %sum = {t}[{out}] reduce(%x, %zero), dimensions={{{axis}}}, to_apply=%add
}}
"""
_TRANSPOSE = """ENTRY %main (x: {t}[{m},{n}]) -> {t}[{n},{m}] {{
  %x = {t}[{m},{n}] parameter(0)
  %one = {t}[] constant(1)
  %ones = {t}[{m},{n}] broadcast(%one), dimensions={{}}
  %y = {t}[{m},{n}] add(%x, %ones)
  ROOT %turned = {t}[{n},{m}] transpose(%y), dimensions={{1,0}}
}}
"""
_PRODUCT = """ENTRY %main (a: {t}[{m},{k}], b: {t}[{k},{n}]) -> {r}[{m},{n}] {{
  %a = {t}[{m},{k}] parameter(0)
  %b = {t}[{k},{n}] parameter(1)
  ROOT %dot = {r}[{m},{n}] dot(%a, %b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}
"""
_SORT = """%less (a: {t}[], b: {t}[]) -> pred[] {{
  %a = {t}[] parameter(0)
  %b = {t}[] parameter(1)
  ROOT %r = pred[] compare(%a, %b), direction=LT
}}

ENTRY %main (x: {t}[{m},{n}]) -> {t}[{m},{n}] {{
  %x = {t}[{m},{n}] parameter(0)
  ROOT %sorted = {t}[{m},{n}] sort(%x), dimensions={{1}}, to_apply=%less
}}
"""


def programs() -> Iterator[tuple[str, str]]:
    """Names and HLO texts."""
    for t, zero in (("f32", "0"), ("s32", "0"), ("f64", "0")):
        for m, n in ((5, 3000), (700, 40)):
            for axis in (0, 1):
                sizes = {"t": t, "op": "add", "zero": zero, "m": m, "n": n, "axis": axis}
                text = _ADD.format(**sizes) + _SUM.format(**sizes, out=(n, m)[axis])
                yield f"sum-{t}-{m}x{n}-{axis}", text
    text = _ADD.format(t="f32", op="maximum")
    yield "largest", text + _SUM.format(t="f32", zero="-inf", m=60, n=500, axis=1, out=60)
    for t in ("f32", "bf16", "s8"):
        yield f"transpose-{t}", _TRANSPOSE.format(t=t, m=70, n=90)
    for t, r, k in (
        ("bf16", "f32", 256),
        ("f16", "f16", 128),
        ("f32", "f32", 96),
        ("s8", "s32", 128),
        ("f8e4m3fn", "f32", 256),
    ):
        yield f"product-{t}", _PRODUCT.format(t=t, r=r, m=64, k=k, n=128)
    for t in ("f32", "s16"):
        yield f"sort-{t}", _SORT.format(t=t, m=3, n=600)
