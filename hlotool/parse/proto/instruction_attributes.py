"""The attributes of one instruction, named and present as in HLO text.

The opcode table says which attributes an opcode takes; a reader here says where in HloInstructionProto the
value lies, and returns None where text would not print it.
XLA: hlo_instruction.cc (CreateFromProto), hlo_instructions.cc (PrintExtraAttributesImpl).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hlotool.ir.attributes import (
    AttributeValue,
    EmbeddedLiteral,
    OperandAlias,
    PaddingDim,
    RawText,
    ResultAccuracy,
    SliceDim,
    default_comparison,
)
from hlotool.ir.opcodes import OPCODES
from hlotool.ir.printing.sharding import sharding_text
from hlotool.ir.types import ArrayShape, ElementType, leaves
from hlotool.parse.proto.contractions import (
    algorithm,
    dim_labels,
    dot_dims,
    operand_precision,
    sparsity,
    window,
)
from hlotool.parse.proto.fields import (
    Context,
    Reader,
    called,
    count,
    enum,
    flag,
    ints,
    number,
    some_ints,
    string,
)
from hlotool.parse.proto.literals import read_literal
from hlotool.parse.proto.placement import read_replica_groups, read_sharding
from hlotool.parse.proto.schema import enum_names
from hlotool.parse.proto.shapes import read_shape


def read_attributes(context: Context) -> dict[str, AttributeValue]:
    """The attributes of the instruction's own opcode."""
    values: dict[str, AttributeValue] = {}
    for name in OPCODES[context.opcode].attributes:
        value = _READERS[name](context)
        if value is not None:
            values[name] = value
    return values


def _dimensions(context: Context) -> AttributeValue | None:
    dimensions = tuple(context.proto.dimensions)
    is_optional = context.opcode in ("all-to-all", "ragged-all-to-all")
    return None if is_optional and not dimensions else dimensions


def _iota_dimension(context: Context) -> AttributeValue:
    return int(context.proto.dimensions[0])


def _inferred_dimension(context: Context) -> AttributeValue | None:
    dimensions = context.proto.dimensions
    return int(dimensions[0]) if dimensions and dimensions[0] >= 0 else None


def _index_vector_dim(context: Context) -> AttributeValue:
    proto = context.proto
    is_gather = context.opcode == "gather"
    numbers = proto.gather_dimension_numbers if is_gather else proto.scatter_dimension_numbers
    return int(numbers.index_vector_dim)


def _slice_sizes(context: Context) -> AttributeValue | None:
    if context.opcode == "gather":
        return tuple(context.proto.gather_slice_sizes)
    return _permute_slice_sizes(context)


def _permute_slice_sizes(context: Context) -> AttributeValue | None:
    """Slice sizes of an in-place collective-permute: one list per slice, stored end to end."""
    sizes = tuple(context.proto.dynamic_slice_sizes)
    if not sizes:
        return None
    inputs = (shape for _, shape in leaves(context.operands[0].shape))
    ranks = [shape.rank for shape in inputs if isinstance(shape, ArrayShape)]
    per_input = len(sizes) // max(1, sum(ranks))
    groups: list[tuple[int, ...]] = []
    for rank in (rank for rank in ranks for _ in range(per_input)):
        groups.append(sizes[:rank])
        sizes = sizes[rank:]
    return tuple(groups)


def _channel_id(context: Context) -> AttributeValue | None:
    channel = int(context.proto.channel_id)
    return channel if channel > 0 else None


def _comparison_type(context: Context) -> AttributeValue | None:
    """How compare orders its operands, unless it is the usual way for their type."""
    written = str(context.proto.comparison_type)
    shape = context.operands[0].shape
    is_usual = isinstance(shape, ArrayShape) and written == default_comparison(shape.element_type)
    return None if is_usual or not written else written


def _transpose_a(context: Context) -> AttributeValue | None:
    return _TRANSPOSE(context) if context.proto.HasField("triangular_solve_options") else None


_TRANSPOSE = enum(
    "triangular_solve_options.transpose_a", "TriangularSolveOptions.Transpose", hidden="TRANSPOSE_INVALID"
)


def _lower(context: Context) -> AttributeValue | None:
    proto = context.proto
    options = proto.cholesky_options if context.opcode == "cholesky" else proto.triangular_solve_options
    return True if options.lower else None


def _solve_flag(field: str) -> Reader:
    return lambda c: True if getattr(c.proto.triangular_solve_options, field) else None


def _epsilon(context: Context) -> AttributeValue:
    """The shortest decimal that means this f32, as text has it."""
    return float(str(np.float32(context.proto.epsilon)))


