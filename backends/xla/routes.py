"""Which way a program takes into XLA's compiler.

jaxlib compiles StableHLO, which has no fusions, no layouts, no backend configs and no schedule. A program
that the frontend made needs none of these. An optimised one does, so there are two more ways for it.

* In place of a trivial program in the middle of the compiler (jaxlib 0.10.2 and newer): before the scheduler,
  or after it. What follows is all that is done again: scheduling, buffer assignment, code generation. Before
  the scheduler XLA expects layouts on everything and copies around loops, and dies where they are missing, so
  that this way is taken for scheduled programs only, unless the user asks for another.
* Written as a frontend would have written it (`logical_module`). XLA then optimises it once more. Every stage
  of a compilation can be run like this, also that of another platform.
"""

from __future__ import annotations

from hlotool.backends.xla.protocol import Route
from hlotool.ir.module import Instruction, Module
from hlotool.ir.opcodes import Trait, opcodes_with
from hlotool.ir.types import array_shapes

#: What XLA's passes make, and StableHLO has no word for. Layouts prove nothing: frontends write them, too.
_MADE_BY_PASSES = opcodes_with(Trait.LATE)

#: Fields of backend configs that only the compilers of other platforms write.
_FIELDS = {
    "gpu": ('"operation_queue_id"', '"fusion_backend_config"', '"gemm_backend_config"', '"wait_on_operation'),
    "tpu": ('"flag_configs"', '"scoped_memory_configs"', '"window_config"', '"used_scoped_memory_configs"'),
    "cpu": ('"outer_dimension_partitions"', '"onednn_'),
}


def route_for(module: Module, platform: str, lets_in: bool) -> Route:
    """The way that suits `module`: what it holds decides, not the name of its stage.

    Args:
        module: of any stage.
        platform: that it is to run on.
        lets_in: jaxlib takes programs in the middle of the compiler.
    """
    if module.is_scheduled and lets_in and compiled_for(module) in (None, platform):
        return Route.POST_SCHEDULER
    return Route.MLIR


def is_optimised(module: Module) -> bool:
    """Whether it holds what StableHLO cannot say."""
    return module.is_scheduled or any(i.opcode in _MADE_BY_PASSES for i in module.instructions())


def compiled_for(module: Module) -> str | None:
    """The platform whose compiler has been over the program; None where nothing tells."""
    for instruction in module.instructions():
        if found := _platform_of(instruction):
            return found
    return None


def _platform_of(instruction: Instruction) -> str | None:
    for platform, fields in _FIELDS.items():
        if any(field in instruction.config_text for field in fields):
            return platform
    if instruction.attributes.get("kind") == "kInput":
        return "gpu"
    layouts = [shape.layout for shape in array_shapes(instruction.shape)]
    return "tpu" if any(layout is not None and layout.tiles for layout in layouts) else None


# Programs that talk to the host: on their own they crash XLA or wait for ever.

_EXCHANGE = frozenset({"infeed", "outfeed"})


def refuse_the_outside(module: Module) -> None:
    """Raises Unsupported, naming the first instruction that needs somebody outside of the program."""
    for instruction in module.instructions():
        if reason := _reason(instruction):
            raise module.unsupported(instruction, reason)


def _reason(instruction: Instruction) -> str:
    target = instruction.custom_call_target
    if "callback" in target:
        return f"calls back into the Python process that made it: {target!r}"
    if instruction.opcode in _EXCHANGE or instruction.flag("is_host_transfer"):
        return "exchanges data with the host, which takes no part in a replay"
    return ""
