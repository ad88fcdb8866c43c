"""Which attributes XLA prints: not those that say what goes without saying, and under one name each."""

from __future__ import annotations

from collections.abc import Mapping

from hlotool.ir.attributes import AttributeValue, ResultAccuracy, Window, default_comparison
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.types import ArrayShape, ElementType
from hlotool.ir.walk import branches

#: Values that say nothing: XLA prints the attribute only when it differs.
_DEFAULTS: Mapping[str, object] = {
    "api_version": "API_VERSION_ORIGINAL",
    "batch_group_count": 1,
    "constrain_layout": False,
    "custom_call_has_side_effect": False,
    "feature_group_count": 1,
    "indices_are_sorted": False,
    "inferred_dimension": -1,
    "is_composite": False,
    "is_host_transfer": False,
    "is_reverse": False,
    "is_stable": False,
    "left_side": False,
    "lower": False,
    "padding_type": "PADDING_INVALID",
    "schedule": "SCHEDULE_NONE",
    "unique_indices": False,
    "unit_diagonal": False,
    "use_global_device_ids": False,
    "window": Window(()),
    "result_accuracy": ResultAccuracy(mode="default"),
}


def printed_attributes(instruction: Instruction) -> dict[str, AttributeValue]:
    """The attributes that XLA prints, under the names that it prints."""
    opcode, attributes = instruction.opcode, instruction.attributes
    said = {k: v for k, v in attributes.items() if k != "backend_config" and not _is_default(k, v)}
    if opcode == "compare" and instruction.operands:
        shape = instruction.operands[0].shape
        if isinstance(shape, ArrayShape) and said.get("type") == default_comparison(shape.element_type):
            del said["type"]
    elif opcode == "conditional":
        return _branches_said(instruction, said)
    elif opcode == "custom-call" and isinstance(callee := said.get("to_apply"), Computation):
        del said["to_apply"]
        said["called_computations"] = (callee,)
    elif opcode in ("async-start", "async-update", "async-done"):
        silent = {"async_execution_thread"} if said.get("async_execution_thread") == "main" else set()
        if opcode != "async-start":
            silent = {"async_execution_thread", "calls"}
        return {k: v for k, v in said.items() if k not in silent}
    return said


def _branches_said(instruction: Instruction, said: dict[str, AttributeValue]) -> dict[str, AttributeValue]:
    """A predicate chooses between `true_computation` and `false_computation`, an index among branches."""
    choices = branches(instruction)
    shape = instruction.operands[0].shape if instruction.operands else None
    names = ("true_computation", "false_computation", "branch_computations")
    rest = {k: v for k, v in said.items() if k not in names}
    if isinstance(shape, ArrayShape) and shape.element_type is ElementType.PRED and len(choices) == 2:
        return {**rest, "true_computation": choices[0], "false_computation": choices[1]}
    return {**rest, "branch_computations": choices}


def _is_default(attribute: str, value: AttributeValue) -> bool:
    """Whether `value` is what XLA assumes when nothing is said."""
    if attribute == "operand_precision" and isinstance(value, tuple):
        return all(precision == "default" for precision in value)
    default = _DEFAULTS.get(attribute)
    return default is not None and type(value) is type(default) and value == default
