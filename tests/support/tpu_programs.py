"""Programs of products at default precision beside what a TPU's compiler makes of them; with faults planted.

The compiler's texts have operands of products in bf16, layouts in tiles, and f32 everywhere else.
"""

from __future__ import annotations

from support.library_programs import ProgramCase


def _mlp() -> ProgramCase:
    """Two layers, a residual and a normalisation between them."""
    return ProgramCase(
        """add {
  p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] add(p, q)
}
ENTRY e {
  x = f32[16,32] parameter(0)
  w = f32[32,32] parameter(1)
  c = f32[32] parameter(2)
  v = f32[32,32] parameter(3)
  m = f32[16,32] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[16,32] broadcast(c), dimensions={1}
  s = f32[16,32] add(m, b)
  h = f32[16,32] tanh(s)
  z = f32[] constant(0)
  hh = f32[16,32] multiply(h, h)
  t = f32[16] reduce(hh, z), dimensions={1}, to_apply=add
  n = f32[] constant(0.03125)
  ns = f32[16] broadcast(n), dimensions={}
  a = f32[16] multiply(t, ns)
  eps = f32[] constant(0.25)
  es = f32[16] broadcast(eps), dimensions={}
  ae = f32[16] add(a, es)
  f = f32[16] rsqrt(ae)
  fs = f32[16,32] broadcast(f), dimensions={0}
  y = f32[16,32] multiply(h, fs)
  o = f32[16,32] dot(y, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = f32[16,32] add(o, x)
}""",
        """add {
  p = f32[]{:T(128)} parameter(0)
  q = f32[]{:T(128)} parameter(1)
  ROOT s = f32[]{:T(128)} add(p, q)
}
ENTRY e {
  x = f32[16,32]{1,0:T(8,128)} parameter(0)
  w = f32[32,32]{1,0:T(8,128)} parameter(1)
  c = f32[32]{0:T(128)} parameter(2)
  v = f32[32,32]{1,0:T(8,128)} parameter(3)
  xb = bf16[16,32]{1,0:T(8,128)(2,1)} convert(x)
  wb = bf16[32,32]{1,0:T(8,128)(2,1)} convert(w)
  vb = bf16[32,32]{1,0:T(8,128)(2,1)} convert(v)
  m = f32[16,32]{1,0:T(8,128)} convolution(xb, wb), dim_labels=bf_io->bf
  b = f32[16,32]{1,0:T(8,128)} broadcast(c), dimensions={1}
  s = f32[16,32]{1,0:T(8,128)} add(m, b)
  h = f32[16,32]{1,0:T(8,128)} tanh(s)
  z = f32[]{:T(128)} constant(0)
  hh = f32[16,32]{1,0:T(8,128)} multiply(h, h)
  t = f32[16]{0:T(128)} reduce(hh, z), dimensions={1}, to_apply=add
  n = f32[]{:T(128)} constant(0.03125)
  ns = f32[16]{0:T(128)} broadcast(n), dimensions={}
  a = f32[16]{0:T(128)} multiply(t, ns)
  eps = f32[]{:T(128)} constant(0.25)
  es = f32[16]{0:T(128)} broadcast(eps), dimensions={}
  ae = f32[16]{0:T(128)} add(a, es)
  f = f32[16]{0:T(128)} rsqrt(ae)
  fs = f32[16,32]{1,0:T(8,128)} broadcast(f), dimensions={0}
  y = f32[16,32]{1,0:T(8,128)} multiply(h, fs)
  yb = bf16[16,32]{1,0:T(8,128)(2,1)} convert(y)
  o = f32[16,32]{1,0:T(8,128)} convolution(yb, vb), dim_labels=bf_io->bf
  ROOT r = f32[16,32]{1,0:T(8,128)} add(o, x)
}""",
        {
            "dropped bias": (("add(m, b)", "add(m, m)"),),
            "bias lost": (
                ("s = f32[16,32]{1,0:T(8,128)} add(m, b)", "s = f32[16,32]{1,0:T(8,128)} copy(m)"),
            ),
            "other activation": (("tanh(s)", "logistic(s)"),),
            "smaller epsilon": (("constant(0.25)", "constant(0.24)"),),
            "lost epsilon": (("constant(0.25)", "constant(0)"),),
            "weights transposed": (
                ("convolution(xb, wb), dim_labels=bf_io", "convolution(xb, wb), dim_labels=bf_oi"),
            ),
            "dropped residual": (("add(o, x)", "add(o, s)"),),
            "residual twice": (
                (
                    "ROOT r = f32[16,32]{1,0:T(8,128)} add(o, x)",
                    "rr = f32[16,32]{1,0:T(8,128)} add(o, x)\n  ROOT r = f32[16,32]{1,0:T(8,128)} add(rr, x)",
                ),
            ),
            "mean by another count": (("constant(0.03125)", "constant(0.032)"),),
            "bias along rows": (
                (
                    "c = f32[32]{0:T(128)} parameter(2)",
                    "c = f32[32]{0:T(128)} parameter(2)\n  c16 = f32[16]{0:T(128)} slice(c), slice={[0:16]}",
                ),
                ("broadcast(c), dimensions={1}", "broadcast(c16), dimensions={0}"),
            ),
            "weights exchanged": (("convolution(xb, wb)", "convolution(xb, vb)"),),
            "normalised in place of squares": (("multiply(h, h)", "multiply(h, s)"),),
        },
    )


