"""JAX programs for several devices whose dumps benchmarks/blame/device_faults.py plants faults in.

    python -m benchmarks.common.device_programs NAME DEVICES FOLDER

compiles one of them for so many virtual CPU devices and leaves the program after every pass in FOLDER. Some
are spread by the SPMD partitioner, some by hand in `shard_map`; one is HLO, for replicas with arguments
of their own: JAX makes no such programs any more.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

#: What a program is: the function, and its arguments with the mesh axes that each is split along.
Made = tuple[Callable[..., Any], list[tuple[Any, tuple[str | None, ...]]]]

PROGRAMS: dict[str, Callable[[int], Made]] = {}

#: The program that is HLO.
REPLICAS = "replicas"


def program(make: Callable[[int], Made]) -> Callable[[int], Made]:
    """Register a program under the name of its function, which takes the number of devices."""
    PROGRAMS[make.__name__] = make
    return make


def _array(*dims: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(dims).astype(np.float32)


def _mapped(body: Callable[..., Any], ins: Any, outs: Any) -> Callable[..., Any]:
    """`body` on each device of the mesh, which is the one that is in force."""
    import jax

    def mapped(*arguments: Any) -> Any:
        return jax.shard_map(body, in_specs=ins, out_specs=outs, check_vma=False)(*arguments)

    return mapped


@program
def layers(n: int) -> Made:
    """Two layers with split weights."""
    import jax
    import jax.numpy as jnp

    def layers(x: Any, w1: Any, w2: Any) -> Any:
        return jnp.tanh(jax.nn.relu(x @ w1) @ w2)

    return layers, [
        (_array(8, 6), ("x", None)),
        (_array(6, 8, seed=1), (None, "y")),
        (_array(8, 4, seed=2), ("y", None)),
    ]


@program
def training(n: int) -> Made:
    """A step of training with a scan over layers."""
    import jax
    import jax.numpy as jnp

    def loss(stack: Any, head: Any, x: Any, y: Any) -> Any:
        hidden, _ = jax.lax.scan(lambda h, w: (jnp.tanh(h @ w), None), x, stack)
        return jnp.mean((hidden @ head - y) ** 2)

    def training(stack: Any, head: Any, x: Any, y: Any) -> Any:
        value, gradients = jax.value_and_grad(loss, (0, 1))(stack, head, x, y)
        return value, stack - 0.1 * gradients[0], head - 0.1 * gradients[1]

    return training, [
        (_array(2, 8, 8, seed=1), (None, None, "y")),
        (_array(8, 6, seed=2), ("y", None)),
        (_array(16, 8), ("x", None)),
        (_array(16, 6, seed=3), ("x", None)),
    ]


@program
def stencil(n: int) -> Made:
    """A convolution along a split dimension: neighbours exchange their borders."""
    import jax

    def stencil(x: Any, kernel: Any) -> Any:
        once = jax.lax.conv_general_dilated(x, kernel, (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"))
        return jax.nn.relu(once) + x

    return stencil, [(_array(2, 4 * n, 3), (None, ("x", "y"), None)), (_array(3, 3, 3, seed=1), ())]


@program
def uneven(n: int) -> Made:
    """Slices, rolls and sums along a split dimension."""
    import jax.numpy as jnp

    def uneven(x: Any, y: Any) -> Any:
        inner = jnp.pad(x[1:-2] * y[2:-1], ((1, 2), (0, 0)))
        return jnp.cumsum(inner, axis=0) + jnp.roll(x, 3, axis=0), jnp.concatenate([x[::2], y[1::2]])

    return uneven, [(_array(4 * n, 3), (("x", "y"),)), (_array(4 * n, 3, seed=1), (("x", "y"),))]


@program
def lookup(n: int) -> Made:
    """Rows of a split table."""
    import jax.numpy as jnp

    def lookup(table: Any, ids: Any) -> Any:
        return jnp.take(table, ids, axis=0) * 2, table.at[ids].add(1.0)

    ids = np.random.default_rng(5).permutation(4 * n)[:8].astype(np.int32)
    return lookup, [(_array(4 * n, 6), (("x", "y"), None)), (ids, ())]


@program
def normalised(n: int) -> Made:
    """A softmax and a layer norm along a split dimension."""
    import jax
    import jax.numpy as jnp

    def normalised(x: Any, scale: Any) -> Any:
        centred = x - jnp.mean(x, axis=1, keepdims=True)
        normal = centred / jnp.sqrt(jnp.mean(centred**2, axis=1, keepdims=True) + 1e-5)
        return jax.nn.softmax(normal * scale, axis=1), jnp.max(x, axis=0)

    return normalised, [(_array(4, 2 * n), (None, ("x", "y"))), (_array(2 * n, seed=1), (("x", "y"),))]


@program
def exchanged(n: int) -> Made:
    """An array split along one dimension, then along the other."""
    import jax.numpy as jnp
    from jax import lax
    from jax.sharding import PartitionSpec

    def exchanged(x: Any, w: Any) -> Any:
        turned = lax.with_sharding_constraint(jnp.sin(x), PartitionSpec(None, ("x", "y")))
        return turned * w + 1, turned.T @ x

    return exchanged, [(_array(2 * n, n), (("x", "y"), None)), (_array(2 * n, n, seed=1), (None, ("x", "y")))]


@program
def by_hand(n: int) -> Made:
    """Each collective in shard_map."""
    from jax import lax
    from jax.sharding import PartitionSpec

    def body(a: Any) -> Any:
        size = lax.axis_size("x")
        return (
            lax.psum(a, "x"),
            lax.pmax(a, ("x", "y")),
            lax.all_gather(a, "y", tiled=True),
            lax.psum_scatter(a, "x", tiled=True),
            lax.all_to_all(a, "x", 0, 1, tiled=True),
            lax.ppermute(a, "x", [(i, (i + 1) % size) for i in range(size)]),
            a + lax.axis_index("x").astype(a.dtype),
        )

    spec = PartitionSpec("x", "y")
    return _mapped(body, spec, spec), [(_array(16, 8), ("x", "y"))]


@program
def ring(n: int) -> Made:
    """A product whose one operand goes around a ring, in a loop."""
    import jax.numpy as jnp
    from jax import lax
    from jax.sharding import PartitionSpec

    def body(a: Any, b: Any) -> Any:
        size, here = lax.axis_size(("x", "y")), lax.axis_index(("x", "y"))
        shift = [(i, (i + 1) % size) for i in range(size)]

        def step(i: Any, state: Any) -> Any:
            total, moving = state
            start = (here - i) % size * moving.shape[0]
            part = lax.dynamic_slice_in_dim(a, start, moving.shape[0], 1)
            return total + part @ moving, lax.ppermute(moving, ("x", "y"), shift)

        return lax.fori_loop(0, size, step, (jnp.zeros((a.shape[0], b.shape[1])), b))[0]

    spec = PartitionSpec(("x", "y"), None)
    return _mapped(body, (spec, spec), spec), [
        (_array(2 * n, 3 * n), (("x", "y"), None)),
        (_array(3 * n, 4, seed=1), (("x", "y"), None)),
    ]


@program
def experts(n: int) -> Made:
    """Tokens sent to the device of their expert, and back."""
    import jax.numpy as jnp
    from jax import lax
    from jax.sharding import PartitionSpec

    def body(tokens: Any, weights: Any) -> Any:
        there = lax.all_to_all(tokens, ("x", "y"), 0, 0, tiled=True)
        done = jnp.tanh(there @ weights[0])
        return lax.all_to_all(done, ("x", "y"), 0, 0, tiled=True) + tokens, lax.pmean(
            jnp.sum(done)[None], "x"
        )

    both = PartitionSpec(("x", "y"))
    return _mapped(body, (both, both), (both, PartitionSpec("y"))), [
        (_array(2 * n * n, 4), (("x", "y"), None)),
        (_array(n, 4, 4, seed=1), (("x", "y"), None, None)),
    ]


@program
def gathered(n: int) -> Made:
    """Weights gathered before use, gradients scattered: fully sharded data parallelism by hand."""
    import jax.numpy as jnp
    from jax import lax
    from jax.sharding import PartitionSpec

    def body(x: Any, shard: Any) -> Any:
        whole = lax.all_gather(shard, "x", tiled=True)
        made = jnp.tanh(x @ whole)
        gradient = x.T @ (1 - made**2)
        return made, shard - 0.1 * lax.psum_scatter(gradient, "x", tiled=True)

    return _mapped(
        body,
        (PartitionSpec(("x", "y"), None), PartitionSpec("x", "y")),
        (PartitionSpec(("x", "y"), None), PartitionSpec("x", "y")),
    ), [(_array(2 * n, 8), (("x", "y"), None)), (_array(8, 6, seed=1), ("x", "y"))]


#: Data parallelism over replicas: gradients are averaged, neighbours hear of the loss.
_REPLICAS = """HloModule replicas, replica_count={n}
sum {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}
ENTRY main {{
  w = f32[6,4] parameter(0)
  x = f32[8,6] parameter(1)
  y = f32[8,4] parameter(2)
  made = f32[8,4] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  error = f32[8,4] subtract(made, y)
  gradient = f32[6,4] dot(x, error), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}
  whole = f32[6,4] all-reduce(gradient), replica_groups={{{everybody}}}, to_apply=sum
  rate = f32[] constant(0.0125)
  rates = f32[6,4] broadcast(rate), dimensions={{}}
  step = f32[6,4] multiply(whole, rates)
  moved = f32[6,4] subtract(w, step)
  squares = f32[8,4] multiply(error, error)
  zero = f32[] constant(0)
  loss = f32[8] reduce(squares, zero), dimensions={{1}}, to_apply=sum
  all = f32[{rows}] all-gather(loss), replica_groups={{{everybody}}}, dimensions={{0}}
  heard = f32[8] collective-permute(loss), source_target_pairs={{{ring}}}
  id = u32[] replica-id()
  number = f32[] convert(id)
  numbers = f32[8] broadcast(number), dimensions={{}}
  told = f32[8] add(heard, numbers)
  ROOT result = (f32[6,4], f32[{rows}], f32[8]) tuple(moved, all, told)
}}
"""


def compile_replicas(devices: int, folder: Path) -> None:
    """Compile a program for replicas."""
    from hlotool.backends.registry import get_backend
    from hlotool.backends.xla.backend import XlaBackend
    from hlotool.ir.devices import DeviceGrid
    from hlotool.parser.reader import parse_module

    everybody = "{" + ",".join(map(str, range(devices))) + "}"
    ring = ",".join(f"{{{n},{(n + 1) % devices}}}" for n in range(devices))
    text = _REPLICAS.format(n=devices, everybody=everybody, rows=8 * devices, ring=ring)
    backend = get_backend("xla")
    assert isinstance(backend, XlaBackend)
    backend.dumping(folder).compile_devices(parse_module(text), DeviceGrid(devices, 1))


def run(name: str, devices: int) -> None:
    """Compile and run a program on a mesh of two axes."""
    import jax
    from jax.sharding import AxisType, NamedSharding, PartitionSpec

    shape = {2: (2, 1), 4: (2, 2), 6: (3, 2), 8: (4, 2)}[devices]
    mesh = jax.make_mesh(shape, ("x", "y"), axis_types=(AxisType.Auto, AxisType.Auto))
    function, arguments = PROGRAMS[name](devices)
    with jax.set_mesh(mesh):
        placed = [jax.device_put(a, NamedSharding(mesh, PartitionSpec(*spec))) for a, spec in arguments]
        jax.block_until_ready(jax.jit(function)(*placed))


def main() -> None:
    name, devices, folder = sys.argv[1:]
    if name == REPLICAS:
        compile_replicas(int(devices), Path(folder))
        return
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_FLAGS"] = (
        f"--xla_force_host_platform_device_count={devices} --xla_dump_to={Path(folder)} "
        "--xla_dump_hlo_as_text --xla_dump_large_constants --xla_dump_hlo_pass_re=.*"
    )
    run(name, int(devices))


if __name__ == "__main__":
    main()
