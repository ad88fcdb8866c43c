"""What is left of programs whose failure is planted: minimal, valid, and failing in the same way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.reduction import PlantedJudge, holds, reduced

import hlotool
from hlotool.blame.reduction.case import Case
from hlotool.blame.reduction.oracle import CaseOracle
from hlotool.blame.steps import Steps
from hlotool.errors import UsageError
from hlotool.inputs.generate import generate_inputs
from hlotool.ir.types import ArrayShape
from hlotool.system.cache import Journal

CHAIN = """HloModule chain
fused { a = f32[4,6] parameter(0) b = f32[4,6] cosine(a) ROOT c = f32[4,6] exponential(b) }
body {
  s = (s32[], f32[4,6]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[4,6] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  y = f32[4,6] tanh(x)
  z = f32[4,6] atan2(y, x)
  ROOT out = (s32[], f32[4,6]) tuple(next, z)
}
condition {
  s.1 = (s32[], f32[4,6]) parameter(0)
  i.1 = s32[] get-tuple-element(s.1), index=0
  limit = s32[] constant(9)
  ROOT less = pred[] compare(i.1, limit), direction=LT
}
yes { l = f32[4,6] parameter(0) ROOT m = f32[4,6] floor(l) }
no { r = f32[4,6] parameter(0) ROOT n = f32[4,6] ceil(r) }
ENTRY main {
  p = f32[4,6] parameter(0)
  q = f32[6,5] parameter(1)
  zero = s32[] constant(0)
  start = (s32[], f32[4,6]) tuple(zero, p)
  loop = (s32[], f32[4,6]) while(start), condition=condition, body=body
  v = f32[4,6] get-tuple-element(loop), index=1
  f = f32[4,6] fusion(v), kind=kLoop, calls=fused
  t = pred[] constant(false)
  c = f32[4,6] conditional(t, f, f), true_computation=yes, false_computation=no
  d = f32[4,5] dot(c, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  s.2 = f32[4,5] sine(d)
  ROOT result = (f32[4,5], f32[4,6]) tuple(s.2, v)
}
"""


def sizes(module: hlotool.ir.module.Module) -> set[int]:
    shapes = [i.shape for i in module.instructions()]
    return {d for shape in shapes if isinstance(shape, ArrayShape) for d in shape.dims}


@pytest.mark.parametrize("opcode", ["sine", "dot", "exponential", "tanh", "atan2", "ceil", "conditional"])
def test_one_operation_is_all_that_stays(opcode: str) -> None:
    found, _ = reduced(hlotool.parse(CHAIN), holds(opcode))
    opcodes = [
        i.opcode for i in found.case.module.instructions() if i.opcode not in ("parameter", "constant")
    ]
    assert opcodes.count(opcode) == 1
    assert len(opcodes) <= 2
    assert sizes(found.case.module) <= {1}
    assert found.before == 24
    assert all(not np.any(a) for a in found.case.arguments)


def test_two_operations_keep_what_lies_between_them() -> None:
    found, _ = reduced(hlotool.parse(CHAIN), holds("dot", "sine"))
    opcodes = [i.opcode for i in found.case.module.entry.instructions]
    assert sorted(opcodes) == ["dot", "parameter", "parameter", "sine"]


def test_a_loop_that_is_needed_is_shortened() -> None:
    found, _ = reduced(hlotool.parse(CHAIN), holds("while"))
    runs = [i for i in found.case.module.instructions() if i.opcode == "while"]
    assert len(runs) == 1
    [state] = [a for a in found.case.arguments if isinstance(a, tuple)] or [(8,)]
    assert int(state[0]) >= 4
    assert "tanh" not in found.case.text


def test_large_bodies_lose_whole_parts() -> None:
    """A loop that must stay, with 200 instructions of which one matters."""
    lines = ["  v0 = f32[3] parameter_value"]
    for n in range(1, 200):
        opcode = "atan2" if n == 120 else "multiply"
        lines.append(f"  v{n} = f32[3] {opcode}(v{n - 1}, v{max(n - 7, 0)})")
    body = "\n".join(lines).replace("parameter_value", "get-tuple-element(s), index=1")
    text = f"""HloModule large
body {{
  s = (s32[], f32[3]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
{body}
  ROOT out = (s32[], f32[3]) tuple(next, v199)
}}
condition {{
  c = (s32[], f32[3]) parameter(0)
  k = s32[] get-tuple-element(c), index=0
  limit = s32[] constant(4)
  ROOT less = pred[] compare(k, limit), direction=LT
}}
ENTRY main {{
  p = (s32[], f32[3]) parameter(0)
  ROOT loop = (s32[], f32[3]) while(p), condition=condition, body=body
}}
"""
    arguments = ((np.int32(0), np.array([0.5, 1, 2], np.float32)),)
    found, judge = reduced(hlotool.parse(text), holds("while", "atan2"), arguments)
    assert found.case.size <= 12
    assert len(judge.judged) < 80


def test_values_that_matter_are_kept() -> None:
    """Bad where the program takes a sine of something above 2."""

    def opinion(module: hlotool.ir.module.Module, arguments: object) -> str:
        assert isinstance(arguments, tuple)
        seen: list[float] = []

        def probe(instruction: hlotool.ir.module.Instruction, value: object) -> None:
            if instruction.opcode == "negate":
                seen.append(float(np.max(np.asarray(value))))

        hlotool.backends.registry.get_backend("numpy").compile(module).run(arguments, probe)
        return "bad" if max(seen, default=0) > 2 else ""

    text = """HloModule v
    ENTRY main {
      p = f32[8] parameter(0)
      a = f32[8] add(p, p)
      n = f32[8] negate(a)
      ROOT s = f32[8] sine(n)
    }"""
    value = np.array([-1, 0.3, 1.7, -1.4, 0.2, 0, 1, 2], np.float32)
    found, _ = reduced(hlotool.parse(text), opinion, [value])
    assert [i.opcode for i in found.case.module.entry.instructions] == ["parameter", "negate"]
    [argument] = found.case.arguments
    assert float(-argument.min()) > 2


def test_a_failure_never_becomes_another_one() -> None:
    """A wrong value while there is a dot, a crash as soon as the sine is gone."""

    def opinion(module: hlotool.ir.module.Module, arguments: object) -> str:
        opcodes = {i.opcode for i in module.instructions()}
        if "dot" not in opcodes:
            return ""
        return "wrong" if "sine" in opcodes else "crash"

    found, judge = reduced(hlotool.parse(CHAIN), opinion)
    assert found.failure == "wrong"
    assert {"dot", "sine"} <= {i.opcode for i in found.case.module.instructions()}
    assert judge.judged


def test_a_program_that_does_not_fail_is_refused() -> None:
    with pytest.raises(UsageError, match="does not fail"):
        reduced(hlotool.parse(CHAIN), holds("cholesky"))


def test_the_nearest_program_that_passes_is_kept() -> None:
    found, _ = reduced(hlotool.parse(CHAIN), holds("dot", "sine"))
    assert found.passing is not None
    opcodes = {i.opcode for i in found.passing.module.instructions()}
    assert not {"dot", "sine"} <= opcodes
    assert found.passing.size <= 4


def test_every_candidate_is_judged_once_and_none_again_after_a_crash(tmp_path: Path) -> None:
    module = hlotool.parse(CHAIN)
    whole, judge = reduced(module, holds("dot", "sine"))
    keys = [case.key for case in judge.judged]
    # The original is judged twice, to see whether it fails always.
    assert len(set(keys)) >= len(keys) - 1

    for stop in range(1, len(keys), 5):
        path = tmp_path / f"{stop}"

        def dies(m: hlotool.ir.module.Module, a: object, count: list[int] = [], stop: int = stop) -> str:  # noqa: B006
            count.append(1)
            if len(count) > stop:
                raise KeyboardInterrupt
            return holds("dot", "sine")(m, a)  # type: ignore[arg-type]

        dies.__defaults__[0].clear()  # type: ignore[index]
        with pytest.raises(KeyboardInterrupt):
            reduced(module, dies, journal=Journal(path))  # type: ignore[arg-type]
        again, later = reduced(module, holds("dot", "sine"), journal=Journal(path))
        assert again.case.text == whole.case.text
        assert len(later.judged) == len(keys) - stop


def test_types_become_simpler() -> None:
    text = "HloModule t ENTRY main { p = bf16[8] parameter(0) ROOT s = bf16[8] sine(p) }"
    found, _ = reduced(hlotool.parse(text), holds("sine"))
    assert found.case.module.entry.root.shape == ArrayShape(hlotool.ir.types.ElementType.F32, (1,))


class TestFlaky:
    """A failure that shows in some runs only."""

    def oracle(self, pattern: str) -> CaseOracle:
        judge = PlantedJudge(lambda module, _: "")
        turns = iter(pattern)

        def opinion(module: hlotool.ir.module.Module, _: object) -> str:
            has_sine = "sine" in {i.opcode for i in module.instructions()}
            return "bad" if next(turns) == "b" and has_sine else ""

        judge.opinion = opinion  # type: ignore[assignment]
        return CaseOracle(judge, Steps(), confidence=0.9)

    def test_the_rate_is_measured_and_more_runs_are_made(self) -> None:
        from hlotool.blame.reduction.reducer import reduce_case

        module = hlotool.parse(CHAIN)
        arguments = generate_inputs(module, 0).values
        oracle = self.oracle("gbbgb" * 4000)
        found = reduce_case(Case(module, arguments), oracle)
        assert oracle.rate is not None
        assert 0.4 < oracle.rate.estimate < 0.8
        assert "sine" in {i.opcode for i in found.case.module.instructions()}
        assert found.case.size <= 2

    def test_steady_failures_have_no_rate(self) -> None:
        oracle = self.oracle("b" * 4000)
        module = hlotool.parse(CHAIN)
        oracle.lock(Case(module, generate_inputs(module, 0).values))
        assert oracle.rate is None
