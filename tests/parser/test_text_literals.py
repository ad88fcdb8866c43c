"""Literals: nesting and counts against the shape, elements against the element type."""

from __future__ import annotations

import tracemalloc
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.budget import processor_budget
from support.hlo_text import instruction, program, rejected

from hlotool.errors import HloSyntaxError
from hlotool.ir.arrays import Literal, dtype_of
from hlotool.ir.attributes import EmbeddedLiteral
from hlotool.ir.types import ElementType
from hlotool.parser.reader import parse_literal, parse_module, parse_shape
from hlotool.parser.text import literals
from hlotool.parser.text.syntax import TextError


def value(text: str, shape: str) -> Any:
    """The array of a literal."""
    return parse_literal(text, parse_shape(shape)).array


def bits(text: str, element_type: str) -> int:
    """The bit pattern of one element."""
    array = value(text, f"{element_type}[]")
    return int(array.reshape(1).view(f"u{array.dtype.itemsize}")[0])


def refusal(text: str, shape: str) -> str:
    """Why a literal is refused."""
    with pytest.raises(HloSyntaxError) as caught:
        parse_literal(text, parse_shape(shape))
    return caught.value.message


# Structure


def test_a_lone_number_of_a_large_shape_costs_nothing() -> None:
    with processor_budget(1):  # a minute when every zero was a word of text first
        array = value("-2.5", "bf16[4096,16384]")
    assert float(array[0, 0]) == -2.5
    assert not array[-1].any()


def test_a_literal_beyond_any_memory_is_refused() -> None:
    assert "does not fit into memory" in refusal("1", "f64[1000000000,100000000]")


@pytest.mark.parametrize(
    ("text", "shape", "expected"),
    [
        ("7", "s32[]", 7),
        ("{1, 2, 3}", "s32[3]", [1, 2, 3]),
        ("{ 1 2,,3 , }", "s32[3]", [1, 2, 3]),
        ("{/*i0=*/{1, 2}, // a\n {3, 4}}", "s32[2,2]", [[1, 2], [3, 4]]),
        ("{{{1}},{{2}}}", "s32[2,1,1]", [[[1]], [[2]]]),
        ("{}", "f32[0]", []),
        ("{{},{}}", "f32[2,0]", [[], []]),
        ("{...}", "f32[0]", []),
        ("5", "s32[3]", [5, 0, 0]),
        ("{true, false, 2, 0}", "pred[4]", [True, False, True, False]),
        ("{(1, -2), (3,4)}", "c64[2]", [1 - 2j, 3 + 4j]),
        ("(1, 2)", "c128[]", 1 + 2j),
    ],
)
def test_arrays(text: str, shape: str, expected: Any) -> None:
    array = value(text, shape)
    np.testing.assert_array_equal(array, expected)
    assert array.shape == np.shape(expected)
    assert not array.flags.writeable


def test_tuples() -> None:
    literal = parse_literal("( 1, {2, 3}, ((4, 5), ()) )", parse_shape("(s32[], f32[2], (c64[], ()))"))
    first, second, (number, empty) = literal.elements[0], literal.elements[1], literal.elements[2].elements
    assert first.array == 1
    assert number.array == 4 + 5j
    assert empty.elements == ()
    np.testing.assert_array_equal(second.array, [2, 3])


def test_elided_values() -> None:
    literal = parse_literal("{ ... }", parse_shape("f32[3]"))
    assert (literal.value, literal.elided) == (None, True)
    pair = parse_literal("({...}, 1)", parse_shape("(f32[3], s32[])"))
    assert pair.has_elided
    assert not pair.elided


def test_literals_that_say_their_shape() -> None:
    line = 'c = f32[] custom-call(), custom_call_target="x", literal=(s32[2]{0} {1, 2}, (pred[] true))'
    embedded = instruction(line).attributes["literal"]
    assert isinstance(embedded, EmbeddedLiteral)
    assert str(embedded.literal.shape) == "(s32[2]{0}, (pred[]))"
    np.testing.assert_array_equal(embedded.literal.elements[0].array, [1, 2])


