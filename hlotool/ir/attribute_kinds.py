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
_ATTRIBUTES: dict[Kind, str] = {
    Kind.BOOL: "constrain_layout custom_call_has_side_effect has_dynamic_root indices_are_sorted "
    "is_associative is_composite is_host_transfer is_reverse is_stable largest left_side lower "
    "unique_indices unit_diagonal use_global_device_ids",
    Kind.BOOLS: "parameter_replication",
    Kind.INT: "batch_group_count channel_id cross_program_prefetch_index delta exponent_bits "
    "feature_group_count feature_index index index_vector_dim inferred_dimension iota_dimension "
    "k mantissa_bits num_carries",
    Kind.FLOAT: "epsilon",
    Kind.STRING: "async_execution_thread custom_call_target infeed_config outfeed_config",
    Kind.ENUM: "algorithm api_version convolution_kind direction distribution fft_type kind mode order "
    "padding_type schedule transpose_a type",
    Kind.ENUMS: "operand_precision",
    Kind.INTS: "collapsed_slice_dims dimensions dynamic_slice_sizes fft_length input_batching_dims "
    "inserted_window_dims lhs_batch_dims lhs_contracting_dims lhs_ragged_dims offset_dims "
    "operand_batching_dims rhs_batch_dims rhs_contracting_dims rhs_group_dims "
    "scatter_dims_to_operand_dims scatter_indices_batching_dims slice_sizes start_index_map "
    "start_indices_batching_dims update_window_dims",
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
    Kind.RAW: "block_scaling_config domain sparsity_config",
}
ATTRIBUTE_KINDS = {name: kind for kind, names in _ATTRIBUTES.items() for name in names.split()}

#: (opcode, attribute) whose value is written unlike the attribute elsewhere.
SPECIAL_KINDS: dict[tuple[str, str], Kind] = {
    ("collective-permute", "slice_sizes"): Kind.INT_LISTS,
    ("collective-permute-start", "slice_sizes"): Kind.INT_LISTS,
}
