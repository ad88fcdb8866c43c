"""Programs with the attributes that the corpus does not have, as XLA prints them."""

from __future__ import annotations

_ADD = """%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}

"""
_NEGATE = """%callee (a: f32[8]) -> f32[8] {
  %a = f32[8]{0} parameter(0)
  ROOT %n = f32[8]{0} negate(%a)
}

"""

#: Name, called computations, body of the entry; `%x` is `f32[8]`.
_ENTRIES = (
    ("channel", _ADD, "f32[8]{0} all-reduce(%x), channel_id=3, replica_groups={{0,1}}, to_apply=%add"),
    (
        "constrained",
        _ADD,
        "f32[8]{0} all-reduce(%x), replica_groups={}, constrain_layout=true, to_apply=%add",
    ),
    (
        "global_ids",
        _ADD,
        "f32[8]{0} all-reduce(%x), channel_id=1, replica_groups=[2,4]<=[4,2]T(1,0), "
        "use_global_device_ids=true, to_apply=%add",
    ),
    (
        "gathered",
        "",
        "f32[16]{0} all-gather(%x), channel_id=1, replica_groups=[1,2]<=[2], dimensions={0}, "
        "use_global_device_ids=true",
    ),
    (
        "scattered",
        _ADD,
        "f32[4]{0} reduce-scatter(%x), channel_id=1, replica_groups={{0,1}}, dimensions={0}, "
        "use_global_device_ids=true, to_apply=%add",
    ),
    (
        "mesh_groups",
        _ADD,
        "f32[8]{0} all-reduce(%x), replica_groups=mesh['a'=2,'b'=4]{'b'}, to_apply=%add",
    ),
    ("permuted", "", "f32[8]{0} collective-permute(%x), channel_id=4, source_target_pairs={{0,1},{1,0}}"),
    ("accuracy_mode", "", "f32[8]{0} tanh(%x), result_accuracy={mode=highest}"),
    (
        "accuracy_tolerance",
        "",
        "f32[8]{0} exponential(%x), result_accuracy={tolerance={atol=0.5,rtol=0.25,ulps=2}}",
    ),
    (
        "custom_call",
        "",
        'f32[8]{0} custom-call(%x), custom_call_target="a \\"b\\"\\n", '
        "operand_layout_constraints={f32[8]{0}}, custom_call_has_side_effect=true, "
        "literal=s32[2]{0} {1, -2}, schedule=SCHEDULE_LATEST, "
        "api_version=API_VERSION_TYPED_FFI, backend_config={uplo = 76 : ui8}",
    ),
    (
        "custom_call_convolution",
        "",
        "f32[8]{0} custom-call(%x), window={size=3 stride=2 pad=1_0 lhs_dilate=2 rhs_dilate=3}, "
        "dim_labels=b0f_0io->b0f, feature_group_count=2, batch_group_count=3, operand_precision={highest}, "
        'padding_type=PADDING_SAME, custom_call_target="conv"',
    ),
    (
        "custom_call_labels_unused",
        "",
        'f32[8]{0} custom-call(%x), dim_labels=b?0f_i0o->b0?f, custom_call_target="conv"',
    ),
    (
        "custom_call_aliases",
        "",
        '(f32[8]{0}, f32[8]{0}) custom-call(%x), custom_call_target="t", '
        'output_to_operand_aliasing={{0}: (0, {})}, backend_config="\\000\\377 text"',
    ),
    (
        "custom_call_computations",
        _NEGATE,
        'f32[8]{0} custom-call(%x), custom_call_target="t", called_computations={%callee}',
    ),
    (
        "fusion_aliases",
        _NEGATE,
        "f32[8]{0} fusion(%x), kind=kLoop, output_to_operand_aliasing={{}: (0, {})}, calls=%callee",
    ),
    (
        "composite",
        _NEGATE,
        "f32[8]{0} call(%x), to_apply=%callee, is_composite=true, "
        'frontend_attributes={composite.attributes={n = 1 : i32},composite.name="a.b",composite.version="1"}',
    ),
    ("prefetch", "", "(f32[8]{0}, f32[8]{0}, u32[]) copy-start(%x), cross_program_prefetch_index=0"),
    ("inferred", "", "f32[2,4]{1,0} reshape(%x), inferred_dimension=1"),
    (
        "rhs_precision",
        "",
        "f32[] dot(%x, %x), lhs_contracting_dims={0}, rhs_contracting_dims={0}, "
        "operand_precision={default,highest}, algorithm=dot_bf16_bf16_f32_x3",
    ),
    ("frontend", "", 'f32[8]{0} negate(%x), frontend_attributes={a="x\\"y",b={"k": [1, 2]},c="é"}'),
    ("statistics", "", "f32[8]{0} negate(%x), statistics={visualizing_index=1,nan=0,inf=2.5}"),
    (
        "metadata",
        "",
        'f32[8]{0} negate(%x), metadata={op_type="Neg" op_name="a/b" source_file="f.py" source_line=3 '
        'source_end_line=4 source_column=5 source_end_column=6 profile_type={1,2} deduplicated_name="d" '
        'scheduling_name="s"}',
    ),
    ("sharding_v1", "", "f32[8]{0} negate(%x), sharding={devices=[2]1,0}"),
    (
        "sharding_v2",
        "",
        "f32[8]{0} negate(%x), sharding={devices=[4,2]<=[2,4]T(1,0) last_tile_dim_replicate}",
    ),
    (
        "sharding_subgroups",
        "",
        "f32[8]{0} negate(%x), sharding={devices=[2,2,2]<=[8] last_tile_dims={manual, replicated}}",
    ),
    (
        "sharding_kinds",
        "",
        "(f32[8]{0}, f32[8]{0}, f32[8]{0}) tuple(%x, %x, %x), "
        'sharding={{replicated}, {maximal device=3}, {manual metadata={op_name="m"}}}',
    ),
    ("sharding_group", "", "f32[8]{0} negate(%x), sharding={devices=[2]<=[2] shard_as 7}"),
    ("sharding_unknown", "", "f32[8]{0} negate(%x), sharding={unknown shard_like 2}"),
    ("sharding_unreduced", "", "f32[8]{0} negate(%x), sharding={unreduced}"),
    ("replicated_parameter", "", "f32[8]{0} parameter(1), parameter_replication={true}"),
    ("origin", "", 'f32[8]{0} negate(%x), origin={{"y" {0}}}'),
    (
        "origin_of_tuple",
        "",
        '((f32[8]{0}, f32[8]{0}), f32[8]{0}) parameter(1), origin={(({"y"}, {}), {"z" {1}})}',
    ),
    ("origin_of_nothing", "", "() parameter(1), origin={()}"),
    (
        "twice_called",
        _ADD,
        'f32[8]{0} custom-call(%x), custom_call_target="a", called_computations={%add, %add}',
    ),
    ("tiled_layout", "", "f32[8]{0:T(8,128)(2,1)S(5)} copy(%x)"),
    ("split_layout", "", "f32[8]{0:T(8)SC(0:4)} copy(%x)"),
    ("packed_layout", "", "s4[8]{0:E(4)} convert(%x)"),
    ("control", "", "f32[8]{0} negate(%x), control-predecessors={%x}"),
)