@pytest.mark.parametrize(
    ("text", "shape", "message"),
    [
        ("{1, 2}", "s32[3]", "a row of the literal has 2 elements, not 3"),
        ("{1, 2, 3, 4}", "s32[3]", "a row of the literal has 4 elements, not 3"),
        ("{{1, 2}, {3}}", "s32[2,2]", "a row of the literal has 1 elements, not 2"),
        ("{1, 2}", "s32[2,2]", "the literal has rank 1, not 2"),
        ("{{1}, {2}}", "s32[2]", "the braces of the literal nest deeper than s32[2] has dimensions"),
        ("{1}", "s32[]", "the braces of the literal nest deeper than s32[] has dimensions"),
        ("5", "s32[0]", "the literal has rank 0, not 1"),
        ("{...}", "s32[]", "expected a number or a brace, found ...}"),
        ("{..., 1}", "s32[2]", "expected a number or a brace, found ...,"),
        ("{1-2}", "s32[2]", "expected a number or a brace, found 1-2}"),
        ("1, 2", "s32[]", "expected one value of shape s32[]"),
        ("(1, 2)", "(s32[])", "the literal has 2 elements, not 1"),
        ("1", "(s32[])", "a tuple literal stands in parentheses"),
        ("1", "c64[]", "elements of c64 are written (real, imaginary)"),
        ("(1, 2)", "f32[]", "expected a number or a brace, found (1,"),
        ("1", "token[]", "token[] has no literals"),
        ("{1}", "s32[<=1]", "a literal cannot have the dynamic shape s32[<=1]"),
        ("{1", "s32[1]", "expected '(', ',', '...', '{', '}' or a number, found the end of the text"),
        ("0x10", "s32[]", "expected the end of the text, found x10"),
        (".5", "f32[]", "expected '(', '{' or a number, found .5"),
    ],
)
def test_wrong_structure(text: str, shape: str, message: str) -> None:
    assert refusal(text, shape) == message


def test_errors_name_the_instruction_and_the_place() -> None:
    error = rejected(program("c = s8[2] constant( {1, 300})"))
    assert error.message == "c: 300 is out of range for s8, which holds -128 to 127"
    assert (error.location.line, error.location.column) == (4, 21)


CHANGES = {"drop": "", "add": "700 7", "lift": "{700}", "part": "700}{7", "deepen": "700 {}"}


