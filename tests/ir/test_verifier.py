"""What the verifier finds, and that it finds nothing in valid programs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hlotool.errors import VerificationError
from hlotool.ir.arrays import Literal
from hlotool.ir.attributes import BufferDonor, EntryLayout, Ints, ParameterAlias
from hlotool.ir.builder import Builder, array
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.types import TOKEN, TupleShape
from hlotool.ir.verification.findings import FORMAL_RULES
from hlotool.ir.verifier import VerifyOptions, verify, verify_or_raise, verify_to_execute
from hlotool.parser.reader import parse_module

F32 = array("f32", 4)


def rules(module: Module, options: VerifyOptions | None = None) -> list[str]:
    """Broken rules in the order found."""
    return [finding.rule for finding in verify(module, options)]


def chain() -> tuple[Builder, Instruction, Instruction]:
    """A parameter and its negation."""
    b = Builder("e")
    x = b.parameter(0, F32)
    return b, x, b.op("negate", x)


# ---- findings


def test_all_findings_are_reported_with_place_and_rule() -> None:
    module = parse_module(
        "HloModule m\n"
        "ENTRY e {\n"
        "  x = f32[4] parameter(0)\n"
        "  y = f32[5] negate(x)\n"
        "  ROOT z = s32[4] add(x, y)\n"
        "}\n",
        "program.hlo",
    )
    first, second = verify(module)
    assert str(first) == "program.hlo:4: y: negate must give f32[4], not f32[5] [shape-mismatch]"
    assert (second.instruction, second.rule) == ("z", "implicit-broadcast")
    with pytest.raises(VerificationError, match="negate must give"):
        verify_or_raise(module)


def test_valid_modules_have_no_findings() -> None:
    b, x, y = chain()
    module = b.build_module(b.op("add", x, y))
    assert verify(module) == []
    verify_or_raise(module)


# ---- the graph


def test_operands_stand_before_their_use() -> None:
    b, _, y = chain()
    module = b.build_module(y)
    module.entry.instructions.reverse()
    assert rules(module) == ["operand-order"]


def test_cycles_are_found() -> None:
    b, _, y = chain()
    z = b.op("negate", y)
    y.operands = (z,)
    assert rules(b.build_module(z)) == ["operand-order"]


def test_operands_are_of_the_same_computation() -> None:
    _, stranger, _ = chain()
    b, x, _ = chain()
    assert rules(b.build_module(b.op("add", x, stranger))) == ["operand-computation"]


def test_control_predecessors_too() -> None:
    _, stranger, _ = chain()
    b, x, y = chain()
    y.control_predecessors = (stranger,)
    x.control_predecessors = (y,)
    assert rules(b.build_module(y)) == ["control-order", "control-computation"]


def test_names_are_unique() -> None:
    b, x, y = chain()
    y.name = x.name
    assert rules(b.build_module(y)) == ["instruction-name"]
    c, _, _ = chain()
    d, _, _ = chain()
    c.name = d.name
    caller = Builder("e")
    caller.op("call", caller.parameter(0, F32), to_apply=c.build())
    assert rules(caller.build_module()) == ["computation-name"]


def test_the_root_is_a_member() -> None:
    _, stranger, _ = chain()
    b, _, _ = chain()
    assert rules(b.build_module(stranger)) == ["root"]


@pytest.mark.parametrize("numbers", [(0, 2), (0, 0), (0, None), (-1, 0)])
def test_parameters_are_dense(numbers: tuple[int | None, ...]) -> None:
    b = Builder("e")
    for number in numbers:
        b.add(Instruction("p", "parameter", F32, parameter_number=number))
    assert set(rules(b.build_module())) == {"parameter-number"}


def test_callees_belong_to_the_module() -> None:
    b, x, y = chain()
    callee, _, _ = chain()
    root = b.op("call", x, to_apply=callee.build())
    module = b.build_module(root)
    module.computations = [module.entry]
    assert rules(module) == ["unknown-computation"]
    assert y.name == "negate"


def test_nobody_calls_itself_or_the_entry() -> None:
    b, x, _ = chain()
    computation = b.build()
    b.op("call", x, to_apply=computation)
    computation.root = b.instructions[-1]
    assert rules(Module("m", [computation], computation)) == ["entry", "recursion"]


def test_the_entry_is_one_of_the_computations() -> None:
    b, _, _ = chain()
    entry = b.build()
    assert rules(Module("m", [], entry)) == ["entry"]
    assert rules(Module("", [entry], entry)) == ["module-name"]


# ---- instructions


def test_opcodes_and_attributes_must_exist() -> None:
    b, x, y = chain()
    y.opcode = "frobnicate"
    assert rules(b.build_module(y)) == ["unknown-opcode"]
    y.opcode, y.attributes = "negate", {"dimensions": (0,)}
    assert rules(b.build_module(y)) == ["attribute-unknown"]
    assert x.opcode == "parameter"


def test_required_attributes_must_be_there() -> None:
    b = Builder("e")
    x = b.parameter(0, array("f32", 4))
    b.op("reduce-precision", x, shape=F32, exponent_bits=5)
    assert rules(b.build_module()) == ["attribute-missing", "attribute-missing"]


def test_constants_have_a_value_of_their_shape() -> None:
    b = Builder("e")
    c = b.constant([1, 2], "f32")
    assert c.literal is not None
    c.literal = Literal(array("f32", 3), None)
    assert rules(b.build_module()) == ["literal"]
    c.literal = None
    assert rules(b.build_module()) == ["literal"]


def test_operand_counts() -> None:
    b, x, y = chain()
    y.operands = (x, x)
    (finding,) = verify(b.build_module(y))
    assert (finding.rule, finding.message) == ("operand-count", "negate takes 1 operands, not 2")


# ---- texts that break one rule each: what XLA's verifier rejects, and its parser does not

BROKEN: dict[str, tuple[str, str]] = {
    "layout": ("", "ROOT r = f32[2,3]{1,1} parameter(0)"),
    "sharding": ("", "ROOT r = f32[2,3] parameter(0), sharding={devices=[2]<=[2]}"),
    "aliasing": (
        "",
        'x = f32[4] parameter(0)\nROOT r = s32[4] custom-call(x), custom_call_target="f", '
        "output_to_operand_aliasing={{}: (0, {})}",
    ),
    "fusion": (
        "f { a = f32[4] parameter(0) b = f32[4] abs(a) ROOT c = f32[4] negate(a) }",
        "x = f32[4] parameter(0)\nROOT r = f32[4] fusion(x), kind=kLoop, calls=f",
    ),
    "execution-thread": (
        'f { a = f32[4] parameter(0) ROOT c = f32[4] negate(a) }, execution_thread="host"',
        "x = f32[4] parameter(0)\nROOT r = f32[4] fusion(x), kind=kLoop, calls=f",
    ),
    "composite": (
        "f { a = f32[4] parameter(0) ROOT c = f32[4] negate(a) }",
        "x = f32[4] parameter(0)\nROOT r = f32[4] call(x), to_apply=f, is_composite=true",
    ),
    "async-pair": (
        "",
        "x = (f32[4], f32[4], u32[]) parameter(0)\nROOT r = f32[4] copy-done(x)",
    ),
    "async-users": ("", "x = f32[4] parameter(0)\nROOT r = (f32[4], f32[4], u32[]) copy-start(x)"),
    "collective-layout": (
        "",
        "x = f32[2,3]{1,0} parameter(0)\ny = f32[2,3]{0,1} parameter(1)\n"
        "ROOT r = (f32[2,3], f32[2,3]) all-to-all(x, y), replica_groups={{0,1}}",
    ),
    "async-computation": (
        "f { a = f32[4] parameter(0) b = f32[4] abs(a) ROOT c = f32[4] negate(b) }",
        "x = f32[4] parameter(0)\ns = ((f32[4]), f32[4], u32[]) async-start(x), calls=f\n"
        "ROOT r = f32[4] async-done(s)",
    ),
    "constrain-layout": (
        "f { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }",
        "x = f32[4] parameter(0)\ny = f32[4] all-reduce(x), to_apply=f, constrain_layout=true\n"
        "ROOT r = f32[4] all-reduce(y), to_apply=f",
    ),
}


@pytest.mark.parametrize("rule", BROKEN)
def test_broken_rules(rule: str) -> None:
    callees, body = BROKEN[rule]
    assert rules(parse_module(f"HloModule m\n{callees}\nENTRY e {{\n{body}\n}}\n")) == [rule]


@pytest.mark.parametrize("rule", BROKEN)
def test_what_execution_does_not_depend_on_is_no_error_there(rule: str) -> None:
    callees, body = BROKEN[rule]
    module = parse_module(f"HloModule m\n{callees}\nENTRY e {{\n{body}\n}}\n")
    if rule in FORMAL_RULES:
        assert [finding.rule for finding in verify_to_execute(module)] == [rule]
    else:
        with pytest.raises(VerificationError, match=re.escape(f"[{rule}]")):
            verify_to_execute(module)


def test_each_formal_rule_has_a_case() -> None:
    assert set(BROKEN) >= FORMAL_RULES


@pytest.mark.parametrize(
    ("attributes", "valid"),
    [
        ("replica_groups={}", True),
        ("replica_groups={{0,1},{2,3}}", True),
        ("replica_groups=[2,2]<=[4]", True),
        ("replica_groups={{0,1}}", False),
        ("replica_groups={{0,1},{2,2}}", False),
        ("replica_groups={{0,1},{2,4}}", False),
        ("replica_groups={{0,1,2,3},{}}", False),
        ("channel_id=1, use_global_device_ids=true, replica_groups={{0,1},{2,3},{4,5},{6,7}}", True),
        ("channel_id=1, use_global_device_ids=true, replica_groups={{0,1},{2,3}}", False),
        ("channel_id=1, use_global_device_ids=true, replica_groups={}", False),
    ],
)
def test_replica_groups(attributes: str, valid: bool) -> None:
    """Four replicas of two partitions."""
    text = f"""
    HloModule m, replica_count=4, num_partitions=2
    f {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }}
    ENTRY e {{
      x = f32[4] parameter(0)
      ROOT r = f32[4] all-reduce(x), to_apply=f, {attributes}
    }}"""
    assert (rules(parse_module(text)) == []) is valid
    assert set(rules(parse_module(text))) <= {"replica-groups"}


@pytest.mark.parametrize(
    ("opcode", "result", "attributes", "rule"),
    [
        ("all-gather", "f32[8]", "dimensions={0}, replica_groups={{0,1},{2,3}}", None),
        ("all-gather", "f32[16]", "dimensions={0}, replica_groups={{0,1},{2,3}}", "replica-groups"),
        ("all-gather", "f32[16]", "dimensions={0}, channel_id=1, replica_groups={{0,1},{2,3}}", None),
        ("all-gather", "f32[8]", "dimensions={0}, replica_groups={{0,1,2},{3}}", "replica-groups"),
        ("reduce-scatter", "f32[2]", "to_apply=f, dimensions={0}, replica_groups={{0,1},{2,3}}", None),
        (
            "reduce-scatter",
            "f32[1]",
            "dimensions={0}, replica_groups={{0,1},{2,3}}, to_apply=f",
            "replica-groups",
        ),
        ("all-gather", "f32[8]", "dimensions={0}, replica_groups={}", "replica-groups"),
        ("all-gather", "f32[16]", "dimensions={0}, replica_groups={}", None),
        ("all-gather-start", "(f32[4], f32[16])", "dimensions={0}, replica_groups={}", None),
        ("all-gather-start", "(f32[4], f32[8])", "dimensions={0}, replica_groups={}", "replica-groups"),
        ("reduce-scatter", "f32[2]", "to_apply=f, dimensions={0}, replica_groups={}", "replica-groups"),
        ("all-to-all", "f32[4]", "dimensions={0}, replica_groups={}", None),
        ("all-to-all", "f32[4]", "dimensions={0}, replica_groups={{0,1,2},{3}}", "replica-groups"),
        ("all-to-all", "(f32[4])", "replica_groups={{0,1},{2,3}}", "operand-count"),
        ("collective-permute", "f32[4]", "source_target_pairs={{0,1},{1,0}}", None),
        ("collective-permute", "f32[4]", "source_target_pairs={{0,1},{0,2}}", "replica-groups"),
        ("collective-permute", "f32[4]", "source_target_pairs={{0,4}}", "replica-groups"),
        ("collective-permute", "f32[4]", "channel_id=1, source_target_pairs={{0,2}}", "replica-groups"),
    ],
)
def test_shards_fit_the_groups(opcode: str, result: str, attributes: str, rule: str | None) -> None:
    """Four replicas of two partitions."""
    text = f"""
    HloModule m, replica_count=4, num_partitions=2
    f {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }}
    ENTRY e {{
      x = f32[4] parameter(0)
      ROOT r = {result} {opcode}(x), {attributes}
    }}"""
    assert set(rules(parse_module(text))) == ({rule} if rule else set())


@pytest.mark.parametrize(
    ("offsets", "pairs", "valid"),
    [
        ("(s32[], s32[])", "{{0,1},{1,0}}", True),
        ("((s32[], s32[]), (s32[], s32[]))", "{{0,1},{0,1}}", True),
        ("((s32[], s32[]), (s32[], s32[]))", "{{0,1},{0,1},{0,1}}", False),
        ("(s32[])", "{{0,1}}", False),
        ("s32[2]", "{{0,1}}", False),
    ],
)
def test_in_place_permutes(offsets: str, pairs: str, valid: bool) -> None:
    text = f"""
    HloModule m, replica_count=2
    ENTRY e {{
      x = f32[4,4] parameter(0)
      o = {offsets} parameter(1)
      ROOT r = f32[4,4] collective-permute(x, x, o, o), source_target_pairs={pairs}, slice_sizes={{{{2,2}}}}
    }}"""
    assert (rules(parse_module(text)) == []) is valid


def test_in_place_permutes_of_tuples() -> None:
    text = """
    HloModule m, replica_count=2
    ENTRY e {
      x = (f32[4,4], s8[3]) parameter(0)
      o = %s parameter(1)
      ROOT r = (f32[4,4], s8[3]) collective-permute(x, x, o, o), source_target_pairs={{0,1}},
        slice_sizes={{2,2}}
    }"""
    assert rules(parse_module(text % "((s32[], s32[]), (s32[]))")) == []
    assert set(rules(parse_module(text % "((s32[], s32[]))"))) == {"shape-mismatch"}


def test_host_transfers_of_one_channel_are_alike() -> None:
    text = """
    HloModule m
    ENTRY e {
      x = f32[4] parameter(0)
      t = token[] after-all()
      a = (f32[4], u32[], token[]) send(x, t), channel_id=1, is_host_transfer=true
      b = token[] send-done(a), channel_id=1, is_host_transfer=true
      c = (f32[%d], u32[], token[]) recv(b), channel_id=%d, is_host_transfer=true
      ROOT d = (f32[%d], token[]) recv-done(c), channel_id=%d, is_host_transfer=true
    }"""
    assert rules(parse_module(text % (4, 2, 4, 2))) == []
    assert rules(parse_module(text % (4, 1, 4, 1))) == ["channel"]


def test_channels_agree() -> None:
    """The parser refuses these; passes can make them."""
    text = """
    HloModule m
    ENTRY e {
      t = token[] after-all()
      s = (f32[4], u32[], token[]) recv(t), channel_id=1
      ROOT r = (f32[4], token[]) recv-done(s), channel_id=1
    }"""
    module = parse_module(text)
    module.entry.root.attributes = {"channel_id": 2}
    assert rules(module) == ["channel"]
    module.entry.root.attributes = {"channel_id": 1, "is_host_transfer": True}
    assert rules(module) == ["channel"]


def test_global_ids_need_a_channel() -> None:
    b = Builder("e")
    x = b.parameter(0, F32)
    inner = Builder("f")
    inner.op("add", inner.parameter(0, array("f32")), inner.parameter(1, array("f32")))
    b.op("all-reduce", x, to_apply=inner.build(), use_global_device_ids=True)
    assert rules(b.build_module()) == ["replica-groups"]


def test_composites_have_a_name() -> None:
    text = """
    HloModule m
    f { a = f32[4] parameter(0) ROOT c = f32[4] negate(a) }
    ENTRY e {
      x = f32[4] parameter(0)
      ROOT r = f32[4] call(x), to_apply=f, is_composite=true,
        frontend_attributes={composite.name="n",composite.version="%s"}
    }"""
    assert rules(parse_module(text % "1")) == []
    assert rules(parse_module(text % "x")) == ["composite"]


BUFFERS = """
HloModule m
ENTRY e {
  x = f32[4] parameter(0)
  b = b(f32[4]) custom-call(x), custom_call_target="Pin", output_to_operand_aliasing={{}: (0, {})}
  c = b(f32[4]) custom-call(b), custom_call_target="write", output_to_operand_aliasing={{}: (0, {})}
  ROOT r = f32[4] custom-call(c), custom_call_target="Unpin", output_to_operand_aliasing={{}: (0, {})}
}"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ('custom-call(c), custom_call_target="Unpin"', 'custom-call(b), custom_call_target="Unpin"'),
        ('"write", output_to_operand_aliasing={{}: (0, {})}', '"write"'),
        ("  ROOT r", "  d = b(f32[4]) copy(c)\n  ROOT r"),
        (
            'b(f32[4]) custom-call(x), custom_call_target="Pin"',
            'b(f32[5]) custom-call(x), custom_call_target="Pin"',
        ),
        ('"Pin", output_to_operand_aliasing={{}: (0, {})}', '"Pin"'),
        ('custom-call(x), custom_call_target="Pin"', 'custom-call(x), custom_call_target="CreateBuffer"'),
    ],
)
def test_buffers_have_one_writer(old: str, new: str) -> None:
    found = rules(parse_module(BUFFERS.replace(old, new) if old else BUFFERS))
    assert ("buffer" in found) is bool(old)


