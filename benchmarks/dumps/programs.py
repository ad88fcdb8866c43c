"""One program of each kind that JAX compiles, plain enough for JAX 0.4.13 on Python 3.9 and for JAX 0.12.

Imported by the interpreter that makes the dumps (`child.py`), which has JAX and nothing of hlotool. A
kind is a function of the devices that returns a `Program`; what a version of JAX lacks raises, and becomes
the reason why the version has no such program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


@dataclass
class Program:
    """What is compiled.

    Attributes:
        function: of arrays; its name becomes that of the module.
        shapes: dimensions and element type of each argument.
        jit: arguments of `jax.jit`.
        shardings: of the arguments, where they are not on the first device.
    """

    function: Callable[..., Any]
    shapes: tuple[tuple[tuple[int, ...], Any], ...]
    jit: dict[str, Any] = field(default_factory=dict)
    shardings: tuple[Any, ...] = ()


#: By name, in the order of the table.
KINDS: dict[str, Callable[[Any], Program]] = {}
#: Kinds that are compiled with 64-bit types.
WIDE = ("x64",)
F32, S32, BF16 = jnp.float32, jnp.int32, jnp.bfloat16


def kind(*shapes: tuple[tuple[int, ...], Any], **jit: Any) -> Callable[[Any], Any]:
    """A kind that is but a function of arrays of these shapes, whatever the devices."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        KINDS[function.__name__] = lambda devices: Program(function, shapes, jit)
        return function

    return register


def built(function: Callable[[Any], Program]) -> Callable[[Any], Program]:
    """A kind whose program depends on the devices, or that some versions lack."""
    KINDS[function.__name__] = function
    return function


def f32(*dims: int) -> tuple[tuple[int, ...], Any]:
    return dims, F32


@kind(f32(4, 8), f32(8))
def elementwise(x, y):
    return jnp.tanh(x) * jnp.exp(-y) + jnp.where(x > 0, jnp.sqrt(jnp.abs(x)), jnp.sin(y))


@kind(f32(3, 4, 8), f32(3, 8, 5))
def dot(x, y):
    return jnp.einsum("bij,bjk->bik", x, y)


@kind(((4, 8), BF16), ((8, 5), BF16))
def bf16_dot(x, y):
    return lax.dot(x, y, preferred_element_type=F32)


@kind(((4, 8), jnp.int8), ((8, 5), jnp.int8))
def int8_dot(x, y):
    return lax.dot(x, y, preferred_element_type=S32)


def _convolve(x, kernel):
    numbers = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=numbers)


@kind(f32(2, 6, 6, 3), f32(3, 3, 3, 4))
def convolution(x, kernel):
    return _convolve(x, kernel)


@kind(f32(2, 6, 6, 3), f32(3, 3, 3, 4))
def convolution_gradient(x, kernel):
    return jax.grad(lambda x, k: jnp.sum(_convolve(x, k) ** 2), argnums=(0, 1))(x, kernel)


@kind(f32(5, 7))
def reductions(x):
    return jnp.sum(x, 0), jnp.max(x), jnp.prod(x, 1), jax.nn.logsumexp(x, axis=1), jnp.all(x > 0)


@kind(f32(5, 7))
def argmax(x):
    return jnp.argmax(x, axis=1), jnp.argmin(x)


