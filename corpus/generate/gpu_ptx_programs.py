"""JAX: small programs, one for each thing that a GPU's program consists of. Their dumps hold the PTX."""

from typing import Any

import jax
import jax.numpy as jnp
from aot_programs import shape
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from programs import Fault, program


@program("dot", "softmax", "Triton")
def product_softmax() -> Any:
    """A product by tensor cores, and a softmax of its rows."""

    def product_softmax(x, w, b):
        return jax.nn.softmax(x @ w + b)

    return jax.jit(product_softmax).trace(
        shape("bfloat16", 16, 32), shape("bfloat16", 32, 16), shape("bfloat16", 16)
    )


@program("while", "conditional", "copy")
def loops_and_branches() -> Any:
    """A loop with a loop, a branch without any step and one of three branches in it."""

    def loops_and_branches(x, count, which):
        def halve(carry):
            x, n = carry
            x = lax.cond(jnp.sum(x) > 0, lambda x: x[::-1], lambda x: x, x)
            x = lax.switch(which, [lambda x: x * 2, lambda x: jnp.cumsum(x), lambda x: x - 3], x)
            return lax.while_loop(lambda c: jnp.max(jnp.abs(c)) > 4, lambda c: c / 2, x), n - 1

        return lax.while_loop(lambda carry: carry[1] > 0, halve, (x, count))

    return jax.jit(loops_and_branches).trace(shape("float32", 12), shape("int32"), shape("int32"))


@program("sort", "copy")
def sorted_pairs() -> Any:
    """Keys with values and the order of them: what is sorted in place is copied first."""

    def sorted_pairs(key, value):
        return *lax.sort((key, value), num_keys=1), jnp.argsort(key, 0)

    return jax.jit(sorted_pairs).trace(shape("int32", 8), shape("float32", 8))


@program("scatter", "input_output_alias", "atomics")
def donated_scatter() -> Any:
    """A sparse update of a donated table, and the sum of what it was."""

    def donated_scatter(table, rows, updates):
        return table.at[rows].add(updates), table.sum(0)

    return jax.jit(donated_scatter, donate_argnums=0).trace(
        shape("float32", 16, 6), shape("int32", 5), shape("float32", 5, 6)
    )


@program("reduce", "bf16", "shared memory")
def column_sums() -> Any:
    """Sums of columns and of everything, and a transpose, which go through shared memory."""

    def column_sums(x):
        return x.sum(0), x.astype(jnp.float32).sum(), (x + 1).T

    return jax.jit(column_sums).trace(shape("bfloat16", 96, 40))


@program("custom-call", "fft", "triangular-solve", "constant")
def library_calls() -> Any:
    """Libraries between kernels, and a constant that is a result."""

    def library_calls(x, y):
        spd = x @ x.T + 8 * jnp.eye(8)
        factor = jnp.linalg.cholesky(spd)
        solved = jax.scipy.linalg.solve_triangular(factor, y, lower=True)
        return solved, jnp.abs(jnp.fft.fft(y)), jnp.array([[1.5, -2.0], [3.25, 4.0]])

    return jax.jit(library_calls).trace(shape("float32", 8, 8), shape("float32", 8, 4))


@program("s4", "convert", "packed elements")
def packed_integers() -> Any:
    """Integers of four bits, two in a byte, widened, and narrowed again."""

    def packed_integers(x, y):
        wide = x.astype(jnp.int8) * 2 + y
        return wide, wide.astype(jnp.int4)

    return jax.jit(packed_integers).trace(shape("int4", 6, 7), shape("int8", 6, 7))


@program(
    "dot",
    "s8",
    "Triton",
    fault=Fault(
        level="codegen",
        opcodes=("dot",),
        report="",
        wrong="the kernel fills an instruction over 32 terms with the same 16 twice",
    ),
)
def product_of_bytes() -> Any:
    """A product of s8 over 16 terms, of which the kernel makes twice as much: it multiplies each twice."""

    def product_of_bytes(x, w):
        return lax.dot(x, w, preferred_element_type=jnp.int32)

    return jax.jit(product_of_bytes).trace(shape("int8", 32, 16), shape("int8", 16, 32))


