"""Instructions: operands in every form, asynchronous operations, rules that building them needs."""

from __future__ import annotations

import pytest
from support.hlo_text import COMPUTATIONS, instruction, program, rejected

from hlotool.ir.opcodes import OPCODES
from hlotool.ir.types import TupleShape
from hlotool.parser.reader import parse_module, parse_shape

X = "x = f32[2] parameter(0)"


def refusal(*lines: str) -> str:
    """Why such an entry is refused; COMPUTATIONS are defined."""
    return rejected(program(*lines, computations=COMPUTATIONS)).message


# Operands


@pytest.mark.parametrize(
    "operands",
    [
        "x, x",
        "%x, x",
        "f32[2] x, f32[2]{0} %x",
        "/*index=0*/x,/*index=1*/ x",
        "x // }\n, x",
        "f32[2]{0:S(5)}x,x",
        "x,, x",
        "x, x, ,",
        ",/*index=1*/ ,x, f32[2] x,",
    ],
)
def test_operands(operands: str) -> None:
    found = instruction(X, f"y = f32[2] add({operands})")
    assert [o.name for o in found.operands] == ["x", "x"]


def test_instructions_may_stand_where_operands_do() -> None:
    module = parse_module(program(X, "y = f32[2] add(negate(x), f32[2] add(f32[2] abs(x), x))"))
    assert [(i.name, i.opcode, [o.name for o in i.operands]) for i in module.entry.instructions] == [
        ("x", "parameter", []),
        ("negate.anon", "negate", ["x"]),
        ("abs.anon", "abs", ["x"]),
        ("add.anon", "add", ["abs.anon", "x"]),
        ("y", "add", ["negate.anon", "add.anon"]),
    ]
    assert module.entry.instructions[1].shape == parse_shape("f32[2]")


def test_names_of_instructions_without_one_are_free() -> None:
    module = parse_module(
        program("negate.anon = f32[2] parameter(0)", "y = f32[2] add(negate(negate.anon), abs(negate.anon))")
    )
    assert [i.name for i in module.entry.instructions] == ["negate.anon", "negate.anon.1", "abs.anon", "y"]


@pytest.mark.parametrize(
    ("line", "shape"),
    [
        ("y = negate(x)", "f32[2]"),
        ("y = compare(x, x), direction=LT", "pred[2]"),
        ("y = reduce(x, c), dimensions={0}, to_apply=add", "f32[]"),
        ("y = tuple(x, c)", "(f32[2], f32[])"),
    ],
)
def test_shapes_that_are_left_out_are_inferred(line: str, shape: str) -> None:
    lines = (X, "c = f32[] constant(0)", line)
    assert instruction(*lines, computations=COMPUTATIONS).shape == parse_shape(shape)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("y = reshape(x)", "y: the shape of reshape must be written"),
        ("y = iota(), iota_dimension=0", "y: the shape of iota must be written"),
        ("y = add(x)", "y: add takes 2 operands, not 1"),
        ("y = add(x, c)", "y: the shape of add cannot be inferred: "),
    ],
)
def test_shapes_that_cannot_be_inferred(line: str, message: str) -> None:
    assert refusal(X, "c = f32[] constant(0)", line).startswith(message)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("y = f32[2] negate(z)", "y: no instruction before this one is called z"),
        ("y = f32[2] negate(y)", "y: no instruction before this one is called y"),
        ("y = f32[2] negate(f32[3] x)", "y: operand x is f32[2], not f32[3]"),
        ("y = f32[2] negate(f32[2])", "y: an operand has no name"),
        ("y = f32[2] negate(1)", "expected '(', ')', ',', a name, a shape or an opcode, found 1"),
        ("y = f32[2] add(x x)", "expected '(', ')' or ',', found x"),
        ("y = f32[2] add(x,,)", "y: add takes 2 operands, not 1"),
        ("y = f32[2] negate(x", "expected '(', ')' or ',', found '}'"),
        ("y = f32[2] negate", "expected '(', found '}'"),
        ("y = f32[2]", "found '}'"),
        ("y f32[2] negate(x)", "expected '=', found f32"),
        ("y = q8[2] negate(x)", "expected '(', found '[': q8 is not an element type"),
        ("x = f32[2] negate(x)", "x: two instructions are called x"),
        ("ROOT y = f32[2] negate(x) ROOT z = f32[2] negate(x)", "z: two ROOT instructions: y is one already"),
        ("y = f32[2] parameter(0)", "y: two parameters have number 0"),
        ("y = f32[2] parameter(-1)", "y: a parameter number cannot be negative"),
        ("y = f32[2] parameter(x)", "expected an integer, found x"),
        ("y = f32[2] frobnicate(x)", "y: no opcode is called frobnicate"),
    ],
)
def test_wrong_instructions(line: str, message: str) -> None:
    assert message in refusal(X, line)


