"""Metadata: keys old and new, decoding on demand, escapes of strings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.hlo_text import instruction, large_texts_begin_at, program, rejected

from hlotool.ir.attributes import Metadata
from hlotool.parser.reader import parse_module
from hlotool.parser.text import pieces
from hlotool.parser.tokens import unquote

EVERYTHING = (
    '{op_type="t" op_name="n" source_file="f.py" source_line=1 source_end_line=2 source_column=3 '
    'source_end_column=4 profile_type={1,0} deduplicated_name="d" scheduling_name="s" stack_frame_id=5 '
    'metadata_payload="p"}'
)


def metadata(text: str) -> Metadata | None:
    """What `metadata=…` says."""
    return instruction(f"x = f32[] parameter(0), metadata={text}").metadata


def test_all_fields() -> None:
    expected = Metadata("t", "n", "f.py", 1, 2, 3, 4, (1, 0), "d", "s", 5, "p")
    assert metadata(EVERYTHING) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", Metadata()),
        ("{op_name='a', source_line=3}", Metadata(op_name="a", source_line=3)),
        ('{ source_line=-1 /* x */ op_name="" }', Metadata(source_line=-1)),
        ("{profile_type={}}", Metadata()),
        ('{, op_type="t"}', Metadata(op_type="t")),
    ],
)
def test_ways_of_writing(text: str, expected: Metadata) -> None:
    assert metadata(text) == expected


def test_keys_of_older_versions_are_kept() -> None:
    text = '{op_name="n" size_of_generated_code_in_bytes=12 preserve_layout=true logical={a {b}} kind="x"}'
    found = metadata(text)
    assert found is not None
    assert found.obsolete == (
        ("size_of_generated_code_in_bytes", "12"),
        ("preserve_layout", "true"),
        ("logical", "{a {b}}"),
        ("kind", '"x"'),
    )
    error = rejected(program(f"x = f32[] parameter(0), metadata={text}"), strict=True)
    assert error.message == "metadata takes no size_of_generated_code_in_bytes"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{op_name="a" op_name="b"}', "metadata says op_name twice"),
        ("{profile_type={4}}", "there is no profile type 4"),
        ("{source_line=2147483648}", "source_line=2147483648 does not fit in 32 bits"),
        ("{op_name=3}", "expected a string, found 3"),
        ('{source_line="3"}', "expected an integer, found a string"),
        ('{op_name="a"', "found"),
        ('{op_name="\\q"}', "unknown escape \\q in a string"),
        ('{op_name="\\777"}', "\\777 in a string is more than a byte"),
    ],
)
def test_wrong_metadata(text: str, message: str) -> None:
    assert message in rejected(program(f"x = f32[] parameter(0), metadata={text}")).message


# Decoding on demand


def test_metadata_of_large_texts_is_decoded_when_it_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[str] = []

    def decode(text: str) -> Metadata:
        decoded.append(text)
        return Metadata(op_name="n")

    monkeypatch.setattr(pieces, "_decode_metadata", decode)
    with large_texts_begin_at(0):
        found = instruction('x = f32[] parameter(0), metadata={op_name="n" source_line=3}').metadata
    assert found is not None
    assert decoded == []
    assert (found.op_name, found.op_name, found.source_line) == ("n", "n", 0)
    assert decoded == ['metadata={op_name="n" source_line=3}']


@pytest.mark.parametrize(
    "text", [EVERYTHING, "{}", '{op_name="\\303\\251\\"\\\\" source_line=-7}', '{op_type="" }']
)
def test_decoding_later_comes_to_the_same(text: str) -> None:
    with large_texts_begin_at(0):
        later = metadata(text)
    assert later == metadata(text)
    assert hash(later) == hash(metadata(text))
    assert repr(later) == repr(metadata(text))


def test_deferred_metadata_has_no_other_attributes() -> None:
    with large_texts_begin_at(0):
        found = metadata('{op_name="n"}')
    with pytest.raises(AttributeError, match=r"Metadata has no attribute op_nam$"):
        found.op_nam  # type: ignore[union-attr]  # noqa: B018


def test_equal_metadata_of_a_large_text_is_one_object() -> None:
    lines = [f'  x{i} = f32[] parameter({i}), metadata={{op_name="n"}}' for i in range(3)]
    with large_texts_begin_at(0):
        module = parse_module(program(*lines))
    assert len({id(i.metadata) for i in module.instructions()}) == 1


# Strings


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        ('"plain"', "plain"),
        ("'it\"s'", 'it"s'),
        (r'"\a\b\f\n\r\t\v\\\'\"\?"', "\a\b\f\n\r\t\v\\'\"?"),
        (r'"\0\101\x41\x0041"', "\0AAA"),
        (r'"\u00e9\U0001f600"', "é😀"),
        (r'"\303\251é"', "éé"),
        (r'"\377"', "\udcff"),
    ],
)
def test_escapes(token: str, expected: str) -> None:
    assert unquote(token) == expected


@pytest.mark.parametrize(
    "token", [r'"\q"', r'"\400"', r'"\x100"', r'"\x"', r'"\u12"', r'"\ud800"', r'"\U00110000"']
)
def test_wrong_escapes(token: str) -> None:
    with pytest.raises(ValueError, match="in a string"):
        unquote(token)


@given(st.binary(max_size=20))
def test_octal_escapes_spell_bytes(content: bytes) -> None:
    token = '"' + "".join(f"\\{byte:03o}" for byte in content) + '"'
    assert unquote(token) == content.decode("utf-8", "surrogateescape")


@pytest.mark.parametrize("text", ['"a', "'a", '"a\\"', '"a\\', '"a\n\\'])
def test_strings_without_an_end(text: str) -> None:
    error = rejected(f"HloModule m\ne {{\n  p = f32[] parameter(0), metadata={{op_name={text}")
    assert error.message == "expected a string, found a string that does not end"
    assert (error.location.line, error.location.column) == (3, 45)


def test_strings_may_hold_line_ends_and_comments() -> None:
    with large_texts_begin_at(0):
        found = metadata('{op_name="a\n /* b // c"}')
    assert found == Metadata(op_name="a\n /* b // c")
