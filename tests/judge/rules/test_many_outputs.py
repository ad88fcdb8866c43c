"""Many outputs of one program: executed once for all of them, and each judged for itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from hlotool.backends.numpy import NumpyBackend
from hlotool.judge.comparison import Comparison
from hlotool.judge.rules.explaining import EXPLAINED
from hlotool.judge.rules.judge import judge
from hlotool.judge.rules.judgement import judgement_of
from hlotool.judge.verdicts import Verdict
from hlotool.parser.reader import parse_module

MANY = 12
PARTS = "\n".join(
    f"  c{n} = f32[] constant({n + 2})\n  b{n} = f32[16,64] broadcast(c{n}), dimensions={{}}\n"
    f"  y{n} = f32[16,64] multiply(e, b{n})"
    for n in range(MANY)
)
MANY_OUTPUTS = f"""ENTRY e {{
  x = f32[16,64] parameter(0)
  e = f32[16,64] exponential(x)
{PARTS}
  ROOT t = ({", ".join(["f32[16,64]"] * MANY)}) tuple({", ".join(f"y{n}" for n in range(MANY))})
}}"""


def _executions(after: str, **options: Any) -> tuple[Comparison, int]:
    """The comparison of all outputs, and how often programs were executed for it."""
    arguments = [np.random.default_rng(0).standard_normal((16, 64)).astype(np.float32)]
    tested_module = parse_module(after)
    actual = NumpyBackend().compile(tested_module).run(arguments)
    judgement = judgement_of(parse_module(MANY_OUTPUTS), arguments, actual, tested=tested_module)
    count = 0

    def counted(side: Any) -> Any:
        def execute(backend: Any) -> Any:
            run = side.execute(backend)

            def once() -> Any:
                nonlocal count
                count += 1
                return run()

            return once

        def watch(backend: Any, probe: Any) -> Any:
            nonlocal count
            count += 1
            return side.watch(backend, probe)

        return replace(side, execute=execute, watch=watch)

    tested = judgement.tested
    assert tested is not None
    judgement = replace(judgement, reference=counted(judgement.reference), tested=counted(tested), **options)
    return judge(judgement), count


def test_many_wrong_outputs_take_two_executions_and_the_worst_are_explained() -> None:
    after = MANY_OUTPUTS.replace("exponential(x)", "exponential-minus-one(x)")
    comparison, executions = _executions(after)
    assert [leaf.verdict for leaf in comparison.leaves] == [Verdict.WRONG] * MANY
    evidence = [leaf.evidence for leaf in comparison.leaves if leaf.evidence is not None]
    assert sum(e.explained for e in evidence) == EXPLAINED
    assert executions == 2
    comparison, _ = _executions(after, thorough=True)
    assert all(leaf.evidence is not None and leaf.evidence.explained for leaf in comparison.leaves)


def test_one_wrong_output_accuses_no_other_one() -> None:
    after = MANY_OUTPUTS.replace("y1 = f32[16,64] multiply(e, b1)", "y1 = f32[16,64] multiply(e, b0)")
    comparison, _ = _executions(after)
    verdicts = [leaf.verdict for leaf in comparison.leaves]
    assert verdicts.pop(1) is Verdict.WRONG
    assert verdicts == [Verdict.IDENTICAL] * (MANY - 1)
