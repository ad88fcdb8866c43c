"""hlotool and XLA accept the same texts and read the same from them, but for what grammar/README.md says."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from support.hlo_mutation import mutated
from support.hlo_text import COMPUTATIONS, program, rejected
from support.verdicts import Verdicts, compare, texts
from support.xla import JAXLIB, NEWER_TEXT, XlaError, oracle

from hlotool.errors import HloSyntaxError
from hlotool.parser.reader import parse_module

pytestmark = pytest.mark.xla

X, Y, P = "x = f32[2] parameter(0)", "y = f32[] parameter(1)", "p = f32[] parameter(0)"
BODY = "{ ROOT p = f32[] parameter(0) }"

#: Both accept these, and read the same from them.
ACCEPTED = (
    f"f {BODY}",
    f"HloModule m: f {BODY}",
    f"HloModule %m f {BODY} g {BODY}",
    f"HloModule m ENTRY e (a: token[], b: (f32[])) -> f32[] {BODY} f {BODY}",
    f'HloModule m f {BODY}, execution_thread="t" ENTRY e {BODY}',
    "x = f32[2] add(f32[2] a, f32[2] b)",
    "f32[2] negate(f32[2])",
    program("/*\n*/ ROOT %p = f32[] parameter( /* a */ 0 ) // b"),
    program(X, "z = f32[2] add(f32[2] negate(x), f32[2] abs(x:))"),
    program(X, "z = f32[2] call(x), to_apply={ a = f32[2] parameter(0) ROOT b = f32[2] abs(a) }"),
    program(X, "z = negate(x)"),
    program(X, "z = f32[2] add(,x,, x, ,)"),
    program(X, 'z = f32[2] custom-call(, x), custom_call_target="t"'),
    program(X, 'z = f32[2] custom-call(,), custom_call_target="t"'),
    program("p = f32[16,256]{1,0:T(8,128} parameter(0)"),
    program("p = f32[16,256]{1,0:T(8,128)(2,1L(2E(32S(5} parameter(0)"),
    program(X, 'ROOT z = f32[2] negate(x), metadata={op_name="a\\"" source_line=3, op_type=\'b\'}'),
    program(X, 'z = f32[2] negate(x), frontend_attributes={a="b",c={d {e}}}, backend_config={"a": {}}'),
    program(X, "z = f32[2] negate(x), sharding={devices=[2,2]<=[4] last_tile_dim_replicate}"),
    program(X, "z = f32[2] negate(x), sharding={mesh['a'=2,'b'=4], [{'a', ?}], unreduced={'b':(1)2}}"),
    program(X, "z = f32[2] negate(x), control-predecessors={x, x}"),
    program("c = s32[3] constant({1 2,,3,})"),
    program("c = s32[3] constant(5)"),
    program("c = f32[2] constant({nan(0x1), -inf})"),
    program("c = s64[] constant(18446744073709551615)"),
    program("c = f4e2m1fn[] constant(1000)"),
    program(X, "z = ((f32[2]), f32[2], u32[]) negate-start(x)", "w = f32[2] negate-done(z)"),
)

#: Both reject these.
REJECTED = (
    "",
    "HloModule m",
    f"HloModule f32 f {BODY}",
    f"f (p: f32[]) -> f32[] {BODY}",
    f"HloModule m f {BODY} f {BODY}",
    f"HloModule m f {BODY}, sharding={{replicated}}",
    f"HloModule m, x=1 f {BODY}",
    program("x= f32[] parameter(0)"),
    program("true = f32[] parameter(0)"),
    program(P, "z = f32[] negate(z)"),
    program(P, "z = f32[] add(p)"),
    program(P, "z = f32[] negate(f32[2] p)"),
    program(P, "z = f32[] negate(p), dimensions={0}"),
    program(P, 'z = f32[] negate(p), metadata={op_name="a" op_name="b"}'),
    program(P, 'z = f32[] negate(p), metadata={op_name="\\q"}'),
    program(P, 'z = f32[] negate(p), backend_config={"a": '),
    program("p = f32[2]{0:T(2)T(2)} parameter(0)"),
    program("p = f32[99999999999999999999] parameter(0)"),
    program("c = f16[] constant(65520)"),
    program("c = s8[] constant(128)"),
    program("c = f32[2,2] constant({1, 2})"),
    program("c = f32[] constant({...})"),
)


@pytest.mark.parametrize("text", ACCEPTED)
def test_both_accept(text: str) -> None:
    found = compare(text, Verdicts(), strict=True)
    assert (found.valid, found.parsed, found.round_trip) == (True, True, True)


@pytest.mark.parametrize("text", REJECTED)
def test_both_reject(text: str) -> None:
    with pytest.raises(XlaError):
        oracle().canonical(text)
    rejected(text)


@pytest.mark.skipif(JAXLIB >= NEWER_TEXT, reason="this XLA takes a layout without an order for none")
def test_a_layout_without_an_order_is_rejected_by_both() -> None:
    test_both_reject(program("p = f32[2]{:S(5)} parameter(0)"))


# Departures that grammar/README.md names: XLA accepts (or dies), hlotool rejects

STRICTER = (
    program("c = s32[2] constant({1-2})"),
    program(X, "z = f32[] convolution(x, x), dim_labels=0f_0io->0f"),
)


@pytest.mark.parametrize("text", STRICTER)
def test_slips_that_only_hlotool_rejects(text: str) -> None:
    rejected(text)


def test_negative_zeros_differ() -> None:
    text = program("c = f32[2] constant({-0, -0.0})")
    assert "constant({0, -0})" in oracle().canonical(text)
    assert "constant({-0, -0})" in oracle().canonical(parse_module(text).to_text())


@pytest.mark.parametrize(
    "attribute", ['metadata={op_name="a" old=3}', "all_reduce_id=1", 'sharding={replicated}, barrier=""']
)
def test_what_is_obsolete_is_rejected_by_xla_and_by_a_strict_reader(attribute: str) -> None:
    text = program(P, f"z = f32[] all-reduce(p), to_apply=add, {attribute}", computations=COMPUTATIONS)
    parse_module(text)
    rejected(text, strict=True)
    with pytest.raises(XlaError):
        oracle().canonical(text)


# Files


#: What newer readers do otherwise: a layout without an order is none; a reshape to another number of elements
#: is refused by them, and not only by the verifier.
READ_OTHERWISE = ("layout_empty_with_tiles", "reshape_changes_size")


def test_files_of_the_corpus(corpus: Path) -> None:
    agree(list(texts([corpus / "modules", corpus / "malformed", corpus / "planted"])))


@pytest.mark.slow
def test_all_files(corpus: Path, shared: Path) -> None:
    agree(list(texts([corpus, shared / "hlo", shared / "dumps"])))


def agree(paths: list[Path]) -> None:
    """Both accept the same ones of these files, and read the same."""
    verdicts = Verdicts()
    assert paths
    for path in paths:
        found = compare(path.read_text(encoding="utf-8", errors="surrogateescape"), verdicts)
        assert found.is_fine or (JAXLIB >= NEWER_TEXT and path.stem in READ_OTHERWISE), (path, found)
    verdicts.save()


# Damaged texts

#: Messages of the rules by which hlotool is stricter.
_STRICTER = re.compile(
    r"expected .*(a name, a shape or an opcode|opcode), found '[,)]'|expected a number or a brace"
    r"|each of [bi], [fo], the digits|tiles are given|has no axis|tuple has a tuple shape"
    r"|there is no parameter|takes neither dimensions|nest more than"
)


def test_damaged_texts(corpus: Path) -> None:
    damage(1, 150, sorted((corpus / "modules").rglob("*.hlo")))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 104))
def test_many_damaged_texts(seed: int, corpus: Path, shared: Path) -> None:
    damage(seed, 2000, list(texts([corpus / "modules", shared / "hlo" / "xla"])))


def damage(seed: int, count: int, paths: list[Path]) -> None:
    """Both accept the same ones of `count` damaged texts."""
    generator = random.Random(seed)
    small = [
        text
        for path in paths
        if len(text := path.read_text(errors="surrogateescape", encoding="utf-8")) < 4000
    ]
    verdicts = Verdicts()
    for _ in range(count):
        text = mutated(generator, generator.choice(small))
        try:
            valid = verdicts.canonical(text) is not None
        except XlaError:
            continue
        message = refusal(text)
        if message is None:
            assert valid, text
        elif valid:
            assert _STRICTER.search(message), (message, text)


def refusal(text: str) -> str | None:
    """Why a strict reader rejects a text, or None."""
    try:
        parse_module(text, strict=True)
    except HloSyntaxError as error:
        return error.message
    return None
