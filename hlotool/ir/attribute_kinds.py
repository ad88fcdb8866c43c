"""How attributes of instructions are written in HLO text. XLA: hlo_parser.cc."""

from __future__ import annotations

import enum


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
