"""THE opcode table: one row per HLO opcode, under its class.

A row states the name, the number of operands, the section of XLA's operation_semantics.md or the header that
defines the opcode | the facts that are true of it, in the words of `opcodes.Trait` | the attributes that it
must have | those that it may have, besides `COMMON_ATTRIBUTES`.

XLA: hlo_opcode.h (names, arity), hlo_parser.cc (attributes), operation_semantics.md (meaning),
hlo_instruction.cc (HasSideEffect), hlo_cost_analysis.cc (HandleElementwiseOp).
"""

from __future__ import annotations

from typing import Final

TABLE: Final = """
[elementwise]
abs                      1   abs                    | exact even on=sfc
ceil                     1   ceil                   | exact to-integer jumps on=f
convert                  1   convertelementtype     | rounds converts states-shape carries=:1
count-leading-zeros      1   clz                    | integer on=su
floor                    1   floor                  | exact to-integer jumps on=f
imag                     1   imag                   | exact on=fc
is-finite                1   isfinite               | exact on=f
negate                   1   neg                    | exact odd on=sufc
not                      1   not                    | exact bitwise on=psu
popcnt                   1   populationcount        | integer on=su
real                     1   real                   | exact on=fc
round-nearest-afz        1   round                  | exact to-integer jumps on=f
round-nearest-even       1   roundnearesteven       | exact to-integer jumps on=f
sign                     1   sign                   | exact jumps odd on=sfc
acos                     1   acos                   | transcendental expanded on=f | | result_accuracy
acosh                    1   acosh                  | transcendental expanded on=f | | result_accuracy
asin                     1   asin                   | transcendental expanded odd on=f | | result_accuracy
asinh                    1   asinh                  | transcendental expanded odd on=f | | result_accuracy
atanh                    1   atanh                  | transcendental singular expanded odd on=f | | \
    result_accuracy
cbrt                     1   cbrt                   | transcendental odd on=f | | result_accuracy
cosh                     1   cosh                   | transcendental exponential expanded even on=f | | \
    result_accuracy
cosine                   1   cos                    | transcendental even on=fc | | result_accuracy
erf                      1   erf                    | transcendental saturates odd on=f | | result_accuracy
exponential              1   exp                    | transcendental exponential on=fc | | result_accuracy
exponential-minus-one    1   expm1                  | transcendental exponential on=fc | | result_accuracy
log                      1   log                    | transcendental singular on=fc | | result_accuracy
log-plus-one             1   log1p                  | transcendental singular on=fc | | result_accuracy
logistic                 1   logistic               | transcendental saturates exponential on=fc | | \
    result_accuracy
rsqrt                    1   rsqrt                  | transcendental singular root on=fc | | result_accuracy
sine                     1   sin                    | transcendental odd on=fc | | result_accuracy
sinh                     1   sinh                   | transcendental exponential expanded odd on=f | | \
    result_accuracy
sqrt                     1   sqrt                   | transcendental root on=fc | | result_accuracy
tan                      1   tan                    | transcendental singular jumps odd on=fc | | \
    result_accuracy
tanh                     1   tanh                   | transcendental saturates exponential odd on=fc | | \
    result_accuracy
reduce-precision         1   reduceprecision        | rounds converts states-shape carries=:1 on=f | \
    exponent_bits mantissa_bits
add                      2   add                    | rounds commutative associative identity=zero on=psufc
and                      2   and                    | exact commutative associative bitwise idempotent \
    identity=all-bits on=psu
atan2                    2   atan2                  | transcendental jumps on=fc
complex                  2   complex                | exact on=f
divide                   2   div                    | rounds singular on=sufc
maximum                  2   max                    | exact commutative associative extremum compares \
    on=psufc idempotent identity=lowest
minimum                  2   min                    | exact commutative associative extremum compares \
    on=psufc idempotent identity=highest
mulhi                    2   hlo_opcode.h           | integer commutative on=sufc
multiply                 2   mul                    | rounds commutative associative identity=one on=psufc
or                       2   or                     | exact commutative associative bitwise idempotent \
    identity=zero on=psu
power                    2   pow                    | transcendental exponential on=sufc
remainder                2   rem                    | rounds singular jumps costly on=sufc
shift-left               2   shiftleft              | integer shifts on=sufc
shift-right-arithmetic   2   shiftrightarithmetic   | integer shifts on=sufc
shift-right-logical      2   shiftrightlogical      | integer shifts on=sufc
stochastic-convert       2   hlo_opcode.h           | rounds jumps states-shape on=f
subtract                 2   sub                    | rounds on=sufc
xor                      2   xor                    | exact commutative associative bitwise identity=zero \
    on=psu
compare                  2   compare                | exact compares on=psufc | direction | type order
clamp                    3   clamp                  | exact compares carries=1:2
select                   3   select                 | exact compares carries=1:3
map                      any map                    | applies | to_apply | dimensions
[data movement]
bitcast                  1   bitcast                | moves regroups same-order states-shape late carries=:1
bitcast-convert          1   bitcastconverttype     | places states-shape
broadcast                1   broadcastindim         | moves regroups carries=:1 | | dimensions
concatenate              1+  concatenate            | moves carries=: | dimensions
copy                     1   hlo_opcode.h           | moves regroups same-order carries=:1
copy-done                1   hlo_opcode.h           | places finishes states-shape late
copy-start               1   hlo_opcode.h           | places starts states-shape late | | \
    cross_program_prefetch_index
pad                      2   pad                    | moves carries=:2 | padding
reshape                  1   reshape                | moves regroups same-order states-shape carries=:1 | | \
    inferred_dimension
reverse                  1   rev                    | moves carries=:1 | dimensions
slice                    1   slice                  | moves states-shape carries=:1 | slice
transpose                1   transpose              | moves regroups carries=:1 | dimensions
[indexing]
dynamic-slice            1+  dynamicslice           | places states-shape carries=:1 | dynamic_slice_sizes
dynamic-update-slice     2+  dynamicupdateslice     | places states-shape carries=:2
gather                   2   gather                 | places costly carries=:1 | offset_dims \
    collapsed_slice_dims start_index_map index_vector_dim slice_sizes | indices_are_sorted \
    operand_batching_dims start_indices_batching_dims
scatter                  3+  scatter                | applies places combines costly | update_window_dims \
    inserted_window_dims scatter_dims_to_operand_dims index_vector_dim to_apply | indices_are_sorted \
    unique_indices input_batching_dims scatter_indices_batching_dims
[reduction]
reduce                   2+  reduce                 | applies combines | to_apply dimensions
reduce-window            2+  reducewindow           | applies combines costly | to_apply | window
scan                     any scan                   | applies combines | to_apply dimensions num_carries | \
    is_reverse is_associative
select-and-scatter       3   selectandscatter       | applies jumps combines costly | select scatter | window
sort                     1+  sort                   | applies places jumps | dimensions to_apply | is_stable
topk                     1   topk                   | places jumps | k | largest is_stable
[contraction]
convolution              2   convwithgeneralpadding | rounds | dim_labels | window feature_group_count \
    batch_group_count operand_precision algorithm convolution_kind sparsity_config block_scaling_config
dot                      2-4 dotgeneral             | rounds | | lhs_batch_dims lhs_contracting_dims \
    rhs_batch_dims rhs_contracting_dims operand_precision algorithm sparsity_config block_scaling_config
ragged-dot               3   raggeddot              | rounds | | lhs_batch_dims lhs_contracting_dims \
    rhs_batch_dims rhs_contracting_dims operand_precision lhs_ragged_dims rhs_group_dims
scaled-dot               4   scaleddot              | rounds | | lhs_batch_dims lhs_contracting_dims \
    rhs_batch_dims rhs_contracting_dims operand_precision algorithm
[control flow]
async-done               1   async_ops.md           | async finishes states-shape late | | \
    async_execution_thread calls
async-start              any async_ops.md           | async starts states-shape late | calls | \
    async_execution_thread output_to_operand_aliasing
async-update             1   async_ops.md           | forwards async states-shape late | | \
    async_execution_thread calls output_to_operand_aliasing
call                     any call                   | inlined control-flow | to_apply | is_composite
conditional              1+  conditional            | control-flow | | branch_computations true_computation \
    false_computation
fusion                   any fusion                 | inlined states-shape late | calls kind | \
    output_to_operand_aliasing
while                    1   while                  | control-flow | condition body
[annotation]
add-dependency           2   hlo_opcode.h           | forwards orders
after-all                any afterall               | orders
domain                   1   hlo_opcode.h           | forwards late | domain
opt-barrier              1   optimizationbarrier    | forwards
[source]
constant                 0   constant               | structure states-shape
iota                     0   iota                   | makes states-shape | iota_dimension
parameter                0   parameter              | structure states-shape | | parameter_replication
partition-id             0   partitionid            | makes undetermined
replica-id               0   replicaid              | makes undetermined
[tuple]
get-tuple-element        1   gettupleelement        | structure | index
tuple                    any tuple                  | structure
[dynamic shape]
dynamic-reshape          1+  dynamicreshape         | places sizes states-shape
get-dimension-size       1   getdimensionsize       | sizes | dimensions
set-dimension-size       2   setdimensionsize       | sizes carries=:1 | dimensions
[collective]
all-gather               any allgather              | places states-shape | dimensions | channel_id \
    replica_groups constrain_layout use_global_device_ids
all-gather-done          1   allgather              | places finishes side-effect states-shape late
all-gather-start         any allgather              | places starts side-effect states-shape late | \
    dimensions | channel_id replica_groups constrain_layout use_global_device_ids
all-reduce               any allreduce              | applies combines states-shape | to_apply | channel_id \
    replica_groups constrain_layout mode use_global_device_ids
all-reduce-done          1   allreduce              | places finishes side-effect states-shape late
all-reduce-start         any allreduce              | applies combines starts side-effect states-shape late \
    | to_apply | channel_id replica_groups constrain_layout mode use_global_device_ids
all-to-all               any alltoall               | places states-shape | | dimensions channel_id \
    replica_groups constrain_layout
collective-broadcast     any collectivebroadcast    | places side-effect states-shape | | channel_id \
    replica_groups has_dynamic_root
collective-permute       any collectivepermute      | places states-shape | source_target_pairs | channel_id \
    slice_sizes
collective-permute-done  1   collectivepermute      | places finishes side-effect states-shape late
collective-permute-start any collectivepermute      | places starts side-effect states-shape late | \
    source_target_pairs | channel_id slice_sizes
ragged-all-to-all        any raggedalltoall         | places states-shape | | dimensions channel_id \
    replica_groups
reduce-scatter           any reducescatter          | applies combines states-shape | to_apply dimensions | \
    channel_id replica_groups constrain_layout mode use_global_device_ids
[host transfer]
infeed                   1   infeed                 | places side-effect undetermined states-shape | | \
    infeed_config
outfeed                  2   outfeed                | places side-effect states-shape | | outfeed_config \
    outfeed_shape
recv                     1   recv                   | places side-effect undetermined states-shape | | \
    channel_id is_host_transfer
recv-done                1   recv                   | places side-effect states-shape | | channel_id \
    is_host_transfer
send                     2   send                   | places side-effect states-shape | | channel_id \
    is_host_transfer
send-done                1   send                   | places side-effect states-shape | | channel_id \
    is_host_transfer
[random]
rng                      any rngnormal              | makes side-effect undetermined states-shape costly | \
    distribution
rng-bit-generator        1   rngbitgenerator        | makes states-shape costly | algorithm
rng-get-and-update-state 0   hlo_opcode.h           | makes side-effect undetermined states-shape | delta
[library]
batch-norm-grad          5   batchnormgrad          | rounds root | epsilon feature_index
batch-norm-inference     5   batchnorminference     | rounds root | epsilon feature_index
batch-norm-training      3   batchnormtraining      | rounds root | epsilon feature_index
cholesky                 1   cholesky               | rounds root | | lower
custom-call              any customcall             | jumps undetermined states-shape | custom_call_target | \
    api_version called_computations custom_call_has_side_effect literal operand_layout_constraints \
    output_to_operand_aliasing padding_type schedule to_apply window dim_labels feature_group_count \
    batch_group_count operand_precision
fft                      1   fft                    | rounds | fft_type fft_length
triangular-solve         2   triangularsolve        | rounds | | left_side lower transpose_a unit_diagonal
"""
