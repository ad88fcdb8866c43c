"""Long literals that are read when somebody asks for them, and what commands that ask for none are spared."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.hlo_text import large_texts_begin_at, snapshot

from hlotool.errors import ExitCode, HloSyntaxError
from hlotool.interface.api.check import check
from hlotool.interface.api.inspect import inspect
from hlotool.ir.arrays import Array, Literal
from hlotool.ir.module import Module
from hlotool.ir.types import ELEMENT_TYPES, ArrayShape, ElementType
from hlotool.parser import reader
from hlotool.parser.text import literals
from hlotool.parser.text.literals import _PLAIN_SCALARS, decode_literal, is_plain

NUMBERS = ", ".join(f"{number}.5" for number in range(40))
#: A loop of four iterations, and a constant that is long enough not to be read.
PROGRAM = f"""HloModule jit_f

%body (s: (s32[], f32[40])) -> (s32[], f32[40]) {{
  %s.0 = (s32[], f32[40]{{0}}) parameter(0)
  %i.0 = s32[] get-tuple-element(%s.0), index=0
  %one = s32[] constant(1)
  %i.1 = s32[] add(%i.0, %one)
  %v.0 = f32[40]{{0}} get-tuple-element(%s.0), index=1
  %c.0 = f32[40]{{0}} constant({{{NUMBERS}}})
  %v.1 = f32[40]{{0}} add(%v.0, %c.0)
  ROOT %t = (s32[], f32[40]{{0}}) tuple(%i.1, %v.1)
}}

%condition (s.1: (s32[], f32[40])) -> pred[] {{
  %s.1 = (s32[], f32[40]{{0}}) parameter(0)
  %i.2 = s32[] get-tuple-element(%s.1), index=0
  %four = s32[] constant(4)
  ROOT %less = pred[] compare(%i.2, %four), direction=LT
}}

ENTRY %main (x: f32[40]) -> f32[40] {{
  %x = f32[40]{{0}} parameter(0)
  %zero = s32[] constant(0)
  %start = (s32[], f32[40]{{0}}) tuple(%zero, %x)
  %loop = (s32[], f32[40]{{0}}) while(%start), condition=%condition, body=%body
  ROOT %r = f32[40]{{0}} get-tuple-element(%loop), index=1
}}
"""
#: The same with an element too few.
WRONG = PROGRAM.replace("39.5}", "}").replace("38.5, ", "38.5")

#: Makes a text large, in a worker, too.
PADDING = "\n" * reader.LARGE


@pytest.fixture(autouse=True)
def _large() -> Iterator[None]:
    with large_texts_begin_at(0):
        yield


def constant(module: Module) -> Array:
    (found,) = (i for i in module.instructions() if i.name == "c.0")
    assert found.literal is not None
    return found.literal.array


def test_an_unread_literal_is_the_literal() -> None:
    unread = reader.parse_module(PROGRAM, reads_literals=False)
    np.testing.assert_array_equal(constant(unread), np.arange(40, dtype=np.float32) + 0.5)
    assert snapshot(unread) == snapshot(reader.parse_module(PROGRAM))
    assert unread.to_text() == reader.parse_module(PROGRAM).to_text()


def test_an_unread_literal_goes_to_other_processes() -> None:
    unread = reader.parse_module(PROGRAM, reads_literals=False)
    (literal,) = (i.literal for i in unread.instructions() if i.name == "c.0")
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(literal)).array, constant(unread))


def test_a_wrong_literal_is_an_error_where_it_is_asked_for() -> None:
    with pytest.raises(HloSyntaxError, match="39 elements"):
        reader.parse_module(WRONG)
    module = reader.parse_module(WRONG, reads_literals=False)
    for _ in range(2):
        with pytest.raises(HloSyntaxError, match="39 elements"):
            constant(module)


def test_what_was_not_read_proves_nothing_to_who_reads() -> None:
    """Lines and pieces are shared between texts of a process: not those that nobody has read."""
    for _ in range(2):
        reader.parse_module(WRONG, reads_literals=False)
        with pytest.raises(HloSyntaxError, match="39 elements"):
            reader.parse_module(WRONG)


@pytest.mark.parametrize("text", [PROGRAM, WRONG], ids=["right", "wrong"])
def test_inspect_asks_for_no_long_literal(tmp_path: Path, text: str) -> None:
    path = tmp_path / "program.hlo"
    path.write_text(text + PADDING, encoding="utf-8")
    found = inspect(str(path))
    (module,) = found.rows
    (stage,) = module.stages
    assert not module.failures
    assert [loop.iterations for loop in stage.loops] == [4]  # the constants 0, 1 and 4 of the text
    assert stage.memory.constants == 40 * 4 + 3 * 4
    assert found.functions[0].programs == 1


def test_programs_of_a_dump_are_told_apart_by_their_constants(tmp_path: Path) -> None:
    other = PROGRAM.replace("7.5", "8.5")
    for number, text in enumerate((PROGRAM, other, PROGRAM)):
        path = tmp_path / f"module_{number:04}.jit_f.before_optimizations.txt"
        path.write_text(text, encoding="utf-8")
    (function,) = inspect(str(tmp_path)).functions
    assert (function.compilations, function.programs) == (3, 2)


def test_check_reads_what_its_rules_ask_for(tmp_path: Path) -> None:
    path = tmp_path / "program.hlo"
    path.write_text(WRONG + PADDING, encoding="utf-8")
    assert check(str(path), only=["stateful-rng"]).exit_code == ExitCode.AGREE
    everything = check(str(path))
    assert everything.exit_code == ExitCode.USAGE
    assert "39 elements" in str(everything.failures[0].error.message)


SCALARS = (
    "0", "-0", "1", "-1", "00012", "255", "256", "65504", "65520", "2147483647", "2147483648", "-2147483648",
    "4294967295", "4294967296", "123456789012345678", "12345678901234567890", "1.5", "1.", "1e5", "1e+06",
    "1e-400", "1e+309", "3.40282347e+38", "3.4028236e+38", "-3.38953139e+38", "3.39e+38", "3.3962e+38",
    "true", "false", "inf", "-inf", "nan", "-nan", "nan(0x1)", "x", "",
)  # fmt: skip


@pytest.mark.parametrize("element_type", ELEMENT_TYPES.values(), ids=str)
def test_what_is_plain_can_be_decoded(element_type: ElementType) -> None:
    """What a text says is decoded later without an error, and what is in doubt at once."""
    plain = 0
    for dims in ((), (1,), (1, 1), (2,), (0,)):
        rank = len(dims)
        shape = ArrayShape(element_type, dims)
        for number in SCALARS:
            for text in (number, "{ " * (rank - 1) + f"{{{number}}}" + " }" * (rank - 1), f"{{{{{number}}}"):
                if is_plain(text, shape):
                    plain += 1
                    assert decode_literal(text, shape).array.shape == dims
    assert bool(plain) == (element_type in _PLAIN_SCALARS)


def test_a_scalar_is_decoded_when_it_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[str] = []

    def decode(text: str, shape: ArrayShape) -> Literal:
        decoded.append(text)
        return decode_literal(text, shape)

    monkeypatch.setattr(literals, "read_literal", decode)
    module = reader.parse_module("HloModule m\n\nENTRY e {\n  ROOT c = f32[1]{0} constant({2.5})\n}\n")
    literal = module.entry.root.literal
    assert literal is not None
    assert decoded == []
    assert pickle.loads(pickle.dumps(literal)).array.tolist() == literal.array.tolist() == [2.5]
    assert decoded == ["{2.5}"]