_INFEED = """HloModule infeed

ENTRY %main (t: token[]) -> token[] {
  %t = token[] parameter(0)
  %i = ((f32[3]{0}, pred[]), token[]) infeed(%t), infeed_config="a\\001b"
  %v = (f32[3]{0}, pred[]) get-tuple-element(%i), index=0
  ROOT %o = token[] outfeed(%v, %t), outfeed_shape=(f32[3]{0}, pred[]), outfeed_config="c"
}
"""

_ASYNC = """HloModule asynchronous

%wrapped (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  %n = f32[8]{0} negate(%p)
  ROOT %m = f32[8]{0} abs(%n)
}, execution_thread="side"

ENTRY %main (x: f32[8]) -> f32[8] {
  %x = f32[8]{0} parameter(0)
  %start = ((f32[8]{0}), f32[8]{0}, s32[]) async-start(%x), async_execution_thread="side", calls=%wrapped
  %update = ((f32[8]{0}), f32[8]{0}, s32[]) async-update(%start)
  ROOT %done = f32[8]{0} async-done(%update)
}
"""

_IN_PLACE = """HloModule in_place

ENTRY %main (a: f32[8], b: f32[8]) -> f32[8] {
  %a = f32[8]{0} parameter(0)
  %b = f32[8]{0} parameter(1)
  %c = s32[] constant(0)
  %t = (s32[]) tuple(%c)
  ROOT %r = f32[8]{0} collective-permute(%a, %b, %t, %t), channel_id=1, source_target_pairs={{0,1}}, \
slice_sizes={{4}}
}
"""

_HEADER = """HloModule header, is_scheduled=true, \
input_output_alias={ {0}: (1, {}, must-alias), {1}: (0, {}) }, \
entry_computation_layout={(f32[8]{0}, f32[8]{0})->(f32[8]{0}, f32[8]{0})}, frontend_attributes={a="1",b={c}}

ENTRY %main (x: f32[8], y: f32[8]) -> (f32[8], f32[8]) {
  %y = f32[8]{0} parameter(1)
  %x = f32[8]{0} parameter(0)
  %n = f32[8]{0} negate(%y)
  %m = f32[8]{0} negate(%x)
  ROOT %t = (f32[8]{0}, f32[8]{0}) tuple(%n, %m)
}
"""

_DONOR = """HloModule donor, buffer_donor={ (0, {}), (1, {0}) }

ENTRY %main (x: f32[8], y: (f32[8])) -> f32[8] {
  %x = f32[8]{0} parameter(0)
  %y = (f32[8]{0}) parameter(1)
  ROOT %n = f32[8]{0} negate(%x)
}
"""

_DOMAIN = """HloModule domains

ENTRY %main (x: f32[8]) -> f32[8] {
  %x = f32[8]{0} parameter(0)
  ROOT %d = f32[8]{0} domain(%x), domain={kind="sharding", entry={maximal device=1}, exit={replicated}}
}
"""


def _program(name: str, called: str, root: str) -> str:
    head = f"HloModule {name}\n\n{called}ENTRY %main {{\n  %x = f32[8]{{0}} parameter(0)\n"
    return f"{head}  ROOT %r = {root}\n}}\n"


PROGRAMS: dict[str, str] = {name: _program(name, called, root) for name, called, root in _ENTRIES} | {
    "infeed": _INFEED,
    "asynchronous": _ASYNC,
    "in_place": _IN_PLACE,
    "header": _HEADER,
    "donor": _DONOR,
    "domain": _DOMAIN,
}
