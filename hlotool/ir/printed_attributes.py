"""Text of attribute values, and the order in which XLA prints attributes.

XLA: the PrintExtraAttributesImpl functions of hlo_instructions.cc, hlo_instruction.cc, window_util.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from hlotool.ir.attribute_kinds import ATTRIBUTE_KINDS, Kind
from hlotool.ir.attributes import (
    AttributeValue,
    BufferDonor,
    ConvolutionDimensions,
    EntryLayout,
    Ints,
    OperandAlias,
    PaddingDim,
    ParameterAlias,
    RawText,
    ResultAccuracy,
    SliceDim,
    Statistics,
    Window,
    WindowDim,
    default_comparison,
)
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.opcodes import attribute_kind
from hlotool.ir.printed_annotations import (
    backend_config_text,
    frontend_text,
    quote,
    replica_groups_text,
    sharding_text,
)
from hlotool.ir.printed_literals import typed_literal_text
from hlotool.ir.types import ArrayShape, ElementType, join_indexed
from hlotool.ir.walk import branches

#: The order in which XLA prints what is not common to all instructions.
_ORDER = (
    "async_execution_thread parameter_replication window dim_labels convolution_kind "
    "sparsity_config block_scaling_config feature_group_count batch_group_count lhs_batch_dims "
    "lhs_contracting_dims rhs_batch_dims rhs_contracting_dims lhs_ragged_dims rhs_group_dims "
    "operand_precision algorithm padding_type custom_call_target operand_layout_constraints "
    "custom_call_has_side_effect literal kind "
    "output_to_operand_aliasing schedule api_version channel_id mode replica_groups constrain_layout "
    "has_dynamic_root source_target_pairs is_host_transfer offset_dims collapsed_slice_dims start_index_map "
    "operand_batching_dims start_indices_batching_dims update_window_dims inserted_window_dims "
    "scatter_dims_to_operand_dims input_batching_dims scatter_indices_batching_dims index_vector_dim "
    "slice_sizes indices_are_sorted unique_indices dimensions use_global_device_ids num_carries is_reverse "
    "is_associative is_stable inferred_dimension k largest epsilon feature_index fft_type fft_length "
    "direction type left_side lower unit_diagonal transpose_a cross_program_prefetch_index slice padding "
    "dynamic_slice_sizes iota_dimension index exponent_bits mantissa_bits distribution delta infeed_config "
    "outfeed_shape outfeed_config domain condition body select scatter true_computation false_computation "
    "branch_computations to_apply called_computations calls is_composite"
)

#: What follows, on every instruction (metadata and control predecessors are no attributes of the IR).
_COMMON_ORDER = (
    "sharding frontend_attributes control-predecessors statistics result_accuracy origin metadata "
    "backend_config"
)

_RANK = {name: rank for rank, name in enumerate((*_ORDER.split(), *_COMMON_ORDER.split()))}
_LAST_OF_ALL = len(_RANK)

#: Attributes that come before another one, unlike on other opcodes.
_SPECIAL_RANK = {("reduce-scatter", "dimensions"): _RANK["use_global_device_ids"] + 0.5}


def rank_of(opcode: str, attribute: str) -> float:
    """Sort key of an attribute; unknown ones come last."""
    return _SPECIAL_RANK.get((opcode, attribute), _RANK.get(attribute, _LAST_OF_ALL))


def value_text(opcode: str, attribute: str, value: Any, metadata: bool = True) -> str:
    """The text after `attribute=`, of any value but computations and instructions.

    Args:
        opcode: of the instruction.
        attribute: its name in HLO text.
        value: of the type that `attributes.py` gives for the attribute's kind.
        metadata: whether shardings print theirs.

    Raises:
        TypeError: when no opcode has such an attribute and the value is no raw text.
    """
    if isinstance(value, RawText):
        return value.text
    kind = attribute_kind(opcode, attribute)
    if kind is None:
        raise TypeError(f"{opcode} has no attribute {attribute}, and {value!r} is no raw text")
    if kind is Kind.SHARDING:
        return sharding_text(value, metadata)
    return _FORMATS[kind](value)


def float_text(value: float) -> str:
    """Six significant digits, XLA's habit, where they say all; else as many as needed."""
    short = f"{value:.6g}"
    return short if float(short) == value or value != value else repr(value)