@program(
    "dot",
    "s4",
    "Triton",
    fault=Fault(
        level="codegen",
        opcodes=("dot",),
        report="",
        wrong="the second of two elements of a byte is taken from a register that is never written",
    ),
)
def product_of_nibbles() -> Any:
    """A product of f32 with s4, whose elements are unpacked in the kernel."""

    def product_of_nibbles(x, w):
        return x @ w.astype(jnp.float32)

    return jax.jit(product_of_nibbles).trace(shape("float32", 8, 8), shape("int4", 8, 8))


@program(
    "pad",
    "s4",
    "packed elements",
    fault=Fault(
        level="codegen",
        opcodes=("pad",),
        report="",
        wrong="the bits of the sign of the constant are written into the element after it",
    ),
)
def padding_of_nibbles() -> Any:
    """Two s4 with negative numbers around them, two in a byte."""

    def padding_of_nibbles(x):
        return lax.pad(x, jnp.int4(-7), [(1, 2, 0)])

    return jax.jit(padding_of_nibbles).trace(shape("int4", 2))


@program(
    "convolution",
    "rhs_reversal",
    text=True,
    fault=Fault(
        level="codegen",
        opcodes=("convolution",),
        report="https://github.com/openxla/xla/issues/27446",
        wrong="the window is not reversed",
        right_on="0.11.2",
    ),
)
def reversed_window() -> str:
    """A convolution of integers with a reversed window, which is no call of cuDNN."""
    return """HloModule reversed_window

ENTRY main {
  x = s32[1,1,4] parameter(0)
  w = s32[1,1,2] parameter(1)
  ROOT r = s32[1,1,3] convolution(x, w), window={size=2 rhs_reversal=1}, dim_labels=bf0_io0->bf0
}
"""


@program(
    "power",
    "u32",
    text=True,
    fault=Fault(
        level="codegen",
        opcodes=("power",),
        report="",
        wrong="an exponent of 2^31 or more is taken for a negative one",
    ),
)
def large_exponents() -> str:
    """Powers of u32 whose exponents are large."""
    return """HloModule large_exponents

ENTRY main {
  x = u32[4] parameter(0)
  y = u32[4] parameter(1)
  large = u32[4] not(y)
  ROOT r = u32[4] power(x, large)
}
"""


@program(
    "dot",
    "custom-call",
    fault=Fault(
        level="pass",
        pass_name="cublas-gemm-rewriter",
        report="https://github.com/openxla/xla/issues/46110",
        wrong="the factor becomes that of the product alone, to which the bias is added after it",
        right_on="0.11.2",
    ),
)
def halved_bias() -> Any:
    """A product with a bias, and half of both."""

    def halved_bias(x, w, b):
        return (x @ w + b) * 0.5

    return jax.jit(halved_bias).trace(shape("float32", 8, 8), shape("float32", 8, 8), shape("float32", 8))


@program("all-reduce", "all-gather", "reduce-scatter", "collective-permute", "all-to-all", "while", devices=2)
def exchanges() -> Any:
    """Two devices that exchange values, in a loop, too."""
    mesh = jax.make_mesh((2,), ("d",), axis_types=(AxisType.Auto,))

    def shard(x):
        def turn(_, carry):
            return jnp.tanh(lax.ppermute(carry, "d", [(0, 1), (1, 0)]) + lax.axis_index("d"))

        y = lax.fori_loop(0, 3, turn, x)
        gathered = lax.all_gather(y, "d", tiled=True)
        scattered = lax.psum_scatter(gathered * y.sum(), "d", tiled=True)
        return lax.psum(y, "d") * 2 + y, scattered, lax.all_to_all(y * 3, "d", 1, 0, tiled=True)

    spec = PartitionSpec("d", None)
    mapped = jax.shard_map(shard, mesh=mesh, in_specs=spec, out_specs=(spec,) * 3)

    def exchanges(x):
        return mapped(x)

    return jax.jit(exchanges).trace(
        jax.ShapeDtypeStruct((8, 4), "float32", sharding=NamedSharding(mesh, spec))
    )
