"""Random JAX programs that move arrays to the host and back.

Values are drawn from a pool of arrays of `f32[8,128]` and stacks of four of them, each on the device or on
the host; what JAX itself refuses is drawn again.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental.compute_on import compute_on
from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

_HOST, _DEVICE = jax.memory.Space.Host, jax.memory.Space.Device
_ROWS = 4
_ONE, _STACK = (8, 128), (_ROWS, 8, 128)


@dataclass
class _Pool:
    """What a program has computed so far: values, and whether each is on the host."""

    rng: random.Random
    values: list[tuple[Any, bool]] = field(default_factory=list)

    def take(self, on_host: bool, shape: tuple[int, ...] = _ONE) -> Any:
        """A value of that kind; one is made where there is none."""
        found = [v for v, host in self.values if host == on_host and v.shape == shape]
        if found:
            return self.rng.choice(found)
        first = next(v for v, host in self.values if not host and v.shape == _ONE)
        value = jnp.broadcast_to(jnp.sin(first), shape)
        return jax.device_put(value, _HOST) if on_host else value

    def add(self, value: Any, on_host: bool) -> None:
        self.values.append((value, on_host))


def _compute(pool: _Pool) -> None:
    x, y = pool.take(False), pool.take(False)
    make = pool.rng.choice(
        [lambda: jnp.sin(x), lambda: x * y + 1, lambda: x @ y.T @ x, lambda: jnp.cumsum(x, 0)]
    )
    pool.add(make(), False)


def _to_host(pool: _Pool) -> None:
    shape = pool.rng.choice([_ONE, _STACK])
    pool.add(jax.device_put(pool.take(False, shape), _HOST), True)


def _to_device(pool: _Pool) -> None:
    shape = pool.rng.choice([_ONE, _STACK])
    pool.add(jax.device_put(pool.take(True, shape), _DEVICE), False)


def _host_compute(pool: _Pool) -> None:
    x = pool.take(True)
    make = pool.rng.choice([lambda: x + x, lambda: x.T.reshape(_ONE), lambda: jnp.exp(x)])
    pool.add(make(), True)


def _host_slice(pool: _Pool) -> None:
    stack = pool.take(True, _STACK)
    row = lax.dynamic_index_in_dim(stack, pool.rng.randrange(_ROWS), 0, keepdims=False)
    stays = pool.rng.random() < 0.2
    pool.add(row if stays else jax.device_put(row, _DEVICE), stays)


def _host_update(pool: _Pool) -> None:
    kind = pool.rng.choice(["zeros", "zeros", "ones", "computed"])
    start = {"zeros": jnp.zeros(_STACK), "ones": jnp.ones(_STACK), "computed": pool.take(False, _STACK)}[kind]
    buffer = jax.device_put(start, _HOST)
    for row in range(pool.rng.choice([1, _ROWS])):
        update = jax.device_put(pool.take(False)[None], _HOST)
        buffer = lax.dynamic_update_slice(buffer, update, (row, 0, 0))
    pool.add(buffer, True)


def _scan_out(pool: _Pool) -> None:
    """Each iteration offloads what it computes."""

    def body(carry: Any, x: Any) -> Any:
        made = jnp.sin(x) + carry
        return made, jax.device_put(made * 2, _HOST)

    carry, offloaded = lax.scan(body, pool.take(False), pool.take(False, _STACK))
    pool.add(carry, False)
    pool.add(offloaded, True)


def _scan_in(pool: _Pool) -> None:
    """Each iteration reads a part of what is on the host."""
    reverse = pool.rng.random() < 0.5

    def body(carry: Any, x: Any) -> Any:
        return carry + jax.device_put(x, _DEVICE), None

    carry, _ = lax.scan(body, pool.take(False), pool.take(True, _STACK), reverse=reverse)
    pool.add(carry, False)


def _while_buffer(pool: _Pool) -> None:
    """A loop that carries a buffer on the host, updates it, and looks at it in its condition or not."""
    looks = pool.rng.random() < 0.2
    makes_buffer = pool.rng.choice([jnp.zeros, jnp.ones])
    x = pool.take(False)

    def goes_on(state: Any) -> Any:
        i, buffer, _ = state
        if looks:
            return (i < _ROWS) & (buffer[0, 0, 0] < 3)
        return i < _ROWS

    def body(state: Any) -> Any:
        i, buffer, total = state
        update = jax.device_put((x * total)[None], _HOST)
        return i + 1, lax.dynamic_update_slice(buffer, update, (i, 0, 0)), total + 1

    if looks:
        buffer = makes_buffer(_STACK)
        goes = lambda s: (s[0] < _ROWS) & (jnp.sum(s[2]) < 1e9)  # noqa: E731
    else:
        buffer, goes = jax.device_put(makes_buffer(_STACK), _HOST), goes_on
        _, buffer, total = lax.while_loop(goes, body, (0, buffer, x))
        pool.add(buffer, True)
        pool.add(total, False)
        return
    _, total = lax.while_loop(
        lambda s: (s[0] < _ROWS) & (jnp.sum(s[1]) < 1e9), lambda s: (s[0] + 1, s[1] + 1), (0, x)
    )
    pool.add(total, False)
    pool.add(jax.device_put(buffer, _HOST), True)


def _while_host_condition(pool: _Pool) -> None:
    limit = pool.take(True)

    def goes_on(state: Any) -> Any:
        return (
            jnp.all(state[1] < 3) if pool.rng.random() < 0.5 else jax.device_put(state[1], _DEVICE)[0, 0] < 3
        )

    pool.add(lax.while_loop(goes_on, lambda s: (s[0] + 1, s[1]), (pool.take(False), limit))[0], False)


def _conditional(pool: _Pool) -> None:
    x, on_host = pool.take(False), pool.rng.random() < 0.4
    place = _HOST if on_host else _DEVICE
    taken = jnp.sum(x) > 0

    def yes(x: Any) -> Any:
        moved = jax.device_put(jnp.sin(x), _HOST)
        return moved if on_host else jax.device_put(moved, _DEVICE)

    pool.add(lax.cond(taken, yes, lambda x: jax.device_put(x * 2, place), x), on_host)


def _conditional_on_host_operand(pool: _Pool) -> None:
    x, held = pool.take(False), pool.take(True)
    made = lax.cond(jnp.sum(x) > 0, lambda x, h: x + jax.device_put(h, _DEVICE), lambda x, h: x, x, held)
    pool.add(made, False)


def _call(pool: _Pool) -> None:
    on_host = pool.rng.random() < 0.5
    takes = pool.rng.random() < 0.5

    @jax.jit
    def called(x: Any) -> Any:
        x = jax.device_put(x, _DEVICE) if takes else x
        return jax.device_put(jnp.cos(x), _HOST) if on_host else jnp.cos(x)

    pool.add(called(pool.take(takes)), on_host)


def _remat(pool: _Pool) -> None:
    from jax.ad_checkpoint import checkpoint_name

    policy = jax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[],
        names_which_can_be_offloaded=["h"],
        offload_src="device",
        offload_dst="pinned_host",
    )
    w, in_loop = pool.take(False), pool.rng.random() < 0.5

    def layer(x: Any) -> Any:
        return jnp.tanh(checkpoint_name(jnp.sin(x @ w.T @ w), "h"))

    def loss(x: Any) -> Any:
        if in_loop:
            return lax.scan(
                lambda c, _: (jax.checkpoint(layer, policy=policy)(c), None), x, None, length=_ROWS
            )[0].sum()
        return jax.checkpoint(lambda x: layer(layer(x)), policy=policy)(x).sum()

    pool.add(jax.grad(loss)(pool.take(False)), False)


def _on_host(pool: _Pool) -> None:
    """What the host computes on purpose."""
    held = pool.take(True)
    with compute_on("device_host"):
        made = jax.jit(lambda x: x * 2 + 1)(held)
    pool.add(made, True)


def _optimizer(pool: _Pool) -> None:
    gradient = jnp.cos(pool.take(False))
    moments = [pool.take(True), pool.take(True)]
    moved = [jax.device_put(m, _DEVICE) for m in moments]
    mean, square = 0.9 * moved[0] + 0.1 * gradient, 0.9 * moved[1] + 0.1 * gradient**2
    pool.add(jax.device_put(mean, _HOST), True)
    pool.add(jax.device_put(square, _HOST), True)
    pool.add(gradient - mean / (jnp.sqrt(square) + 1), False)


#: Steps with their weights.
_STEPS: dict[Callable[[_Pool], None], int] = {
    _compute: 4,
    _to_host: 3,
    _to_device: 3,
    _host_compute: 1,
    _host_slice: 2,
    _host_update: 2,
    _scan_out: 2,
    _scan_in: 2,
    _while_buffer: 2,
    _while_host_condition: 1,
    _conditional: 2,
    _conditional_on_host_operand: 1,
    _call: 2,
    _remat: 2,
    _on_host: 1,
    _optimizer: 2,
}


def lowered(seed: int, devices: list[Any]) -> Any:
    """A program, lowered for these devices of a TPU: one of them, or four of them sharded over 2x2."""
    rng = random.Random(seed)
    for attempt in range(50):
        is_sharded = rng.random() < 0.25
        try:
            return _lowered(random.Random(seed * 1000 + attempt), devices, is_sharded)
        except (TypeError, ValueError, NotImplementedError):
            continue  # JAX refuses to compute with arrays in several memories
    raise RuntimeError(f"seed {seed}: JAX took none of 50 programs")


def _lowered(rng: random.Random, devices: list[Any], is_sharded: bool) -> Any:
    mesh = Mesh(np.array(devices[:4]).reshape(2, 2), ("x", "y"))

    def sharding(on_host: bool, rank: int) -> Any:
        kind = "pinned_host" if on_host else "device"
        if not is_sharded:
            return SingleDeviceSharding(devices[0], memory_kind=kind)
        axes = PartitionSpec(*(None,) * (rank - 2), "x", "y")
        return NamedSharding(mesh, axes, memory_kind=kind)

    held = [False, False, *(rng.random() < 0.5 for _ in range(2))]
    shapes = [_ONE, _STACK, _ONE, _STACK]
    steps = rng.choices(list(_STEPS), list(_STEPS.values()), k=rng.randint(2, 6))
    state = rng.getstate()
    places: list[tuple[bool, int]] = []

    def program(*arguments: Any) -> Any:
        rng.setstate(state)
        pool = _Pool(rng, list(zip(arguments, held)))
        for step in steps:
            step(pool)
        new = pool.values[len(arguments) :]
        returned = new[-1:] + [each for each in new[:-1] if rng.random() < 0.4]
        places[:] = [(on_host, value.ndim) for value, on_host in returned]
        return [value for value, _ in returned]

    abstract = [
        jax.ShapeDtypeStruct(shape, jnp.float32, sharding=sharding(on_host, len(shape)))
        for shape, on_host in zip(shapes, held)
    ]
    jax.eval_shape(program, *abstract)
    wrong = rng.random() < 0.3
    results = [sharding(on_host and not (wrong and rng.random() < 0.5), rank) for on_host, rank in places]
    return jax.jit(program, out_shardings=results).lower(*abstract)