@pytest.mark.parametrize("opcode", sorted(OPCODES.keys() - {"parameter", "constant"}))
def test_too_many_or_too_few_operands(opcode: str) -> None:
    """Of every opcode that limits them; nothing else is complained about first."""
    row = OPCODES[opcode]
    required = "".join(f", {name}={VALUES.get(name, '{0}')}" for name in row.required)
    shape = "((f32[2]), f32[2])" if opcode.startswith("async") else "f32[2]"
    for count in {row.min_operands - 1, (row.max_operands or -2) + 1} - {-1}:
        line = f"y = {shape} {opcode}({', '.join(['x'] * count)}){required}"
        assert f"y: {opcode} takes " in refusal(X, line), line


#: Values of required attributes that are no lists of numbers.
VALUES = {
    **dict.fromkeys(("calls", "to_apply", "body", "condition", "select", "scatter"), "negated"),
    **dict.fromkeys(("index", "iota_dimension", "index_vector_dim", "feature_index", "num_carries"), "0"),
    **dict.fromkeys(("exponent_bits", "mantissa_bits", "channel_id", "delta", "k", "dimension"), "1"),
    **dict.fromkeys(("is_host_transfer", "lower", "left_side", "unit_diagonal"), "true"),
    "algorithm": "rng_default",
    "called_computations": "{}",
    "custom_call_target": '"a"',
    "dim_labels": "bf_io->bf",
    "direction": "LT",
    "distribution": "rng_uniform",
    "domain": "{kind=\"sharding\", entry={replicated}, exit={replicated}}",
    "epsilon": "0.1",
    "fft_type": "FFT",
    "kind": "kLoop",
    "padding": "0_0",
    "replica_groups": "{}",
    "slice": "{[0:1]}",
    "source_target_pairs": "{}",
    "transpose_a": "TRANSPOSE",
    "window": "{size=1}",
}  # fmt: skip


# Rules of single opcodes


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("y = f32[2] tuple(x)", "a tuple has a tuple shape, not f32[2]"),
        ("y = (f32[2], f32[2]) tuple(x)", "a tuple of 2 elements is given 1 operands"),
        ("y = f32[4] concatenate(x, x), dimensions={0,1}", "dimensions names 2 dimensions, not one"),
        ("y = f32[] reduce(x, x, x), dimensions={0}, to_apply=add", "expected an even number of operands"),
        ("y = f32[1] dynamic-slice(x, x, x), dynamic_slice_sizes={1}", "expected 1 start indices"),
        ("y = f32[2] collective-permute(x), source_target_pairs={{0}}", "is a list of pairs"),
        ("y = f32[2] broadcast(x)", "broadcast needs the attribute dimensions"),
        ("y = f32[2] all-reduce(x), to_apply=add, use_global_device_ids=true", "needs a channel_id"),
        ("y = f32[2] conditional(x, x), branch_computations={negated}", "the first operand is a scalar"),
        (
            'y = f32[2] custom-call(x), custom_call_target="a", operand_layout_constraints={}',
            "1 operands are given 0 layout constraints",
        ),
        (
            'y = f32[2] custom-call(x), custom_call_target="a", operand_layout_constraints={f32[3]{0}}',
            "layout constraint f32[3]{0} does not fit operand x of shape f32[2]",
        ),
        (
            "y = f32[2] parameter(1), parameter_replication={true,false}",
            "has 2 flags, the parameter 1 buffers",
        ),
        ("y = f32[2] infeed(after-all())", "the shape is a non-empty tuple, not f32[2]"),
        ("y = f32[2] collective-permute(x), source_target_pairs={}, slice_sizes={{1}}", "takes 4 operands"),
        ("y = f32[2] conditional(f32[] constant(1)), branch_computations={}", "a scalar of pred or s32"),
        ("y = f32[2] async-start(x), calls=negated", "the shape is ((operands), result, …)"),
    ],
)
def test_rules_of_opcodes(line: str, message: str) -> None:
    assert message in refusal(X, line)


