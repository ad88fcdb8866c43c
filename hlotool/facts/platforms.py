"""Whose compiler has been over a program, by what only that one writes."""

from __future__ import annotations

from hlotool.ir.module import Instruction, Module
from hlotool.ir.types import array_shapes

#: Fields of backend configs that only the compilers of other platforms write.
_FIELDS = {
    "gpu": ('"operation_queue_id"', '"fusion_backend_config"', '"gemm_backend_config"', '"wait_on_operation'),
    "tpu": ('"flag_configs"', '"scoped_memory_configs"', '"window_config"', '"used_scoped_memory_configs"'),
    "cpu": ('"outer_dimension_partitions"', '"onednn_'),
}


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