@pytest.mark.parametrize(
    ("body", "valid"),
    [
        ("ROOT r = b(f32[4]) custom-call(p), {write}", True),
        ("w = b(f32[4]) custom-call(p), {write}\n  ROOT r = b(f32[4]) custom-call(p), {write}", False),
        ("t = (b(f32[4])) tuple(p)\n  ROOT r = b(f32[4]) get-tuple-element(t), index=0", True),
    ],
)
def test_buffers_in_loops(body: str, valid: bool) -> None:
    """What a loop carries is written by its body, so nobody else may write it."""
    write = 'custom_call_target="w", output_to_operand_aliasing={{}: (0, {})}'
    text = f"""
    HloModule m
    c {{ p = b(f32[4]) parameter(0) ROOT q = pred[] constant(true) }}
    b {{
      p = b(f32[4]) parameter(0)
      {body.format(write=write)}
    }}
    ENTRY e {{
      x = b(f32[4]) custom-call(), custom_call_target="CreateBuffer"
      w = b(f32[4]) while(x), condition=c, body=b
      ROOT r = f32[4] custom-call(w), {write.replace('"w"', '"Unpin"')}
    }}"""
    assert (rules(parse_module(text)) == []) is valid


def test_entry_parameters_are_no_buffers() -> None:
    text = """
    HloModule m
    ENTRY e {
      p = (b(f32[4])) parameter(0)
      g = b(f32[4]) get-tuple-element(p), index=0
      ROOT r = f32[4] custom-call(g), custom_call_target="Unpin", output_to_operand_aliasing={{}: (0, {})}
    }"""
    assert rules(parse_module(text)) == ["buffer"]


