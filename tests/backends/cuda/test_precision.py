"""`precision=wide` keeps narrow floats in f32 inside of fusions, as `numpy:excess` does."""

from __future__ import annotations

import numpy as np
import pytest
from support.differential import leaves
from support.kernels import differing, needs_compiler, on_numpy

from hlotool.backends.registry import get_backend
from hlotool.errors import UsageError
from hlotool.ir.arrays import DTYPES
from hlotool.ir.types import ELEMENT_TYPES
from hlotool.parser.reader import parse_module

_TEXT = """HloModule wide
add {{
  a = {t}[] parameter(0)
  b = {t}[] parameter(1)
  ROOT r = {t}[] maximum(a, b)
}}
inner {{
  p = {t}[30,40] parameter(0)
  ROOT r = {t}[30,40] multiply(p, p)
}}
fused {{
  x = {t}[30,40] parameter(0)
  y = {t}[30,40] parameter(1)
  third = {t}[] constant(0.3)
  thirds = {t}[30,40] broadcast(third), dimensions={{}}
  m = {t}[30,40] multiply(x, thirds)
  s = {t}[30,40] add(m, y)
  w = f32[30,40] convert(s)
  n = {t}[30,40] convert(w)
  q = {t}[30,40] fusion(n), kind=kLoop, calls=inner
  c = {t}[30,40] reduce-precision(q), exponent_bits=5, mantissa_bits=2
  d = {t}[30,40] divide(c, s)
  i = u{bits}[30,40] bitcast-convert(s)
  low = {t}[] constant(-1)
  top = {t}[40] reduce(q, low), dimensions={{0}}, to_apply=add
  ROOT r = ({t}[30,40], u{bits}[30,40], {t}[40], f32[30,40]) tuple(d, i, top, w)
}}
ENTRY main {{
  x = {t}[30,40] parameter(0)
  y = {t}[30,40] parameter(1)
  e = {t}[30,40] add(x, y)
  f = {t}[30,40] add(e, x)
  g = ({t}[30,40], u{bits}[30,40], {t}[40], f32[30,40]) fusion(f, y), kind=kLoop, calls=fused
  ROOT r = ({t}[30,40], ({t}[30,40], u{bits}[30,40], {t}[40], f32[30,40])) tuple(f, g)
}}
"""


@needs_compiler
@pytest.mark.parametrize("kind", ["bf16", "f16", "f8e5m2"])
def test_wide_as_numpy_with_excess_precision(kind: str) -> None:
    module = parse_module(_TEXT.format(t=kind, bits=ELEMENT_TYPES[kind].bits))
    rng = np.random.default_rng(0)
    arguments = [rng.standard_normal((30, 40)).astype(DTYPES[ELEMENT_TYPES[kind]]) for _ in range(2)]
    wide = get_backend("cuda-emu:precision=wide,unfused").compile(module)
    assert wide.notes == ()
    ours = leaves(wide.run(arguments))
    theirs = leaves(get_backend("numpy:excess").compile(module).run(arguments))
    assert [differing(a, b) for a, b in zip(ours, theirs)] == [0] * len(theirs)
    narrow = leaves(get_backend("cuda-emu:unfused").compile(module).run(arguments))
    reference = on_numpy(module, arguments)
    assert [differing(a, b) for a, b in zip(narrow, reference)] == [0] * len(reference)
    assert any(differing(a, b) for a, b in zip(ours, narrow))


def test_an_unknown_precision() -> None:
    with pytest.raises(UsageError, match="precision=double is neither hlo nor wide"):
        get_backend("cuda-emu:precision=double")
