"""The rules by which XLA differs: each can be seen, and each is about something."""

from __future__ import annotations

import pytest
from support.differential import leaves, run
from support.xla import JAXLIB, oracle

from hlotool.ir.opcodes import OPCODES
from hlotool.ir.types import ArrayShape
from hlotool.lab.conformance import trials
from hlotool.lab.conformance.agreement import DEPARTURES, Departure, wrong
from hlotool.lab.conformance.running import bind
from hlotool.lab.conformance.spec_files import read_spec, spec_files, value_of
from hlotool.parser.reader import parse_module

RULES = list(DEPARTURES.values())
WITH_EXAMPLE = [rule for rule in RULES if rule.example is not None]


def rule_name(rule: Departure) -> str:
    return rule.id


@pytest.mark.xla
@pytest.mark.parametrize("rule", WITH_EXAMPLE, ids=rule_name)
def test_example(rule: Departure) -> None:
    """Both sides give what the rule says, and not the same."""
    example = rule.example
    assert example is not None
    if rule.side in ("gpu", "tpu"):
        pytest.skip(f"what compilers of {rule.side.upper()}s make is not executed by this XLA")
    if rule.until is not None and rule.until <= JAXLIB:
        pytest.skip(f"XLA gives this until jaxlib {rule.until}")
    module = parse_module(example.text)
    shape = module.entry.root.shape
    assert isinstance(shape, ArrayShape)
    arguments = [value_of(text, p.shape) for text, p in zip(example.inputs, module.entry.parameters)]
    if rule.side == "evaluator":
        text, given = bind(module, arguments).to_text(), []
    else:
        text, given = example.text, arguments
    (theirs,) = oracle().run(text, given, **example.options)
    (ours,) = run(example.text, arguments)
    (our_words,) = leaves(value_of(example.ours, shape))
    (their_words,) = leaves(value_of(example.xla, shape))
    assert not wrong(our_words, ours, shape.element_type).any()
    assert not wrong(their_words, theirs, shape.element_type).any()
    assert wrong(ours, theirs, shape.element_type).any()


@pytest.mark.parametrize("rule", RULES, ids=rule_name)
def test_a_rule_is_shown_somewhere(rule: Departure) -> None:
    shown = {case.rule for path in spec_files() for case in read_spec(path)}
    assert rule.example is not None or rule.id in shown


@pytest.mark.parametrize("rule", RULES, ids=rule_name)
def test_a_rule_is_complete(rule: Departure) -> None:
    assert rule.side in ("cpu", "evaluator", "gpu", "tpu")
    assert set(rule.opcodes) <= {"*", *OPCODES}
    assert rule.xla
    assert rule.ours
    assert rule.types
    assert rule.predicate is None or callable(getattr(trials, rule.predicate))


def test_no_predicate_without_a_rule() -> None:
    used = {rule.predicate for rule in RULES}
    defined = {
        name
        for name, value in vars(trials).items()
        if callable(value) and getattr(value, "__annotations__", {}).get("difference") == "Difference"
    }
    assert defined - {"explained"} == used - {None}
