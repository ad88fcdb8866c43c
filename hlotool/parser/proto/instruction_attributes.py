"""Where each attribute of an instruction lies in HloInstructionProto; named and present as in HLO text.

The opcode table says which attributes an opcode takes; one table here says how each is read and written.
XLA: hlo_instruction.cc (CreateFromProto), hlo_instructions.cc (PrintExtraAttributesImpl, ToProto).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hlotool.errors import ProtoError
from hlotool.ir.attributes import (
    AttributeValue,
    EmbeddedLiteral,
    OperandAlias,
    PaddingDim,
    RawText,
    ResultAccuracy,
    Sharding,
    SliceDim,
    default_comparison,
)
from hlotool.ir.module import Computation, Instruction
from hlotool.ir.opcodes import OPCODES
from hlotool.ir.printed_annotations import sharding_text
from hlotool.ir.types import ArrayShape, ElementType, array_shapes
from hlotool.parser.proto import submessages
from hlotool.parser.proto.fields import (
    Field,
    FieldContext,
    as_bytes,
    called,
    enum,
    flag,
    group_count,
    ints,
    number,
    plain,
    string,
    unwritten,
    word,
    write_frontend_attributes,
    write_origin,
    write_statistics,
)
from hlotool.parser.proto.schema import Message, enum_names, enum_numbers
from hlotool.parser.proto.submessages import (
    read_replica_groups,
    read_sharding,
    write_replica_groups,
    write_sharding,
)
from hlotool.parser.proto.values import read_literal, read_shape, write_literal, write_shape


def read_attributes(context: FieldContext) -> dict[str, AttributeValue]:
    """The attributes of the instruction's own opcode."""
    values: dict[str, AttributeValue] = {}
    for name in OPCODES[context.opcode].attributes:
        field = _BY_OPCODE.get((context.opcode, name)) or _FIELDS[name]
        value = field.read(context)
        if value is not None:
            values[name] = value
    return values


def write_attribute(proto: Message, instruction: Instruction, name: str, value: Any) -> None:
    """Set what `name=value` says, but for the numbers of called computations.

    Raises:
        ProtoError: a proto has no place for it.
    """
    field = _BY_OPCODE.get((instruction.opcode, name)) or _FIELDS.get(name)
    write = field.write if field is not None else _COMMON_WRITERS.get(name)
    if write is None:
        raise ProtoError(f"{instruction.name}: a proto has no field for {name}")
    write(proto, value)


def callees(attributes: Mapping[str, Any]) -> list[Computation]:
    """Called computations in the order of `called_computation_ids`."""
    found: list[Computation] = []
    for name in sorted(attributes, key=_SECOND_CALLEES.__contains__):
        value = attributes[name]
        parts = value if isinstance(value, tuple) else (value,)
        found += (part for part in parts if isinstance(part, Computation))
    return found


#: The second of two callees, whatever the order of the attributes in text.
_SECOND_CALLEES = frozenset(("condition", "scatter", "false_computation"))


def _read_permute_slice_sizes(context: FieldContext) -> AttributeValue | None:
    """Slice sizes of an in-place collective-permute: one list per slice, stored end to end."""
    sizes = tuple(context.proto.dynamic_slice_sizes)
    if not sizes:
        return None
    ranks = [shape.rank for shape in array_shapes(context.operands[0].shape)]
    per_input = len(sizes) // max(1, sum(ranks))
    groups: list[tuple[int, ...]] = []
    for rank in (rank for rank in ranks for _ in range(per_input)):
        groups.append(sizes[:rank])
        sizes = sizes[rank:]
    return tuple(groups)


def _write_permute_slice_sizes(proto: Message, groups: Any) -> None:
    for group in groups:
        proto.dynamic_slice_sizes.extend(group)


def _only_dimension(shown: Callable[[Sequence[int]], int | None]) -> Field:
    """A single number in the list `dimensions`."""
    return Field(lambda c: shown(c.proto.dimensions), lambda proto, value: proto.dimensions.append(value))


def _read_comparison_type(context: FieldContext) -> AttributeValue | None:
    """How compare orders its operands, unless it is the usual way for their type.

    Since 0.12 a proto has an order in place of a type; only one of floats is not the usual one.
    """
    proto, shape = context.proto, context.operands[0].shape
    written = str(proto.comparison_type)
    if proto.comparison_order:
        is_float = isinstance(shape, ArrayShape) and shape.element_type.is_floating
        return "TOTALORDER" if is_float and proto.comparison_order == "TOTAL" else None
    is_usual = isinstance(shape, ArrayShape) and written == default_comparison(shape.element_type)
    return None if is_usual or not written else written


def _read_padding(context: FieldContext) -> AttributeValue:
    dims = context.proto.padding_config.dimensions
    return tuple(PaddingDim(d.edge_padding_low, d.edge_padding_high, d.interior_padding) for d in dims)


