"""What a run shows of decisions inside of loops, fusions, functions called twice, on several devices."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hlotool.backends.numpy import NumpyBackend
from hlotool.errors import Unsupported
from hlotool.facts.decisions import Kind
from hlotool.inputs.coverage.observer import (
    Coverage,
    Instrumented,
    Observer,
    ProgramDecisions,
    coverage_record,
    merged,
    observe,
)
from hlotool.inputs.coverage.outcomes import outcome_tests
from hlotool.inputs.generate import generate_inputs
from hlotool.ir.devices import DeviceGrid
from hlotool.ir.module import Module
from hlotool.parser.reader import parse_module

CORPUS = Path(__file__).resolve().parents[2] / "corpus" / "modules"

#: Kinds that more than the operands tell.
NOT_BY_OPERANDS = {Kind.TRIP_COUNT, Kind.ORDER, Kind.TIES, Kind.OVERLAP, Kind.NAN}

LOOP = """HloModule m
scaled { x = f32[] parameter(0) two = f32[] constant(2) p = pred[] compare(x, two), direction=LT
  y = f32[] multiply(x, two) ROOT r = f32[] select(p, y, x) }
body { s = (s32[], f32[]) parameter(0) i = s32[] get-tuple-element(s), index=0
  x = f32[] get-tuple-element(s), index=1 one = s32[] constant(1) k = s32[] add(i, one)
  f = f32[] fusion(x), kind=kLoop, calls=scaled
  ROOT r = (s32[], f32[]) tuple(k, f) }
cond { s = (s32[], f32[]) parameter(0) i = s32[] get-tuple-element(s), index=0 n = s32[] constant(4)
  ROOT c = pred[] compare(i, n), direction=LT }
ENTRY e { x = f32[] parameter(0) zero = s32[] constant(0) init = (s32[], f32[]) tuple(zero, x)
  w = (s32[], f32[]) while(init), condition=cond, body=body
  ROOT r = f32[] get-tuple-element(w), index=1 }
"""


def by_name(coverage: Coverage, name: str, kind: Kind) -> list[set[str]]:
    """Outcomes of the decisions of a kind of the instructions that stand for one of the program."""
    program = coverage.program
    return [
        set(coverage.outcomes(d))
        for d in program.decisions
        if d.kind is kind and program.originals[d.instruction].name == name
    ]


@pytest.mark.parametrize(
    ("x", "expected"), [(0.5, {"less", "equal"}), (5.0, {"greater"}), (0.7, {"less", "greater"})]
)
def test_every_iteration_counts(x: float, expected: set[str]) -> None:
    # 0.5, 1, 2, 2, … is doubled until it is 2; 0.7, 1.4, 2.8 passes it.
    coverage = observe(parse_module(LOOP), [np.float32(x)])
    assert by_name(coverage, "p", Kind.COMPARISON) == [expected]


def test_what_no_argument_decides_is_never_missing() -> None:
    """The counter meets the limit, and never passes it: no input could make it."""
    coverage = observe(parse_module(LOOP), [np.float32(5)])
    counter = next(d for d in coverage.program.decisions if d.instruction.name == "c")
    assert coverage.outcomes(counter) == {"less", "equal"}
    assert coverage.unreachable(counter) == {"greater"}
    # Of 4 iterations it is known before the loop runs.
    (loop,) = (d for d in coverage.program.decisions if d.kind is Kind.TRIP_COUNT)
    assert coverage.missing(loop) == ()
    assert [(d.kind, outcomes) for d, outcomes in coverage.never()] == [
        (Kind.COMPARISON, ("less", "equal")),
        (Kind.SELECTION, ("true",)),
    ]
    assert (coverage.covered, coverage.total) == (2, 4)


def test_each_call_decides_for_itself() -> None:
    text = """HloModule m
      positive { x = f32[] parameter(0) z = f32[] constant(0) ROOT p = pred[] compare(x, z), direction=GT }
      ENTRY e { x = f32[] parameter(0) y = f32[] parameter(1)
        a = pred[] call(x), to_apply=positive, metadata={source_file="a.py" source_line=1}
        b = pred[] call(y), to_apply=positive, metadata={source_file="a.py" source_line=2}
        ROOT r = (pred[], pred[]) tuple(a, b) }"""
    coverage = observe(parse_module(text), [np.float32(1), np.float32(-1)])
    assert by_name(coverage, "p", Kind.COMPARISON) == [{"greater"}, {"less"}]
    never = coverage_record(coverage).never
    assert [(d.source.user_line, d.source.instruction, d.never) for d in never] == [
        ("a.py:1", "p", ["less", "equal"]),
        ("a.py:2", "p", ["equal", "greater"]),
    ]


def test_a_loop_that_never_runs_leaves_its_decisions_open() -> None:
    text = LOOP.replace("n = s32[] constant(4)", "n = s32[] constant(0)")
    coverage = observe(parse_module(text), [np.float32(1)])
    assert by_name(coverage, "p", Kind.COMPARISON) == [set()]
    assert coverage.unreachable(next(d for d in coverage.program.decisions if d.kind is Kind.TRIP_COUNT)) == {
        "one",
        "several",
    }


NESTED = """HloModule m
inner_body { i = s32[] parameter(0) one = s32[] constant(1) ROOT k = s32[] subtract(i, one) }
inner_cond { i = s32[] parameter(0) z = s32[] constant(0) ROOT c = pred[] compare(i, z), direction=GT }
body { s = s32[] parameter(0) w = s32[] while(s), condition=inner_cond, body=inner_body
  one = s32[] constant(1) ROOT k = s32[] subtract(s, one) }
