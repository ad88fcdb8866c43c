"""HLO text as XLA writes it."""

from __future__ import annotations

import math
import re
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hlotool.ir import printed_literals
from hlotool.ir.arrays import Array, Literal, dtype_of
from hlotool.ir.attributes import BackendConfig, Metadata, OperandAlias, RawText
from hlotool.ir.builder import Builder, array
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.printed_annotations import c_escape, lexes_as_dictionary
from hlotool.ir.printed_literals import array_text, literal_text, typed_literal_text
from hlotool.ir.printer import SHORT, PrintOptions, legal_name, print_instruction, print_module
from hlotool.ir.types import TOKEN, ArrayShape, ElementType, Layout, TupleShape
from hlotool.parser.reader import parse_literal, parse_module, parse_shape

EVERYTHING = Path(__file__).resolve().parent.parent / "golden" / "ir" / "everything.hlo"


def root_text(line: str, options: PrintOptions | None = None) -> str:
    """How an instruction on `p = f32[4]` and `q = pred[]` is printed."""
    text = f"""
    HloModule m
    same {{ ROOT a = f32[4]{{0}} parameter(0) }}
    ENTRY e {{
      p = f32[4]{{0}} parameter(0)
      q = pred[] parameter(1)
      i = s32[] parameter(2)
      ROOT r = {line}
    }}"""
    return print_instruction(parse_module(text).entry.root, options)


def test_everything_prints_as_xla_prints_it() -> None:
    """The golden file is XLA's own output."""
    assert parse_module(EVERYTHING.read_text(encoding="utf-8")).to_text() == EVERYTHING.read_text(
        encoding="utf-8"
    )


@pytest.mark.parametrize(
    ("line", "printed"),
    [
        ("f32[4] add(p, p), metadata={}", "add(%p, %p)"),
        ("pred[4] compare(p, p), direction=LT, type=FLOAT", "compare(%p, %p), direction=LT"),
        ('f32[4] copy(p), frontend_attributes={b={1},a="x"}', 'copy(%p), frontend_attributes={a="x",b={1}}'),
        ("f32[4] exponential(p), result_accuracy={mode=default}", "exponential(%p)"),
        (
            "f32[4] conditional(i, p, p), branch_computations={same, same}",
            "conditional(%i, %p, %p), branch_computations={%same, %same}",
        ),
        (
            "f32[4] exponential(p), result_accuracy={tolerance={atol=1e-5,rtol=0.25,ulps=3}}",
            "exponential(%p), result_accuracy={tolerance={atol=1e-05,rtol=0.25,ulps=3}}",
        ),
        (
            'f32[4] custom-call(p), custom_call_target="f", backend_config="{\'a\': 1}"',
            "custom-call(%p), custom_call_target=\"f\", backend_config={'a': 1}",
        ),
        (
            'f32[4] custom-call(p), custom_call_target="f", to_apply=same, api_version=API_VERSION_ORIGINAL',
            'custom-call(%p), custom_call_target="f", called_computations={%same}',
        ),
        (
            "f32[4] sort(p), is_stable=false, dimensions={0}, to_apply="
            "{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=GT }",
            "sort(%p), dimensions={0}, to_apply=%_",
        ),
    ],
)
def test_attributes(line: str, printed: str) -> None:
    """XLA's order, and nothing that goes without saying."""
    assert root_text(line).split(" ", 3)[3] == printed


@pytest.mark.parametrize(
    "sharding",
    [
        "{replicated}",
        "{manual}",
        "{unknown}",
        "{unreduced}",
        "{maximal device=3}",
        "{replicated shard_as 1}",
        "{devices=[2,2]0,1,2,3}",
        "{devices=[2,2]<=[4]}",
        "{devices=[4,1]<=[2,2]T(1,0)}",
        "{devices=[2,1,2]<=[4] last_tile_dim_replicate}",
        "{devices=[2,1,2,2]<=[8] last_tile_dims={manual, replicated} shard_like 3}",
        '{devices=[2,2]0,1,2,3 metadata={op_name="a"}}',
        '{devices=[2,2]<=[4] metadata={{op_name="a"}, {op_name="b"}}}',
        "{mesh['x'=2,'y'=2], [{'x'}, {'y', ?}]}",
        "{mesh['x'=4,'y'=2], [{'x':(1)2}, {}], replicated={'x':(2)2}, unreduced={'y'}}",
        "{mesh['x'=2,'y'=2], device_ids=([2,2]T(1,0)), [{'x'}, {}], manual={'y'}}",
        "{mesh['x'=2,'y'=2], device_ids=(3,2,1,0), [{}, {}]}",
        "{mesh['x'=2], unreduced}",
        "{mesh[], replicated}",
        "{maximal_mesh[device_id=1]}",
        "{{replicated}, {maximal device=0}, {manual}, {manual}, {manual}, /*index=5*/{manual}}",
        "{}",
    ],
)
def test_shardings(sharding: str) -> None:
    assert root_text(f"f32[4] copy(p), sharding={sharding}").endswith(f"copy(%p), sharding={sharding}")