def _write_padding(proto: Message, dims: Any) -> None:
    for dim in dims:
        proto.padding_config.dimensions.add(
            edge_padding_low=dim.low, edge_padding_high=dim.high, interior_padding=dim.interior
        )


def _write_slice(proto: Message, dims: Any) -> None:
    for dim in dims:
        proto.slice_dimensions.add(start=dim.start, limit=dim.limit, stride=dim.stride)


def _write_pairs(proto: Message, pairs: Any) -> None:
    for source, target in pairs:
        proto.source_target_pairs.add(source=source, target=target)


def _read_aliases(context: FieldContext) -> AttributeValue | None:
    found = tuple(
        OperandAlias(tuple(a.output_shape_index), a.operand_index, tuple(a.operand_shape_index))
        for a in context.proto.output_operand_aliasing
    )
    return found or None


def _write_aliases(proto: Message, aliases: Any) -> None:
    for alias in aliases:
        proto.output_operand_aliasing.add(
            output_shape_index=alias.output_index,
            operand_index=alias.operand,
            operand_shape_index=alias.operand_index,
        )


def _read_operand_layouts(context: FieldContext) -> AttributeValue | None:
    proto = context.proto
    return tuple(map(read_shape, proto.operand_shapes_with_layout)) if proto.constrain_layout else None


def _write_operand_layouts(proto: Message, shapes: Any) -> None:
    proto.constrain_layout = True
    for shape in shapes:
        write_shape(proto.operand_shapes_with_layout.add(), shape)


def _read_embedded_literal(context: FieldContext) -> AttributeValue | None:
    proto = context.proto
    return EmbeddedLiteral(read_literal(proto.literal)) if proto.HasField("literal") else None


def _read_accuracy(context: FieldContext) -> AttributeValue | None:
    proto = context.proto.result_accuracy
    if proto.HasField("tolerance"):
        tolerance = proto.tolerance
        return ResultAccuracy(None, tolerance.atol, tolerance.rtol, tolerance.ulps)
    mode = enum_names("ResultAccuracy.Mode").get(proto.mode, str(proto.mode)).lower()
    return None if mode == "default" else ResultAccuracy(mode)


def _write_accuracy(proto: Message, accuracy: ResultAccuracy) -> None:
    if accuracy.mode is not None:
        proto.result_accuracy.mode = enum_numbers("ResultAccuracy.Mode")[accuracy.mode.upper()]
        return
    tolerance = proto.result_accuracy.tolerance
    tolerance.SetInParent()
    tolerance.atol, tolerance.rtol, tolerance.ulps = accuracy.atol, accuracy.rtol, accuracy.ulps


def _read_prefetch_index(context: FieldContext) -> AttributeValue | None:
    field = "cross_program_prefetch_index"
    return int(context.proto.cross_program_prefetch_index) if context.proto.HasField(field) else None


def _read_associative(context: FieldContext) -> AttributeValue | None:
    state = enum_names("TriState").get(context.proto.is_associative)
    return {"TRI_STATE_TRUE": True, "TRI_STATE_FALSE": False}.get(str(state))


def _write_associative(proto: Message, value: Any) -> None:
    proto.is_associative = enum_numbers("TriState")["TRI_STATE_TRUE" if value else "TRI_STATE_FALSE"]


def _called_unless(*opcodes: str) -> Field:
    """The first callee; on `opcodes` text says it elsewhere."""
    return unwritten(lambda c: None if c.opcode in opcodes else called(0).read(c))


def _tests_predicate(context: FieldContext) -> bool:
    shape = context.operands[0].shape
    return isinstance(shape, ArrayShape) and shape.element_type is ElementType.PRED


def _predicated_branch(index: int) -> Field:
    return unwritten(lambda c: c.called[index] if _tests_predicate(c) else None)


#: Where a proto has what text calls entry and exit: entry is the sharding of the users, its exit.
_DOMAIN_FIELDS = ("domain_exit_sharding", "domain_entry_sharding")
_DOMAIN = re.compile(r'\{kind="sharding", entry=(\{.*\}), exit=(\{.*\})\}')


def _read_domain(context: FieldContext) -> AttributeValue:
    proto = context.proto
    entry, leave = (
        sharding_text(read_sharding(getattr(proto, field))) if proto.HasField(field) else "{}"
        for field in _DOMAIN_FIELDS
    )
    return RawText(f'{{kind="sharding", entry={entry}, exit={leave}}}')


def _write_domain(proto: Message, raw: RawText) -> None:
    found = _DOMAIN.fullmatch(raw.text)
    if found is None:
        raise ProtoError(f"domain {raw.text} cannot be written to a proto")
    for field, text in zip(_DOMAIN_FIELDS, found.groups()):
        if text != "{}":
            write_sharding(getattr(proto, field), _parsed_sharding(text))