@pytest.mark.parametrize("shape", [(1001,), (40, 30), (2, 3, 200), (1500, 1)])
@pytest.mark.parametrize("change", ["none", *CHANGES])
def test_many_elements_are_checked_as_few_are(
    shape: tuple[int, ...], change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    text = str(array.tolist()).translate(str.maketrans("[]", "{}"))
    text = text.replace("700", CHANGES.get(change, "700"), 1)
    outcomes = []
    for many in (0, 10**9):
        monkeypatch.setattr(literals, "_MANY", many)
        try:
            literal = literals.decode_literal(text, parse_shape(f"s32[{','.join(map(str, shape))}]"))
        except TextError as error:
            outcomes.append(type(error))
        else:
            assert change == "none"
            np.testing.assert_array_equal(literal.array, array)
    assert outcomes == ([] if change == "none" else [TextError] * 2)


WORDS = [
    *(
        "7",
        "-7",
        "1.5",
        "1.",
        "-.5",
        ".5",
        "+5",
        "1e5",
        "1e+5",
        "1E-5",
        "1e",
        "e5",
        "5-3",
        "--1",
        "1_0",
        "1.2.3",
    ),
    *("inf", "-inf", "infinity", "nan", "-nan", "NaN", "nan(0x1)", "true", "false", "fals", "0x1", "1e400"),
    *("9" * 20, "9" * 40, "{7}", "7 7", "", "/* a */ 7", "\u0663", "\x0b7"),
]


@pytest.mark.parametrize("element_type", ["f32", "bf16", "s8", "u64", "pred", "f8e4m3fn"])
@pytest.mark.parametrize("word", WORDS)
def test_blocks_say_what_the_whole_text_says(
    element_type: str, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape = parse_shape(f"{element_type}[40,5]")
    for place in (0, 7, 199):
        words = [str(number % 2) for number in range(200)]
        words[place] = word
        rows = (", ".join(words[start : start + 5]) for start in range(0, 200, 5))
        text = f"{{{', '.join(f'{{ {row} }}' for row in rows)}}}"
        outcomes: list[object] = []
        for many, block in ((0, 64), (10**9, 1)):
            monkeypatch.setattr(literals, "_MANY", many)
            monkeypatch.setattr(literals, "_BLOCK", block)
            try:
                outcomes.append(literals.decode_literal(text, shape).array.tobytes())
            except TextError as error:
                outcomes.append(error.message)
        assert outcomes[0] == outcomes[1] or word in ("{7}", "7 7", "")
        assert type(outcomes[0]) is type(outcomes[1])


def test_a_long_constant_takes_a_few_times_its_text() -> None:
    count = 1 << 20
    text = f"{{{', '.join(['-1.234567e-05'] * count)}}}"
    tracemalloc.start()
    try:
        array = value(text, f"f32[{count}]")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert array.nbytes < peak < 2 * len(text)  # it was 70 times as much


# Numbers


@pytest.mark.parametrize(
    ("element_type", "low", "high"),
    [
        *((f"s{n}", -(1 << (n - 1)), (1 << (n - 1)) - 1) for n in (1, 2, 4, 8, 16, 32)),
        *((f"u{n}", 0, (1 << n) - 1) for n in (1, 2, 4, 8, 16, 32)),
    ],
)
def test_ranges_of_integers(element_type: str, low: int, high: int) -> None:
    assert value(f"{{{low}, {high}}}", f"{element_type}[2]").tolist() == [low, high]
    for beyond in (low - 1, high + 1):
        expected = f"{beyond} is out of range for {element_type}, which holds {low} to {high}"
        assert refusal(str(beyond), f"{element_type}[]") == expected


def test_64_bit_patterns() -> None:
    assert value("{18446744073709551615, -9223372036854775808}", "s64[2]").tolist() == [-1, -(2**63)]
    assert value("{-1, 18446744073709551615}", "u64[2]").tolist() == [2**64 - 1] * 2
    assert refusal("18446744073709551616", "s64[]") == "18446744073709551616 does not fit in 64 bits"


@pytest.mark.parametrize(
    ("element_type", "highest", "beyond"),
    [
        ("f64", "1.7976931348623157e308", "1e309"),
        ("f32", "3.4028235e38", "1e39"),
        ("bf16", "3.39e38", "3.4e38"),
        ("f16", "65519", "65520"),
        ("f8e5m2", "61439", "61440"),
        ("f8e4m3", "247", "248"),
        ("f8e4m3fn", "464", "465"),
        ("f8e3m4", "15.7", "15.75"),
        ("f8e8m0fnu", "1.7e38", "0"),
    ],
)
def test_ranges_of_floats(element_type: str, highest: str, beyond: str) -> None:
    assert np.isfinite(value(highest, f"{element_type}[]").astype(np.float64))
    assert f"{beyond} is out of range for " in refusal(beyond, f"{element_type}[]")


def test_f4_has_no_values_beyond() -> None:
    assert float(value("1e30", "f4e2m1fn[]")) == 6


FLOATS = [t for t in ElementType if t.is_floating]


@pytest.mark.parametrize("element_type", FLOATS, ids=str)
def test_every_value_of_narrow_types_is_read_back(element_type: ElementType) -> None:
    dtype = dtype_of(element_type)
    bits_of_all = np.arange(1 << min(element_type.bits, 16), dtype=f"u{dtype.itemsize}")
    with np.errstate(invalid="ignore"):
        narrow = bits_of_all.view(dtype).astype(np.float64)
    values = narrow if element_type.bits <= 16 else np.array([0.1, -0.0])
    values = values[np.isfinite(values)]
    array = value("{" + ", ".join(map(repr, values.tolist())) + "}", f"{element_type}[{len(values)}]")
    assert array.dtype == dtype
    assert array.tobytes() == values.astype(dtype).tobytes()


@pytest.mark.parametrize("element_type", ["bf16", "f16", "f8e5m2", "f8e4m3fn", "f8e4m3b11fnuz"])
def test_narrow_types_are_rounded_once(element_type: str) -> None:
    """Just above the middle of two values; single precision would see exactly the middle, and go to even."""
    dtype = dtype_of(ElementType(element_type))
    low, high = (float(np.array(b, f"u{dtype.itemsize}").view(dtype)) for b in (0x38, 0x39))
    above = (low + high) / 2 * (1 + 2**-40)
    assert float(np.float32(above)) == (low + high) / 2
    assert float(value(repr(above), f"{element_type}[]")) == high
    assert float(value(repr(-above), f"{element_type}[]")) == -high


@pytest.mark.parametrize(
    ("text", "element_type", "pattern"),
    [
        ("-0", "f32", 0x80000000),
        ("-0.0", "bf16", 0x8000),
        ("nan", "f32", 0x7FC00000),
        ("-nan", "f32", 0xFFC00000),
        ("nan(0x1)", "f32", 0x7F800001),
        ("-nan(0x7fffff)", "f32", 0xFFFFFFFF),
        ("nan(0x3)", "f16", 0x7C03),
        ("nan(0x7f)", "bf16", 0x7FFF),
        ("nan(0x1)", "f64", 0x7FF0000000000001),
        ("nan(0x1)", "f8e5m2", 0x7D),
        ("nan(0x8000000000000)", "f16", 0x7E00),
        ("inf", "f32", 0x7F800000),
        ("-inf", "f8e5m2", 0xFC),
        ("1e-60", "f32", 0),
        ("00012", "s32", 12),
        ("1.", "f32", 0x3F800000),
        ("-.5", "f32", 0xBF000000),
    ],
)
def test_bit_patterns(text: str, element_type: str, pattern: int) -> None:
    assert bits(text, element_type) == pattern


def test_parts_of_complex_numbers_keep_their_patterns() -> None:
    array = value("(-nan(0x5), -0)", "c64[]").reshape(1).view(np.uint32)
    assert array.tolist() == [0xFF800005, 0x80000000]
    assert "1e39 is out of range for c64" in refusal("(0, 1e39)", "c64[]")


@pytest.mark.parametrize(
    ("text", "shape", "message"),
    [
        ("1.5", "s32[]", "1.5 is not an integer, which s32 needs"),
        ("1e5", "s32[]", "1e5 is not an integer, which s32 needs"),
        ("inf", "u8[]", "inf is not an integer, which u8 needs"),
        ("true", "s32[]", "true is not an integer, which s32 needs"),
        ("true", "f32[]", "true is not a number"),
        ("1.5", "pred[]", "1.5 is not an integer, which pred needs"),
        ("1e400", "f64[]", "1e400 is out of range for a double"),
        ("nan(0x400)", "f16[]", "the payload of nan(0x400) does not fit f16: at most 0x3ff"),
        ("nan(0x0)", "f16[]", "the payload of nan(0x0) does not fit f16: at most 0x3ff"),
        ("nan(0x1)", "f8e4m3fn[]", "a NaN of f8e4m3fn has no payload, but nan(0x1) says one"),
    ],
)
def test_wrong_numbers(text: str, shape: str, message: str) -> None:
    assert refusal(text, shape) == message


@given(st.lists(st.floats(width=32), min_size=1, max_size=20))
def test_floats_are_read_as_python_reads_them(numbers: list[float]) -> None:
    array = value("{" + ", ".join(map(repr, numbers)) + "}", f"f32[{len(numbers)}]")
    np.testing.assert_array_equal(array, np.array(numbers, np.float32))


def test_a_million_numbers_take_no_time_to_speak_of() -> None:
    text = "{" + ", ".join(map(str, range(1_000_000))) + "}"
    literal: Literal = parse_literal(text, parse_shape("s32[1000000]"))
    np.testing.assert_array_equal(literal.array, np.arange(1_000_000))


def test_equal_literals_of_a_large_text_are_one() -> None:
    lines = [f"  x{i} = bf16[] constant(0.5)" for i in range(3000)]
    module = parse_module(program(*lines))
    found = {id(i.literal) for i in module.instructions()}
    assert len(found) == 1
    assert next(module.instructions()).literal.array == ml_dtypes.bfloat16(0.5)  # type: ignore[union-attr]
