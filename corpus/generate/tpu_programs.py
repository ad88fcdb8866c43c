"""JAX: programs for a TPU alone: memory of the host, four chips, kernels that the compiler brings."""

from typing import Any

import jax
import jax.numpy as jnp
from aot_programs import adam_arguments, mixed_precision_step, shape
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import AxisType, NamedSharding, PartitionSpec, SingleDeviceSharding
from programs import program


def _device(kind: str) -> Any:
    return SingleDeviceSharding(jax.devices()[0], memory_kind=kind)


@program("host offload", "async-copy", "while", "dynamic-update-slice")
def offload_activations() -> Any:
    """The gradient of six layers in a scan whose activations wait in the host's memory."""
    policy = jax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[],
        names_which_can_be_offloaded=["hidden"],
        offload_src="device",
        offload_dst="pinned_host",
    )

    def layer(x, w):
        return jnp.tanh(checkpoint_name(x @ w, "hidden")), None

    def offload_activations(x, w):
        def loss(w):
            return jnp.sum(lax.scan(jax.checkpoint(layer, policy=policy), x, w)[0] ** 2)

        return jax.value_and_grad(loss)(w)

    return jax.jit(offload_activations).trace(shape("float32", 8, 128), shape("float32", 6, 128, 128))


@program("host offload", "copy-start", "input_output_alias")
def offload_optimizer() -> Any:
    """A step of Adam whose moments live in the host's memory: they are fetched, updated and put back."""
    host, device = _device("pinned_host"), _device("device")

    def offload_optimizer(parameters, state, images, labels):
        near = jax.device_put(state, device)
        loss, parameters, state = mixed_precision_step(parameters, near, images, labels)
        return loss, parameters, jax.device_put(state, host)

    placed = (device, host, device, device)
    jitted = jax.jit(
        offload_optimizer,
        in_shardings=placed,
        out_shardings=(device, device, host),
        donate_argnums=(0, 1),
    )
    return jitted.trace(*adam_arguments())


def _placed(mesh: Any, dtype: str, dims: tuple[int, ...], *spec: str | None) -> Any:
    return jax.ShapeDtypeStruct(dims, dtype, sharding=NamedSharding(mesh, PartitionSpec(*spec)))


@program("sharding", "all-gather", "reduce-scatter", "spmd partitioner", devices=4)
def sharded_matmul() -> Any:
    """Two layers over a torus of two by two: examples over x, features over y, and the gradient."""
    mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto, AxisType.Auto))

    def sharded_matmul(a, up, down):
        def loss(up, down):
            hidden = lax.with_sharding_constraint(
                jax.nn.relu(a @ up), NamedSharding(mesh, PartitionSpec("x", "y"))
            )
            return jnp.mean((hidden @ down) ** 2)

        return jax.value_and_grad(loss, (0, 1))(up, down)

    arguments = (
        _placed(mesh, "float32", (16, 32), "x", None),
        _placed(mesh, "float32", (32, 64), "x", "y"),
        _placed(mesh, "float32", (64, 32), "y", "x"),
    )
    return jax.jit(sharded_matmul).trace(*arguments)


@program("custom-call", "ragged-dot")
def ragged_experts() -> Any:
    """Rows sorted by expert times the matrices of their experts, which is a kernel of the compiler's own."""

    def ragged_experts(x, chosen, weights):
        order = jnp.argsort(chosen)
        sizes = jnp.bincount(chosen, length=4).astype(jnp.int32)
        return jnp.zeros((128, 128), x.dtype).at[order].set(lax.ragged_dot(x[order], weights, sizes))

    arguments = shape("float32", 128, 128), shape("int32", 128), shape("float32", 4, 128, 128)
    return jax.jit(ragged_experts).trace(*arguments)


@program("convolution", "select-and-scatter")
def convolution() -> Any:
    """A convolution with bias and pooling, and its gradient."""

    def convolution(image, w, b):
        def loss(w, b):
            y = lax.conv_general_dilated(image, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            pooled = lax.reduce_window(
                jax.nn.relu(y + b), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"
            )
            return jnp.sum(pooled**2)

        return jax.value_and_grad(loss, (0, 1))(w, b)

    return jax.jit(convolution).trace(
        shape("float32", 2, 8, 8, 3), shape("float32", 3, 3, 3, 8), shape("float32", 8)
    )