def test_metadata_of_shardings_is_metadata() -> None:
    line = 'f32[4] copy(p), sharding={replicated metadata={op_name="a"}}, metadata={op_name="b"}'
    assert root_text(line, PrintOptions(metadata=False)).endswith("copy(%p), sharding={replicated}")


def test_options() -> None:
    module = parse_module(EVERYTHING.read_text(encoding="utf-8"))
    root = module.entry.root
    assert "metadata" not in print_instruction(root, PrintOptions(metadata=False))
    assert "backend_config" not in print_instruction(root, PrintOptions(backend_config=False))
    assert "\n%add (a: f32[], b: f32[]) -> f32[] {\n  %a" in print_module(module)
    assert print_instruction(root, SHORT).count("\n") == 0


def test_large_constants_can_be_elided() -> None:
    b = Builder("e")
    small, large = b.constant(np.arange(10), "s32"), b.constant(np.arange(11), "s32")
    assert print_instruction(small, SHORT).endswith("constant({0, 1, 2, 3, 4, 5, 6, 7, 8, 9})")
    assert print_instruction(large, SHORT) == "%constant.1 = s32[11] constant({...})"
    assert "10})" in print_instruction(large)


def test_what_was_elided_stays_elided() -> None:
    shape = array("f32", 20)
    assert literal_text(Literal(shape, None, elided=True)) == "{...}"


# ---- names


def test_names_are_unique_and_legal() -> None:
    shape = array("f32", 2)
    names = ("x", "x", "x.1", "f32", "a b", "1st", "__reserved", "")
    parameters = [Instruction(n, "parameter", shape, parameter_number=i) for i, n in enumerate(names)]
    computation = Computation("e", parameters, parameters[0])
    module = Module("my module", [computation], computation)
    printed = [i.name for i in parse_module(print_module(module)).entry.instructions]
    assert printed == ["x", "x.2", "x.1", "f32_", "a_b", "_st", "a_reserved", "_"]
    assert print_module(module).startswith("HloModule my_module\n")


def test_computations_of_one_name_are_told_apart() -> None:
    shape = array("f32", 2)
    callees = []
    for opcode in ("negate", "abs"):
        inner = Builder("f")
        inner.op(opcode, inner.parameter(0, shape))
        callees.append(inner.build())
    b = Builder("e")
    x = b.parameter(0, shape)
    b.op("add", b.op("call", x, to_apply=callees[0]), b.op("call", x, to_apply=callees[1]))
    text = b.build_module().to_text()
    again = parse_module(text)
    called = [c.root.opcode for i in again.entry.instructions for c in i.called]
    assert called == ["negate", "abs"]
    assert "to_apply=%f.1" in text


@pytest.mark.parametrize("name", ["add", "add.1", "a-b_c", "_x", "__xla_y"])
def test_legal_names_stay(name: str) -> None:
    assert legal_name(name) == name


# ---- text


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("plain", "plain"),
        ("a\"b'c\\d", "a\\\"b\\'c\\\\d"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("é\x01", "\\303\\251\\001"),
        ("\udcff", "\\377"),
    ],
)
def test_escapes(text: str, escaped: str) -> None:
    assert c_escape(text) == escaped


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("{}", True),
        ('{"a": "}"}', True),
        ("{a = #b<[1]>}", True),
        ('{"a\\"}": 1}', True),
        ("{", False),
        ("{}}", False),
        ("{} x", False),
        ('{"}', False),
        ("x", False),
        ("", False),
    ],
)
def test_dictionaries_need_no_quotes(text: str, bare: bool) -> None:
    assert lexes_as_dictionary(text) is bare
    b = Builder("e")
    x = b.op("copy", b.parameter(0, TOKEN), backend_config=BackendConfig(text))
    assert print_instruction(x).endswith(f"={text}" if bare else '"')


