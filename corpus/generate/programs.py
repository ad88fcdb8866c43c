"""What a corpus program is, and the registry that `generate.py` walks.

A program is a generator function that yields calls `(function, *arguments)`. The runner compiles and executes
each of them once. Arguments are NumPy values, so that no eager operation adds a module to the dump. What a
compiler without its device makes a dump of is a function without parameters that returns a traced program, as
`hlotool compile SCRIPT.py:FUNCTION` takes it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Call = tuple[Any, ...]
Body = Callable[[], Any]

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
    "tpu": ("aot_programs", "tpu_programs"),
    "gpu": ("aot_programs", "gpu_programs"),
    "gpu_ptx": ("gpu_ptx_programs",),
    "miscompiles": ("jax_miscompiles", "tpu_miscompiles"),
}


@dataclass(frozen=True)
class Fault:
    """What is known of a wrong compilation, and a search has to find.

    Attributes:
        level: `pass` when the HLO text is wrong from one pass on; when it is right to the end, `codegen` or
            `runtime-library`.
        report: where it was reported or mended; empty where `hlotool fuzz` found it, and nobody else yet.
        wrong: what happens, in one clause.
        pass_name: the pass that breaks the program.
        opcodes: what the instructions that are executed wrongly do, one of which has to be named.
        right_on: the first version of jaxlib that was found to compute it rightly; empty: none was.
    """

    level: str
    report: str
    wrong: str
    pass_name: str = ""
    opcodes: tuple[str, ...] = ()
    right_on: str = ""


@dataclass(frozen=True)
class Program:
    """One program and how it has to be run.

    Attributes:
        body: yields the calls to run, or returns what is compiled: what JAX traced, or HLO.
        features: what of HLO it is there to show.
        x64: JAX keeps 64-bit types.
        devices: number of host devices.
        environment: variables that must be set before the framework is imported.
        fault: what the compiler does wrong here.
        target: whose compiler it is for, as `hlotool compile --for` takes it; empty where the framework says.
        text: the body returns HLO, as no function of JAX gives.
    """

    body: Body
    features: tuple[str, ...]
    x64: bool = False
    devices: int = 1
    environment: tuple[tuple[str, str], ...] = ()
    fault: Fault | None = None
    target: str = ""
    text: bool = False

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
    return {name: known for name, known in _registry.items() if known.body.__module__ in MODULES[framework]}
