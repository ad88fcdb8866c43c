"""Results of executions that take over the memory of their arguments, as training steps let them.

XLA's CPU client writes an execution with its result when that is there, arguments anew: those that were given
away are gone by then, and it leaves the execution without a result ("Failed to get literal for argument").
As long as somebody else looks at an argument, it gives the program a copy instead. So this looks at all of
them, as arrays of NumPy that share their memory. The program is the same, with its aliases; only a donated
array (`donate_argnums`) is not deleted, and lives as long as the user's program has a name for it.

Runs in whatever Python the program uses: nothing is imported but the standard library.

XLA: pjrt/cpu/cpu_client.cc (MaybeDumpHloSnapshot), tracked_device_buffer.cc (external references).
"""

from __future__ import annotations

import sys
from typing import Any


def keep_arguments() -> bool:
    """Let every execution of JAX in this process leave its arguments alone.

    Executions take the way through Python for it, which JAX otherwise takes for the first one only.

    Returns:
        whether it is done: the parts of JAX that it takes are imported, and this JAX has them.
    """
    parts: list[Any] = [sys.modules.get(f"jax._src.{name}") for name in ("pjit", "interpreters.pxla")]
    if None in parts or any(getattr(part.__spec__, "_initializing", False) for part in parts):
        return False
    pjit, pxla = parts
    try:
        original = pxla.ExecuteReplicated.__call__
        shortcuts = ((pjit, "_get_fastpath_data"), (pxla.MeshExecutable, "create_cpp_call"))
    except AttributeError:
        return False
    if not all(hasattr(place, name) for place, name in shortcuts):
        return False

    def call(self: Any, *arguments: Any) -> Any:
        views = [_view(argument) for argument in arguments]
        try:
            return original(self, *arguments)
        finally:
            del views

    pxla.ExecuteReplicated.__call__ = call
    for place, name in shortcuts:
        setattr(place, name, _no_shortcut)
    return True


def _no_shortcut(*arguments: object, **named: object) -> None:
    """What JAX takes for an executable that has to be called from Python."""


def _view(argument: Any) -> Any:
    """The array's own memory; None of what is no array on a single CPU."""
    array = getattr(argument, "_base_array", argument)  # of a PRNG key the words
    try:
        [device] = array.devices()
        return array.__array__() if device.platform == "cpu" else None
    except (AttributeError, TypeError, ValueError, RuntimeError):
        return None
