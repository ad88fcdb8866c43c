"""Which instruction needs which; expected values are read off the text."""

from __future__ import annotations

from hlotool.ir.module import Instruction
from hlotool.parser.reader import parse_module
from hlotool.rewrite.passes.multi_output_fusion import Ancestors


def test_ancestors_follow_merges() -> None:
    module = parse_module(
        """HloModule m
        ENTRY entry { x = f32[] parameter(0) y = f32[] parameter(1) a = f32[] sine(x) b = f32[] cosine(y)
        c = f32[] abs(b) d = f32[] negate(a) ROOT e = f32[] add(c, d) }"""
    )
    x, y, a, b, c, d, e = module.entry.instructions
    ancestors = Ancestors(module.entry.instructions)
    assert ancestors.leads(x, d)
    assert not ancestors.leads(d, x)
    assert not ancestors.leads(y, d)
    merged, part = (Instruction(name, "tanh", a.shape, (x, y)) for name in "mp")
    ancestors.merge(a, b, [merged, part])
    for needed in (x, y, merged, part):
        assert all(ancestors.leads(needed, user) for user in (c, d, e))
    assert not any(ancestors.leads(merged, other) for other in (x, y, merged, part))
    assert not ancestors.leads(c, d)
