"""Functions of JAX, checked where they are called.

>>> import hlotool.jax
>>> result = hlotool.jax.check(f, x)  # doctest: +SKIP
>>> result.verdict  # doctest: +SKIP
<Verdict.IDENTICAL: 'identical'>

JAX is imported when a function here is called, and not before. `check` judges one call from four sides on
the same arguments; `capture` makes what is compiled and executed within a block a dump with arguments and
results.

The arguments of a program are those of the function without static ones, and without those that nothing
reads; PRNG keys are the words that they are made of; arrays that lie on several devices are put together.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import combinations
from pathlib import Path
from typing import Any, TypeVar

from hlotool.errors import BackendUnavailable, DumpError, Miscompiled, Unsupported
from hlotool.interface.api.programs import Called, CheckedCall, judge
from hlotool.interface.api.replay import ReplayResult, replay
from hlotool.ir.arrays import Array
from hlotool.parser.jax_stages import stage_proto
from hlotool.sources.directory import open_dump
from hlotool.sources.records import DumpModule
from hlotool.system.files import brief_folder, passing_folder


def load_jax() -> Any:
    """The package; raises BackendUnavailable where it is missing."""
    try:
        import jax
    except ImportError as error:
        raise BackendUnavailable(f"JAX cannot be imported (pip install jax): {error}") from error
    return jax


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


#: Options of a compilation; those that a JAX does not know are left out.
_OPTIONS = {
    "xla_dump_hlo_as_text": True,
    "xla_dump_large_constants": True,
    "xla_dump_hlo_snapshots": True,
}


@dataclass(frozen=True, slots=True)
class Captured:
    """Programs that were compiled within a block.

    Attributes:
        folder: their dump; it goes with this process.
    """

    folder: Path

    @property
    def modules(self) -> tuple[DumpModule, ...]:
        """The programs so far, each with the executions that were captured."""
        try:
            return open_dump(self.folder).modules
        except DumpError:
            return ()

    def __len__(self) -> int:
        return len(self.modules)

    def __iter__(self) -> Iterator[DumpModule]:
        return iter(self.modules)

    def replay(self, **options: Any) -> ReplayResult:
        """Replay all of them, as `hlotool.replay` does with these options.

        Raises:
            DumpError: nothing was compiled.
        """
        return replay(self.folder, **options)


@contextmanager
def capture() -> Iterator[Captured]:
    """Record every program that is compiled within the block, with arguments and results of its executions.

    What JAX has compiled before is forgotten at the beginning, and what is compiled here at the end, so that
    both are compiled anew. Arguments and results are there where XLA writes them: of programs for one CPU.

    Raises:
        Unsupported: this JAX has no place where options of a compilation can be added.

    >>> with capture() as programs:  # doctest: +SKIP
    ...     train_step(state, batch)
    >>> programs.replay().verdict  # doctest: +SKIP
    <Verdict.IDENTICAL: 'identical'>
    """
    jax = load_jax()

    compiler = _compiler()
    options = known_options()
    folder = passing_folder()
    original, was_cached = compiler.get_compile_options, jax.config.jax_enable_compilation_cache

    def with_dump(*args: Any, **kwargs: Any) -> Any:
        made = original(*args, **kwargs)
        added = [("xla_dump_to", str(folder)), *options.items()]
        made.env_option_overrides = [*made.env_option_overrides, *added]
        return made

    jax.clear_caches()
    jax.config.update("jax_enable_compilation_cache", False)
    compiler.get_compile_options = with_dump
    try:
        yield Captured(folder)
    finally:
        compiler.get_compile_options = original
        jax.config.update("jax_enable_compilation_cache", was_cached)
        jax.effects_barrier()
        jax.clear_caches()


def _compiler() -> Any:
    try:
        from jax._src import compiler
    except ImportError as error:
        raise Unsupported(f"this JAX compiles in another place: {error}") from error
    if not hasattr(compiler, "get_compile_options"):
        raise Unsupported("this JAX makes options of compilations in another place")
    return compiler


@cache
def known_options() -> dict[str, bool]:
    """Those of the options that the installed JAX knows."""
    jax = load_jax()

    known = {}
    lowered = jax.jit(lambda: 0).lower()
    with brief_folder() as folder:
        for name, value in _OPTIONS.items():
            try:
                lowered.compile(compiler_options={"xla_dump_to": str(folder), name: value})
            except Exception as error:
                if name not in str(error):
                    raise
                continue
            known[name] = value
    return known


F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Checker:
    """Checks calls of functions, with options.

    Attributes:
        op_by_op: also without `jit`, which takes long where many operations have to be compiled.
        options: of the judgement, as `hlotool.replay` has them: `rtol`, `exact`, `timeout`, ….
    """

    op_by_op: bool = True
    options: dict[str, Any] = field(default_factory=dict)

    def check(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> CheckedCall:
        """As the function `check`."""
        start = time.perf_counter()
        made = call(function, args, kwargs)
        alone = partial(call_op_by_op, function, args, kwargs) if self.op_by_op else None
        return judge(made, alone, self.options, start)

    def checked(self, function: F) -> F:
        """As the decorator `checked`."""
        known: set[Any] = set()

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            key = _signature(args, kwargs)
            if key in known:
                return function(*args, **kwargs)
            result = self.check(function, *args, **kwargs)
            if result.wrong:
                raise Miscompiled(str(result))
            known.add(key)
            return result.value

        return wrapped  # type: ignore[return-value]


def check(function: Callable[..., Any], *args: Any, **kwargs: Any) -> CheckedCall:
    """Call a function, and judge on the same arguments what came of it.

    The program as it was lowered is executed on hlotool's own reference; that judges the program that XLA
    compiled (executed there, too), what the device returned, and what the function returns where every
    operation is compiled alone (`jax.disable_jit`).

    Args:
        function: one of `jax.jit`, with its static and donated arguments, or any other, which is jitted.
            Arrays that are sharded, PRNG keys, `vmap` and `grad` are what they are elsewhere.
        args: of the function. Donated ones stay usable.
        kwargs: likewise.

    Returns:
        a row for each side, with verdict and reason. `str()` is the report; nothing is raised for what is
        wrong.

    Raises:
        Unsupported: which arguments are static, or became parameters, cannot be told.
        DumpError: the program is none that can be read.
    """
    return Checker().check(function, *args, **kwargs)


def checked(function: F) -> F:
    """A decorator: the function is checked whenever it is called for the first time with such arguments.

    Arguments are alike when structure, shapes and element types are; what is no array has to be equal.
    The function returns what it always does, and raises `Miscompiled` with the report where that is wrong.
    """
    return Checker().checked(function)


def _signature(args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """What is alike of two calls that need no two checks."""
    jax = load_jax()

    leaves, structure = jax.tree_util.tree_flatten((args, kwargs))
    return structure, tuple(_kind(leaf) for leaf in leaves)


def _kind(leaf: Any) -> Any:
    if hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
        return tuple(leaf.shape), str(leaf.dtype), str(getattr(leaf, "sharding", ""))
    return type(leaf), leaf if isinstance(leaf, (str, int, bool)) else repr(leaf)


__all__ = ["CheckedCall", "Checker", "capture", "check", "checked"]
