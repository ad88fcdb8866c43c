"""Large texts are read line by line, and come to the same as texts read a token at a time."""

from __future__ import annotations

import gc
import random
from pathlib import Path
from typing import Any

import pytest
from support.hlo_mutation import mutated
from support.hlo_text import COMPUTATIONS, instruction, large_texts_begin_at, program, snapshot

from hlotool.errors import HloSyntaxError
from hlotool.ir.module import Module
from hlotool.parser import reader
from hlotool.parser.text import large
from hlotool.parser.text.syntax import Source

NEVER = 10**12


def outcome(text: str, large_from: int) -> list[Any] | str:
    """What reading `text` gives; errors are told apart no further."""
    with large_texts_begin_at(large_from):
        try:
            return snapshot(reader.parse_module(text, "file.hlo"))
        except HloSyntaxError:
            return "rejected"


def texts(*folders: Path) -> list[Path]:
    """The HLO texts below."""
    dumps = [p for folder in folders for p in folder.rglob("*optimizations.txt") if "buffer" not in p.name]
    return sorted([*dumps, *(p for folder in folders for p in folder.rglob("*.hlo"))])


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="surrogateescape")


def test_texts_of_the_corpus(corpus: Path) -> None:
    paths = texts(corpus)
    assert len(paths) > 200
    for path in paths[::3]:
        text = read(path)
        assert outcome(text, 0) == outcome(text, NEVER), path


@pytest.mark.slow
def test_all_texts_of_the_corpus(corpus: Path) -> None:
    for path in texts(corpus):
        text = read(path)
        assert outcome(text, 0) == outcome(text, NEVER), path


def test_shared_texts(shared: Path) -> None:
    for path in texts(shared / "hlo" / "xla", shared / "dumps"):
        text = read(path)
        if len(text) < 100_000:
            assert outcome(text, 0) == outcome(text, NEVER), path


@pytest.mark.slow
def test_shared_models(shared: Path) -> None:
    for path in sorted((shared / "hlo" / "models").rglob("*.txt")):
        text = read(path)
        assert outcome(text, 0) == outcome(text, NEVER), path


@pytest.mark.parametrize("seed", range(3))
def test_damaged_texts(seed: int, corpus: Path) -> None:
    damage(seed, 150, [read(p) for p in texts(corpus)])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 110))
def test_many_damaged_texts(seed: int, corpus: Path, shared: Path) -> None:
    damage(seed, 5000, [read(p) for p in texts(corpus, shared / "hlo" / "xla", shared / "dumps")])


def damage(seed: int, count: int, originals: list[str]) -> None:
    """Compare the two ways of reading on `count` damaged texts."""
    generator = random.Random(seed)
    small = [text for text in originals if 0 < len(text) < 6000]
    for _ in range(count):
        text = mutated(generator, generator.choice(small))
        assert outcome(text, 0) == outcome(text, NEVER), text


# Which lines are cut, and which are left to the parser

CUT = (
    "  %x = f32[2]{0} parameter(0)",
    '  x.1 = f32[2]{0} add(%x, f32[2]{0} %x), metadata={op_name="a" source_line=3}, backend_config={"a": 1}',
    "  ROOT t = (f32[2]{0}, /*index=1*/f32[]) tuple(/*index=0*/%x, %c), sharding={{replicated}, {manual}}",
    "  %c = f32[] constant(1), origin={{\"a\"}}",
)  # fmt: skip