def test_obsolete_metadata_is_left_out() -> None:
    """XLA rejects the keys it once wrote."""
    b = Builder("e")
    x = b.parameter(0, TOKEN)
    x.metadata = Metadata(op_name="n", obsolete=(("preserve_layout", "true"),))
    assert print_instruction(x).endswith('metadata={op_name="n"}')
    x.metadata = Metadata()
    assert print_instruction(x).endswith("parameter(0)")


def test_unknown_attributes_are_raw_text_or_wrong() -> None:
    b = Builder("e")
    x = b.op("copy", b.parameter(0, TOKEN), future=RawText("{1}"), sharding_hint=RawText("a"))
    assert print_instruction(x).endswith("copy(%parameter), future={1}, sharding_hint=a")
    with pytest.raises(TypeError, match="copy has no attribute dimensions"):
        print_instruction(b.op("copy", x, dimensions=(1,)))


@pytest.mark.parametrize(
    "shape",
    [
        "f32[2,<=3,?]",
        "bf16[8,128]{1,0:T(8,128)(2,1)}",
        "s4[16]{0:T(*,128)L(2)E(4)S(5)}",
        "f32[16]{0:#(u32)*(u64)SC(0:4,8)M(16)}",
        "f32[16]{0:S(1)SC(0:4)(0:8)}",
        "f32[3,4]{1,0:P(f32[12]{0})}",
        "(f32[2]{0}, (token[], opaque[]), ())",
        "b(f32[4]{0})",
    ],
)
def test_shapes_read_back(shape: str) -> None:
    assert str(parse_shape(shape)) == shape


def test_tuple_literals_and_tokens() -> None:
    pair = TupleShape((array("f32", 2), TOKEN))
    literal = Literal(pair, (Literal(array("f32", 2), np.ones(2, np.float32)), Literal(TOKEN, None)))
    assert literal_text(literal) == "( {1, 1}, token )"
    assert typed_literal_text(literal) == "( f32[2] {1, 1}, token[] token )"
    assert literal_text(literal, large=False) == "{...}"


def test_scalars_and_missing_layouts_print_no_braces() -> None:
    assert str(ArrayShape(ElementType.F32, (), layout=Layout(()))) == "f32[]"
    assert str(ArrayShape(ElementType.F32, (2,))) == "f32[2]"
    assert str(ArrayShape(ElementType.F32, (), layout=Layout((), memory_space=5))) == "f32[]{:S(5)}"
    many = TupleShape((TOKEN,) * 6)
    assert str(many) == "(token[], token[], token[], token[], token[], /*index=5*/token[])"


# ---- asynchronous instructions

ASYNC = """
HloModule m
inner {{
  a = f32[4] parameter(0)
  b = f32[4] parameter(1)
  ROOT r = f32[4] {operation}
}}
ENTRY e {{
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  s = ((f32[4], f32[4]), f32[4], u32[]) async-start(x, y), calls=inner{more}
  ROOT d = f32[4] async-done(s)
}}
"""


def test_async_wrappers_that_the_text_implies_are_sugared() -> None:
    text = parse_module(
        ASYNC.format(operation='custom-call(a, b), custom_call_target="f"', more="")
    ).to_text()
    assert 'custom-call-start(%x, %y), custom_call_target="f"\n' in text
    assert "custom-call-done(%s)" in text
    assert "%inner" not in text


@pytest.mark.parametrize(
    ("operation", "more"),
    [
        ("subtract(b, a)", ""),
        ("add(a, a)", ""),
        ('add(a, b), metadata={op_name="inside"}', ', metadata={op_name="outside"}'),
        ('add(a, b), frontend_attributes={k="v"}', ""),
        ("add(n, b)\n  n = f32[4] negate(a)", ""),
    ],
)
def test_async_wrappers_that_say_more_are_written_out(operation: str, more: str) -> None:
    if "\n" in operation:
        first, second = operation.split("\n")
        source = ASYNC.format(operation=first, more=more)
        source = source.replace(f"ROOT r = f32[4] {first}", f"{second.strip()}\n  ROOT r = f32[4] {first}")
    else:
        source = ASYNC.format(operation=operation, more=more)
    text = parse_module(source).to_text()
    assert "async-start(%x, %y), calls=%inner" in text
    assert "async-done(%s)" in text
    assert "%inner (a: f32[4], b: f32[4]) -> f32[4] {" in text