@kind(f32(2, 8, 8, 3))
def pooling_gradient(x):
    def pooled(x):
        return jnp.sum(lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") ** 2)

    return jax.grad(pooled)(x)


@kind(f32(3, 8), ((3, 8), S32))
def sorting(x, y):
    return lax.sort((x, y), dimension=1, num_keys=1)


@kind(f32(3, 8))
def top_k(x):
    return lax.top_k(x, 3)


@kind(f32(3, 8))
def cumulative(x):
    return jnp.cumsum(x, axis=1), lax.associative_scan(jnp.maximum, x, axis=0)


@kind(f32(6, 4), ((5,), S32))
def gather(x, i):
    return x[i], jnp.take_along_axis(x, i[None, :4] % 6, axis=0)


@kind(f32(6, 4), ((5,), S32), f32(5, 4))
def scatter(x, i, u):
    return x.at[i].add(u), x.at[i].max(u)


@kind(f32(6, 4), ((), S32))
def dynamic_slices(x, i):
    row = lax.dynamic_slice(x, (i, 1), (2, 3))
    return lax.dynamic_update_slice(x, row * 2, (i + 1, 0)), row


@kind(f32(4), f32(5, 4))
def scan_gradient(w, xs):
    def loss(w):
        def step(carry, x):
            carry = jnp.tanh(carry * w + x)
            return carry, carry

        last, all_of_them = lax.scan(step, jnp.zeros(4, F32), xs)
        return jnp.sum(last) + jnp.sum(all_of_them**2)

    return jax.value_and_grad(loss)(w)


@kind(f32())
def while_loop(x):
    return lax.while_loop(lambda c: c[0] < 6, lambda c: (c[0] + 1, c[1] * 0.5 + x), (0, x))


@kind(f32(4), ((), S32))
def branches(x, i):
    chosen = lax.switch(i, [jnp.sin, jnp.cos, lambda v: v * v], x)
    return lax.cond(i > 1, lambda v: v + 1, lambda v: v - 1, chosen)


@kind(((2,), jnp.uint32))
def random_bits(key):
    return jax.random.bits(key, (4, 5)), jax.random.permutation(key, 6)


@kind(((2,), jnp.uint32))
def random_normal(key):
    return jax.random.normal(key, (4, 5)), jax.random.uniform(key, (3,))


@kind(((2,), jnp.uint32), f32(4, 8))
def dropout(key, x):
    return jnp.where(jax.random.bernoulli(key, 0.5, x.shape), x / 0.5, 0)


@kind(f32(4, 8))
def fft(x):
    return jnp.fft.fft(x), jnp.fft.irfft(jnp.fft.rfft(x))


@kind(f32(4, 4), f32(4, 2))
def cholesky_solve(x, b):
    factor = jnp.linalg.cholesky(x @ x.T + 4 * jnp.eye(4, dtype=F32))
    return lax.linalg.triangular_solve(factor, b, left_side=True, lower=True)


@kind(f32(5, 3))
def qr(x):
    return jnp.linalg.qr(x)


@kind(f32(5, 3))
def svd(x):
    return jnp.linalg.svd(x, full_matrices=False)


@kind(f32(4, 4))
def eigh(x):
    return jnp.linalg.eigvalsh(x + x.T)


@kind(f32(4, 4))
def eigenvalues(x):
    return jnp.linalg.eigvals(x)


@kind(f32(4, 4))
def schur(x):
    return lax.linalg.schur(x)


@kind(f32(4, 4), f32(4))
def lu_solve(x, b):
    return jnp.linalg.solve(x + 4 * jnp.eye(4, dtype=F32), b)


@kind(((4,), jnp.complex64), ((4,), jnp.complex64))
def complex_numbers(x, y):
    return x * y + jnp.conj(x), jnp.abs(x), jnp.exp(y), jnp.vdot(x, y)


@built
def four_bits(devices):
    def four_bits(x):
        low = x.astype(jnp.int4)
        return (low + low).astype(jnp.int8), low.astype(F32)

    return Program(four_bits, (((8,), jnp.int8),))


@built
def eight_bit_floats(devices):
    def eight_bit_floats(x):
        return x.astype(jnp.float8_e4m3fn).astype(F32), x.astype(jnp.float8_e5m2).astype(F32) * 2

    return Program(eight_bit_floats, (f32(8),))


@kind(((8,), jnp.uint32))
def bits(x):
    return lax.population_count(x), lax.clz(x), (x << 3) ^ (x >> 2), lax.bitcast_convert_type(x, F32)


@kind(f32(4))
def custom_vjp(x):
    @jax.custom_vjp
    def clipped(x):
        return jnp.log1p(jnp.exp(x))

    clipped.defvjp(lambda x: (clipped(x), x), lambda x, g: (jnp.clip(g * jax.nn.sigmoid(x), -0.5, 0.5),))
    return jax.grad(lambda x: jnp.sum(clipped(x) ** 2))(x)


@kind(f32(4, 8), f32(8, 8))
def remat(x, w):
    def block(w):
        return jnp.sum(jnp.tanh(jnp.tanh(x @ w) @ w))

    return jax.grad(jax.checkpoint(block))(w)


@built
def callback(devices):
    def callback(x):
        return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x) + 1

    return Program(callback, (f32(4),))


@kind(f32(8, 4), f32(8), f32(8, 3), f32(3), f32(8, 4), f32(8, 3), f32(16, 4), ((16,), S32))
def training_step(w1, b1, w2, b2, m1, m2, x, labels):
    w1, m1 = w1.T, m1.T

    def loss(w1, w2):
        logits = jax.nn.relu(x @ w1 + b1) @ w2 + b2
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None] % 3, axis=1))

    value, (g1, g2) = jax.value_and_grad(loss, argnums=(0, 1))(w1, w2)
    m1, m2 = 0.9 * m1 + g1, 0.9 * m2 + g2
    return value, w1 - 0.1 * m1, w2 - 0.1 * m2, m1, m2


@kind(f32(2, 6, 8), f32(2, 6, 8), f32(2, 6, 8))
def attention(q, k, v):
    scores = jnp.einsum("bqd,bkd->bqk", q, k) / np.float32(np.sqrt(8))
    scores = jnp.where(jnp.tril(jnp.ones((6, 6), bool)), scores, -1e9)
    return jnp.einsum("bqk,bkd->bqd", jax.nn.softmax(scores), v)


@kind(f32(8, 5), f32(5), f32(5))
def batch_norm(x, scale, shift):
    def loss(x):
        centred = (x - jnp.mean(x, 0)) * lax.rsqrt(jnp.var(x, 0) + 1e-5)
        return jnp.sum((centred * scale + shift) ** 3)

    return jax.value_and_grad(loss)(x)