def _float32_text(value: float) -> str:
    """The same for a number that XLA keeps in single precision."""
    short = f"{value:.6g}"
    return short if np.float32(short) == np.float32(value) else float_text(value)


def bool_text(value: bool) -> str:
    """`true` or `false`."""
    return "true" if value else "false"


def ints_text(values: Iterable[int]) -> str:
    """`{0,1}`."""
    return "{" + ",".join(map(str, values)) + "}"


def bools_text(values: bool | tuple[bool, ...]) -> str:
    """`{true,false}`; a single one is a list too."""
    return "{" + ",".join(map(bool_text, (values,) if isinstance(values, bool) else values)) + "}"


def window_text(window: Window) -> str:
    """`{size=2x2 stride=1x2 pad=0_1x0_0 …}`; what no dimension uses is left out."""
    dims = window.dims

    def field(name: str, text: Callable[[WindowDim], object], used: Callable[[WindowDim], bool]) -> str:
        return f" {name}={'x'.join(str(text(d)) for d in dims)}" if any(map(used, dims)) else ""

    size = f"size={'x'.join(str(d.size) for d in dims)}" if dims else ""
    return (
        "{"
        + size
        + field("stride", lambda d: d.stride, lambda d: d.stride != 1)
        + field("pad", lambda d: f"{d.pad_low}_{d.pad_high}", lambda d: (d.pad_low, d.pad_high) != (0, 0))
        + field("lhs_dilate", lambda d: d.base_dilation, lambda d: d.base_dilation != 1)
        + field("rhs_dilate", lambda d: d.window_dilation, lambda d: d.window_dilation != 1)
        + field("rhs_reversal", lambda d: int(d.reversal), lambda d: d.reversal)
        + "}"
    )


def dim_labels_text(dims: ConvolutionDimensions) -> str:
    """`b01f_01io->b01f`, with `?` for dimensions that play no part."""
    lhs = _labels({"b": dims.input_batch, "f": dims.input_feature}, dims.input_spatial, dims.input_unused)
    rhs = _labels(
        {"i": dims.kernel_input_feature, "o": dims.kernel_output_feature},
        dims.kernel_spatial,
        dims.kernel_unused,
    )
    out = _labels({"b": dims.output_batch, "f": dims.output_feature}, dims.output_spatial, dims.output_unused)
    return f"{lhs}_{rhs}->{out}"


#: What a damaged program says may be any number; no array has as many dimensions.
_MOST_LABELS = 256


def _labels(named: Mapping[str, int], spatial: Ints, unused: Ints) -> str:
    labels = {at: label for label, at in named.items()}
    labels.update({at: str(i) for i, at in enumerate(spatial)})
    length = min(max((*labels, *unused)) + 1, _MOST_LABELS)
    return "".join(labels.get(at, "?") for at in range(length))


def padding_text(dims: Iterable[PaddingDim]) -> str:
    """`1_1x0_0`, or with interior padding `1_1_0x0_0_2`."""
    dims = tuple(dims)
    if any(d.interior for d in dims):
        return "x".join(f"{d.low}_{d.high}_{d.interior}" for d in dims)
    return "x".join(f"{d.low}_{d.high}" for d in dims)


def slice_text(dims: Iterable[SliceDim]) -> str:
    """`{[0:2], [1:3]}`, or with strides `{[0:2:1], [1:3:2]}`."""
    dims = tuple(dims)
    if any(d.stride != 1 for d in dims):
        return "{" + ", ".join(f"[{d.start}:{d.limit}:{d.stride}]" for d in dims) + "}"
    return "{" + ", ".join(f"[{d.start}:{d.limit}]" for d in dims) + "}"


