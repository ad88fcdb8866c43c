"""THE opcode table: one row per HLO opcode, read by parser, printer, shape inference, verifier and backends.

To add an opcode: one name here, one shape rule in `shape_inference`, one kernel per backend, one spec file.
XLA: hlo_opcode.h (names, arity), hlo_parser.cc (attributes), operation_semantics.md (meaning).
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass


class Kind(enum.Enum):
    """How an attribute's value is written; see `attributes.py` for what it becomes."""

    BOOL = "bool"
    BOOLS = "bools"
    INT = "int"
    FLOAT = "float"
    STRING = "string"
    ENUM = "enum"
    ENUMS = "enums"
    INTS = "ints"
    INT_LISTS = "int lists"
    COMPUTATION = "computation"
    COMPUTATIONS = "computations"
    WINDOW = "window"
    DIM_LABELS = "dim labels"
    PADDING = "padding"
    SLICE = "slice"
    REPLICA_GROUPS = "replica groups"
    SHARDING = "sharding"
    ALIASES = "operand aliases"
    SHAPE = "shape"
    SHAPES = "shapes"
    LITERAL = "literal"
    ACCURACY = "result accuracy"
    METADATA = "metadata"
    FRONTEND = "frontend attributes"
    BACKEND_CONFIG = "backend config"
    STATISTICS = "statistics"
    INSTRUCTIONS = "instruction names"
    RAW = "raw text"


class Class(enum.Enum):
    """What an opcode does to its operands."""

    ELEMENTWISE = "elementwise"
    DATA_MOVEMENT = "data movement"
    INDEXING = "indexing"
    REDUCTION = "reduction"
    CONTRACTION = "contraction"
    CONTROL = "control flow"
    TUPLE = "tuple"
    COLLECTIVE = "collective"
    HOST = "host transfer"
    RANDOM = "random"
    LIBRARY = "library"
    SOURCE = "source"
    DYNAMIC = "dynamic shape"
    ANNOTATION = "annotation"


#: Attributes that every instruction may carry.
COMMON_ATTRIBUTES: dict[str, Kind] = {
    "sharding": Kind.SHARDING,
    "frontend_attributes": Kind.FRONTEND,
    "backend_config": Kind.BACKEND_CONFIG,
    "metadata": Kind.METADATA,
    "control-predecessors": Kind.INSTRUCTIONS,
    "origin": Kind.RAW,
    "statistics": Kind.STATISTICS,
}

#: How each opcode-specific attribute is written. The kind depends on the attribute's name alone except for
#: the entries of SPECIAL_KINDS.
_OWN_ATTRIBUTES: dict[Kind, str] = {
    Kind.BOOL: (
        "constrain_layout custom_call_has_side_effect indices_are_sorted is_associative is_composite "
        "is_host_transfer is_reverse is_stable largest left_side lower unique_indices unit_diagonal "
        "use_global_device_ids"
    ),
    Kind.BOOLS: "parameter_replication",
    Kind.INT: (
        "batch_group_count channel_id cross_program_prefetch_index delta exponent_bits feature_group_count "
        "feature_index index index_vector_dim inferred_dimension iota_dimension k mantissa_bits num_carries"
    ),
    Kind.FLOAT: "epsilon",
    Kind.STRING: "async_execution_thread custom_call_target infeed_config outfeed_config",
    Kind.ENUM: (
        "algorithm api_version convolution_kind direction distribution fft_type kind mode padding_type "
        "schedule transpose_a type"
    ),
    Kind.ENUMS: "operand_precision",
    Kind.INTS: (
        "collapsed_slice_dims dimensions dynamic_slice_sizes fft_length input_batching_dims "
        "inserted_window_dims lhs_batch_dims lhs_contracting_dims lhs_ragged_dims offset_dims "
        "operand_batching_dims rhs_batch_dims rhs_contracting_dims rhs_group_dims "
        "scatter_dims_to_operand_dims scatter_indices_batching_dims slice_sizes start_index_map "
        "start_indices_batching_dims update_window_dims"
    ),
    Kind.INT_LISTS: "source_target_pairs",
    Kind.COMPUTATION: "body calls condition false_computation scatter select to_apply true_computation",
    Kind.COMPUTATIONS: "branch_computations called_computations",
    Kind.WINDOW: "window",
    Kind.DIM_LABELS: "dim_labels",
    Kind.PADDING: "padding",
    Kind.SLICE: "slice",
    Kind.REPLICA_GROUPS: "replica_groups",
    Kind.ALIASES: "output_to_operand_aliasing",
    Kind.SHAPE: "outfeed_shape",
    Kind.SHAPES: "operand_layout_constraints",
    Kind.LITERAL: "literal",
    Kind.ACCURACY: "result_accuracy",
    Kind.RAW: "domain sparsity_config",
}
ATTRIBUTE_KINDS: dict[str, Kind] = {
    name: kind for kind, names in _OWN_ATTRIBUTES.items() for name in names.split()
}