def test_sugar_never_reads_back_as_another_opcode() -> None:
    """`all-gather-start` is an opcode of its own."""
    text = parse_module(
        """
        inner { a = f32[4] parameter(0) ROOT g = f32[8] all-gather(a), dimensions={0} }
        ENTRY e {
          x = f32[4] parameter(0)
          s = ((f32[4]), f32[8], u32[]) async-start(x), calls=inner
          ROOT d = f32[8] async-done(s)
        }
        """
    ).to_text()
    assert "async-start(%x), calls=%inner" in text


# ---- literals


def every_value(element_type: ElementType) -> Array:
    """All values of narrow types, remarkable and random ones of wide types."""
    dtype = dtype_of(element_type)
    if element_type in (ElementType.S1, ElementType.U1, ElementType.PRED):
        return np.array([0, -1 if element_type.is_signed else 1]).astype(dtype)
    if element_type.bits <= 16:
        storage = np.uint16 if element_type.bits == 16 else np.uint8
        return np.arange(1 << element_type.value_bits, dtype=storage).view(dtype)
    generator = np.random.default_rng(7)
    patterns = np.frombuffer(generator.bytes(600 * dtype.itemsize), dtype=dtype)
    if element_type.is_integer:
        limits = np.iinfo(dtype)
        return np.concatenate([patterns, np.array([limits.min, limits.max, 0], dtype)])
    limit = np.finfo(dtype)
    special = [limit.max, limit.min, limit.tiny, limit.smallest_subnormal, 0.0, -0.0, np.inf, -np.inf, np.nan]
    values = np.concatenate([patterns, np.array(special, dtype), generator.normal(size=300).astype(dtype)])
    if element_type.is_complex:
        values = values[~np.isnan(values.real)]
    return values


@pytest.mark.parametrize("element_type", ElementType, ids=str)
def test_literals_read_back_to_the_bit(element_type: ElementType) -> None:
    """NaN payloads and the sign of zero included; a fnuz or e8m0 NaN has one pattern only."""
    values = every_value(element_type)
    shape = ArrayShape(element_type, values.shape)
    again = parse_literal(array_text(values, element_type), shape).array
    assert again.dtype == values.dtype
    assert again.tobytes() == np.ascontiguousarray(values).tobytes()


@pytest.mark.parametrize(
    ("value", "element_type", "text"),
    [
        (True, "pred", "true"),
        ([True, False], "pred", "{1, 0}"),
        (-0.0, "f32", "-0.0"),
        ([0.1, 1e-7, 16777216, 1e10], "f32", "{0.1, 1e-07, 16777216, 1e+10}"),
        ([0.1, 1e10, 1e300], "f64", "{0.1, 10000000000, 1e+300}"),
        ([0.1, 3.14159], "bf16", "{0.1001, 3.141}"),
        ([1 + 2j, complex(-0.0, np.inf)], "c64", "{(1, 2), (-0.0, inf)}"),
        ([[1, 2], [3, 4]], "s32", "{ { 1, 2 }, { 3, 4 } }"),
        ([[1], [2]], "s32", "{ {1}, {2} }"),
        ([[[[7], [8]]]], "s32", "{ { /*i0=0*/ { /*i1=0*/ {7}, {8} } } }"),
        (np.zeros((2, 0)), "f32", "{ {}, {} }"),
        (np.zeros((0, 2)), "f32", "{  }"),
        (np.zeros((2, 0, 2, 2)), "f32", "{ { /*i0=0*/ }, { /*i0=1*/ } }"),
        (18446744073709551615, "u64", "18446744073709551615"),
    ],
)
def test_literal_text(value: Any, element_type: str, text: str) -> None:
    """As XLA writes it, but for the sign of zero."""
    held = np.array(value, dtype=dtype_of(ElementType(element_type)))
    assert array_text(held, ElementType(element_type)) == text