def test_operands_of_all_to_all_have_one_layout() -> None:
    text = """
    HloModule m, replica_count=2
    ENTRY e {
      x = f32[4,4]{1,0} parameter(0)
      y = f32[4,4]{%s} parameter(1)
      ROOT r = (f32[4,4], f32[4,4]) all-to-all(x, y), replica_groups={{0,1}}
    }"""
    assert rules(parse_module(text % "1,0")) == []
    assert rules(parse_module(text % "0,1")) == ["collective-layout"]


def test_loops_and_branches_are_sharded_alike() -> None:
    text = """
    HloModule m, num_partitions=2
    c { a = f32[4] parameter(0) ROOT b = pred[] constant(true) }
    b { a = f32[4] parameter(0) ROOT b = f32[4] negate(a), sharding=%s }
    ENTRY e {
      x = f32[4] parameter(0)
      ROOT r = f32[4] while(x), condition=c, body=b, sharding={replicated}
    }"""
    assert rules(parse_module(text % "{replicated}")) == []
    assert rules(parse_module(text % "{maximal device=1}")) == ["sharding"]


# ---- the header


def entry_of_two() -> tuple[Builder, TupleShape]:
    """(x, y) -> (x, y)."""
    b = Builder("e")
    x, y = b.parameter(0, F32, "x"), b.parameter(1, array("s32", 2), "y")
    b.op("tuple", x, y)
    return b, TupleShape((F32, array("s32", 2)))


