"""JAX: the small programs of the XLA and JAX guides, and what a call boundary can look like."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from programs import Call, program


def array(*shape: int, seed: int = 0, dtype: str = "float32") -> np.ndarray:
    """Normal values from a seed; integer types get 0..99."""
    generator = np.random.default_rng(seed)
    if np.dtype(dtype).kind in "iu":
        return generator.integers(0, 100, shape).astype(dtype)
    return generator.standard_normal(shape).astype(dtype)


@program("multiply", "add", "reduce", "fusion")
def model_fn() -> Iterator[Call]:
    """reduce_sum(x + y * z)."""

    def model_fn(x, y, z):
        return jnp.sum(x + y * z)

    yield model_fn, array(8, 16), array(8, 16, seed=1), array(8, 16, seed=2)


@program("conditional", "while", "remainder")
def fizzbuzz() -> Iterator[Call]:
    """A conditional with four branches and one with a predicate, inside a loop."""

    def fizzbuzz(numbers, loud):
        def classify(n):
            kind = jnp.where(n % 3 == 0, 1, 0) + jnp.where(n % 5 == 0, 2, 0)
            branches = [lambda n: n, lambda n: -3 * n // n, lambda n: -5 + 0 * n, lambda n: -15 + 0 * n]
            value = lax.switch(kind, branches, n)
            return lax.cond(loud, lambda v: v * 10, lambda v: v, value)

        return lax.map(classify, numbers)

    yield fizzbuzz, np.arange(1, 21, dtype=np.int32), np.bool_(True)


@program("while", "conditional")
def collatz() -> Iterator[Call]:
    """Steps to one: a while loop whose trip count depends on the data."""

    def collatz(n):
        def step(state):
            value, count = state
            following = lax.cond(value % 2 == 0, lambda v: v // 2, lambda v: 3 * v + 1, value)
            return following, count + 1

        return lax.while_loop(lambda state: state[0] != 1, step, (n, jnp.int32(0)))[1]

    def next_collatz(n):
        return jnp.where(n % 2 == 0, n // 2, 3 * n + 1)

    yield collatz, np.int32(27)
    yield next_collatz, np.arange(1, 9, dtype=np.int32)


def _rnn(weights, inputs, state):
    """A tanh cell over `inputs` [time, batch, features]; returns all states and the last."""

    def cell(state, x):
        state = jnp.tanh(x @ weights["input"] + state @ weights["state"] + weights["bias"])
        return state, state

    last, states = lax.scan(cell, state, inputs)
    return states, last


def _rnn_arguments():
    weights = {"input": array(4, 5) * 0.5, "state": array(5, 5, seed=1) * 0.5, "bias": array(5, seed=2)}
    return weights, array(6, 3, 4, seed=3), np.zeros((3, 5), np.float32)


@program("while", "dynamic-slice", "dynamic-update-slice", "dot", "tanh")
def dynamic_rnn() -> Iterator[Call]:
    """A recurrent network by scan."""

    def dynamic_rnn(weights, inputs, state):
        return _rnn(weights, inputs, state)

    yield dynamic_rnn, *_rnn_arguments()


@program("while", "dynamic-slice", "dynamic-update-slice", "dot", "tanh")
def dynamic_rnn_gradient() -> Iterator[Call]:
    """The gradient of the recurrent network: a forward loop that stacks, a backward loop in reverse."""

    def dynamic_rnn_gradient(weights, inputs, state):
        def loss(weights, state):
            states, last = _rnn(weights, inputs, state)
            return jnp.mean(states**2) + jnp.sum(last)

        return jax.grad(loss, argnums=(0, 1))(weights, state)

    yield dynamic_rnn_gradient, *_rnn_arguments()


@program("recompilation")
def recompiled_on_launch() -> Iterator[Call]:
    """One function, three shapes, three modules."""

    def recompiled_on_launch(a, b):
        return a + b

    compiled = jax.jit(recompiled_on_launch)
    for length in (10, 100, 1000):
        yield compiled, np.ones((1, length), np.float32), np.ones((1, length), np.float32)


@program("input_output_alias", "buffer_donor")
def donated_update() -> Iterator[Call]:
    """Donated arguments: results that take over the buffers of parameters."""

    def donated_update(state, gradient):
        momentum = 0.9 * state["momentum"] + gradient
        return {"weights": state["weights"] - 0.1 * momentum, "momentum": momentum}

    state = {"weights": array(6, 4), "momentum": array(6, 4, seed=1)}
    yield jax.jit(donated_update, donate_argnums=0), state, array(6, 4, seed=2)


@program("call")
def nested_calls() -> Iterator[Call]:
    """Jitted functions that call jitted functions, one of them from two places."""

    @jax.jit
    def normalise(x):
        return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)

    @jax.jit
    def block(x, w):
        return normalise(jnp.maximum(normalise(x) @ w, 0.0))

    def nested_calls(x, w, v):
        return block(block(x, w), v)

    yield nested_calls, array(4, 8), array(8, 8, seed=1), array(8, 8, seed=2)


@program("custom-call", "host callback")
def host_callback() -> Iterator[Call]:
    """Calls back into Python: no other process can replay them."""

    def host_callback(x):
        jax.debug.callback(lambda total: None, x.sum())
        shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return jax.pure_callback(lambda v: np.asarray(v) * 2, shape, x, vmap_method="sequential") + 1

    yield host_callback, array(3, 4)


@program("opt-barrier")
def checkpointed() -> Iterator[Call]:
    """Rematerialisation behind an optimisation barrier."""

    def checkpointed(x, w):
        @jax.checkpoint
        def layer(x):
            return jnp.sin(jnp.sin(x @ w))

        return jax.grad(lambda x: layer(layer(x)).sum())(x)

    yield checkpointed, array(3, 6), array(6, 6, seed=1) * 0.3


@program("custom derivative", "clamp")
def custom_vjp() -> Iterator[Call]:
    """A function with a derivative of its own: a clipped gradient."""

    @jax.custom_vjp
    def clip_gradient(x, limit):
        return x

    clip_gradient.defvjp(
        lambda x, limit: (x, limit),
        lambda limit, g: (jnp.clip(g, -limit, limit), jnp.zeros_like(limit)),
    )

    def custom_vjp(x, limit):
        return jax.value_and_grad(lambda x: jnp.sum(clip_gradient(x, limit) ** 3))(x)

    yield custom_vjp, array(4, 5), np.float32(0.5)


@program("constant")
def table_lookup() -> Iterator[Call]:
    """Constants of more than ten elements, which a dump elides unless it is told not to."""
    table = np.round(array(6, 8), 3)
    order = np.random.default_rng(1).permutation(24).astype(np.int32)

    def table_lookup(x):
        return (x @ jnp.asarray(table)).reshape(-1)[jnp.asarray(order)] + 42.0

    yield table_lookup, array(3, 6, seed=2)


@program("recompilation", "unrolled loop")
def unrolled() -> Iterator[Call]:
    """A Python loop of 3, 10 and 30 steps beside the same loop as fori_loop."""

    def unrolled(x, steps):
        for _ in range(steps):
            x = x * 1.5 + jnp.sin(x)
        return x

    def rolled(x, steps):
        return lax.fori_loop(0, steps, lambda _, x: x * 1.5 + jnp.sin(x), x)

    for body in (unrolled, rolled):
        compiled = jax.jit(body, static_argnums=1)
        for steps in (3, 10, 30):
            yield compiled, array(4), steps
