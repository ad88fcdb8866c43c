"""Programs that a released libtpu compiles wrongly, found by hlotool."""

from typing import Any

import jax
import jax.numpy as jnp
from aot_programs import shape
from jax import lax
from programs import Fault, program


@program(
    "exponential",
    "f64",
    x64=True,
    target="v5e",
    fault=Fault(
        level="pass",
        pass_name="algsimp",
        report="",
        wrong="the rounding error of a sum of two f32, which the second of a pair keeps, is taken for 0",
    ),
)
def exponential_of_pairs() -> Any:
    """The exponential in f64, which a TPU computes on pairs of f32."""

    def exponential_of_pairs(x):
        return jnp.exp(x)

    return jax.jit(exponential_of_pairs).trace(shape("float64", 1, 1))


def _to(memory: str, x: Any) -> Any:
    return jax.device_put(x, jax.memory.Space.Host if memory == "host" else jax.memory.Space.Device)


@program(
    "dynamic-update-slice",
    "host offload",
    target="v5e",
    fault=Fault(
        level="pass",
        pass_name="host-offloader",
        report="",
        wrong="the buffer of ones becomes one of nothing, and the rows that are not written are lost",
    ),
)
def offloaded_row_of_ones() -> Any:
    """One row of a buffer of ones is replaced in the host's memory."""

    def offloaded_row_of_ones(x):
        buffer = _to("host", jnp.ones((4, 8, 128), jnp.float32))
        row = _to("host", jnp.sin(x)[None])
        return _to("device", lax.dynamic_update_slice(buffer, row, (1, 0, 0)))

    return jax.jit(offloaded_row_of_ones).trace(shape("float32", 8, 128))