#: (opcode, attribute) whose value is written unlike the attribute elsewhere.
SPECIAL_KINDS: dict[tuple[str, str], Kind] = {
    ("collective-permute", "slice_sizes"): Kind.INT_LISTS,
    ("collective-permute-start", "slice_sizes"): Kind.INT_LISTS,
}


@dataclass(frozen=True, slots=True)
class OpcodeRow:
    """What every part of hlotool needs to know of one opcode.

    Attributes:
        name: in HLO text.
        min_operands: fewest operands.
        max_operands: most operands, None for any number.
        opcode_class: what it does.
        required: attributes that must be there.
        optional: attributes that may be there, besides the common ones.
        anchor: section of XLA's operation_semantics.md, or the header that defines it.
    """

    name: str
    min_operands: int
    max_operands: int | None
    opcode_class: Class
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    anchor: str = ""

    @property
    def attributes(self) -> tuple[str, ...]:
        """All attributes of its own."""
        return self.required + self.optional


def attribute_kind(opcode: str, attribute: str) -> Kind | None:
    """How `attribute` is written on `opcode`, or None when the opcode does not take it."""
    if attribute in COMMON_ATTRIBUTES:
        return COMMON_ATTRIBUTES[attribute]
    row = OPCODES.get(opcode)
    if row is None or attribute not in row.attributes:
        return None
    return SPECIAL_KINDS.get((opcode, attribute), ATTRIBUTE_KINDS[attribute])


def _rows(
    names: str,
    operands: int | tuple[int, int | None],
    opcode_class: Class,
    required: str = "",
    optional: str = "",
) -> Iterator[OpcodeRow]:
    """Rows that differ in their names alone; `name=anchor` where the section is not named like the opcode."""
    low, high = (operands, operands) if isinstance(operands, int) else operands
    own = tuple(required.split()), tuple(optional.split())
    for word in names.split():
        name, _, anchor = word.partition("=")
        yield OpcodeRow(name, low, high, opcode_class, *own, anchor or name.replace("-", ""))


_E, _D, _I, _C = Class.ELEMENTWISE, Class.DATA_MOVEMENT, Class.INDEXING, Class.COLLECTIVE
_ANY, _SOME = (0, None), (1, None)
_CHANNEL = "channel_id replica_groups"
_GROUPED = f"{_CHANNEL} constrain_layout mode use_global_device_ids"
_DOT_DIMS = "lhs_batch_dims lhs_contracting_dims rhs_batch_dims rhs_contracting_dims operand_precision"
_CONV = "window dim_labels feature_group_count batch_group_count operand_precision"

