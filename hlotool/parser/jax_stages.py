"""Programs of JAX in memory: `Traced`, `Lowered` and `Compiled`, without importing JAX.

The protos are taken, not the texts: they have all constants in full, and positions in the user's source.
"""

from __future__ import annotations

from typing import Any

from hlotool.errors import Unsupported


def is_stage(value: object) -> bool:
    """Whether this is what `jax.jit(f).trace(…)`, `.lower(…)` or `.lower(…).compile()` returned."""
    kind = type(value)
    return kind.__module__.partition(".")[0] == "jax" and kind.__name__ in ("Traced", "Lowered", "Compiled")


def stage_proto(stage: Any) -> bytes:
    """The HLO of a stage as a binary proto: as the frontend made it, or of `Compiled` as XLA compiled it.

    Raises:
        Unsupported: the stage has none: it was taken from a serialized form, or comes to several programs.
    """
    if type(stage).__name__ == "Traced":
        stage = stage.lower()
    if type(stage).__name__ == "Lowered":
        computation = stage.compiler_ir("hlo")
        if computation is None:
            raise Unsupported("this lowered program has no HLO")
        return bytes(computation.as_serialized_hlo_module_proto())
    executable = stage.runtime_executable()
    modules = executable.hlo_modules() if hasattr(executable, "hlo_modules") else []
    if len(modules) != 1:
        raise Unsupported(f"this compiled program shows {len(modules)} modules of HLO, and one is wanted")
    return bytes(modules[0].as_serialized_hlo_module_proto())
