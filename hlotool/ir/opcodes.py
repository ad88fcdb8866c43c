"""THE opcode table: one row per HLO opcode, read by parser, printer, shape inference, verifier and backends.

To add an opcode: one row here, one shape rule in `shape_inference`, one kernel per backend, one spec file.
XLA: hlo_opcode.h (names, arity), hlo_parser.cc (attributes), operation_semantics.md (meaning).
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

#: Whatever is known of opcodes elsewhere: a shape rule, what writes a kernel, a cost.
_Rule = TypeVar("_Rule")


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
ATTRIBUTE_KINDS: dict[str, Kind] = {
    "algorithm": Kind.ENUM,
    "api_version": Kind.ENUM,
    "async_execution_thread": Kind.STRING,
    "batch_group_count": Kind.INT,
    "block_scaling_config": Kind.RAW,
    "body": Kind.COMPUTATION,
    "branch_computations": Kind.COMPUTATIONS,
    "called_computations": Kind.COMPUTATIONS,
    "calls": Kind.COMPUTATION,
    "channel_id": Kind.INT,
    "collapsed_slice_dims": Kind.INTS,
    "condition": Kind.COMPUTATION,
    "constrain_layout": Kind.BOOL,
    "convolution_kind": Kind.ENUM,
    "cross_program_prefetch_index": Kind.INT,
    "custom_call_has_side_effect": Kind.BOOL,
    "custom_call_target": Kind.STRING,
    "delta": Kind.INT,
    "dim_labels": Kind.DIM_LABELS,
    "dimensions": Kind.INTS,
    "direction": Kind.ENUM,
    "distribution": Kind.ENUM,
    "domain": Kind.RAW,
    "dynamic_slice_sizes": Kind.INTS,
    "epsilon": Kind.FLOAT,
    "exponent_bits": Kind.INT,
    "false_computation": Kind.COMPUTATION,
    "feature_group_count": Kind.INT,
    "feature_index": Kind.INT,
    "fft_length": Kind.INTS,
    "fft_type": Kind.ENUM,
    "has_dynamic_root": Kind.BOOL,
    "index": Kind.INT,
    "index_vector_dim": Kind.INT,
    "indices_are_sorted": Kind.BOOL,
    "infeed_config": Kind.STRING,
    "inferred_dimension": Kind.INT,
    "input_batching_dims": Kind.INTS,
    "inserted_window_dims": Kind.INTS,
    "iota_dimension": Kind.INT,
    "is_associative": Kind.BOOL,
    "is_composite": Kind.BOOL,
    "is_host_transfer": Kind.BOOL,
    "is_reverse": Kind.BOOL,
    "is_stable": Kind.BOOL,
    "k": Kind.INT,
    "kind": Kind.ENUM,
    "largest": Kind.BOOL,
    "left_side": Kind.BOOL,
    "lhs_batch_dims": Kind.INTS,
    "lhs_contracting_dims": Kind.INTS,
    "lhs_ragged_dims": Kind.INTS,
    "literal": Kind.LITERAL,
    "lower": Kind.BOOL,
    "mantissa_bits": Kind.INT,
    "mode": Kind.ENUM,
    "num_carries": Kind.INT,
    "offset_dims": Kind.INTS,
    "operand_batching_dims": Kind.INTS,
    "operand_layout_constraints": Kind.SHAPES,
    "operand_precision": Kind.ENUMS,
    "order": Kind.ENUM,
    "outfeed_config": Kind.STRING,
    "outfeed_shape": Kind.SHAPE,
    "output_to_operand_aliasing": Kind.ALIASES,
    "padding": Kind.PADDING,
    "padding_type": Kind.ENUM,
    "parameter_replication": Kind.BOOLS,
    "replica_groups": Kind.REPLICA_GROUPS,
    "result_accuracy": Kind.ACCURACY,
    "rhs_batch_dims": Kind.INTS,
    "rhs_contracting_dims": Kind.INTS,
    "rhs_group_dims": Kind.INTS,
    "scatter": Kind.COMPUTATION,
    "scatter_dims_to_operand_dims": Kind.INTS,
    "scatter_indices_batching_dims": Kind.INTS,
    "schedule": Kind.ENUM,
    "select": Kind.COMPUTATION,
    "slice": Kind.SLICE,
    "slice_sizes": Kind.INTS,
    "source_target_pairs": Kind.INT_LISTS,
    "sparsity_config": Kind.RAW,
    "start_index_map": Kind.INTS,
    "start_indices_batching_dims": Kind.INTS,
    "to_apply": Kind.COMPUTATION,
    "transpose_a": Kind.ENUM,
    "true_computation": Kind.COMPUTATION,
    "type": Kind.ENUM,
    "unique_indices": Kind.BOOL,
    "unit_diagonal": Kind.BOOL,
    "update_window_dims": Kind.INTS,
    "use_global_device_ids": Kind.BOOL,
    "window": Kind.WINDOW,
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


def by_name(rules: dict[str, _Rule], names: Iterable[str]) -> Callable[[_Rule], _Rule]:
    """Enter what is decorated into `rules` under each of `names`; ValueError where something stands."""

    def register(rule: _Rule) -> _Rule:
        for name in names:
            if name in rules:
                raise ValueError(f"{name!r} has two rules")
            rules[name] = rule
        return rule

    return register


def by_opcode(rules: dict[str, _Rule], opcodes: Iterable[str]) -> Callable[[_Rule], _Rule]:
    """`by_name` for rules of opcodes; ValueError for one that is not in the table."""
    opcodes = tuple(opcodes)
    if unknown := [opcode for opcode in opcodes if opcode not in OPCODES]:
        raise ValueError(f"{unknown[0]!r} is not in the opcode table")
    return by_name(rules, opcodes)


def attribute_kind(opcode: str, attribute: str) -> Kind | None:
    """How `attribute` is written on `opcode`, or None when the opcode does not take it."""
    if attribute in COMMON_ATTRIBUTES:
        return COMMON_ATTRIBUTES[attribute]
    row = OPCODES.get(opcode)
    if row is None or attribute not in row.attributes:
        return None
    return SPECIAL_KINDS.get((opcode, attribute), ATTRIBUTE_KINDS[attribute])


def _row(
    name: str,
    operands: int | tuple[int, int | None],
    opcode_class: Class,
    required: str = "",
    optional: str = "",
    anchor: str = "",
) -> OpcodeRow:
    low, high = (operands, operands) if isinstance(operands, int) else operands
    return OpcodeRow(name, low, high, opcode_class, tuple(required.split()), tuple(optional.split()), anchor)


_E, _D, _C = Class.ELEMENTWISE, Class.DATA_MOVEMENT, Class.COLLECTIVE
_ANY, _SOME = (0, None), (1, None)
_CHANNEL = "channel_id replica_groups"
_DOT_DIMS = "lhs_batch_dims lhs_contracting_dims rhs_batch_dims rhs_contracting_dims operand_precision"
_STRUCTURE = "sparsity_config block_scaling_config"
_CONV = "window dim_labels feature_group_count batch_group_count operand_precision"

_ROWS = (
    # elementwise, one operand
    *(
        _row(name, 1, _E, anchor=anchor)
        for name, anchor in (
            ("abs", "abs"),
            ("ceil", "ceil"),
            ("convert", "convertelementtype"),
            ("count-leading-zeros", "clz"),
            ("floor", "floor"),
            ("imag", "imag"),
            ("is-finite", "isfinite"),
            ("negate", "neg"),
            ("not", "not"),
            ("popcnt", "populationcount"),
            ("real", "real"),
            ("round-nearest-afz", "round"),
            ("round-nearest-even", "roundnearesteven"),
            ("sign", "sign"),
        )
    ),
    *(
        _row(name, 1, _E, optional="result_accuracy", anchor=anchor)
        for name, anchor in (
            ("acos", "acos"),
            ("acosh", "acosh"),
            ("asin", "asin"),
            ("asinh", "asinh"),
            ("atanh", "atanh"),
            ("cbrt", "cbrt"),
            ("cosh", "cosh"),
            ("cosine", "cos"),
            ("erf", "erf"),
            ("exponential", "exp"),
            ("exponential-minus-one", "expm1"),
            ("log", "log"),
            ("log-plus-one", "log1p"),
            ("logistic", "logistic"),
            ("rsqrt", "rsqrt"),
            ("sine", "sin"),
            ("sinh", "sinh"),
            ("sqrt", "sqrt"),
            ("tan", "tan"),
            ("tanh", "tanh"),
        )
    ),
    _row("reduce-precision", 1, _E, "exponent_bits mantissa_bits", anchor="reduceprecision"),
    # elementwise, two and three operands
    *(
        _row(name, 2, _E, anchor=anchor)
        for name, anchor in (
            ("add", "add"),
            ("and", "and"),
            ("atan2", "atan2"),
            ("complex", "complex"),
            ("divide", "div"),
            ("maximum", "max"),
            ("minimum", "min"),
            ("mulhi", "hlo_opcode.h"),
            ("multiply", "mul"),
            ("or", "or"),
            ("power", "pow"),
            ("remainder", "rem"),
            ("shift-left", "shiftleft"),
            ("shift-right-arithmetic", "shiftrightarithmetic"),
            ("shift-right-logical", "shiftrightlogical"),
            ("stochastic-convert", "hlo_opcode.h"),
            ("subtract", "sub"),
            ("xor", "xor"),
        )
    ),
    _row("compare", 2, _E, "direction", "type order", "compare"),
    _row("clamp", 3, _E, anchor="clamp"),
    _row("select", 3, _E, anchor="select"),
    _row("map", _ANY, _E, "to_apply", "dimensions", "map"),
    # data movement
    _row("bitcast", 1, _D, anchor="bitcast"),
    _row("bitcast-convert", 1, _D, anchor="bitcastconverttype"),
    _row("broadcast", 1, _D, optional="dimensions", anchor="broadcastindim"),
    _row("concatenate", _SOME, _D, "dimensions", anchor="concatenate"),
    _row("copy", 1, _D, anchor="hlo_opcode.h"),
    _row("copy-done", 1, _D, anchor="hlo_opcode.h"),
    _row("copy-start", 1, _D, optional="cross_program_prefetch_index", anchor="hlo_opcode.h"),
    _row("pad", 2, _D, "padding", anchor="pad"),
    _row("reshape", 1, _D, optional="inferred_dimension", anchor="reshape"),
    _row("reverse", 1, _D, "dimensions", anchor="rev"),
    _row("slice", 1, _D, "slice", anchor="slice"),
    _row("transpose", 1, _D, "dimensions", anchor="transpose"),
    # indexing
    _row("dynamic-slice", _SOME, Class.INDEXING, "dynamic_slice_sizes", anchor="dynamicslice"),
    _row("dynamic-update-slice", (2, None), Class.INDEXING, anchor="dynamicupdateslice"),
    _row(
        "gather",
        2,
        Class.INDEXING,
        "offset_dims collapsed_slice_dims start_index_map index_vector_dim slice_sizes",
        "indices_are_sorted operand_batching_dims start_indices_batching_dims",
        "gather",
    ),
    _row(
        "scatter",
        (3, None),
        Class.INDEXING,
        "update_window_dims inserted_window_dims scatter_dims_to_operand_dims index_vector_dim to_apply",
        "indices_are_sorted unique_indices input_batching_dims scatter_indices_batching_dims",
        "scatter",
    ),
    # reductions
    _row("reduce", (2, None), Class.REDUCTION, "to_apply dimensions", anchor="reduce"),
    _row("reduce-window", (2, None), Class.REDUCTION, "to_apply", "window", "reducewindow"),
    _row(
        "scan", _ANY, Class.REDUCTION, "to_apply dimensions num_carries", "is_reverse is_associative", "scan"
    ),
    _row("select-and-scatter", 3, Class.REDUCTION, "select scatter", "window", "selectandscatter"),
    _row("sort", _SOME, Class.REDUCTION, "dimensions to_apply", "is_stable", "sort"),
    _row("topk", 1, Class.REDUCTION, "k", "largest is_stable", "topk"),
    # contractions
    _row(
        "convolution",
        2,
        Class.CONTRACTION,
        "dim_labels",
        "window feature_group_count batch_group_count operand_precision algorithm convolution_kind "
        f"{_STRUCTURE}",
        "convwithgeneralpadding",
    ),
    _row(
        "dot", (2, 4), Class.CONTRACTION, optional=f"{_DOT_DIMS} algorithm {_STRUCTURE}", anchor="dotgeneral"
    ),
    _row(
        "ragged-dot",
        3,
        Class.CONTRACTION,
        optional=f"{_DOT_DIMS} lhs_ragged_dims rhs_group_dims",
        anchor="raggeddot",
    ),
    _row("scaled-dot", 4, Class.CONTRACTION, optional=f"{_DOT_DIMS} algorithm", anchor="scaleddot"),
    # control flow and calls
    _row("async-done", 1, Class.CONTROL, optional="async_execution_thread calls", anchor="async_ops.md"),
    _row(
        "async-start",
        _ANY,
        Class.CONTROL,
        "calls",
        "async_execution_thread output_to_operand_aliasing",
        "async_ops.md",
    ),
    _row(
        "async-update",
        1,
        Class.CONTROL,
        optional="async_execution_thread calls output_to_operand_aliasing",
        anchor="async_ops.md",
    ),
    _row("call", _ANY, Class.CONTROL, "to_apply", "is_composite", "call"),
    _row(
        "conditional",
        _SOME,
        Class.CONTROL,
        optional="branch_computations true_computation false_computation",
        anchor="conditional",
    ),
    _row("fusion", _ANY, Class.CONTROL, "calls kind", "output_to_operand_aliasing", "fusion"),
    _row("while", 1, Class.CONTROL, "condition body", anchor="while"),
    # sources, tuples, annotations
    _row("add-dependency", 2, Class.ANNOTATION, anchor="hlo_opcode.h"),
    _row("after-all", _ANY, Class.ANNOTATION, anchor="afterall"),
    _row("constant", 0, Class.SOURCE, anchor="constant"),
    _row("domain", 1, Class.ANNOTATION, "domain", anchor="hlo_opcode.h"),
    _row("get-tuple-element", 1, Class.TUPLE, "index", anchor="gettupleelement"),
    _row("iota", 0, Class.SOURCE, "iota_dimension", anchor="iota"),
    _row("opt-barrier", 1, Class.ANNOTATION, anchor="optimizationbarrier"),
    _row("parameter", 0, Class.SOURCE, optional="parameter_replication", anchor="parameter"),
    _row("partition-id", 0, Class.SOURCE, anchor="partitionid"),
    _row("replica-id", 0, Class.SOURCE, anchor="replicaid"),
    _row("tuple", _ANY, Class.TUPLE, anchor="tuple"),
    # dynamic shapes
    _row("dynamic-reshape", _SOME, Class.DYNAMIC, anchor="dynamicreshape"),
    _row("get-dimension-size", 1, Class.DYNAMIC, "dimensions", anchor="getdimensionsize"),
    _row("set-dimension-size", 2, Class.DYNAMIC, "dimensions", anchor="setdimensionsize"),
    # collectives
    _row(
        "all-gather",
        _ANY,
        _C,
        "dimensions",
        f"{_CHANNEL} constrain_layout use_global_device_ids",
        "allgather",
    ),
    _row("all-gather-done", 1, _C, anchor="allgather"),
    _row(
        "all-gather-start",
        _ANY,
        _C,
        "dimensions",
        f"{_CHANNEL} constrain_layout use_global_device_ids",
        "allgather",
    ),
    _row(
        "all-reduce",
        _ANY,
        _C,
        "to_apply",
        f"{_CHANNEL} constrain_layout mode use_global_device_ids",
        "allreduce",
    ),
    _row("all-reduce-done", 1, _C, anchor="allreduce"),
    _row(
        "all-reduce-start",
        _ANY,
        _C,
        "to_apply",
        f"{_CHANNEL} constrain_layout mode use_global_device_ids",
        "allreduce",
    ),
    _row("all-to-all", _ANY, _C, optional=f"dimensions {_CHANNEL} constrain_layout", anchor="alltoall"),
    _row(
        "collective-broadcast",
        _ANY,
        _C,
        optional=f"{_CHANNEL} has_dynamic_root",
        anchor="collectivebroadcast",
    ),
    _row(
        "collective-permute", _ANY, _C, "source_target_pairs", "channel_id slice_sizes", "collectivepermute"
    ),
    _row("collective-permute-done", 1, _C, anchor="collectivepermute"),
    _row(
        "collective-permute-start",
        _ANY,
        _C,
        "source_target_pairs",
        "channel_id slice_sizes",
        "collectivepermute",
    ),
    _row("ragged-all-to-all", _ANY, _C, optional=f"dimensions {_CHANNEL}", anchor="raggedalltoall"),
    _row(
        "reduce-scatter",
        _ANY,
        _C,
        "to_apply dimensions",
        f"{_CHANNEL} constrain_layout mode use_global_device_ids",
        "reducescatter",
    ),
    # host transfers
    _row("infeed", 1, Class.HOST, optional="infeed_config", anchor="infeed"),
    _row("outfeed", 2, Class.HOST, optional="outfeed_config outfeed_shape", anchor="outfeed"),
    _row("recv", 1, Class.HOST, optional="channel_id is_host_transfer", anchor="recv"),
    _row("recv-done", 1, Class.HOST, optional="channel_id is_host_transfer", anchor="recv"),
    _row("send", 2, Class.HOST, optional="channel_id is_host_transfer", anchor="send"),
    _row("send-done", 1, Class.HOST, optional="channel_id is_host_transfer", anchor="send"),
    # random numbers
    _row("rng", _ANY, Class.RANDOM, "distribution", anchor="rngnormal"),
    _row("rng-bit-generator", 1, Class.RANDOM, "algorithm", anchor="rngbitgenerator"),
    _row("rng-get-and-update-state", 0, Class.RANDOM, "delta", anchor="hlo_opcode.h"),
    # libraries
    _row("batch-norm-grad", 5, Class.LIBRARY, "epsilon feature_index", anchor="batchnormgrad"),
    _row("batch-norm-inference", 5, Class.LIBRARY, "epsilon feature_index", anchor="batchnorminference"),
    _row("batch-norm-training", 3, Class.LIBRARY, "epsilon feature_index", anchor="batchnormtraining"),
    _row("cholesky", 1, Class.LIBRARY, optional="lower", anchor="cholesky"),
    _row(
        "custom-call",
        _ANY,
        Class.LIBRARY,
        "custom_call_target",
        "api_version called_computations custom_call_has_side_effect literal operand_layout_constraints "
        f"output_to_operand_aliasing padding_type schedule to_apply {_CONV}",
        "customcall",
    ),
    _row("fft", 1, Class.LIBRARY, "fft_type fft_length", anchor="fft"),
    _row(
        "triangular-solve",
        2,
        Class.LIBRARY,
        optional="left_side lower transpose_a unit_diagonal",
        anchor="triangularsolve",
    ),
)

OPCODES: dict[str, OpcodeRow] = {row.name: row for row in _ROWS}
