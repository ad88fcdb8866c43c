"""What a corpus program is, and the registry that `generate.py` walks.

A program is a generator function that yields calls `(function, *arguments)`. The runner compiles and executes
each of them once. Arguments are NumPy values, so that no eager operation adds a module to the dump.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Call = tuple[Any, ...]
Body = Callable[[], Iterator[Call]]

MODULES = {
    "jax": (
        "jax_programs",
        "jax_training",
        "jax_convolution",
        "jax_indexing",
        "jax_windows",
        "jax_numbers",
        "jax_random",
        "jax_linalg",
        "jax_loops",
        "jax_devices",
    ),
    "tf": ("tf_programs", "tf_training", "tf_random", "tf_shapes"),
}


@dataclass(frozen=True)
class Program:
    """One program and how it has to be run.

    Attributes:
        body: yields the calls to run.
        features: what of HLO it is there to show.
        x64: JAX keeps 64-bit types.
        devices: number of host devices.
        environment: variables that must be set before the framework is imported.
    """

    body: Body
    features: tuple[str, ...]
    x64: bool = False
    devices: int = 1
    environment: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """The name of the program, which is that of its directory too."""
        return self.body.__name__

    @property
    def about(self) -> str:
        """The first line of the program's docstring."""
        return (self.body.__doc__ or "").strip().splitlines()[0]


_registry: dict[str, Program] = {}


def program(*features: str, **options: Any) -> Callable[[Body], Body]:
    """Register a program under its function name; `features` and `options` are those of `Program`."""

    def register(body: Body) -> Body:
        if body.__name__ in _registry:
            raise ValueError(f"two programs are called {body.__name__}")
        _registry[body.__name__] = Program(body, features, **options)
        return body

    return register


def load(framework: str) -> dict[str, Program]:
    """Import the programs of one framework and return them by name."""
    _registry.clear()
    for module in MODULES[framework]:
        importlib.import_module(module)
    return dict(_registry)
