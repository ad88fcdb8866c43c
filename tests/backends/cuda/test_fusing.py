"""What stands between operations is out of the way before they are fused; results are the same bits."""

from __future__ import annotations

import pytest
from support.differential import leaves
from support.kernels import differing, emulator, needs_compiler, on_numpy
from support.random_fusions import arguments_of, module_of, random_fusion

from hlotool.backends.cuda.kernel_backend import fused
from hlotool.ir.module import Module
from hlotool.parser.reader import parse_module
from hlotool.rewrite.passes.base import Context
from hlotool.rewrite.passes.calls import Defuse

_SUM = "sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n"

#: As JAX writes it: a function of its library, a sharding that says nothing, a tuple taken apart.
_CALLS = """HloModule calls
scaled { x = f32[30] parameter(0) c = f32[] constant(3) b = f32[30] broadcast(c), dimensions={}
  y = f32[30] multiply(x, b) z = f32[30] negate(y) ROOT t = (f32[30], f32[30]) tuple(y, z) }
ENTRY e { p = f32[30] parameter(0) s = f32[30] sine(p) t = (f32[30], f32[30]) call(s), to_apply=scaled
  y = f32[30] get-tuple-element(t), index=0 z = f32[30] get-tuple-element(t), index=1
  a = f32[30] custom-call(y), custom_call_target="xla.sdy.FuncResultSharding",
    custom_call_has_side_effect=true
  ROOT r = f32[30] subtract(a, z) }
"""

_SCALARS = """HloModule scalars
ENTRY e { p = f32[30] parameter(0) c = f32[] constant(2) d = f32[] sqrt(c) n = f32[] negate(d)
  b = f32[30] broadcast(n), dimensions={} ROOT r = f32[30] multiply(p, b) }
"""


def _launched(module: Module) -> list[str]:
    return [i.opcode for i in module.entry.instructions if i.opcode not in ("constant", "parameter", "tuple")]


@pytest.mark.parametrize("text", [_CALLS, _SCALARS], ids=["calls", "scalars"])
def test_one_kernel(text: str) -> None:
    module = parse_module(text)
    assert _launched(fused(module)) == ["fusion"]
    # The program itself is as it was.
    assert _launched(module) != ["fusion"]


def test_annotations_stay_where_others_read_them() -> None:
    module = parse_module(
        """HloModule regions
ENTRY e { p = f32[8] parameter(0), sharding={replicated}
  a = f32[8] custom-call(p), custom_call_target="Sharding", sharding={replicated}
  m = f32[8] custom-call(a), custom_call_target="SPMDFullToShardShape", sharding={manual}
  n = f32[8] negate(m)
  b = f32[8] custom-call(n), custom_call_target="Sharding", sharding={manual}
  ROOT r = f32[8] custom-call(b), custom_call_target="SPMDShardToFullShape", sharding={replicated} }
"""
    )
    targets = [i.attributes.get("custom_call_target") for i in fused(module).entry.instructions]
    assert targets.count("Sharding") == 2


@needs_compiler
@pytest.mark.parametrize("seed", range(9000, 9012))
def test_random_programs_give_the_bits_of_the_reference(seed: int) -> None:
    """Of one fusion each, taken apart first."""
    fusion = random_fusion(seed)
    module, arguments = parse_module(module_of([fusion])), arguments_of([fusion], seed)
    Defuse().run(module, Context("defuse"))
    ours = leaves(emulator().compile(module).run(arguments))
    assert [differing(a, b) for a, b in zip(ours, on_numpy(module, arguments))] == [0] * len(ours)