def test_entry_layout_says_what_the_entry_is() -> None:
    b, result = entry_of_two()
    good = EntryLayout((F32, array("s32", 2)), result)
    assert rules(b.build_module(entry_computation_layout=good)) == []
    for layout in (
        EntryLayout((F32, array("s32", 2)), F32),
        EntryLayout((F32,), result),
        EntryLayout((F32, F32), result),
    ):
        assert rules(b.build_module(entry_computation_layout=layout)) == ["entry-layout"]


@pytest.mark.parametrize(
    ("output", "parameter", "index", "valid"),
    [
        ((0,), 0, (), True),
        ((1,), 0, (), False),
        ((2,), 0, (), False),
        ((), 0, (), False),
        ((0,), 2, (), False),
        ((0,), -1, (), False),
        ((0,), 0, (0,), False),
    ],
)
def test_aliases_join_equal_arrays(output: Ints, parameter: int, index: Ints, valid: bool) -> None:
    b, _ = entry_of_two()
    alias = ParameterAlias(output, parameter, index, "must-alias")
    assert (rules(b.build_module(input_output_alias=(alias,))) == []) is valid


def test_aliases_and_donors_name_each_part_once() -> None:
    b, _ = entry_of_two()
    first, second = ParameterAlias((0,), 0, ()), ParameterAlias((1,), 0, ())
    assert rules(b.build_module(input_output_alias=(first, second))) == ["input-output-alias"]
    assert rules(b.build_module(input_output_alias=(first, first))) == ["input-output-alias"] * 2
    donors = (BufferDonor(0, ()), BufferDonor(2, ()))
    assert rules(b.build_module(input_output_alias=(first,), buffer_donor=donors)) == ["buffer-donor"] * 2
    assert rules(b.build_module(buffer_donor=(BufferDonor(1, ()),))) == []


