"""`check`: one call of a function, judged from four sides on the same arguments."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from hlotool.api.called import CheckedCall, judge
from hlotool.errors import Miscompiled
from hlotool.jax.calls import call, call_op_by_op
from hlotool.jax.library import load_jax

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