def test_channels_of_a_transfer_agree() -> None:
    send = "s = (f32[2], u32[], token[]) send(x, after-all()), channel_id=1"
    done = "d = token[] send-done(s), channel_id="
    assert instruction(X, send, done + "1").opcode == "send-done"
    assert refusal(X, send, done + "2") == "d: channel_id differs from that of s"


def test_predicated_and_indexed_conditionals() -> None:
    predicate, index = "p = pred[] parameter(1)", "p = s32[] parameter(1)"
    two = "y = f32[2] conditional(p, x, x), "
    predicated = two + "true_computation=negated, false_computation=negated"
    indexed = two + "branch_computations={negated, negated}"
    for chooser, line in ((predicate, predicated), (index, indexed)):
        parse_module(program(X, chooser, line, computations=COMPUTATIONS))
    assert "needs the attribute branch_computations" in refusal(X, index, two[:-2])
    assert 'unexpected attribute "branch_computations"' in refusal(X, predicate, indexed)
    assert "1 branches are given 2 operands" in refusal(X, index, two + "branch_computations={negated}")


# Asynchronous operations

START = "s = ((f32[2]), f32[2], u32[]) {}-start(x)"


def test_asynchronous_operations_written_short() -> None:
    start = (
        START.format("custom-call")
        + ', custom_call_target="a", async_execution_thread="t", metadata={op_name="n"}'
    )
    lines = (
        X,
        start,
        "u = ((f32[2]), f32[2], u32[]) custom-call-update(s)",
        "d = f32[2] custom-call-done(u)",
    )
    module = parse_module(program(*lines))
    assert [i.opcode for i in module.entry.instructions] == [
        "parameter",
        "async-start",
        "async-update",
        "async-done",
    ]
    begun = module.entry.instructions[1]
    (wrapped,) = begun.called
    assert begun.attributes == {"calls": wrapped, "async_execution_thread": "t"}
    assert (wrapped.name, wrapped.execution_thread) == ("async_wrapped", "t")
    assert [(i.name, i.opcode, str(i.shape)) for i in wrapped.instructions] == [
        ("async_param", "parameter", "f32[2]"),
        ("async_op", "custom-call", "f32[2]"),
    ]
    assert wrapped.root.attributes == {"custom_call_target": "a"}
    assert wrapped.root.metadata == begun.metadata


def test_collectives_that_start_are_opcodes_of_their_own() -> None:
    lines = (X, "s = f32[2] all-reduce-start(x), to_apply=add", "d = f32[2] all-reduce-done(s)")
    module = parse_module(program(*lines, computations=COMPUTATIONS))
    assert [i.opcode for i in module.entry.instructions[1:]] == ["all-reduce-start", "all-reduce-done"]


def test_asynchronous_operations_written_long() -> None:
    start = START.format("async") + ', calls=negated, async_execution_thread="t"'
    lines = (X, start, "d = f32[2] async-done(s)")
    module = parse_module(program(*lines, computations=COMPUTATIONS))
    assert isinstance(module.entry.instructions[1].shape, TupleShape)
    assert [c.name for c in module.entry.instructions[1].called] == ["negated"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ((START.format("frob"),), "no opcode is called frob-start, and frob cannot be run so"),
        ((START.format("constant"),), "no opcode is called constant-start, and constant cannot be run so"),
        (("s = f32[2] negate-start(x)",), "the shape is ((operands), result, …)"),
        ((START.format("negate"), "d = f32[2] abs-done(s)"), "s runs negate, not abs"),
        (("d = f32[2] async-done(x)",), "the operand is an asynchronous instruction, not parameter x"),
        (
            (START.format("negate"), 'd = f32[2] async-done(s), async_execution_thread="t"'),
            "async_execution_thread differs from that of s, which is main",
        ),
        ((START.format("negate"), "d = f32[2] async-done(s), calls=negated"), "calls differs from that of s"),
        (
            (START.format("async") + ", calls=negated", "t" + START.format("async")[1:] + ", calls=negated"),
            "computation negated is started by s and by t; an asynchronous computation has one caller",
        ),
    ],
)
def test_wrong_asynchronous_operations(lines: tuple[str, ...], message: str) -> None:
    assert message in refusal(X, *lines)
