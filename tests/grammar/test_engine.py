"""The engine reads what lark's own parser reads, token for token, and stops where that one stops."""

from __future__ import annotations

import random
from pathlib import Path

import lark
import pytest
from support.trees import TREES, plain

from hlotool import grammar
from hlotool.grammar.analysis import engine_tables
from hlotool.grammar.build import build_parser
from hlotool.grammar.engine import Engine, Terminal

#: Longer texts take lark too long.
LONGEST = 5_000


@pytest.fixture(scope="module")
def reference() -> lark.Lark:
    return build_parser()


def read_by_lark(reference: lark.Lark, text: str, start: str = "module") -> object:
    """The tree, or where it ends and what could have followed."""
    try:
        return plain(reference.parse(text, start=start))
    except lark.UnexpectedInput as error:
        is_end = isinstance(error, lark.UnexpectedToken) and error.token.type == "$END"
        position = error.token.start_pos if isinstance(error, lark.UnexpectedToken) else error.pos_in_stream
        return None if is_end else position, frozenset(error.interactive_parser.accepts())


def read_by_engine(text: str, start: str = "module") -> object:
    try:
        return plain(grammar.parser(start, TREES)(text))
    except grammar.Unexpected as error:
        return error.position, error.expected


def corpus_texts(corpus: Path) -> list[str]:
    paths = [*sorted(corpus.glob("modules/*.hlo")), *sorted(corpus.glob("malformed/*.hlo"))]
    texts = [path.read_bytes().decode("utf-8", "surrogateescape") for path in paths]
    return [text for text in texts if len(text) <= LONGEST]


def test_texts_of_the_corpus(corpus: Path, reference: lark.Lark) -> None:
    texts = corpus_texts(corpus)
    assert len(texts) > 300
    for text in texts:
        assert read_by_engine(text) == read_by_lark(reference, text)


def test_damaged_texts(corpus: Path, reference: lark.Lark) -> None:
    generator = random.Random(0)
    texts = [text for text in corpus_texts(corpus) if len(text) < 1000]
    for _ in range(250):
        text = generator.choice(texts)
        at, length = generator.randrange(len(text)), generator.randrange(4)
        damaged = text[:at] + generator.choice('{}()[],=%:"/*- 1xé') + text[at + length :]
        assert read_by_engine(damaged) == read_by_lark(reference, damaged)


def test_pieces_of_texts(reference: lark.Lark) -> None:
    for start, text in {
        "shape": "(f32[<=2,?]{1,0:T(8,128)E(4)S(1)}, b(s32[2]), (), token[])",
        "literal": "({1, -2.5e3, nan(0x1)}, true, {{}, ...})",
        "metadata": '{op_name="a\\"b" source_line=3, profile_type={1} other=%x}',
        "attributes": ", window={size=3x3 pad=1_1x0_0}, sharding={devices=[2,1]<=[2] replicated}",
        "remainder": ", k=3 q = f32[] negate(p) } f { r = iota() }",
    }.items():
        assert isinstance(read_by_lark(reference, text, start), tuple)
        assert read_by_engine(text, start) == read_by_lark(reference, text, start)


def test_lines_count_from_the_beginning_of_the_text() -> None:
    text = "\n\nx // note\n , k=\n3"
    attributes = grammar.parser("attributes", TREES)(text, text.index(","))
    assert plain(attributes) == (
        "attributes",
        ("attribute", ("INT_KEY", "k=", 15, 17, 4), ("integer", ("INT", "3", 18, 19, 5))),
    )


def test_words_are_looked_up_and_beginnings_known() -> None:
    terminals = grammar.tables().engine.terminals
    key = terminals["KEY"].pattern
    assert terminals["FLOAT_KEY"] == Terminal(key, frozenset(["epsilon="]), frozenset("e"))
    assert {"pred", "s4", "f8e4m3fn"} < (terminals["ELEMENT_TYPE"].words or set())
    assert terminals["INT"].first == frozenset("-0123456789")
    assert terminals["RAW_TEXT"].first is None


def test_fixed_strings_that_are_words_too_are_refused() -> None:
    ambiguous = lark.Lark('start: "if" | WORD\nWORD: /[a-z]+/', parser="lalr", start=["start"])
    with pytest.raises(ValueError, match=r"terminals \['WORD'\] match fixed strings"):
        engine_tables(ambiguous)


def test_any_grammar() -> None:
    brackets = lark.Lark(
        '?start: "(" _items ")" -> list\n | NAME\n_items: (start ("," start)*)?\nNAME: /[a-z]/\n%ignore " "',
        parser="lalr",
        start=["start"],
        maybe_placeholders=False,
    )
    read = Engine(engine_tables(brackets), TREES).parse
    for text in ("a", "()", "(a, (b), ())"):
        assert plain(read("start", text)) == plain(brackets.parse(text, start="start"))
    with pytest.raises(grammar.Unexpected) as caught:
        read("start", "(a b")
    assert (caught.value.position, caught.value.expected) == (3, {"COMMA", "RPAR"})
