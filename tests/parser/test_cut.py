"""Texts that end too early: what is whole is kept, and what is wrong for another reason stays wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlotool.errors import HloSyntaxError
from hlotool.ir.module import Module
from hlotool.ir.verifier import verify
from hlotool.parser.reader import parse_cut, parse_module

LAYOUT = "entry_computation_layout={(f32[2]{0}, (s32[], f32[3]{0}))->f32[2]{0}}"
TEXT = (
    f"HloModule m, is_scheduled=true, {LAYOUT}"
    + """

%twice (p: f32[2]) -> f32[2] {
  %p = f32[2]{0} parameter(0)
  ROOT %t = f32[2]{0} add(%p, %p)
}

ENTRY %main (x: f32[2], y: (s32[], f32[3])) -> f32[2] {
  %x = f32[2]{0} parameter(0), metadata={op_name="x"}
  %c = f32[2,2]{1,0} constant({
    { 1, 2 },
    { 3, 4 }
  })
  %y = (s32[], f32[3]{0}) parameter(1)
  ROOT %r = f32[2]{0} call(%x), to_apply=%twice
}
"""
)


def cut(text: str) -> Module:
    with pytest.raises(HloSyntaxError) as error:
        parse_module(text)
    return parse_cut(text, "a.hlo", error.value)


def test_wherever_it_is_cut_what_stands_before_is_kept() -> None:
    """Every prefix that is not whole: a module whose instructions are a part of the text's, or an error."""
    whole = {(i.name, i.opcode, str(i.shape)) for i in parse_module(TEXT).instructions()}
    begins = TEXT.index("ROOT %t") + 40
    kept = 0
    for end in range(begins, len(TEXT) - 3):
        module = cut(TEXT[:end]) if "ENTRY" in TEXT[:end] else None
        if module is None:
            continue
        names = {(i.name, i.opcode, str(i.shape)) for i in module.instructions()}
        # Parameters that the text does not reach are those of the signature, which has no layouts.
        assert {row for row in names if row[1] != "parameter"} <= whole
        assert module.cut.startswith("the text ends ")
        assert module.is_scheduled
        assert verify(module) == []
        assert module.entry.name == ("main" if len(module.computations) == 2 else "twice")
        kept = max(kept, len(names))
    assert kept == len(whole) - 1  # the last line has no end in any of these texts


def test_the_lines_keep_their_numbers() -> None:
    module = cut(TEXT[: TEXT.index("  ROOT %r")])
    assert {i.name: i.line for i in module.entry.instructions}["c"] == 10
    assert module.cut == "the text ends within computation %main: 3 of its instructions are whole (line 14)"


def test_half_a_number_is_no_operand() -> None:
    """`index=1` may be the beginning of `index=12`."""
    text = (
        "HloModule m\nENTRY e {\n  p = (f32[], f32[]) parameter(0)\n  a = f32[] get-tuple-element(p), index=1"
    )
    assert [i.name for i in cut(text).entry.instructions] == ["p"]
    assert [i.name for i in cut(text + "\n").entry.instructions] == ["p", "a"]


@pytest.mark.parametrize(
    "text",
    [
        "HloModule m\nENTRY e {\n x = f32[2] parameter(0)\n y = f32[2] ad(x)\n ROOT z = f32[2] abs(x)\n}\n",
        "HloModule m\nENTRY e {\n  y = f32[2] nothing(x)\n",
        "HloModule m\n",
        "HloModule m\nENTRY e {\n",
        "HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n}\n}\n",
    ],
)
def test_what_is_no_cut_stays_an_error(text: str) -> None:
    with pytest.raises(HloSyntaxError) as expected:
        parse_module(text)
    with pytest.raises(HloSyntaxError) as error:
        parse_cut(text, None, expected.value)
    assert error.value is expected.value


def test_malformed_texts_are_cut_or_wrong(corpus: Path) -> None:
    """Those of the corpus that only lack their end are the ones whose names say so."""
    found = set()
    for path in (corpus / "malformed").glob("*.hlo"):
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
        try:
            cut(text)
        except HloSyntaxError:
            continue
        found.add(path.stem)
    assert "truncated" in found
    assert found <= {
        "truncated",
        "braces_unclosed",
        "parenthesis_unclosed",
        "string_unterminated",
        "comment_unterminated",
    }


def test_a_text_whose_braces_are_closed_is_not_cut() -> None:
    """The brace of the entry stands further to the right than the entry does."""
    text = "HloModule m\nENTRY e {\n  x = f32[] parameter(0)\n  ROOT y = f32[] frobnicate(x)\n   }\n"
    with pytest.raises(HloSyntaxError) as error:
        parse_module(text)
    with pytest.raises(HloSyntaxError, match="frobnicate"):
        parse_cut(text, None, error.value)