_ROWS = (
    # elementwise, one operand
    _rows(
        "abs ceil convert=convertelementtype count-leading-zeros=clz floor imag is-finite negate=neg not "
        "popcnt=populationcount real round-nearest-afz=round round-nearest-even sign",
        1,
        _E,
    ),
    _rows(
        "acos acosh asin asinh atanh cbrt cosh cosine=cos erf exponential=exp exponential-minus-one=expm1 "
        "log log-plus-one=log1p logistic rsqrt sine=sin sinh sqrt tan tanh",
        1,
        _E,
        optional="result_accuracy",
    ),
    _rows("reduce-precision", 1, _E, "exponent_bits mantissa_bits"),
    # elementwise, two and three operands
    _rows(
        "add and atan2 complex divide=div maximum=max minimum=min mulhi=hlo_opcode.h multiply=mul or "
        "power=pow remainder=rem shift-left shift-right-arithmetic shift-right-logical "
        "stochastic-convert=hlo_opcode.h subtract=sub xor",
        2,
        _E,
    ),
    _rows("compare", 2, _E, "direction", "type"),
    _rows("clamp select", 3, _E),
    _rows("map", _ANY, _E, "to_apply", "dimensions"),
    # data movement
    _rows("bitcast bitcast-convert=bitcastconverttype", 1, _D),
    _rows("broadcast=broadcastindim", 1, _D, optional="dimensions"),
    _rows("concatenate", _SOME, _D, "dimensions"),
    _rows("copy=hlo_opcode.h copy-done=hlo_opcode.h", 1, _D),
    _rows("copy-start=hlo_opcode.h", 1, _D, optional="cross_program_prefetch_index"),
    _rows("pad", 2, _D, "padding"),
    _rows("reshape", 1, _D, optional="inferred_dimension"),
    _rows("reverse=rev", 1, _D, "dimensions"),
    _rows("slice", 1, _D, "slice"),
    _rows("transpose", 1, _D, "dimensions"),
    # indexing
    _rows("dynamic-slice", _SOME, _I, "dynamic_slice_sizes"),
    _rows("dynamic-update-slice", (2, None), _I),
    _rows(
        "gather",
        2,
        _I,
        "offset_dims collapsed_slice_dims start_index_map index_vector_dim slice_sizes",
        "indices_are_sorted operand_batching_dims start_indices_batching_dims",
    ),
    _rows(
        "scatter",
        (3, None),
        _I,
        "update_window_dims inserted_window_dims scatter_dims_to_operand_dims index_vector_dim to_apply",
        "indices_are_sorted unique_indices input_batching_dims scatter_indices_batching_dims",
    ),
    # reductions
    _rows("reduce", (2, None), Class.REDUCTION, "to_apply dimensions"),
    _rows("reduce-window", (2, None), Class.REDUCTION, "to_apply", "window"),
    _rows("scan", _ANY, Class.REDUCTION, "to_apply dimensions num_carries", "is_reverse is_associative"),
    _rows("select-and-scatter", 3, Class.REDUCTION, "select scatter", "window"),
    _rows("sort", _SOME, Class.REDUCTION, "dimensions to_apply", "is_stable"),
    _rows("topk", 1, Class.REDUCTION, "k", "largest"),
    # contractions
    _rows(
        "convolution=convwithgeneralpadding",
        2,
        Class.CONTRACTION,
        "dim_labels",
        "window feature_group_count batch_group_count operand_precision convolution_kind sparsity_config",
    ),
    _rows("dot=dotgeneral", (2, 4), Class.CONTRACTION, optional=f"{_DOT_DIMS} algorithm"),
    _rows("ragged-dot", 3, Class.CONTRACTION, optional=f"{_DOT_DIMS} lhs_ragged_dims rhs_group_dims"),
    _rows("scaled-dot", 4, Class.CONTRACTION, optional=f"{_DOT_DIMS} algorithm"),
    # control flow and calls
    _rows(
        "async-start=async_ops.md",
        _ANY,
        Class.CONTROL,
        "calls",
        "async_execution_thread output_to_operand_aliasing",
    ),
    _rows(
        "async-update=async_ops.md async-done=async_ops.md",
        1,
        Class.CONTROL,
        optional="async_execution_thread calls",
    ),
    _rows("call", _ANY, Class.CONTROL, "to_apply", "is_composite"),
    _rows(
        "conditional",
        _SOME,
        Class.CONTROL,
        optional="branch_computations true_computation false_computation",
    ),
    _rows("fusion", _ANY, Class.CONTROL, "calls kind", "output_to_operand_aliasing"),
    _rows("while", 1, Class.CONTROL, "condition body"),
    # sources, tuples, annotations
    _rows("add-dependency=hlo_opcode.h", 2, Class.ANNOTATION),
    _rows("after-all", _ANY, Class.ANNOTATION),
    _rows("constant partition-id replica-id", 0, Class.SOURCE),
    _rows("domain=hlo_opcode.h", 1, Class.ANNOTATION, "domain"),
    _rows("get-tuple-element", 1, Class.TUPLE, "index"),
    _rows("iota", 0, Class.SOURCE, "iota_dimension"),
    _rows("opt-barrier=optimizationbarrier", 1, Class.ANNOTATION),
    _rows("parameter", 0, Class.SOURCE, optional="parameter_replication"),
    _rows("tuple", _ANY, Class.TUPLE),
    # dynamic shapes
    _rows("dynamic-reshape", _SOME, Class.DYNAMIC),
    _rows("get-dimension-size", 1, Class.DYNAMIC, "dimensions"),
    _rows("set-dimension-size", 2, Class.DYNAMIC, "dimensions"),
    # collectives
    _rows(
        "all-gather all-gather-start=allgather",
        _ANY,
        _C,
        "dimensions",
        f"{_CHANNEL} constrain_layout use_global_device_ids",
    ),
    _rows("all-reduce all-reduce-start=allreduce", _ANY, _C, "to_apply", _GROUPED),
    _rows("all-to-all", _ANY, _C, optional=f"dimensions {_CHANNEL} constrain_layout"),
    _rows("collective-broadcast", _ANY, _C, optional=_CHANNEL),
    _rows(
        "collective-permute collective-permute-start=collectivepermute",
        _ANY,
        _C,
        "source_target_pairs",
        "channel_id slice_sizes",
    ),
    _rows(
        "all-gather-done=allgather all-reduce-done=allreduce collective-permute-done=collectivepermute", 1, _C
    ),
    _rows("ragged-all-to-all", _ANY, _C, optional=f"dimensions {_CHANNEL}"),
    _rows("reduce-scatter", _ANY, _C, "to_apply dimensions", _GROUPED),
    # host transfers
    _rows("infeed", 1, Class.HOST, optional="infeed_config"),
    _rows("outfeed", 2, Class.HOST, optional="outfeed_config outfeed_shape"),
    _rows("recv recv-done=recv send-done=send", 1, Class.HOST, optional="channel_id is_host_transfer"),
    _rows("send", 2, Class.HOST, optional="channel_id is_host_transfer"),
    # random numbers
    _rows("rng=rngnormal", _ANY, Class.RANDOM, "distribution"),
    _rows("rng-bit-generator", 1, Class.RANDOM, "algorithm"),
    _rows("rng-get-and-update-state=hlo_opcode.h", 0, Class.RANDOM, "delta"),
    # libraries
    _rows("batch-norm-grad batch-norm-inference", 5, Class.LIBRARY, "epsilon feature_index"),
    _rows("batch-norm-training", 3, Class.LIBRARY, "epsilon feature_index"),
    _rows("cholesky", 1, Class.LIBRARY, optional="lower"),
    _rows(
        "custom-call",
        _ANY,
        Class.LIBRARY,
        "custom_call_target",
        "api_version called_computations custom_call_has_side_effect literal operand_layout_constraints "
        f"output_to_operand_aliasing padding_type schedule to_apply {_CONV}",
    ),
    _rows("fft", 1, Class.LIBRARY, "fft_type fft_length"),
    _rows("triangular-solve", 2, Class.LIBRARY, optional="left_side lower transpose_a unit_diagonal"),
)

OPCODES: dict[str, OpcodeRow] = {row.name: row for rows in _ROWS for row in rows}
