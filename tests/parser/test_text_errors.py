"""What errors say and where they point; hostile texts end with one error, soon."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.budget import processor_budget
from support.hlo_text import large_texts_begin_at, program, rejected

from hlotool.errors import HloSyntaxError
from hlotool.parser.reader import parse_module

X = "x = f32[2] parameter(0)"


def test_an_error_shows_where_it_is() -> None:
    error = rejected(program("  x = f32[2] parameter(0)", "  y = f32[2] negate(x"))
    assert str(error) == "file.hlo:6:1: expected '(', ')' or ',', found '}'"
    error = rejected(program("  x = f32[2] banana parameter(0)"))
    assert str(error) == "file.hlo:4:21: expected '(', found parameter"
    assert error.caret() == "  x = f32[2] banana parameter(0)\n                    ^"


def test_errors_of_instructions_name_them() -> None:
    error = rejected(program(X, "  y = f32[2] negate(z)"))
    assert str(error) == "file.hlo:5:21: y: no instruction before this one is called z"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("module @m {}", "expected '=' or '{', found '@': the text is MLIR, not HLO"),
        (
            "// x\nmodule attributes {a} {}",
            "expected '=' or '{', found attributes: the text is MLIR, not HLO",
        ),
        ("#loc = loc(unknown)", "found '#': the text is MLIR, not HLO"),
        (program("x= f32[2] parameter(0)"), "found x=: a name needs a blank before its '='"),
        (program("x = q8[2] parameter(0)"), "found '[': q8 is not an element type"),
        (program("x = f32[2] parameter(0), caf\udce9"), "the text is not UTF-8"),
        (program("x = f32[2] parameter(0)\0"), "found the character '\\x00'"),
        (program(X + ", " + "a" * 90), "found " + "a" * 40 + "…"),
        (program(X + ", sharding={replicated}}"), "found '}'"),
        ("This is prose.", "expected '=' or '{', found is"),
        ("HloModule m /* ENTRY", "found a comment that does not end"),
        ('HloModule m, frontend_attributes={a="b}', "found a string that does not end"),
    ],
)
def test_what_was_found(text: str, message: str) -> None:
    assert message in rejected(text).message


def test_many_keys_are_called_an_attribute() -> None:
    assert rejected(program(X + ", 3")).message == "expected an attribute, found 3"
    line = X + " w = f32[] reduce-window(x, x), window={3}"
    expected = "expected '}', lhs_dilate=, pad=, rhs_dilate=, rhs_reversal=, size= or stride=, found 3"
    assert rejected(program(line)).message == expected


# Hostile texts

MANY = 50_000


def within(line: str) -> str:
    """A module with this line in it."""
    return program(f"  {line}")


DEEP = {
    "braces": "{" * MANY,
    "brackets": "[" * MANY,
    "parentheses": "(" * MANY,
    "backend config": within(f"{X}, backend_config=" + '{"a":' * MANY),
    "closed braces": within(f"{X}, frontend_attributes=" + "{" * MANY + "}" * MANY),
    "literal": within("x = f32[2] constant(" + "{" * MANY + "}" * MANY + ")"),
    "operands": within("x = f32[] " + "add(" * MANY),
    "shape": within("x = " + "(" * MANY + "f32[]" + ")" * MANY + " parameter(0)"),
    "computations": within("x = f32[] " + "call(), to_apply={ROOT a = f32[] " * MANY),
}


@pytest.mark.parametrize("name", DEEP)
def test_deep_nesting_is_an_error(name: str) -> None:
    assert refused_within(DEEP[name]).message == "brackets nest more than 100 deep"


def refused_within(text: str, seconds: float = 1.0) -> HloSyntaxError:
    """The error of a text, which comes soon in terms of processor time."""
    parse_module(within(X))  # the parser is loaded
    with processor_budget(seconds):
        return rejected(text)


GARBAGE = {
    "zeros": "\0" * 300_000,
    "all bytes": bytes(range(256)).decode("latin1") * 1000,
    "undecodable": "\udcff" * 100_000,
    "slashes": "/" * 300_000,
    "comment openings": "/*" * 150_000,
    "quotes": '"' * 100_001,
    "percents": "%" * 100_000,
    "blanks": " " * 300_000,
    "lines": "\n" * 300_000,
    "a name": "HloModule " + "a" * 300_000,
    "commas": within("x = f32[] add(" + "," * 300_000 + ")"),
    "digits": within("x = f32[] constant(" + "9" * 100_000 + ")"),
    "digits of a shape": within("x = f32[" + "9" * 100_000 + "] parameter(0)"),
    "digits of an integer": within("x = s32[] constant(" + "9" * 100_000 + ")"),
    "an open string": within(f'{X}, metadata={{op_name="' + "x" * 300_000),
    "an open string of escapes": within(f'{X}, metadata={{op_name="' + '\\"' * 40_000),
    "an open comment": within("/*" + " x" * 150_000),
    "a large exponent": within("x = f32[] constant(1e999999999999)"),
}


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_is_refused_soon(name: str) -> None:
    refused_within(GARBAGE[name])


def test_the_longest_integers_of_python_are_not_reached() -> None:
    """Python refuses to convert thousands of digits with a ValueError of its own."""
    assert "does not fit in 64 bits" in rejected(within("x = f32[" + "9" * 5000 + "] parameter(0)")).message


@pytest.mark.parametrize("large_from", [0, 10**9])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_file_cut_short_is_refused_soon(share: float, large_from: int) -> None:
    lines = [f'  x{i} = f32[2]{{0}} negate(x{i - 1}), metadata={{op_name="a{i}"}}' for i in range(1, 4000)]
    text = program("  x0 = f32[2]{0} parameter(0)", *lines)
    with large_texts_begin_at(large_from):
        refused_within(text[: int(len(text) * share)], 3.0)


def test_every_prefix_of_a_module_is_refused_or_read(corpus: Path) -> None:
    text = (corpus / "malformed" / "verifier" / "while_body_changes_shape.hlo").read_text(encoding="utf-8")
    readings = 0
    for end in range(len(text)):
        try:
            parse_module(text[:end])
        except HloSyntaxError:
            continue
        readings += 1
    assert 0 < readings < len(text) / 4
