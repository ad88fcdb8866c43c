"""JAX: programs for a GPU alone: libraries, and collectives of two devices."""

from typing import Any

import jax
import jax.numpy as jnp
from aot_programs import shape
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from programs import program

_NHWC = ("NHWC", "HWIO", "NHWC")


def _convolved(x, w, stride=1):
    return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=_NHWC)


@program("custom-call", "cuDNN", "convolution")
def convolution_bias() -> Any:
    """Convolutions with bias, side input and activation, as cuDNN fuses them, in f32 and f16."""

    def convolution_bias(x, w, b, narrow, narrow_w):
        y = jax.nn.relu(_convolved(x, w) + b)
        return y, jax.nn.relu(_convolved(y, w) + b + x), jax.nn.elu(_convolved(narrow, narrow_w, 2))

    images = shape("float32", 2, 8, 8, 4), shape("float32", 3, 3, 4, 4), shape("float32", 4)
    narrow = shape("float16", 2, 8, 8, 8), shape("float16", 3, 3, 8, 16)
    return jax.jit(convolution_bias).trace(*images, *narrow)


@program("custom-call", "cuDNN", "convolution")
def convolution_gradient() -> Any:
    """The gradients of a convolution with groups, with respect to the image and to the filter."""

    def convolution_gradient(x, w):
        def loss(x, w):
            y = lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=_NHWC, feature_group_count=2)
            return jnp.sum(jnp.tanh(y))

        return jax.grad(loss, (0, 1))(x, w)

    return jax.jit(convolution_gradient).trace(shape("float32", 2, 8, 8, 4), shape("float32", 3, 3, 2, 6))


@program("custom-call", "cuBLASLt", "dot")
def dot_epilogues() -> Any:
    """Products with bias, activation and an addend, as cuBLASLt fuses them."""

    def dot_epilogues(x, first, second, third, fourth, b, addend):
        x = jax.nn.gelu(x @ first + b)
        x = jax.nn.relu(x @ second + b)
        x = 2.0 * (x @ third) + addend
        return x, jax.nn.gelu(x @ fourth)

    weights = [shape("bfloat16", 24, 24)] * 4
    return jax.jit(dot_epilogues).trace(
        shape("bfloat16", 16, 24), *weights, shape("bfloat16", 24), shape("bfloat16", 16, 24)
    )


@program("all-reduce-start", "all-gather-start", "collective-permute-start", "reduce-scatter", devices=2)
def collectives() -> Any:
    """Collectives between two devices, with work to do meanwhile."""
    mesh = jax.make_mesh((2,), ("d",), axis_types=(AxisType.Auto,))

    def shard(x, w):
        y = jnp.tanh(x @ w)
        summed = lax.psum(y, "d")
        gathered = lax.all_gather(x, "d", tiled=True)
        moved = lax.ppermute(y, "d", [(0, 1), (1, 0)])
        scattered = lax.psum_scatter(y @ w, "d", tiled=True)
        swapped = lax.all_to_all(y, "d", 0, 1, tiled=True)
        return summed + moved, gathered @ w, scattered, swapped

    spec = PartitionSpec("d", None)
    out = (spec, spec, spec, spec)
    mapped = jax.shard_map(shard, mesh=mesh, in_specs=(spec, PartitionSpec()), out_specs=out)

    def collectives(x, w):
        return mapped(x, w)

    x = jax.ShapeDtypeStruct((16, 16), "float32", sharding=NamedSharding(mesh, spec))
    w = jax.ShapeDtypeStruct((16, 16), "float32", sharding=NamedSharding(mesh, PartitionSpec()))
    return jax.jit(collectives).trace(x, w)


@program("sharding", "all-reduce", "while", "spmd partitioner", devices=2)
def data_parallel() -> Any:
    """A step of data-parallel training over two devices, two layers in a scan."""
    mesh = jax.make_mesh((2,), ("d",), axis_types=(AxisType.Auto,))

    def data_parallel(w, x, y):
        def loss(w):
            hidden, _ = lax.scan(lambda h, layer: (jnp.tanh(h @ layer), None), x, w)
            return jnp.mean((hidden - y) ** 2)

        value, gradient = jax.value_and_grad(loss)(w)
        return value, w - 0.1 * gradient

    examples = NamedSharding(mesh, PartitionSpec("d", None))
    w = jax.ShapeDtypeStruct((2, 16, 16), "float32", sharding=NamedSharding(mesh, PartitionSpec()))
    batch = jax.ShapeDtypeStruct((8, 16), "float32", sharding=examples)
    return jax.jit(data_parallel).trace(w, batch, batch)