def lines_left_to_the_parser(text: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many lines were not read from their pieces."""
    left: list[object] = []
    whole_line = large.LargeReader._whole_line

    def counted(self: large.LargeReader, *arguments: Any) -> bool:
        left.append(arguments)
        return whole_line(self, *arguments)

    monkeypatch.setattr(large.LargeReader, "_whole_line", counted)
    with large_texts_begin_at(0):
        reader.parse_module(text)
    return len(left)


def test_lines_of_dumps_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    x, add, root, c = CUT
    assert lines_left_to_the_parser(program(x, c, add, root), monkeypatch) == 0


@pytest.mark.parametrize(
    "line",
    [
        "  y = f32[2]{0}  negate(%x)",
        "  y = f32[2]{0} negate(x:)",
        "  y = negate(%x)",
        "  y = f32[2]{0} negate(abs(%x))",
        "  y = f32[2]{0} negate(%x) // a comment",
        "  y = f32[2]{/*a*/0} negate(%x)",
        "  y = f32[2]{0} call(%x), to_apply={ z = f32[2]{0} parameter(0) }",
        "  y = f32[2]{0} negate(%x), sharding={replicated} ",
        "  %inf = f32[2]{0} negate(%x)",
        '  y = f32[2]{0} negate(%x), metadata={op_name="a\n  b"}',
        '  y = f32[2]{0} negate(%x), metadata={op_name="a" source_line=1 op_type="b"}',
        '  y = f32[2]{0} negate(%x), sharding={replicated metadata={op_name="a"}}',
    ],
)
def test_other_lines_are_read_as_a_whole(line: str) -> None:
    text = program(CUT[0], line)
    assert outcome(text, 0) == outcome(text, NEVER) != "rejected"


def test_a_computation_over_several_lines_ends_the_cutting() -> None:
    text = program(CUT[0], "  y = f32[2]", "    negate(%x)", "  z = f32[2] abs(y)", computations=COMPUTATIONS)
    assert outcome(text, 0) == outcome(text, NEVER) != "rejected"


@pytest.mark.parametrize(
    "line",
    [
        "  y = f32[2]{0} negate(%x), metadata={op_name=\"a\"}, metadata={op_name=\"b\"}",
        "  y = f32[2]{0} negate(%x), metadata={op_name=\"\\q\"}",
        "  y = f32[2]{0} negate(%x), metadata={op_name=\"a\" op_name=\"b\"}",
        "  y = f32[2]{0} negate(%x), metadata={source_line=9999999999}",
        "  y = f32[99999999999999999999]{0} negate(%x)",
        "  y = f32[2]{099999999999999999999} negate(%x)",
        "  y = f32[2]{0} negate(%x), /* // */",
        "  y = f32[2]{0} negate(%x), dimensions={0}",
        "  y = f32[2]{0} negate(f32[3]{0} %x)",
        "  y = f32[2]{0} negate(%y)",
        "  true = f32[2]{0} negate(%x)",
        "  %f32 = f32[2]{0} negate(%x)",
        "  %x = f32[2]{0} negate(%x)",
        "  %inf = f32[2]{0} negate(%x)\n  y = f32[2]{0} negate(inf)",
        '  y = f32[2]{0} negate(%x), metadata={op_name="a\\"}',
        '  y = f32[2]{0} negate(%x), metadata={op_name="a\n  b"}\n  z = f32[2]{0} negate(%y)',
        "  y = f32[2]{0} negate(%x), , metadata={op_name=\"a\"}",
        "  y = f32[2]{0} negate(%x), ",
        "  y = f32[2]{} negate(%x)",
        "  y = f32[2]{0} parameter(0)",
        "  y = f32[2]{0} parameter(٣)",
        "  y = f32[] constant(٣)",
        "  y = f32[2]{0} constant({1, 2, 3})",
        "  y = (f32[2]{0}, token[2]) tuple(%x, %x)",
        "  y = f32[2]{0} negate(%x))",
        "  y = f32[2]{0} negate(%x){}",
    ],
)  # fmt: skip
def test_wrong_lines_are_not_overlooked(line: str) -> None:
    text = program(CUT[0], line, "  z = f32[2]{0} abs(%x)")
    assert outcome(text, 0) == outcome(text, NEVER) == "rejected"


def test_errors_of_large_texts_point_to_the_same_place() -> None:
    lines = [f"  x{i} = f32[2]{{0}} negate(x{i - 1})" for i in range(1, 2000)]
    text = program("  x0 = f32[2]{0} parameter(0)", *lines, "  y = f32[2]{0} negate(nowhere)")
    errors = []
    for large_from in (0, NEVER):
        with large_texts_begin_at(large_from), pytest.raises(HloSyntaxError) as caught:
            reader.parse_module(text, "file.hlo")
        errors.append((str(caught.value), caught.value.source_line))
    assert errors[0] == errors[1]
    assert errors[0][0] == "file.hlo:2004:24: y: no instruction before this one is called nowhere"


def test_shapes_of_large_texts_are_shared() -> None:
    with large_texts_begin_at(0):
        last = instruction(CUT[0], "  y = f32[2]{0} negate(%x)")
    assert last.shape is last.operands[0].shape


@pytest.mark.parametrize("was_on", [True, False])
def test_the_garbage_collector_is_left_as_it_was(was_on: bool) -> None:
    (gc.enable if was_on else gc.disable)()
    try:
        with pytest.raises(HloSyntaxError):
            reader.parse_module("x")
        assert gc.isenabled() is was_on
    finally:
        gc.enable()


def test_short_texts_are_cut_once_that_costs_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    cut: list[int] = []
    real = reader._read_large

    def noted(source: Source, *how: bool) -> Module | None:
        cut.append(len(source.text))
        return real(source, *how)

    monkeypatch.setattr(reader, "_read_large", noted)
    text = "HloModule m\n\nENTRY %e (p: f32[4]) -> f32[4] {\n  %p.0 = f32[4]{0} parameter(0)\n"
    text += "".join(f"  %p.{n + 1} = f32[4]{{0}} negate(%p.{n})\n" for n in range(100))
    text += "  ROOT %r = f32[4]{0} negate(%p.100)\n}\n"
    reader.forget_texts()
    first = reader.parse_module(text)
    assert cut == []
    for _ in range(reader.LARGE // len(text) + 1):
        again = reader.parse_module(text)
    assert set(cut) == {len(text)}
    assert again.to_text() == first.to_text()