def _parsed_sharding(text: str) -> Sharding:
    from hlotool.parser.reader import parse_module

    module = parse_module(f"HloModule m ENTRY e {{ ROOT p = f32[] parameter(0), sharding={text} }}")
    sharding = module.entry.root.sharding
    assert sharding is not None
    return sharding


_GATHER, _SCATTER = "gather_dimension_numbers", "scatter_dimension_numbers"
_DOT, _RAGGED = "dot_dimension_numbers", "ragged_dot_dimension_numbers"
_SOLVE = "triangular_solve_options"
_PERMUTED = Field(_read_permute_slice_sizes, _write_permute_slice_sizes)

#: Attributes that lie elsewhere in some opcodes than in the others.
_BY_OPCODE: Mapping[tuple[str, str], Field] = {
    ("all-to-all", "dimensions"): ints("dimensions", is_optional=True),
    ("cholesky", "lower"): flag("cholesky_options.lower"),
    ("collective-permute", "slice_sizes"): _PERMUTED,
    ("collective-permute-start", "slice_sizes"): _PERMUTED,
    ("ragged-all-to-all", "dimensions"): ints("dimensions", is_optional=True),
    ("rng-bit-generator", "algorithm"): enum("rng_algorithm", "RandomAlgorithm", lower=True),
    ("scatter", "index_vector_dim"): number(f"{_SCATTER}.index_vector_dim"),
    # Text implies true, and protos before 0.12 say nothing.
    ("topk", "is_stable"): plain("is_stable", lambda _: None),
    **{
        ("ragged-dot", f"{side}_{kind}_dims"): ints(
            f"{_RAGGED}.{_DOT}.{side}_{kind}_dimensions", is_optional=kind == "batch"
        )
        for side in ("lhs", "rhs")
        for kind in ("batch", "contracting")
    },
}