cond { i = s32[] parameter(0) z = s32[] constant(-1) ROOT c = pred[] compare(i, z), direction=GT }
ENTRY e { n = s32[] parameter(0) ROOT w = s32[] while(n), condition=cond, body=body }
"""


@pytest.mark.parametrize(
    ("count", "outer", "inner"),
    [
        (-1, {"none"}, set()),
        (0, {"one"}, {"none"}),
        (1, {"several"}, {"none", "one"}),
        (3, {"several"}, {"none", "one", "several"}),
    ],
)
def test_a_loop_in_a_loop(count: int, outer: set[str], inner: set[str]) -> None:
    coverage = observe(parse_module(NESTED), [np.int32(count)])
    found = {d.instruction: set(coverage.outcomes(d)) for d in coverage.program.decisions}
    loops = [i for i in found if i.opcode == "while"]
    entry = coverage.program.module.entry.root
    assert [found[i] for i in loops if i is entry] == [outer]
    assert [found[i] for i in loops if i is not entry] == [inner]


def test_runs_add_up() -> None:
    instrumented = Instrumented(parse_module(LOOP))
    one, other = (instrumented.run([np.float32(x)]) for x in (0.5, 5))
    both = instrumented.run([np.float32(5)], before=one)
    for coverage in (one.merge(other), merged([one, other]), both):
        assert by_name(coverage, "p", Kind.COMPARISON) == [{"less", "equal", "greater"}]
    assert by_name(other, "p", Kind.COMPARISON) == [{"greater"}]


def test_devices_add_up() -> None:
    text = """HloModule m, replica_count=2
      ENTRY e { x = f32[] parameter(0) z = f32[] constant(0) ROOT p = pred[] compare(x, z), direction=GT }"""
    program = ProgramDecisions(parse_module(text))
    observers = [Observer(program), Observer(program)]
    executable = NumpyBackend().compile_devices(program.module, DeviceGrid(2, 1))
    executable.run_devices([[np.float32(1)], [np.float32(-1)]], observers)
    coverage = merged(observer.coverage() for observer in observers)
    assert by_name(coverage, "p", Kind.COMPARISON) == [{"less", "greater"}]


def test_large_arrays_are_seen_to_the_end() -> None:
    """A sample is asked first; what it does not show is found all the same."""
    module = parse_module("""HloModule m
      ENTRY e { x = f32[300,200] parameter(0) z = f32[] constant(0)
        y = f32[300,200] broadcast(z), dimensions={} ROOT p = pred[300,200] compare(x, y), direction=GT }""")
    values = np.ones((300, 200), np.float32)
    values[299, 199] = -1
    coverage = observe(module, [values])
    assert by_name(coverage, "p", Kind.COMPARISON) == [{"less", "greater"}]
    values[299, 199] = np.nan
    assert by_name(observe(module, [values]), "p", Kind.COMPARISON) == [{"greater", "unordered"}]


def everything_decides() -> Sequence[tuple[str, Module]]:
    """The corpus has a module for every opcode."""
    return [(path.stem, parse_module(path.read_text())) for path in sorted(CORPUS.glob("*.hlo"))]


def test_every_outcome_has_a_test() -> None:
    found: set[Kind] = set()
    for name, module in everything_decides():
        for decision in ProgramDecisions(module).decisions:
            found.add(decision.kind)
            if decision.kind not in NOT_BY_OPERANDS:
                assert set(decision.all_outcomes) <= set(outcome_tests(decision)), name
    assert found == set(Kind)


def test_observed_programs_return_the_same() -> None:
    """Looking changes nothing, and what is called unreachable does not occur."""
    for name, module in everything_decides():
        arguments = generate_inputs(module, seed=1).values
        program = ProgramDecisions(module)
        unreachable, program.unreachable = program.unreachable, {}
        observer = Observer(program)
        try:
            executable = NumpyBackend().compile(program.module)
        except Unsupported:
            continue
        plain, seen = executable.run(arguments), executable.run(arguments, observer)
        assert flat(plain) == flat(seen), name
        coverage = observer.coverage()
        for decision, outcomes in unreachable.items():
            assert not outcomes & coverage.outcomes(decision), (name, decision)


def flat(value: Any) -> list[bytes]:
    """The bits of all arrays of a value."""
    if isinstance(value, tuple):
        return [bits for part in value for bits in flat(part)]
    return [np.asarray(value).tobytes()] if isinstance(value, np.ndarray | np.generic) else []
