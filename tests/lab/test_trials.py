"""What a backend is tried on: names that find it again, and the element type that it is about."""

from __future__ import annotations

import pytest

from hlotool.ir.types import ElementType
from hlotool.lab.conformance.generators.cases import generators
from hlotool.lab.conformance.trials import Trial, subject, trial_named, trials
from hlotool.parser.reader import parse_module

ALL: frozenset[str] = frozenset()


def same(one: Trial, other: Trial) -> bool:
    return (one.name, one.title, str(one.case)) == (other.name, other.title, str(other.case))


@pytest.mark.parametrize("opcode", ["add", "reduce", "all-reduce", "custom-call"])
def test_a_name_finds_the_trial_again(opcode: str) -> None:
    found = list(trials(opcode, ALL, 3, 7))
    assert len({trial.name for trial in found}) == len(found)
    assert all(same(trial, trial_named(trial.name)) for trial in found[:2] + found[-2:])
    assert sum(trial.spec is None for trial in found) == (3 if opcode in generators() else 0)


@pytest.mark.parametrize("name", ["add:1000000", "add", "nothing:1", "add#0/0"])
def test_a_name_of_nothing(name: str) -> None:
    with pytest.raises(ValueError):
        trial_named(name)


def test_the_types_that_were_asked_for() -> None:
    found = list(trials("multiply", frozenset({"bf16", "s8"}), 4, 0))
    assert {trial.element_type for trial in found} == {ElementType.BF16, ElementType.S8}
    assert sum(trial.spec is None for trial in found) == 4


def test_random_trials_have_as_many_types_as_possible() -> None:
    kinds = [trial.element_type for trial in trials("multiply", ALL, 15, 0) if trial.spec is None]
    assert len(kinds) == len(set(kinds)) == 15


def test_seeds_make_other_trials() -> None:
    def drawn(seed: int) -> list[bytes]:
        return [t.case.arguments[0].tobytes() for t in trials("abs", ALL, 3, seed) if t.spec is None]

    assert drawn(0) != drawn(1)


@pytest.mark.parametrize(
    ("text", "opcode", "kind"),
    [
        ("r = s8[2] convert(f32[2])", "convert", ElementType.F32),
        ("r = pred[2] compare(bf16[2], bf16[2]), direction=LT", "compare", ElementType.BF16),
        ("r = u8[2] select(pred[2], u8[2], u8[2])", "select", ElementType.U8),
        ("r = s16[2] iota(), iota_dimension=0", "iota", ElementType.S16),
        ("ENTRY e { ROOT t = token[] after-all() }", "after-all", None),
    ],
)
def test_the_type_is_that_of_the_data(text: str, opcode: str, kind: ElementType | None) -> None:
    assert subject(opcode, parse_module(text)) is kind


def test_single_instructions_are_not_scheduled() -> None:
    """A schedule would send them past most of a compiler."""
    found = [
        trial
        for trial in trials("abs", ALL, 0, 0)
        if "HloModule" not in ((trial.spec and trial.spec.text) or "")
    ]
    together = [trial for trial in found if not trial.xla_cannot]
    assert together
    assert not any(trial.module.is_scheduled or trial.stands_alone for trial in together)
