"""Stages of a module share what their lines say, and nothing that could be changed in one of them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.hlo_mutation import mutated
from support.hlo_text import large_texts_begin_at, program, snapshot

from hlotool.errors import HloSyntaxError
from hlotool.parser import reader
from hlotool.parser.text import statements


def outcomes(texts: Sequence[str]) -> list[list[Any] | str]:
    """What reading each text gives, one after the other; errors by their message."""
    found: list[list[Any] | str] = []
    for text in texts:
        try:
            found.append(snapshot(reader.parse_module(text, "file.hlo")))
        except HloSyntaxError as error:
            found.append(str(error))
    return found


def in_order(texts: Sequence[str]) -> list[list[Any] | str]:
    reader.forget_texts()
    with large_texts_begin_at(0):
        return outcomes(texts)


def alone(texts: Sequence[str]) -> list[list[Any] | str]:
    """The same, each as if it were the first that is read."""
    found = []
    for text in texts:
        reader.forget_texts()
        found += outcomes([text])
    return found


@pytest.mark.parametrize("name", ["jax/collatz", "tf/while_gradient"])
def test_stages_read_after_each_other(name: str, corpus: Path) -> None:
    texts = [path.read_text(encoding="utf-8") for path in sorted((corpus / name).glob("*.txt"))]
    stages = [text for text in texts if text.startswith("HloModule")][:16]
    assert len(stages) == 16
    assert in_order(stages) == alone(stages)


@pytest.mark.parametrize("seed", range(2))
def test_damaged_stages(seed: int, corpus: Path) -> None:
    generator = random.Random(seed)
    path = corpus / "jax" / "collatz" / "module_0000.jit_collatz.before_optimizations.txt"
    original = path.read_text(encoding="utf-8")
    stages = [original, original]
    for _ in range(40):
        stages += [mutated(generator, original), original]
    found, expected = in_order(stages), alone(stages)
    rejected = [number for number, outcome in enumerate(found) if isinstance(outcome, str)]
    assert rejected == [number for number, outcome in enumerate(expected) if isinstance(outcome, str)] != []
    assert [outcome for outcome in found if not isinstance(outcome, str)] == [
        outcome for outcome in expected if not isinstance(outcome, str)
    ]


def test_equal_lines_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"  x{n} = f32[2]{{0}} parameter({n})" for n in range(50)]
    read: list[str] = []
    real = statements._LINE

    class Counted:
        findall = staticmethod(real.findall)

        @staticmethod
        def fullmatch(line: str) -> Any:
            read.append(line)
            return real.fullmatch(line)

    monkeypatch.setattr(statements, "_LINE", Counted)
    reader.forget_texts()
    with large_texts_begin_at(0):
        for last in ("negate", "negate", "abs"):
            read.clear()
            module = reader.parse_module(program(*lines, f"  ROOT y = f32[2]{{0}} {last}(x7)"))
    assert read == ["  ROOT y = f32[2]{0} abs(x7)"]
    assert module.entry.root.opcode == "abs"


def test_a_stage_is_not_changed_by_what_is_done_to_another() -> None:
    text = program("  x = f32[2]{0} parameter(0)", "  ROOT y = f32[2]{0} negate(x)")
    reader.forget_texts()
    with large_texts_begin_at(0):
        stages = [reader.parse_module(text) for _ in range(3)]
        expected = [snapshot(stage) for stage in stages]
        root = stages[1].entry.root
        root.operands, root.name, root.opcode = (), "z", "constant"
        stages[1].entry.instructions.clear()
        assert snapshot(reader.parse_module(text)) == expected[0] == snapshot(stages[2])


def test_another_module_of_equal_lines_has_its_own_names() -> None:
    """Names are looked up in the text at hand, not in that where the line stood before."""
    right = program("  x = f32[2]{0} parameter(0)", "  ROOT y = f32[2]{0} negate(x)")
    wrong = program("  z = f32[2]{0} parameter(0)", "  ROOT y = f32[2]{0} negate(x)")
    found = in_order([right, right, wrong, right])
    assert found[0] == found[1] == found[3]
    assert isinstance(found[2], str)
    assert "no instruction before this one is called x" in found[2]
