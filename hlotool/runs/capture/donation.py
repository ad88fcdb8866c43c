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
from collections.abc import Callable
from typing import Any

#: Executes a program in place of JAX: gets what JAX does, the executable, and its arguments.
Call = Callable[[Callable[..., Any], Any, "tuple[Any, ...]"], Any]


def keep_arguments() -> bool:
    """Let every execution of JAX in this process leave its arguments alone; whether that is done."""

    def call(original: Callable[..., Any], executable: Any, arguments: tuple[Any, ...]) -> Any:
        views = [_view(argument) for argument in arguments]
        try:
            return original(executable, *arguments)
        finally:
            del views

    return redirect(call)


def redirect(call: Call, but: str = "") -> bool:
    """Let executions of JAX in this process go through `call`.

    Executions take the way through Python for it, which JAX otherwise takes for the first one only.

    Args:
        call: see there.
        but: what is in the names of programs that go the usual way; empty where none do.

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
    pxla.ExecuteReplicated.__call__ = lambda self, *arguments: call(original, self, arguments)
    for place, name in shortcuts:
        setattr(place, name, _shortcut(getattr(place, name), but))
    return True


def _shortcut(original: Callable[..., Any], but: str) -> Callable[..., Any]:
    """What says of an executable how to call it without Python: of most that there is no such way."""

    def shortcut(executable: Any, *arguments: Any, **named: Any) -> Any:
        name = getattr(getattr(executable, "unsafe_call", None), "name", "")
        return original(executable, *arguments, **named) if but and but in name else None

    return shortcut


def _view(argument: Any) -> Any:
    """The array's own memory; None of what is no array on a single CPU."""
    array = getattr(argument, "_base_array", argument)  # of a PRNG key the words
    try:
        [device] = array.devices()
        return array.__array__() if device.platform == "cpu" else None
    except (AttributeError, TypeError, ValueError, RuntimeError):
        return None