def test_attributes_that_repeat_are_printed_for_each_instruction() -> None:
    """Texts are remembered by object: sharing one must not mix up others."""
    b = Builder("e")
    x = b.parameter(0, TupleShape((array("f32", 2),)))
    aliases = (OperandAlias((), 0, (0,)),)
    for target in ("f", "g"):
        shape = array("f32", 2)
        b.op("custom-call", x, shape=shape, custom_call_target=target, output_to_operand_aliasing=aliases)
    text = b.build_module().to_text()
    assert text.count("output_to_operand_aliasing={{}: (0, {0})}") == 2
    assert 'custom_call_target="f"' in text
    assert 'custom_call_target="g"' in text


def test_printing_changes_nothing() -> None:
    module = parse_module(EVERYTHING.read_text(encoding="utf-8"))
    before = [(i.name, i.opcode, dict(i.attributes)) for i in module.instructions()]
    print_module(module, SHORT)
    assert before == [(i.name, i.opcode, dict(i.attributes)) for i in module.instructions()]


@pytest.mark.parametrize(
    "dims", [(7,), (2, 3), (1, 5), (3, 1), (2, 3, 4), (2, 1, 3, 2), (2, 3, 1, 2, 2), (0, 2)]
)
@pytest.mark.parametrize("at_once", [1, 2, 5, 12])
def test_large_arrays_are_written_in_parts(
    dims: tuple[int, ...], at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text does not depend on how much of it is made at once, nor on whether elements are equal."""
    random = np.random.default_rng(0)
    count = math.prod(dims)
    for values, element_type in (
        (random.standard_normal(count).astype(np.float32), ElementType.F32),
        (np.full(count, -0.0, np.float32), ElementType.F32),
        (random.integers(0, 2, count).astype(bool), ElementType.PRED),
        (np.zeros(count, np.complex64), ElementType.C64),
    ):
        whole = array_text(values.reshape(dims), element_type)
        with monkeypatch.context() as patch:
            patch.setattr(printed_literals, "_AT_ONCE", at_once)
            assert array_text(values.reshape(dims), element_type) == whole
        shape = ArrayShape(element_type, dims)
        assert parse_literal(whole, shape).array.tobytes() == values.tobytes()


def test_a_large_splat_is_written_in_little_memory() -> None:
    literal = Literal(ArrayShape(ElementType.F32, (2048, 2048)), np.zeros((2048, 2048), np.float32))
    tracemalloc.start()
    length = sum(map(len, printed_literals.literal_pieces(literal)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert length == len("{ ") + 2048 * (2048 * len("0, ") + len("{  }")) - len(", ") + len(" }")
    assert peak < 5e6  # the text has 12.6 MB, and was made of as many strings as elements


def test_html_of_a_module_holds_no_markup_of_others() -> None:
    """Strings of a program come from anywhere: in lines, in what is shown beside them, in the header."""
    text = """
    HloModule m, frontend_attributes={note="<script>0</script>"}
    same { ROOT a = f32[4]{0} parameter(0) }
    ENTRY e {
      p = f32[4]{0} parameter(0), metadata={op_name="\\"><script>1</script>" source_file="<i>.py"}
      ROOT r = f32[4]{0} custom-call(p), custom_call_target="<script>2</script>", to_apply=same
    }"""
    shown = parse_module(text)._repr_html_()
    tags = set(re.findall(r"<(/?\w+)", shown))
    assert tags == {t + n for n in ("div", "pre", "details", "summary", "span") for t in ("", "/")}
    assert '<span title="&lt;i&gt;.py &quot;&gt;&lt;script&gt;1&lt;/script&gt;">' in shown
    assert shown.index("ENTRY %e") < shown.index("%same (")


def test_html_of_a_large_module_says_what_it_leaves_out() -> None:
    lines = "".join(f"  n{i} = f32[] negate(n{i - 1})\n" for i in range(1, 1500))
    text = f"HloModule m\nENTRY e {{\n  n0 = f32[] parameter(0)\n{lines}  ROOT r = f32[] negate(n1499)\n}}"
    shown = parse_module(text)._repr_html_()
    assert shown.count("<span>") == 1000
    assert "%n999 = " in shown
    assert "… 501 more in to_text()" in shown