def aliases_text(aliases: Iterable[OperandAlias]) -> str:
    """`{{0}: (1, {})}`."""
    parts = (f"{ints_text(a.output_index)}: ({a.operand}, {ints_text(a.operand_index)})" for a in aliases)
    return "{" + ", ".join(parts) + "}"


def parameter_aliases_text(aliases: Iterable[ParameterAlias]) -> str:
    """`{ {0}: (1, {}, may-alias) }`."""
    parts = (
        f"{ints_text(a.output_index)}: ({a.parameter}, {ints_text(a.parameter_index)}, {a.kind})"
        for a in aliases
    )
    return f"{{ {', '.join(parts)} }}"


def donors_text(donors: Iterable[BufferDonor]) -> str:
    """`{ (0, {}), (1, {0}) }`."""
    parts = (f"({d.parameter}, {ints_text(d.parameter_index)})" for d in donors)
    return f"{{ {', '.join(parts)} }}"


def entry_layout_text(layout: EntryLayout) -> str:
    """`{(f32[2]{0})->f32[2]{0}}`."""
    return f"{{({join_indexed(map(str, layout.parameters))})->{layout.result}}}"


def accuracy_text(accuracy: ResultAccuracy) -> str:
    """`{mode=highest}` or `{tolerance={…}}`."""
    if accuracy.mode is not None:
        return f"{{mode={accuracy.mode}}}"
    tolerance = f"atol={float_text(accuracy.atol)},rtol={float_text(accuracy.rtol)},ulps={accuracy.ulps}"
    return f"{{tolerance={{{tolerance}}}}}"


def _statistics_text(statistics: Statistics) -> str:
    values = "".join(f",{name}={float_text(value)}" for name, value in statistics.values)
    return f"{{visualizing_index={statistics.visualizing_index}{values}}}"


_FORMATS: dict[Kind, Callable[[Any], str]] = {
    Kind.BOOL: bool_text,
    Kind.BOOLS: bools_text,
    Kind.INT: str,
    Kind.FLOAT: _float32_text,
    Kind.STRING: quote,
    Kind.ENUM: str,
    Kind.ENUMS: lambda names: "{" + ",".join(names) + "}",
    Kind.INTS: ints_text,
    Kind.INT_LISTS: lambda lists: "{" + ",".join(map(ints_text, lists)) + "}",
    Kind.WINDOW: window_text,
    Kind.DIM_LABELS: dim_labels_text,
    Kind.PADDING: padding_text,
    Kind.SLICE: slice_text,
    Kind.REPLICA_GROUPS: replica_groups_text,
    Kind.ALIASES: aliases_text,
    Kind.SHAPE: str,
    Kind.SHAPES: lambda shapes: "{" + ", ".join(map(str, shapes)) + "}",
    Kind.LITERAL: lambda embedded: typed_literal_text(embedded.literal),
    Kind.ACCURACY: accuracy_text,
    Kind.FRONTEND: frontend_text,
    Kind.BACKEND_CONFIG: backend_config_text,
    Kind.STATISTICS: _statistics_text,
}


# Which attributes XLA prints: not those that say what goes without saying, and under one name each.

#: Said whether true or false.
_EITHER_WAY = ("is_associative", "largest")
#: Values that say nothing: XLA prints the attribute only when it differs.
_DEFAULTS: Mapping[str, object] = {
    **{
        name: False for name, kind in ATTRIBUTE_KINDS.items() if kind is Kind.BOOL and name not in _EITHER_WAY
    },
    "api_version": "API_VERSION_ORIGINAL",
    "batch_group_count": 1,
    "feature_group_count": 1,
    "inferred_dimension": -1,
    "padding_type": "PADDING_INVALID",
    "schedule": "SCHEDULE_NONE",
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