def test_device_counts_are_positive() -> None:
    b, _ = entry_of_two()
    assert rules(b.build_module(replica_count=0)) == ["replica-count"]


# ---- no false findings


def test_corpus_is_valid(corpus: Path) -> None:
    """Modules of one opcode each; whole dumps are in the slow run."""
    for path in sorted(corpus.glob("modules/*.hlo")):
        assert verify(parse_module(path.read_text(encoding="utf-8"), str(path))) == []


@pytest.mark.parametrize(
    "path", sorted(Path(__file__).parents[2].glob("corpus/malformed/verifier/*.hlo")), ids=str
)
def test_malformed_corpus_is_refused(path: Path) -> None:
    assert verify(parse_module(path.read_text(encoding="utf-8"), str(path)))


@pytest.mark.slow
def test_dumps_of_the_corpus_are_valid(corpus: Path) -> None:
    paths = [
        p
        for p in sorted(corpus.rglob("*.txt"))
        if "found" not in p.parts and "HloModule" in p.read_text(errors="replace", encoding="utf-8")[:50]
    ]
    assert paths
    for path in paths:
        assert verify(parse_module(path.read_text(encoding="utf-8"), str(path))) == []


@pytest.mark.slow
def test_real_models_are_valid(shared: Path) -> None:
    for path in (
        *sorted((shared / "hlo" / "models").rglob("*.txt")),
        *sorted((shared / "dumps").rglob("*.txt")),
    ):
        assert verify(parse_module(path.read_text(encoding="utf-8"), str(path))) == []


def test_tokens_have_no_sharding_to_check() -> None:
    text = (
        "HloModule m\nENTRY e { ROOT t = token[] after-all(), sharding={{replicated}, {maximal device=0}} }"
    )
    module = parse_module(text)
    assert module.entry.root.shape == TOKEN
    assert rules(module) == []
    assert isinstance(module.entry, Computation)