def _padding(context: Context) -> AttributeValue:
    dims = context.proto.padding_config.dimensions
    return tuple(PaddingDim(d.edge_padding_low, d.edge_padding_high, d.interior_padding) for d in dims)


def _slice(context: Context) -> AttributeValue:
    return tuple(SliceDim(d.start, d.limit, d.stride) for d in context.proto.slice_dimensions)


def _pairs(context: Context) -> AttributeValue:
    return tuple((pair.source, pair.target) for pair in context.proto.source_target_pairs)


def _aliases(context: Context) -> AttributeValue | None:
    found = tuple(
        OperandAlias(tuple(a.output_shape_index), a.operand_index, tuple(a.operand_shape_index))
        for a in context.proto.output_operand_aliasing
    )
    return found or None


def _operand_layouts(context: Context) -> AttributeValue | None:
    proto = context.proto
    return tuple(map(read_shape, proto.operand_shapes_with_layout)) if proto.constrain_layout else None


def _embedded_literal(context: Context) -> AttributeValue | None:
    proto = context.proto
    return EmbeddedLiteral(read_literal(proto.literal)) if proto.HasField("literal") else None


def _accuracy(context: Context) -> AttributeValue | None:
    proto = context.proto.result_accuracy
    if proto.HasField("tolerance"):
        tolerance = proto.tolerance
        return ResultAccuracy(None, tolerance.atol, tolerance.rtol, tolerance.ulps)
    mode = enum_names("ResultAccuracy.Mode").get(proto.mode, str(proto.mode)).lower()
    return None if mode == "default" else ResultAccuracy(mode)


def _replication(context: Context) -> AttributeValue | None:
    return tuple(context.proto.parameter_replication.replicated_at_leaf_buffers) or None


def _prefetch_index(context: Context) -> AttributeValue | None:
    field = "cross_program_prefetch_index"
    return int(context.proto.cross_program_prefetch_index) if context.proto.HasField(field) else None


def _is_associative(context: Context) -> AttributeValue | None:
    state = enum_names("TriState").get(context.proto.is_associative)
    return {"TRI_STATE_TRUE": True, "TRI_STATE_FALSE": False}.get(str(state))


def _execution_thread(context: Context) -> AttributeValue | None:
    thread = str(context.proto.async_execution_thread)
    return thread if thread not in ("", "main") else None


def _wrapped(context: Context) -> AttributeValue | None:
    """`calls=`: text writes the computation of asynchronous operations where they start, and only there."""
    return None if context.opcode in ("async-update", "async-done") else called(0)(context)


def _to_apply(context: Context) -> AttributeValue | None:
    """Text writes the computations of a custom call as `called_computations`."""
    return None if context.opcode == "custom-call" else called(0)(context)


def _tests_predicate(context: Context) -> bool:
    shape = context.operands[0].shape
    return isinstance(shape, ArrayShape) and shape.element_type is ElementType.PRED


def _branches(context: Context) -> AttributeValue | None:
    return None if _tests_predicate(context) else tuple(context.called)


def _predicated_branch(index: int) -> Reader:
    return lambda c: c.called[index] if _tests_predicate(c) else None


def _domain(context: Context) -> AttributeValue:
    """What text calls entry is the sharding of the users, which a proto calls exit; and vice versa."""
    proto = context.proto
    entry, leave = (
        sharding_text(read_sharding(getattr(proto, field))) if proto.HasField(field) else "{}"
        for field in ("domain_exit_sharding", "domain_entry_sharding")
    )
    return RawText(f'{{kind="sharding", entry={entry}, exit={leave}}}')