#: Attributes whose field has their name.
_FLAGS = (
    "constrain_layout custom_call_has_side_effect has_dynamic_root indices_are_sorted is_composite "
    "is_host_transfer is_reverse is_stable unique_indices use_global_device_ids"
)
_NUMBERS = "delta exponent_bits feature_index k mantissa_bits num_carries"
_FIELDS: Mapping[str, Field] = {
    **{name: flag(name) for name in _FLAGS.split()},
    **{name: number(name) for name in _NUMBERS.split()},
    "algorithm": enum(
        "precision_config.algorithm", "PrecisionConfig.Algorithm", "ALG_UNSET", "ALG_", lower=True
    ),
    "api_version": enum("custom_call_api_version", "CustomCallApiVersion", "API_VERSION_ORIGINAL"),
    "async_execution_thread": plain(
        "async_execution_thread", lambda thread: thread if thread not in ("", "main") else None
    ),
    "batch_group_count": group_count("batch_group_count"),
    "block_scaling_config": Field(submessages.read_block_scaling, submessages.write_block_scaling),
    "body": called(0),
    "branch_computations": unwritten(lambda c: None if _tests_predicate(c) else tuple(c.called) or None),
    "called_computations": unwritten(lambda c: tuple(c.called) or None),
    "calls": _called_unless("async-update", "async-done"),
    "channel_id": plain("channel_id", lambda channel: channel if channel > 0 else None),
    "collapsed_slice_dims": ints(f"{_GATHER}.collapsed_slice_dims"),
    "condition": called(1),
    "convolution_kind": enum(
        "conv_kind", "ConvolutionKind", "CONVOLUTION_KIND_UNSET", "CONVOLUTION_KIND_", lower=True
    ),
    "cross_program_prefetch_index": Field(
        _read_prefetch_index, plain("cross_program_prefetch_index", int).write
    ),
    "custom_call_target": word("custom_call_target"),
    "dim_labels": Field(submessages.read_dim_labels, submessages.write_dim_labels),
    "dimensions": ints("dimensions"),
    "direction": word("comparison_direction"),
    "distribution": enum("distribution", "RandomDistribution", lower=True),
    "domain": Field(_read_domain, _write_domain),
    "dynamic_slice_sizes": ints("dynamic_slice_sizes"),
    # The shortest decimal that means this f32, as text has it.
    "epsilon": plain("epsilon", lambda value: float(str(np.float32(value)))),
    "false_computation": _predicated_branch(1),
    "feature_group_count": group_count("feature_group_count"),
    "fft_length": ints("fft_length"),
    "fft_type": enum("fft_type", "FftType"),
    "index": number("tuple_index"),
    "index_vector_dim": number(f"{_GATHER}.index_vector_dim"),
    "infeed_config": string("infeed_config"),
    "inferred_dimension": _only_dimension(lambda dims: dims[0] if dims and dims[0] >= 0 else None),
    "input_batching_dims": ints(f"{_SCATTER}.input_batching_dims", is_optional=True),
    "inserted_window_dims": ints(f"{_SCATTER}.inserted_window_dims"),
    "iota_dimension": _only_dimension(lambda dims: dims[0]),
    "is_associative": Field(_read_associative, _write_associative),
    "kind": word("fusion_kind"),
    "largest": plain("largest", bool),
    "left_side": flag(f"{_SOLVE}.left_side"),
    "lhs_batch_dims": ints(f"{_DOT}.lhs_batch_dimensions", is_optional=True),
    "lhs_contracting_dims": ints(f"{_DOT}.lhs_contracting_dimensions"),
    "lhs_ragged_dims": ints(f"{_RAGGED}.lhs_ragged_dimensions", is_optional=True),
    "literal": Field(
        _read_embedded_literal, lambda proto, value: write_literal(proto.literal, value.literal)
    ),
    "lower": flag(f"{_SOLVE}.lower"),
    "mode": unwritten(lambda c: None),  # of a reduction, for which a proto has no field
    "offset_dims": ints(f"{_GATHER}.offset_dims"),
    "operand_batching_dims": ints(f"{_GATHER}.operand_batching_dims", is_optional=True),
    "operand_layout_constraints": Field(_read_operand_layouts, _write_operand_layouts),
    "operand_precision": Field(submessages.read_precision, submessages.write_precision),
    "order": unwritten(lambda c: None),  # part of the type
    "outfeed_config": string("outfeed_config"),
    "outfeed_shape": Field(
        lambda c: read_shape(c.proto.outfeed_shape),
        lambda proto, value: write_shape(proto.outfeed_shape, value),
    ),
    "output_to_operand_aliasing": Field(_read_aliases, _write_aliases),
    "padding": Field(_read_padding, _write_padding),
    "padding_type": enum("padding_type", "PaddingType", "PADDING_INVALID"),
    "parameter_replication": ints("parameter_replication.replicated_at_leaf_buffers", is_optional=True),
    "replica_groups": Field(lambda c: read_replica_groups(c.proto), write_replica_groups),
    "result_accuracy": Field(_read_accuracy, _write_accuracy),
    "rhs_batch_dims": ints(f"{_DOT}.rhs_batch_dimensions", is_optional=True),
    "rhs_contracting_dims": ints(f"{_DOT}.rhs_contracting_dimensions"),
    "rhs_group_dims": ints(f"{_RAGGED}.rhs_group_dimensions", is_optional=True),
    "scatter": called(1),
    "scatter_dims_to_operand_dims": ints(f"{_SCATTER}.scatter_dims_to_operand_dims"),
    "scatter_indices_batching_dims": ints(f"{_SCATTER}.scatter_indices_batching_dims", is_optional=True),
    "schedule": enum("custom_call_schedule", "CustomCallSchedule", "SCHEDULE_NONE"),
    "select": called(0),
    "slice": Field(
        lambda c: tuple(SliceDim(d.start, d.limit, d.stride) for d in c.proto.slice_dimensions), _write_slice
    ),
    "slice_sizes": ints("gather_slice_sizes"),
    "source_target_pairs": Field(
        lambda c: tuple((pair.source, pair.target) for pair in c.proto.source_target_pairs), _write_pairs
    ),
    "sparsity_config": Field(submessages.read_sparsity, submessages.write_sparsity),
    "start_index_map": ints(f"{_GATHER}.start_index_map"),
    "start_indices_batching_dims": ints(f"{_GATHER}.start_indices_batching_dims", is_optional=True),
    "to_apply": _called_unless("custom-call"),
    "transpose_a": enum(f"{_SOLVE}.transpose_a", "TriangularSolveOptions.Transpose", "TRANSPOSE_INVALID"),
    "true_computation": _predicated_branch(0),
    "type": Field(_read_comparison_type, word("comparison_type").write),
    "unit_diagonal": flag(f"{_SOLVE}.unit_diagonal"),
    "update_window_dims": ints(f"{_SCATTER}.update_window_dims"),
    "window": Field(submessages.read_window, submessages.write_window),
}

#: Attributes of any opcode; `module` reads them with what belongs to the whole module.
_COMMON_WRITERS: Mapping[str, Callable[[Message, Any], None]] = {
    "backend_config": lambda proto, value: setattr(proto, "backend_config", as_bytes(value.text)),
    "frontend_attributes": lambda proto, value: write_frontend_attributes(proto.frontend_attributes, value),
    "origin": lambda proto, value: write_origin(proto.original_value, value),
    "sharding": lambda proto, value: write_sharding(proto.sharding, value),
    "statistics": lambda proto, value: write_statistics(proto.statistics_viz, value),
}