@kind(f32(4, 8), f32(4, 8), donate_argnums=(0,))
def donation(x, y):
    return x + y, jnp.sum(y)


@kind(f32(3, 4))
def calls(x):
    inner = jax.jit(lambda v: jnp.sin(v) + 1)
    return jax.vmap(inner)(x) + inner(x)


@kind(
    f32(
        16,
    )
)
def large_constants(x):
    table = np.random.default_rng(1).standard_normal((16, 40)).astype(np.float32)
    return x @ table


@kind(f32(0, 4), f32(3, 4))
def empty(x, y):
    return jnp.concatenate([x, y]), jnp.sum(x, 0), x * 2


@kind(((4,), jnp.float64), ((4,), jnp.int64))
def x64(x, i):
    return x * 2.5 + i, i // 3


def _mesh(devices):
    from jax.sharding import Mesh

    return Mesh(np.array(devices[:4]).reshape(2, 2), ("a", "b"))


@built
def shard_map(devices):
    from jax.sharding import PartitionSpec as P

    mapped = getattr(jax, "shard_map", None)
    if mapped is None:
        from jax.experimental.shard_map import shard_map as mapped

    def local(x, w):
        moved = lax.ppermute(x, "a", [(0, 1), (1, 0)])
        return lax.psum(moved @ w, "b")

    options = {"mesh": _mesh(devices), "in_specs": (P("a", "b"), P("b", None)), "out_specs": P("a", None)}

    def shard_map(x, w):
        return mapped(local, **options)(x, w)

    return Program(shard_map, (f32(8, 8), f32(8, 4)))


@built
def partitioned(devices):
    from jax.sharding import NamedSharding
    from jax.sharding import PartitionSpec as P

    mesh = _mesh(devices)
    where = tuple(NamedSharding(mesh, P(*axes)) for axes in (("a", "b"), ("b", None)))

    def partitioned(x, w):
        return jax.nn.softmax(x @ w), jnp.sum(x, 0)

    return Program(partitioned, (f32(8, 8), f32(8, 4)), {"in_shardings": where}, where)


def _export():
    try:
        from jax import export
    except ImportError:
        from jax.experimental import export
    return export


@built
def exported(devices):
    export = _export()
    platform = getattr(devices[0], "platform", "cpu")

    def inner(x):
        return jnp.sin(x) @ x.T

    shape = jax.ShapeDtypeStruct((4, 4), F32)
    if hasattr(export, "call_exported"):
        program = export.export(inner, lowering_platforms=[platform])(shape)
        call = export.call_exported(program)
    else:
        call = export.export(jax.jit(inner), platforms=[platform])(shape).call

    def exported(x):
        return call(x) + 1

    return Program(exported, (f32(4, 4),))


@built
def dynamic_shapes(devices):
    """A program for any batch size, called with one: its StableHLO has dynamic dimensions."""
    export = _export()
    platform = getattr(devices[0], "platform", "cpu")
    dims = export.symbolic_shape("b, 4")

    def inner(x):
        return jnp.sum(x, 0) / x.shape[0], jnp.concatenate([x, x])

    shape = jax.ShapeDtypeStruct(dims, F32)
    if hasattr(export, "call_exported"):
        call = export.call_exported(export.export(inner, lowering_platforms=[platform])(shape))
    else:
        call = export.export(jax.jit(inner), platforms=[platform])(shape).call

    def dynamic_shapes(x):
        return call(x)

    return Program(dynamic_shapes, (f32(3, 4),))


@built
def host_offload(devices):
    """Activations that wait in the host's memory for the gradient."""
    from jax.sharding import SingleDeviceSharding

    on_host = SingleDeviceSharding(devices[0], memory_kind="pinned_host")
    on_device = SingleDeviceSharding(devices[0], memory_kind="device")

    def host_offload(x, w):
        kept = jax.device_put(jnp.tanh(x @ w), on_host)
        return jnp.sin(x) + jax.device_put(kept, on_device)

    return Program(host_offload, (f32(8, 8), f32(8, 8)))


@built
def composite(devices):
    """A function that keeps its name in StableHLO."""

    def composite(x):
        return lax.composite(lambda v: jnp.tanh(v) * 2, name="my.gelu")(x)

    return Program(composite, (f32(8),))


@kind(f32(4, 8), f32(8, 8))
def forward_mode(x, w):
    return jax.jvp(lambda v: jnp.tanh(v @ w), (x,), (jnp.ones_like(x),))


@kind(f32(6), f32(6))
def hessian(x, y):
    return jax.hessian(lambda v: jnp.sum(jnp.sin(v) * y) ** 2)(x)


@kind(f32(3, 8), f32(3))
def searching(x, v):
    return jax.vmap(partial(jnp.searchsorted, side="right"))(jnp.sort(x), v), jnp.nonzero(v > 0, size=3)
