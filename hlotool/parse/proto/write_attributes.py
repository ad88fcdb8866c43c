"""The attributes of one instruction into HloInstructionProto: the inverse of `instruction_attributes`.

XLA: hlo_instructions.cc (ToProto).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from hlotool.errors import ProtoError
from hlotool.ir.attributes import ConvolutionDimensions, RawText, ResultAccuracy, Sharding, Window
from hlotool.ir.module import Computation, Instruction
from hlotool.parse.proto.schema import Message, enum_numbers
from hlotool.parse.proto.write_origin import (
    as_bytes,
    write_frontend_attributes,
    write_origin,
    write_statistics,
)
from hlotool.parse.proto.write_placement import write_replica_groups, write_sharding
from hlotool.parse.proto.write_shapes import write_literal, write_shape

#: Sets the value of an attribute.
Writer: TypeAlias = Callable[[Message, Any], None]


def write_attribute(proto: Message, instruction: Instruction, name: str, value: Any) -> None:
    """Set what `name=value` says, but for the numbers of called computations.

    Raises:
        ProtoError: a proto has no place for it.
    """
    writer = _BY_OPCODE.get((instruction.opcode, name)) or _WRITERS.get(name)
    if writer is None:
        raise ProtoError(f"{instruction.name}: a proto has no field for {name}")
    writer(proto, value)


def callees(attributes: Mapping[str, Any]) -> list[Computation]:
    """Called computations in the order of `called_computation_ids`."""
    ranked = sorted(attributes, key=lambda name: _CALLEE_ORDER.get(name, 0))
    found: list[Computation] = []
    for name in ranked:
        value = attributes[name]
        parts = value if isinstance(value, tuple) else (value,)
        found += (part for part in parts if isinstance(part, Computation))
    return found


#: The second of two callees, whatever the order of the attributes in text.
_CALLEE_ORDER = {"condition": 1, "scatter": 1, "false_computation": 1}


def _at(proto: Message, path: str) -> tuple[Message, str]:
    """The message that holds the last field of `path`."""
    *outer, last = path.split(".")
    for field in outer:
        proto = getattr(proto, field)
    return proto, last


def _plain(path: str) -> Writer:
    """A number, a truth value or a string."""

    def write(proto: Message, value: Any) -> None:
        holder, field = _at(proto, path)
        setattr(holder, field, value)

    return write


def _list(path: str) -> Writer:
    """A list of numbers."""

    def write(proto: Message, value: Any) -> None:
        holder, field = _at(proto, path)
        holder.SetInParent() if holder is not proto else None
        getattr(holder, field).extend(value)

    return write


def _one(path: str) -> Writer:
    """A single number, stored as a list."""

    def write(proto: Message, value: Any) -> None:
        holder, field = _at(proto, path)
        getattr(holder, field).append(value)

    return write


def _bytes(field: str) -> Writer:
    """Text in a field of bytes."""
    return lambda proto, value: setattr(proto, field, as_bytes(value))


def _enum(path: str, enum: str, prefix: str = "") -> Writer:
    """A word that names a value of an enumeration."""

    def write(proto: Message, value: Any) -> None:
        name = f"{prefix}{value.upper()}"
        numbers = enum_numbers(enum)
        if name not in numbers:
            raise ProtoError(f"{value} is no value of {enum}")
        holder, field = _at(proto, path)
        setattr(holder, field, numbers[name])

    return write


def _nothing(proto: Message, value: Any) -> None:
    """Called computations are written as numbers; `mode` of a reduction has no field."""


def _window(proto: Message, window: Window) -> None:
    proto.window.SetInParent()
    for dim in window.dims:
        proto.window.dimensions.add(
            size=dim.size,
            stride=dim.stride,
            padding_low=dim.pad_low,
            padding_high=dim.pad_high,
            base_dilation=dim.base_dilation,
            window_dilation=dim.window_dilation,
            window_reversal=dim.reversal,
        )


def _dim_labels(proto: Message, labels: ConvolutionDimensions) -> None:
    numbers = proto.convolution_dimension_numbers
    numbers.SetInParent()
    numbers.input_batch_dimension = labels.input_batch
    numbers.input_feature_dimension = labels.input_feature
    numbers.input_spatial_dimensions.extend(labels.input_spatial)
    numbers.kernel_input_feature_dimension = labels.kernel_input_feature
    numbers.kernel_output_feature_dimension = labels.kernel_output_feature
    numbers.kernel_spatial_dimensions.extend(labels.kernel_spatial)
    numbers.output_batch_dimension = labels.output_batch
    numbers.output_feature_dimension = labels.output_feature
    numbers.output_spatial_dimensions.extend(labels.output_spatial)


def _precision(proto: Message, words: Any) -> None:
    numbers = enum_numbers("PrecisionConfig.Precision")
    proto.precision_config.operand_precision.extend(numbers[word.upper()] for word in words)


def _padding(proto: Message, dims: Any) -> None:
    for dim in dims:
        proto.padding_config.dimensions.add(
            edge_padding_low=dim.low, edge_padding_high=dim.high, interior_padding=dim.interior
        )


def _slice(proto: Message, dims: Any) -> None:
    for dim in dims:
        proto.slice_dimensions.add(start=dim.start, limit=dim.limit, stride=dim.stride)


def _permute_slice_sizes(proto: Message, groups: Any) -> None:
    for group in groups:
        proto.dynamic_slice_sizes.extend(group)


def _pairs(proto: Message, pairs: Any) -> None:
    for source, target in pairs:
        proto.source_target_pairs.add(source=source, target=target)


def _aliases(proto: Message, aliases: Any) -> None:
    for alias in aliases:
        proto.output_operand_aliasing.add(
            output_shape_index=alias.output_index,
            operand_index=alias.operand,
            operand_shape_index=alias.operand_index,
        )


def _operand_layouts(proto: Message, shapes: Any) -> None:
    proto.constrain_layout = True
    for shape in shapes:
        write_shape(proto.operand_shapes_with_layout.add(), shape)


def _accuracy(proto: Message, accuracy: ResultAccuracy) -> None:
    if accuracy.mode is not None:
        proto.result_accuracy.mode = enum_numbers("ResultAccuracy.Mode")[accuracy.mode.upper()]
        return
    tolerance = proto.result_accuracy.tolerance
    tolerance.SetInParent()
    tolerance.atol, tolerance.rtol, tolerance.ulps = accuracy.atol, accuracy.rtol, accuracy.ulps


def _associative(proto: Message, value: Any) -> None:
    proto.is_associative = enum_numbers("TriState")["TRI_STATE_TRUE" if value else "TRI_STATE_FALSE"]


_SPARSE_SIDE = re.compile(r"(lhs|rhs)=\{([^}]*)\}")
_SPARSE_FIELD = re.compile(r"(\w+)=(\d+)")


def _sparsity(proto: Message, raw: RawText) -> None:
    for side, fields in _SPARSE_SIDE.findall(raw.text):
        for field, number in _SPARSE_FIELD.findall(fields):
            setattr(getattr(proto.sparsity_config, side), field, int(number))


_DOMAIN = re.compile(r'\{kind="sharding", entry=(\{.*\}), exit=(\{.*\})\}')


def _domain(proto: Message, raw: RawText) -> None:
    """What text calls entry is what a proto calls exit."""
    found = _DOMAIN.fullmatch(raw.text)
    if found is None:
        raise ProtoError(f"domain {raw.text} cannot be written to a proto")
    for field, text in zip(("domain_exit_sharding", "domain_entry_sharding"), found.groups()):
        if text != "{}":
            write_sharding(getattr(proto, field), _parsed_sharding(text))


def _parsed_sharding(text: str) -> Sharding:
    from hlotool.parse.reader import parse_module

    module = parse_module(f"HloModule m ENTRY e {{ ROOT p = f32[] parameter(0), sharding={text} }}")
    sharding = module.entry.root.sharding
    assert sharding is not None
    return sharding


_GATHER, _SCATTER = "gather_dimension_numbers", "scatter_dimension_numbers"
_DOT, _RAGGED = "dot_dimension_numbers", "ragged_dot_dimension_numbers"
_SOLVE = "triangular_solve_options"

#: Attributes that lie elsewhere in some opcodes than in the others.
_BY_OPCODE: Mapping[tuple[str, str], Writer] = {
    ("rng-bit-generator", "algorithm"): _enum("rng_algorithm", "RandomAlgorithm"),
    ("scatter", "index_vector_dim"): _plain(f"{_SCATTER}.index_vector_dim"),
    ("cholesky", "lower"): _plain("cholesky_options.lower"),
    ("collective-permute", "slice_sizes"): _permute_slice_sizes,
    ("collective-permute-start", "slice_sizes"): _permute_slice_sizes,
    **{
        ("ragged-dot", f"{side}_{kind}_dims"): _list(f"{_RAGGED}.{_DOT}.{side}_{kind}_dimensions")
        for side in ("lhs", "rhs")
        for kind in ("batch", "contracting")
    },
}

_WRITERS: Mapping[str, Writer] = {
    "algorithm": _enum("precision_config.algorithm", "PrecisionConfig.Algorithm", "ALG_"),
    "api_version": _enum("custom_call_api_version", "CustomCallApiVersion"),
    "async_execution_thread": _plain("async_execution_thread"),
    "backend_config": lambda proto, value: setattr(proto, "backend_config", as_bytes(value.text)),
    "batch_group_count": _plain("batch_group_count"),
    "body": _nothing,
    "branch_computations": _nothing,
    "called_computations": _nothing,
    "calls": _nothing,
    "channel_id": _plain("channel_id"),
    "collapsed_slice_dims": _list(f"{_GATHER}.collapsed_slice_dims"),
    "condition": _nothing,
    "constrain_layout": _plain("constrain_layout"),
    "convolution_kind": _enum("conv_kind", "ConvolutionKind", "CONVOLUTION_KIND_"),
    "cross_program_prefetch_index": _plain("cross_program_prefetch_index"),
    "custom_call_has_side_effect": _plain("custom_call_has_side_effect"),
    "custom_call_target": _plain("custom_call_target"),
    "delta": _plain("delta"),
    "dim_labels": _dim_labels,
    "dimensions": _list("dimensions"),
    "direction": _plain("comparison_direction"),
    "distribution": _enum("distribution", "RandomDistribution"),
    "domain": _domain,
    "dynamic_slice_sizes": _list("dynamic_slice_sizes"),
    "epsilon": _plain("epsilon"),
    "exponent_bits": _plain("exponent_bits"),
    "false_computation": _nothing,
    "feature_group_count": _plain("feature_group_count"),
    "feature_index": _plain("feature_index"),
    "fft_length": _list("fft_length"),
    "fft_type": _enum("fft_type", "FftType"),
    "frontend_attributes": lambda proto, value: write_frontend_attributes(proto.frontend_attributes, value),
    "index": _plain("tuple_index"),
    "index_vector_dim": _plain(f"{_GATHER}.index_vector_dim"),
    "indices_are_sorted": _plain("indices_are_sorted"),
    "infeed_config": _bytes("infeed_config"),
    "inferred_dimension": _one("dimensions"),
    "input_batching_dims": _list(f"{_SCATTER}.input_batching_dims"),
    "inserted_window_dims": _list(f"{_SCATTER}.inserted_window_dims"),
    "iota_dimension": _one("dimensions"),
    "is_associative": _associative,
    "is_composite": _plain("is_composite"),
    "is_host_transfer": _plain("is_host_transfer"),
    "is_reverse": _plain("is_reverse"),
    "is_stable": _plain("is_stable"),
    "k": _plain("k"),
    "kind": _plain("fusion_kind"),
    "largest": _plain("largest"),
    "left_side": _plain(f"{_SOLVE}.left_side"),
    "lhs_batch_dims": _list(f"{_DOT}.lhs_batch_dimensions"),
    "lhs_contracting_dims": _list(f"{_DOT}.lhs_contracting_dimensions"),
    "lhs_ragged_dims": _list(f"{_RAGGED}.lhs_ragged_dimensions"),
    "literal": lambda proto, value: write_literal(proto.literal, value.literal),
    "lower": _plain(f"{_SOLVE}.lower"),
    "mantissa_bits": _plain("mantissa_bits"),
    "mode": _nothing,
    "num_carries": _plain("num_carries"),
    "offset_dims": _list(f"{_GATHER}.offset_dims"),
    "operand_batching_dims": _list(f"{_GATHER}.operand_batching_dims"),
    "operand_layout_constraints": _operand_layouts,
    "operand_precision": _precision,
    "origin": lambda proto, value: write_origin(proto.original_value, value),
    "outfeed_config": _bytes("outfeed_config"),
    "outfeed_shape": lambda proto, value: write_shape(proto.outfeed_shape, value),
    "output_to_operand_aliasing": _aliases,
    "padding": _padding,
    "padding_type": _enum("padding_type", "PaddingType"),
    "parameter_replication": _list("parameter_replication.replicated_at_leaf_buffers"),
    "replica_groups": write_replica_groups,
    "result_accuracy": _accuracy,
    "rhs_batch_dims": _list(f"{_DOT}.rhs_batch_dimensions"),
    "rhs_contracting_dims": _list(f"{_DOT}.rhs_contracting_dimensions"),
    "rhs_group_dims": _list(f"{_RAGGED}.rhs_group_dimensions"),
    "scatter": _nothing,
    "scatter_dims_to_operand_dims": _list(f"{_SCATTER}.scatter_dims_to_operand_dims"),
    "scatter_indices_batching_dims": _list(f"{_SCATTER}.scatter_indices_batching_dims"),
    "schedule": _enum("custom_call_schedule", "CustomCallSchedule"),
    "select": _nothing,
    "sharding": lambda proto, value: write_sharding(proto.sharding, value),
    "slice": _slice,
    "slice_sizes": _list("gather_slice_sizes"),
    "source_target_pairs": _pairs,
    "sparsity_config": _sparsity,
    "start_index_map": _list(f"{_GATHER}.start_index_map"),
    "start_indices_batching_dims": _list(f"{_GATHER}.start_indices_batching_dims"),
    "statistics": lambda proto, value: write_statistics(proto.statistics_viz, value),
    "to_apply": _nothing,
    "transpose_a": _enum(f"{_SOLVE}.transpose_a", "TriangularSolveOptions.Transpose"),
    "true_computation": _nothing,
    "type": _plain("comparison_type"),
    "unique_indices": _plain("unique_indices"),
    "unit_diagonal": _plain(f"{_SOLVE}.unit_diagonal"),
    "update_window_dims": _list(f"{_SCATTER}.update_window_dims"),
    "use_global_device_ids": _plain("use_global_device_ids"),
    "window": _window,
}
