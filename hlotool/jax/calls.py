"""One call of a function: what is lowered, compiled and executed, with its arguments and results as arrays.

The arguments of the program are those of the function without static ones, and without those that nothing
reads; PRNG keys are the words that they are made of; arrays that lie on several devices are put together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from hlotool.api.called import Called
from hlotool.errors import Unsupported
from hlotool.ir.dtypes import Array
from hlotool.jax.library import load_jax
from hlotool.parse.jax_stages import stage_proto

#: Ways to leave out arguments that are tried to find the static ones.
_WAYS = 10_000


def call(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Called:
    """Compile a function for its arguments, and execute what was compiled.

    Args:
        function: one of `jax.jit`, with its static and donated arguments, or any other, which is jitted.
        args: of the function; those that it donates stay as they are, for it gets copies.
        kwargs: likewise.

    Raises:
        Unsupported: which arguments are static, or are not used, cannot be told.
    """
    jax = load_jax()

    jitted: Any = function if hasattr(function, "lower") else jax.jit(function)
    lowered = jitted.lower(*args, **kwargs)
    compiled = lowered.compile()
    dynamic = _dynamic(lowered, args, kwargs)
    copied_args, copied_kwargs = copies(dynamic)
    given = arrays(dynamic)
    value = jax.block_until_ready(compiled(*copied_args, **copied_kwargs))
    return Called(
        stage_proto(lowered),
        stage_proto(compiled),
        compiled.runtime_executable().client.platform,
        _kept(lowered, given),
        value,
        arrays(value),
    )


def call_op_by_op(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> list[Array]:
    """What the function returns without `jit`, where every operation is compiled alone."""
    copied_args, copied_kwargs = copies((tuple(args), dict(kwargs)))
    with load_jax().disable_jit():
        return arrays(function(*copied_args, **copied_kwargs))


def copies(tree: Any) -> Any:
    """The same values in buffers of their own, which may be donated."""
    jax = load_jax()

    return jax.tree_util.tree_map(lambda leaf: leaf.copy() if isinstance(leaf, jax.Array) else leaf, tree)


def arrays(tree: Any) -> list[Array]:
    """The leaves as arrays of the host, in the types that JAX computes with.

    Raises:
        Unsupported: some of a leaf lies on devices of another process.
    """
    jax = load_jax()

    return [_array(leaf) for leaf in jax.tree_util.tree_leaves(tree)]


def _array(leaf: Any) -> Array:
    jax = load_jax()
    import numpy as np

    if isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    if isinstance(leaf, jax.Array) and not leaf.is_fully_addressable:
        raise Unsupported("an array lies on devices of several processes; check it in a program of one")
    return np.asarray(leaf if isinstance(leaf, jax.Array) else jax.numpy.asarray(leaf))


def _dynamic(
    lowered: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments without static ones: those whose structure, shapes and types were lowered."""
    jax = load_jax()

    infos = jax.tree_util.tree_leaves(lowered.args_info)
    avals = [getattr(info, "aval", info) for info in infos]  # until jax 0.4.30
    wanted = [(tuple(aval.shape), aval.dtype) for aval in avals]
    fitting = [
        chosen
        for chosen in _without_some(lowered, args, kwargs)
        if jax.tree_util.tree_structure(chosen) == lowered.in_tree and _avals(chosen) == wanted
    ]
    if len(fitting) != 1:
        raise Unsupported(f"{len(fitting)} ways to tell which arguments are static: give these by keyword")
    return fitting[0]


def _without_some(
    lowered: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """The arguments, with as many as there are dynamic ones."""
    jax = load_jax()

    positional, named = jax.tree_util.tree_unflatten(lowered.in_tree, [0] * lowered.in_tree.num_leaves)
    known = {name: kwargs[name] for name in named}
    for number, chosen in enumerate(combinations(args, len(positional))):
        if number == _WAYS:
            return
        yield chosen, known


def _avals(tree: Any) -> list[tuple[tuple[int, ...], Any]]:
    """Shapes and types of leaves as JAX takes them; what it takes for no array has none that fits."""
    jax = load_jax()

    found = []
    for leaf in jax.tree_util.tree_leaves(tree):
        try:
            array = leaf if isinstance(leaf, jax.Array) else jax.numpy.asarray(leaf)
        except TypeError:
            return []
        found.append((array.shape, array.dtype))
    return found


def _kept(lowered: Any, given: Sequence[Array]) -> list[Array]:
    """The arguments that became parameters: JAX drops those that nothing reads."""
    program = lowered.compiler_ir("hlo").program_shape()
    count = len(program.parameter_shapes())
    if count == len(given):
        return list(given)
    try:
        kept = sorted(lowered._lowering.compile_args["kept_var_idx"])
    except (AttributeError, KeyError, TypeError) as error:
        raise Unsupported(
            "this JAX does not tell which arguments it dropped; use keep_unused=True"
        ) from error
    if len(kept) != count:
        raise Unsupported(f"the program has {count} parameters, and {len(kept)} arguments are for it")
    return [given[number] for number in kept]
