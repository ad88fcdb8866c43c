"""Every rule of the algebraic simplifier preserves what it claims, on random and corner values."""

from __future__ import annotations

import numpy as np
import pytest
from rewrite import algebra_logic_cases, algebra_movement_cases  # noqa: F401 - importing them enters their cases
from rewrite.algebra_cases import CASES, Case
from support.differential import Array
from support.rewrites import rewrite

from hlotool.backends.numpy import NumpyBackend
from hlotool.errors import UsageError
from hlotool.ir.builder import Builder, array
from hlotool.ir.module import Module
from hlotool.lab.conformance.agreement import Tolerance, wrong
from hlotool.lab.conformance.generators.cases import values
from hlotool.parser.reader import parse_module
from hlotool.rewrite.passes.algebra.rules import RULES, Exactness
from hlotool.rewrite.passes.algebra.simplify import Simplify

#: Random arguments for each case; together they meet all corner values.
DRAWS = 6
#: What a rule that changes rounding may change: two roundings instead of one, and subnormals are coarse.
_ROUNDING = Tolerance(4, "value")


SINGLE = [
    pytest.param(case, kind, id=f"{case.rule}-{number}-{kind}")
    for number, case in enumerate(CASES)
    for kind in case.kinds
]


def built(case: Case, kind: str) -> Module:
    """The module of a case."""
    builder = Builder("law")
    for number, (own, dims) in enumerate(_parameters(case, kind)):
        builder.parameter(number, array(own, *dims))
    return builder.build_module(case.build(builder, kind, *tuple(builder.instructions)))


def drawn(case: Case, kind: str, seed: int) -> list[Array]:
    """Arguments for it; every other time corner values alone."""
    rng = np.random.default_rng(seed)
    return [values(rng, own, dims, corners=1.0 if seed % 2 else 0.3) for own, dims in _parameters(case, kind)]


def _parameters(case: Case, kind: str) -> list[tuple[str, tuple[int, ...]]]:
    return [p if p and isinstance(p[0], str) else (kind, p) for p in case.parameters]


@pytest.mark.parametrize(("case", "kind"), SINGLE)
def test_rule(case: Case, kind: str) -> None:
    module = built(case, kind)
    rewritten, manager = rewrite(module, f"simplify{{allow=rounding rules={case.rule}}}")
    assert sum(manager.runs[0].changes.values()) == case.rewritten
    if not case.rewritten:
        return
    before, after = (NumpyBackend().compile(m) for m in (module, rewritten))
    for seed in range(DRAWS):
        arguments = drawn(case, kind, seed)
        expected, actual = np.asarray(before.run(arguments)), np.asarray(after.run(arguments))
        unequal = broken(case, module, expected, actual, arguments)
        assert not unequal.any(), (expected[unequal], actual[unequal], [a[unequal] for a in arguments])


def broken(case: Case, module: Module, expected: Array, actual: Array, arguments: list[Array]) -> Array:
    """Where the rule did not keep what it promises."""
    exactness = RULES[case.rule].exactness
    tolerance = _ROUNDING if exactness is Exactness.ROUNDING else Tolerance()
    unequal = wrong(expected, actual, module.entry.root.element_type, tolerance)
    if exactness is Exactness.ZERO_SIGN:
        unequal &= expected != actual
    if exactness is Exactness.UNLESS_NAN:
        unequal &= ~np.logical_or.reduce([is_nan(a) for a in (expected, *arguments)])
    return unequal


def is_nan(values: Array) -> Array:
    return np.asarray(values != values)


def test_every_rule_is_tested_where_it_applies() -> None:
    assert {case.rule for case in CASES if case.rewritten and case.kinds} == set(RULES)


def test_every_rule_states_its_law() -> None:
    assert all(rule.about.endswith(".") for rule in RULES.values())
    assert len(RULES) >= 50


@pytest.mark.parametrize("exactness", Exactness)
def test_only_what_is_allowed_is_applied(exactness: Exactness) -> None:
    for case in CASES:
        if not case.rewritten or "f32" not in case.kinds:
            continue
        module = built(case, "f32")
        _, manager = rewrite(module, f"simplify{{allow={exactness.value} rules={case.rule}}}")
        applies = RULES[case.rule].exactness.rank <= exactness.rank
        assert sum(manager.runs[0].changes.values()) == applies, case.rule


def test_fused_computations_are_left_alone_unless_asked_for() -> None:
    text = """HloModule m
    f { p = f32[] parameter(0) q = f32[] parameter(1) z = f32[] constant(0)
        d = f32[] subtract(q, z) n = f32[] multiply(d, d)
        c = pred[] compare(p, p), direction=LT ROOT s = f32[] select(c, p, n) }
    ENTRY e { x = f32[] parameter(0) y = f32[] parameter(1)
        ROOT r = f32[] fusion(x, y), kind=kLoop, calls=f }"""
    module = parse_module(text)
    _, manager = rewrite(module, "simplify")
    assert manager.runs[0].changes == {}
    rewritten, manager = rewrite(module, "simplify{fused}")
    assert manager.runs[0].changes == {"subtract-zero": 1, "compare-self": 1, "select-constant": 1}
    assert [i.opcode for i in rewritten.computations[0].instructions] == ["parameter", "multiply"]
    assert len(rewritten.entry.root.operands) == 1


def test_layouts_must_agree() -> None:
    module = parse_module(
        """HloModule m ENTRY e { x = f32[2,3]{1,0} parameter(0) ROOT c = f32[2,3]{0,1} copy(x) }"""
    )
    _, manager = rewrite(module, "simplify")
    assert manager.runs[0].changes == {}


def test_shardings_are_not_lost() -> None:
    text = """HloModule m ENTRY e {{ x = f32[2] parameter(0){}
        ROOT c = f32[2] copy(x), sharding={{devices=[2]<=[2]}} }}"""
    for own, count in (("", 0), (", sharding={devices=[2]<=[2]}", 1), (", sharding={replicated}", 0)):
        _, manager = rewrite(parse_module(text.format(own)), "simplify")
        assert sum(manager.runs[0].changes.values()) == count


def test_copies_of_a_schedule_stay() -> None:
    text = "HloModule m{} ENTRY e {{ x = f32[2] parameter(0) c = f32[2] copy(x) ROOT n = f32[2] negate(c) }}"
    for header, count in (("", 1), (", is_scheduled=true", 0)):
        _, manager = rewrite(parse_module(text.format(header)), "simplify")
        assert sum(manager.runs[0].changes.values()) == count


def test_unknown_rules_are_named() -> None:
    module = parse_module("HloModule m ENTRY e { ROOT c = s32[] constant(7) }")
    with pytest.raises(UsageError, match="no rule 'add-one'"):
        rewrite(module, "simplify{rules=add-zero+add-one}")
    assert Simplify().allow == "exact"