def _highest() -> ProgramCase:
    """A product that asks for highest precision, and keeps it."""
    return ProgramCase(
        """ENTRY e {
  x = f32[16,32] parameter(0)
  w = f32[32,16] parameter(1)
  m = f32[16,16] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0},
    operand_precision={highest,highest}
  ROOT r = f32[16,16] tanh(m)
}""",
        """ENTRY e {
  x = f32[16,32]{1,0:T(8,128)} parameter(0)
  w = f32[32,16]{1,0:T(8,128)} parameter(1)
  m = f32[16,16]{1,0:T(8,128)} convolution(x, w), dim_labels=bf_io->bf, operand_precision={highest,highest}
  ROOT r = f32[16,16]{1,0:T(8,128)} tanh(m)
}""",
        {
            "operands in bf16": (
                ("m = f32", "xb = bf16[16,32]{1,0:T(8,128)(2,1)} convert(x)\n  m = f32"),
                ("convolution(x, w)", "convolution(xb, w)"),
            ),
            "result in bf16": (
                ("m = f32[16,16]{1,0:T(8,128)} conv", "m = bf16[16,16]{1,0:T(8,128)(2,1)} conv"),
                ("ROOT", "f = f32[16,16]{1,0:T(8,128)} convert(m)\n  ROOT"),
                ("tanh(m)", "tanh(f)"),
            ),
        },
    )


def _sums() -> ProgramCase:
    """A sum and a mean beside a product: nothing but the product may lose width."""
    return ProgramCase(
        """add {
  p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] add(p, q)
}
ENTRY e {
  x = f32[16,32] parameter(0)
  w = f32[32,16] parameter(1)
  z = f32[] constant(0)
  m = f32[16,16] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  e = f32[16,32] exponential(x)
  t = f32[16] reduce(e, z), dimensions={1}, to_apply=add
  l = f32[16] log(t)
  ROOT r = (f32[16,16], f32[16]) tuple(m, l)
}""",
        """add {
  p = f32[]{:T(128)} parameter(0)
  q = f32[]{:T(128)} parameter(1)
  ROOT s = f32[]{:T(128)} add(p, q)
}
ENTRY e {
  x = f32[16,32]{1,0:T(8,128)} parameter(0)
  w = f32[32,16]{1,0:T(8,128)} parameter(1)
  z = f32[]{:T(128)} constant(0)
  xb = bf16[16,32]{1,0:T(8,128)(2,1)} convert(x)
  wb = bf16[32,16]{1,0:T(8,128)(2,1)} convert(w)
  m = f32[16,16]{1,0:T(8,128)} convolution(xb, wb), dim_labels=bf_io->bf
  e = f32[16,32]{1,0:T(8,128)} exponential(x)
  t = f32[16]{0:T(128)} reduce(e, z), dimensions={1}, to_apply=add
  l = f32[16]{0:T(128)} log(t)
  ROOT r = (f32[16,16]{1,0:T(8,128)}, f32[16]{0:T(128)}) tuple(m, l)
}""",
        {
            "argument of a sum in bf16": (
                (
                    "e = f32[16,32]{1,0:T(8,128)} exponential(x)",
                    "xf = f32[16,32]{1,0:T(8,128)} convert(xb)\n"
                    "  e = f32[16,32]{1,0:T(8,128)} exponential(xf)",
                ),
            ),
            "result of a sum in bf16": (
                (
                    "l = f32",
                    "tb = bf16[16]{0:T(256)(128)(2,1)} convert(t)\n"
                    "  tf = f32[16]{0:T(128)} convert(tb)\n  l = f32",
                ),
                ("log(t)", "log(tf)"),
            ),
            "another function": (("log(t)", "log-plus-one(t)"),),
        },
    )


def _convolutions() -> ProgramCase:
    """A convolution that pads, features last, behind a maximum."""
    return ProgramCase(
        """ENTRY e {
  x = f32[2,8,8,4] parameter(0)
  k = f32[3,3,4,8] parameter(1)
  z = f32[] constant(0)
  zs = f32[2,8,8,4] broadcast(z), dimensions={}
  u = f32[2,8,8,4] maximum(x, zs)
  ROOT m = f32[2,8,8,8] convolution(u, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
}""",
        """ENTRY e {
  x = f32[2,8,8,4]{3,2,1,0:T(8,128)} parameter(0)
  k = f32[3,3,4,8]{3,2,1,0:T(8,128)} parameter(1)
  xb = bf16[2,8,8,4]{3,2,1,0:T(8,128)(2,1)} convert(x)
  z = bf16[]{:T(256)} constant(0)
  zs = bf16[2,8,8,4]{3,2,1,0:T(8,128)(2,1)} broadcast(z), dimensions={}
  u = bf16[2,8,8,4]{3,2,1,0:T(8,128)(2,1)} maximum(xb, zs)
  ROOT m = f32[2,8,8,8]{3,2,1,0:T(8,128)} convolution(u, k), window={size=3x3 pad=1_1x1_1},
    dim_labels=b01f_01io->b01f
}""",
        {
            "padding": (("pad=1_1x1_1", "pad=2_0x1_1"),),
            "window reversed": (("pad=1_1x1_1", "pad=1_1x1_1 rhs_reversal=1x1"),),
            "spatial dimensions exchanged": (("b01f_01io", "b01f_10io"),),
            "maximum lost": (("maximum(xb, zs)", "add(xb, zs)"),),
            "minimum": (("maximum(xb, zs)", "minimum(xb, zs)"),),
        },
    )


TPU_CASES = {"mlp": _mlp(), "highest": _highest(), "sums": _sums(), "convolution": _convolutions()}
