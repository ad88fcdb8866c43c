"""Our reader of StableHLO text beside XLA's importer: functions of JAX, read both ways, run on equal values.

    python -m benchmarks.found.stablehlo [--only NAME] [--json]

Equal means: to the bit. JAX writes the texts; the numpy backend runs what either reader makes of them.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from hlotool.backends.numpy import create
from hlotool.errors import HlotoolError
from hlotool.inputs.generate import generate_inputs
from hlotool.ir.verifier import verify
from hlotool.parser.mlir.reader import parse_mlir
from hlotool.parser.proto.module import parse_module_proto
from hlotool.sources.mlir import hlo_proto

Program = tuple[Callable[..., Any], tuple[Any, ...]]


def programs() -> dict[str, Program]:
    """Functions of JAX with arguments, by name."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    v, m, c = jnp.ones(6), jnp.ones((4, 6)), jnp.ones((3, 4), jnp.complex64)
    n, u, s = jnp.arange(6), jnp.arange(6, dtype=jnp.uint32), jnp.float32(2)
    x, w = jnp.ones((2, 8, 8, 3)), jnp.ones((3, 3, 3, 5))
    q, h = jnp.ones((5, 5)), jnp.ones((4, 6), jnp.bfloat16)
    names = [
        "abs",
        "cbrt",
        "ceil",
        "cos",
        "exp",
        "expm1",
        "floor",
        "log1p",
        "logistic",
        "neg",
        "rsqrt",
        "sign",
        "sin",
        "sqrt",
        "tan",
        "tanh",
        "erf",
        "square",
        "is_finite",
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atanh",
        "cosh",
        "sinh",
        "erf_inv",
        "round",
    ]
    found: dict[str, Program] = {f"lax.{name}": (getattr(lax, name), (v,)) for name in names}
    pairs = [
        "add",
        "sub",
        "mul",
        "div",
        "rem",
        "pow",
        "atan2",
        "max",
        "min",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "nextafter",
        "complex",
    ]
    found |= {f"lax.{name}": (getattr(lax, name), (v, v)) for name in pairs}
    bits = [
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "shift_left",
        "shift_right_logical",
        "shift_right_arithmetic",
    ]
    found |= {f"lax.{name}": (getattr(lax, name), (n, n)) for name in bits}
    found |= {
        f"lax.{name}": (getattr(lax, name), (n,)) for name in ("bitwise_not", "population_count", "clz")
    }
    found |= {
        f"complex.{name}": (getattr(jnp, name), (c,))
        for name in ["real", "imag", "conj", "abs", "exp", "log", "angle"]
    }
    reductions = [
        "sum",
        "prod",
        "max",
        "min",
        "mean",
        "var",
        "argmax",
        "argmin",
        "cumsum",
        "cumprod",
        "sort",
        "argsort",
        "median",
        "any",
        "all",
    ]
    found |= {f"jnp.{name}": (partial(getattr(jnp, name), axis=-1), (m,)) for name in reductions}
    found |= {
        "broadcast": (lambda a: a[None] + a[:, None], (v,)),
        "bfloat16": (lambda a: jnp.tanh(a) @ a.T, (h,)),
        "casts": (
            lambda a: (a.astype(jnp.int8), a.astype(jnp.float16), a > 0, a.astype(jnp.float8_e4m3fn)),
            (v,),
        ),
        "clamp": (lambda a: jnp.clip(a, -1.0, 1.0), (v,)),
        "scalar clamp": (lambda a, low: lax.clamp(low, a, 1.0), (v, s)),
        "bitcast": (lambda a: lax.bitcast_convert_type(a, jnp.int32), (v,)),
        "reduce_precision": (lambda a: lax.reduce_precision(a, 5, 10), (v,)),
        "concatenate": (lambda a, b: jnp.concatenate([a, b, a]), (v, n)),
        "pad": (lambda a: lax.pad(a, 0.0, [(1, 2, 1), (-1, 0, 0)]), (m,)),
        "slice": (lambda a: a[1:3, ::2], (m,)),
        "reverse": (lambda a: a[::-1, ::-1], (m,)),
        "transpose": (lambda a: a.T.reshape(3, 8), (m,)),
        "dynamic_slice": (lambda a, i: lax.dynamic_slice(a, (i, 0), (2, 3)), (m, 1)),
        "dynamic_update_slice": (lambda a, i: lax.dynamic_update_slice(a, a[:2, :2], (i, i)), (m, 1)),
        "gather": (lambda a, i: a[i % 4, (i + 1) % 6], (m, n)),
        "gather rows": (lambda a, i: a[i], (m, n)),
        "take clip": (lambda a, i: jnp.take(a, i, axis=1, mode="clip"), (m, n)),
        "scatter set": (lambda a, i: a.at[i % 4].set(1.0), (m, n)),
        "scatter add": (lambda a, i: a.at[i % 4, i].add(2.0), (m, n)),
        "scatter max": (lambda a, i: a.at[i % 6].max(3.0), (v, n)),
        "scatter mul": (lambda a, i: a.at[i % 6].multiply(3.0, unique_indices=False), (v, n)),
        "segment_sum": (lambda a, i: jax.ops.segment_sum(a, i, 8), (v, n)),
        "one_hot": (lambda i: jax.nn.one_hot(i, 7), (n,)),
        "iota": (lambda a: a + lax.broadcasted_iota(jnp.float32, (4, 6), 1), (m,)),
        "sort pairs": (lambda a, i: lax.sort((a, i), num_keys=1), (v, n)),
        "sort descending": (lambda a: -jnp.sort(-a), (m,)),
        "top_k": (lambda a: lax.top_k(a, 3), (m,)),
        "unique sizes": (lambda i: jnp.unique(i, size=4), (n,)),
        "searchsorted": (lambda a, b: jnp.searchsorted(a, b), (v, v)),
        "dot": (lambda a, b: a @ b.T, (m, m)),
        "dot vector": (lambda a, b: a @ b, (m, v)),
        "dot highest": (lambda a, b: jnp.dot(a, b.T, precision="highest"), (m, m)),
        "dot algorithm": (lambda a, b: lax.dot(a, b.T, precision="BF16_BF16_F32"), (m, m)),
        "batched dot": (lambda a: jnp.einsum("bij,bkj->bik", a, a), (x[:, :, :, 0],)),
        "einsum": (lambda a, b: jnp.einsum("ij,kj->ik", a, b), (m, m)),
        "integer dot": (lambda a: jnp.outer(a, a) @ a, (n,)),
        "convolution": (
            lambda a, b: lax.conv_general_dilated(
                a,
                b,
                (2, 1),
                ((1, 1), (0, 2)),
                rhs_dilation=(1, 2),
                dimension_numbers=("NHWC", "HWIO", "NHWC"),
            ),
            (x, w),
        ),
        "grouped convolution": (
            lambda a, b: lax.conv_general_dilated(
                a, b, (1, 1), "SAME", feature_group_count=3, dimension_numbers=("NHWC", "HWIO", "NHWC")
            ),
            (x, jnp.ones((3, 3, 1, 6))),
        ),
        "transposed convolution": (
            lambda a, b: lax.conv_transpose(a, b, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")),
            (x, w),
        ),
        "convolution gradient": (
            lambda a, b: jax.grad(
                lambda k: (lax.conv(a.transpose(0, 3, 1, 2), k, (1, 1), "SAME") ** 2).sum()
            )(b),
            (x, jnp.ones((5, 3, 3, 3))),
        ),
        "max pool": (
            lambda a: lax.reduce_window(a, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME"),
            (x,),
        ),
        "max pool gradient": (
            lambda a: jax.grad(
                lambda b: lax.reduce_window(b, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID").sum()
            )(a),
            (x,),
        ),
        "average pool": (
            lambda a: lax.reduce_window(
                a, 0.0, lax.add, (1, 3, 3, 1), (1, 1, 1, 1), ((0, 0), (1, 1), (1, 1), (0, 0))
            ),
            (x,),
        ),
        "general reduce": (lambda a: lax.reduce(a, 1.0, lambda p, r: p * r + p, (1,)), (m,)),
        "reduce pairs": (
            lambda a, b: lax.reduce(
                (a, b),
                (-jnp.inf, 0),
                lambda p, r: (jnp.maximum(p[0], r[0]), jnp.where(p[0] > r[0], p[1], r[1])),
                (0,),
            ),
            (v, n),
        ),
        "cumulative max": (lambda a: lax.cummax(a, axis=1), (m,)),
        "associative scan": (lambda a: lax.associative_scan(jnp.add, a, axis=0), (m,)),
        "scan": (lambda a: lax.scan(lambda k, e: (k * 0.5 + e, k - e), jnp.zeros(6), a), (m,)),
        "scan of scan": (
            lambda a: lax.scan(lambda k, e: lax.scan(lambda i, j: (i + j * k, i), k, e), jnp.float32(0), a),
            (m,),
        ),
        "fori": (lambda a: lax.fori_loop(0, 5, lambda i, k: k * a + i, a), (v,)),
        "while": (lambda a: lax.while_loop(lambda k: k[0] < 9, lambda k: (k[0] + 1, k[1] * a), (0, a)), (v,)),
        "while with a test": (
            lambda a: lax.while_loop(lambda k: (k < a).all(), lambda k: k * 2 + 1, a * 0),
            (v + 5,),
        ),
        "cond": (lambda a: lax.cond(a.sum() > 0, lambda: a * 2, lambda: a - 1), (v,)),
        "cond of operands": (lambda a, b: lax.cond(b > 1, jnp.sin, jnp.cos, a), (v, s)),
        "cond pair": (lambda a: lax.cond(a[0] > 0, lambda: (a, a + 1), lambda: (a - 1, a)), (v,)),
        "switch": (
            lambda a, i: lax.switch(i, [lambda k: k, lambda k: k * 2, lambda k: k @ a * k], a),
            (v, jnp.int32(2)),
        ),
        "select": (lambda a: jnp.where(a > 0, a, 0.0), (v,)),
        "nested jit": (lambda a: jax.jit(lambda k: k * 3)(a) + jax.jit(lambda k: (k, k + 1))(a)[1], (v,)),
        "checkpoint": (
            lambda a: jax.grad(lambda k: jax.checkpoint(lambda j: jnp.sin(jnp.sin(j)))(k).sum())(a),
            (v,),
        ),
        "barrier": (lambda a: lax.optimization_barrier((a * 2, a + 1)), (v,)),
        "threefry": (lambda i: jax.random.bits(jax.random.key(i), (7,)), (3,)),
        "uniform": (lambda i: jax.random.uniform(jax.random.key(i), (7,)), (3,)),
        "normal": (lambda i: jax.random.normal(jax.random.key(i), (7,)), (3,)),
        "permutation": (lambda i: jax.random.permutation(jax.random.key(i), 9), (3,)),
        "generator": (lambda k: lax.rng_bit_generator(k, (5,)), (jnp.arange(4, dtype=jnp.uint32),)),
        "fft": (jnp.fft.fft, (c,)),
        "rfft": (lambda a: jnp.fft.irfft(jnp.fft.rfft(a)), (m,)),
        "fft2": (jnp.fft.fft2, (c,)),
        "triangular_solve": (
            lambda a, b: lax.linalg.triangular_solve(jnp.tril(a) + 3, b, lower=True),
            (q, q),
        ),
        "cholesky": (lambda a: jnp.linalg.cholesky(a @ a.T + 5 * jnp.eye(5)), (q,)),
        "qr": (jnp.linalg.qr, (q,)),
        "lu": (lambda a: jnp.linalg.solve(a + 4 * jnp.eye(5), a[0]), (q,)),
        "eigh": (lambda a: jnp.linalg.eigh(a + a.T)[0], (q,)),
        "svd": (lambda a: jnp.linalg.svd(a)[1], (q,)),
        "softmax": (jax.nn.softmax, (m,)),
        "gelu": (jax.nn.gelu, (m,)),
        "logsumexp": (jax.nn.logsumexp, (m,)),
        "layer norm": (
            lambda a: (a - a.mean(-1, keepdims=True)) * lax.rsqrt(a.var(-1, keepdims=True) + 1e-5),
            (m,),
        ),
        "attention": (lambda a: jax.nn.softmax(a @ a.T / 2.0) @ a, (m,)),
        "gradient": (jax.grad(lambda a: jnp.sum(jnp.tanh(a) ** 2)), (m,)),
        "hessian": (jax.hessian(lambda a: jnp.sum(a**3)), (v,)),
        "jvp": (lambda a: jax.jvp(jnp.sin, (a,), (a,)), (v,)),
        "vmap": (jax.vmap(lambda a: jnp.dot(a, a) + jnp.flip(a)), (m,)),
        "vmap of a loop": (jax.vmap(lambda a: lax.fori_loop(0, 3, lambda i, k: k * a, a)), (m,)),
        "unsigned": (lambda i: (i * 7) // 3 + (i >> 1), (u,)),
        "integer division": (lambda i: (i // 2, i % 3, -i // 2), (n,)),
        "donated": (jax.jit(lambda a: a + 1, donate_argnums=0), (v,)),
        "large constant": (lambda a: a + np.arange(6, dtype=np.float32) ** 0.5, (v,)),
        "narrow constants": (lambda a: a + jnp.array([1, 0, 1, 1, 0, 1], bool), (n,)),
        "special constants": (lambda a: jnp.where(a > 0, jnp.nan, -jnp.inf) + 1e-30, (v,)),
        "lgamma": (lax.lgamma, (v,)),
        "digamma": (lax.digamma, (v,)),
        "erfc": (lax.erfc, (v,)),
    }
    return found


def outcome(program: Program) -> tuple[str, str]:
    """A word, and what is behind it: `equal`, `different`, `refused`, `invalid`."""
    import jax

    function, arguments = program
    lowered = function if hasattr(function, "lower") else jax.jit(function)
    text = lowered.lower(*arguments).as_text()
    theirs = parse_module_proto(hlo_proto(text.encode(), "text"), "text")
    try:
        ours = parse_mlir(text, "text")
    except HlotoolError as error:
        return "refused", str(error)
    if problems := verify(ours):
        return "invalid", str(problems[0])
    values = generate_inputs(theirs, 1).values
    try:
        expected, actual = (list(_leaves(create().compile(one).run(values))) for one in (theirs, ours))
    except HlotoolError as error:
        return "not run", str(error)
    same = len(expected) == len(actual) and all(
        e.dtype == a.dtype and e.tobytes() == a.tobytes() for e, a in zip(expected, actual)
    )
    return ("equal", "") if same else ("different", f"{expected[:1]} {actual[:1]}")


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for part in value:
            yield from _leaves(part)
    elif isinstance(value, np.ndarray | np.generic):
        yield np.ascontiguousarray(value)


def main() -> None:
    """Print how many programs are read equally, and which are not."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", help="part of a program's name")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    counts: Counter[str] = Counter()
    rows = []
    for name, program in programs().items():
        if arguments.only and arguments.only not in name:
            continue
        word, reason = outcome(program)
        counts[word] += 1
        rows.append({"program": name, "outcome": word, "reason": reason})
        if word != "equal" and not arguments.json:
            print(f"{name}: {word}: {reason[:300]}")
    print(
        json.dumps(rows) if arguments.json else ", ".join(f"{n} {word}" for word, n in counts.most_common())
    )


if __name__ == "__main__":
    main()