_READERS: Mapping[str, Reader] = {
    "algorithm": algorithm,
    "api_version": enum("custom_call_api_version", "CustomCallApiVersion", hidden="API_VERSION_ORIGINAL"),
    "async_execution_thread": _execution_thread,
    "batch_group_count": count("batch_group_count"),
    "body": called(0),
    "branch_computations": _branches,
    "called_computations": lambda c: tuple(c.called) or None,
    "calls": _wrapped,
    "channel_id": _channel_id,
    "collapsed_slice_dims": ints("gather_dimension_numbers", "collapsed_slice_dims"),
    "condition": called(1),
    "constrain_layout": flag("constrain_layout"),
    "convolution_kind": enum(
        "conv_kind",
        "ConvolutionKind",
        hidden="CONVOLUTION_KIND_UNSET",
        drop="CONVOLUTION_KIND_",
        lower=True,
    ),
    "cross_program_prefetch_index": _prefetch_index,
    "custom_call_has_side_effect": flag("custom_call_has_side_effect"),
    "custom_call_target": lambda c: str(c.proto.custom_call_target),
    "delta": number("delta"),
    "dim_labels": dim_labels,
    "dimensions": _dimensions,
    "direction": lambda c: str(c.proto.comparison_direction),
    "distribution": enum("distribution", "RandomDistribution", lower=True),
    "domain": _domain,
    "dynamic_slice_sizes": ints("dynamic_slice_sizes"),
    "epsilon": _epsilon,
    "exponent_bits": number("exponent_bits"),
    "false_computation": _predicated_branch(1),
    "feature_group_count": count("feature_group_count"),
    "feature_index": number("feature_index"),
    "fft_length": ints("fft_length"),
    "fft_type": enum("fft_type", "FftType"),
    "index": number("tuple_index"),
    "index_vector_dim": _index_vector_dim,
    "indices_are_sorted": flag("indices_are_sorted"),
    "infeed_config": string("infeed_config"),
    "inferred_dimension": _inferred_dimension,
    "input_batching_dims": some_ints("scatter_dimension_numbers", "input_batching_dims"),
    "inserted_window_dims": ints("scatter_dimension_numbers", "inserted_window_dims"),
    "iota_dimension": _iota_dimension,
    "is_associative": _is_associative,
    "is_composite": flag("is_composite"),
    "is_host_transfer": flag("is_host_transfer"),
    "is_reverse": flag("is_reverse"),
    "is_stable": flag("is_stable"),
    "k": number("k"),
    "kind": lambda c: str(c.proto.fusion_kind),
    "largest": lambda c: bool(c.proto.largest),
    "left_side": _solve_flag("left_side"),
    "lhs_batch_dims": lambda c: dot_dims(c, "lhs_batch_dimensions") or None,
    "lhs_contracting_dims": lambda c: dot_dims(c, "lhs_contracting_dimensions"),
    "lhs_ragged_dims": some_ints("ragged_dot_dimension_numbers", "lhs_ragged_dimensions"),
    "literal": _embedded_literal,
    "lower": _lower,
    "mantissa_bits": number("mantissa_bits"),
    "mode": lambda c: None,
    "num_carries": number("num_carries"),
    "offset_dims": ints("gather_dimension_numbers", "offset_dims"),
    "operand_batching_dims": some_ints("gather_dimension_numbers", "operand_batching_dims"),
    "operand_layout_constraints": _operand_layouts,
    "operand_precision": operand_precision,
    "outfeed_config": string("outfeed_config"),
    "outfeed_shape": lambda c: read_shape(c.proto.outfeed_shape),
    "output_to_operand_aliasing": _aliases,
    "padding": _padding,
    "padding_type": enum("padding_type", "PaddingType", hidden="PADDING_INVALID"),
    "parameter_replication": _replication,
    "replica_groups": lambda c: read_replica_groups(c.proto),
    "result_accuracy": _accuracy,
    "rhs_batch_dims": lambda c: dot_dims(c, "rhs_batch_dimensions") or None,
    "rhs_contracting_dims": lambda c: dot_dims(c, "rhs_contracting_dimensions"),
    "rhs_group_dims": some_ints("ragged_dot_dimension_numbers", "rhs_group_dimensions"),
    "scatter": called(1),
    "scatter_dims_to_operand_dims": ints("scatter_dimension_numbers", "scatter_dims_to_operand_dims"),
    "scatter_indices_batching_dims": some_ints("scatter_dimension_numbers", "scatter_indices_batching_dims"),
    "schedule": enum("custom_call_schedule", "CustomCallSchedule", hidden="SCHEDULE_NONE"),
    "select": called(0),
    "slice": _slice,
    "slice_sizes": _slice_sizes,
    "source_target_pairs": _pairs,
    "sparsity_config": sparsity,
    "start_index_map": ints("gather_dimension_numbers", "start_index_map"),
    "start_indices_batching_dims": some_ints("gather_dimension_numbers", "start_indices_batching_dims"),
    "to_apply": _to_apply,
    "transpose_a": _transpose_a,
    "true_computation": _predicated_branch(0),
    "type": _comparison_type,
    "unique_indices": flag("unique_indices"),
    "unit_diagonal": _solve_flag("unit_diagonal"),
    "update_window_dims": ints("scatter_dimension_numbers", "update_window_dims"),
    "use_global_device_ids": flag("use_global_device_ids"),
    "window": window,
}
