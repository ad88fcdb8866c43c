"""Fusion formation, and what the legality rules say against it, in XLA's words."""

from __future__ import annotations

import pytest
from support.rewrites import Program, check, rewrite

from hlotool.ir.edit import Editor
from hlotool.ir.module import Instruction, Module
from hlotool.parser.reader import parse_module
from hlotool.rewrite.passes.fusion_facts import (
    is_always_duplicable,
    is_expensive,
    is_fusible,
    loop_shape,
)
from hlotool.rewrite.passes.fusion_legality import (
    LOOP_RULES,
    MULTI_OUTPUT_RULES,
    RULES,
    FusionDecision,
    Part,
    Rule,
    Setting,
    may_fuse,
)

SUM = "sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n"


def module_of(entry: str) -> Module:
    return parse_module(f"HloModule m\n{SUM}ENTRY e {{ {entry} }}")


def fused(entry: str, options: str = "") -> Module:
    """The module after fusion, whose results are the same."""
    module = module_of(entry)
    pipeline = f"fuse{{{options}}}" if options else "fuse"
    check(Program(module), pipeline)
    return rewrite(module, pipeline)[0]


def fusions(module: Module) -> list[str]:
    """Kind and opcodes of each fusion of the entry, parameters left out."""
    return [
        f"{i.attributes['kind']}: {' '.join(m.opcode for m in c.instructions if m.opcode != 'parameter')}"
        for i in module.entry.instructions
        for c in i.called
        if i.opcode == "fusion"
    ]


def decide(entry: str, producer: str, consumer: str, rules: tuple[Rule, ...]) -> FusionDecision:
    module = module_of(entry)
    edit = Editor(module.entry)
    parts = [Part.of(next(i for i in edit if i.name == name)) for name in (producer, consumer)]
    return may_fuse(parts[0], parts[1], Setting(edit.users, module.entry.root), rules)


# Formation


def test_a_loop_takes_in_what_only_it_needs() -> None:
    module = fused(
        """x = f32[8] parameter(0) two = f32[] constant(2) b = f32[8] broadcast(two), dimensions={}
        m = f32[8] multiply(x, b) n = f32[8] negate(m) ROOT a = f32[8] add(n, b)"""
    )
    assert fusions(module) == ["kLoop: constant broadcast multiply negate add"]
    assert module.entry.root.name == "loop_add_fusion"
    assert [i.opcode for i in module.entry.instructions] == ["parameter", "fusion"]


def test_others_get_copies_of_cheap_broadcasts() -> None:
    module = fused(
        """x = f32[8] parameter(0) two = f32[] constant(2) b = f32[8] broadcast(two), dimensions={}
        m = f32[8] multiply(x, b) r = f32[8] negate(m) t = f32[8] subtract(x, b)
        d = f32[8] sine(t) ROOT a = (f32[8], f32[8], f32[8]) tuple(r, d, b)""",
        "kind=loop",
    )
    assert fusions(module) == [
        "kLoop: constant broadcast multiply negate",
        "kLoop: constant broadcast subtract sine",
    ]
    assert "broadcast" in {i.opcode for i in module.entry.instructions}


def test_reductions_are_input_fusions_on_the_gpu_and_loops_on_the_cpu() -> None:
    entry = """x = f32[4,8] parameter(0) z = f32[] constant(0) e = f32[4,8] exponential(x)
        r = f32[4] reduce(e, z), dimensions={1}, to_apply=sum ROOT n = f32[4] negate(r)"""
    assert fusions(fused(entry)) == ["kInput: constant exponential reduce"]
    assert fusions(fused(entry, "target=cpu")) == ["kLoop: constant exponential reduce negate"]
    assert fusions(fused(entry, "kind=loop")) == []


def test_expensive_work_is_neither_repeated_nor_done_twice() -> None:
    repeated = """x = f32[8] parameter(0) e = f32[8] exponential(x)
        b = f32[8,4] broadcast(e), dimensions={0} ROOT n = f32[8,4] negate(b)"""
    assert fusions(fused(repeated)) == ["kLoop: broadcast negate"]
    twice = """x = f32[8] parameter(0) e = f32[8] exponential(x) n = f32[8] negate(e) a = f32[8] abs(n)
        s = f32[8] sine(e) c = f32[8] cosine(s) ROOT t = (f32[8], f32[8]) tuple(a, c)"""
    assert fusions(fused(twice, "kind=loop")) == ["kLoop: negate abs", "kLoop: sine cosine"]


def test_a_broadcast_is_not_written_for_one_operation() -> None:
    biased = """x = f32[8,4] parameter(0) y = f32[4] parameter(1)
        b = f32[8,4] broadcast(y), dimensions={1} ROOT a = f32[8,4] add(x, b)"""
    assert fusions(fused(biased)) == ["kLoop: broadcast add"]
    reshaped = """x = f32[4] parameter(0) r = f32[2,2] reshape(x)
        ROOT b = f32[3,2,2] broadcast(r), dimensions={1,2}"""
    assert fusions(fused(reshaped)) == []


def test_updates_in_place_read_nothing_else_of_their_buffer() -> None:
    entry = """x = f32[8] parameter(0) i = s32[] parameter(1) n = f32[8] negate(x)
        s = f32[2] slice(BUFFER), slice={[3:5]} e = f32[2] sine(s)
        ROOT u = f32[8] dynamic-update-slice(x, e, i)"""
    computed_before = fused(entry.replace("BUFFER", "n"))
    assert fusions(computed_before) == ["kLoop: slice sine dynamic-update-slice"]
    assert "negate" in {i.opcode for i in computed_before.entry.instructions}
    same = entry.replace("BUFFER", "x").replace("n = f32[8] negate(x)", "")
    assert fusions(fused(same)) == ["kLoop: sine dynamic-update-slice"]


def test_siblings_become_one_kernel() -> None:
    module = fused(
        """x = f32[4,8] parameter(0) z = f32[] constant(0) e = f32[4,8] exponential(x)
        r = f32[4] reduce(e, z), dimensions={1}, to_apply=sum
        q = f32[4] reduce(x, z), dimensions={1}, to_apply=sum
        c = f32[8] reduce(x, z), dimensions={0}, to_apply=sum
        ROOT t = (f32[4], f32[4], f32[8]) tuple(r, q, c)"""
    )
    assert fusions(module) == ["kInput: constant exponential reduce constant reduce tuple"]
    assert [i.opcode for i in module.entry.instructions].count("get-tuple-element") == 2


def test_a_producer_becomes_another_output() -> None:
    module = fused(
        """x = f32[8] parameter(0) e = f32[8] exponential(x) n = f32[8] negate(e)
        ROOT t = (f32[8], f32[8]) tuple(e, n)""",
        "kind=multi-output",
    )
    assert fusions(module) == ["kLoop: exponential negate tuple"]


def test_no_cycle_through_a_fusion() -> None:
    """e is read by n and by what n waits for: as one kernel it would wait for itself."""
    entry = """x = f32[8] parameter(0) e = f32[8] exponential(x)
        s = f32[8] sort(e), dimensions={0}, to_apply=less
        n = f32[8] add(e, s) ROOT t = (f32[8], f32[8]) tuple(e, n)"""
    less = (
        "less { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = pred[] compare(a, b), direction=LT }\n"
    )
    module = parse_module(f"HloModule m\n{less}ENTRY e {{ {entry} }}")
    check(Program(module), "fuse{kind=multi-output}")
    assert fusions(rewrite(module, "fuse{kind=multi-output}")[0]) == []


def test_no_cycle_through_a_control_dependency() -> None:
    """s waits for p, and c reads s: p inside of c would have s wait for what reads it."""
    module = fused(
        """x = f32[8] parameter(0) p = f32[8] negate(x) s = f32[8] sine(x), control-predecessors={p}
        t = f32[8] cosine(s), control-predecessors={s} c = f32[8] multiply(p, t) ROOT r = f32[8] abs(c)"""
    )
    assert fusions(module) == ["kLoop: multiply abs"]


def test_fused_loops_of_bodies_and_branches_but_not_of_reducers() -> None:
    text = """HloModule m
    cond { p = (s32[], f32[4]) parameter(0) i = s32[] get-tuple-element(p), index=0
      n = s32[] constant(3) ROOT c = pred[] compare(i, n), direction=LT }
    body { p = (s32[], f32[4]) parameter(0) i = s32[] get-tuple-element(p), index=0
      x = f32[4] get-tuple-element(p), index=1 one = s32[] constant(1) j = s32[] add(i, one)
      a = f32[4] sine(x) b = f32[4] cosine(a) ROOT r = (s32[], f32[4]) tuple(j, b) }
    ENTRY e { s = (s32[], f32[4]) parameter(0)
      ROOT w = (s32[], f32[4]) while(s), condition=cond, body=body }"""
    module = parse_module(text)
    check(Program(module), "fuse")
    body = next(c for c in rewrite(module, "fuse")[0].computations if c.name == "body")
    assert [i.opcode for i in body.instructions].count("fusion") == 1


def test_sizes_are_limited() -> None:
    chain = " ".join(f"n{k + 1} = f32[4] negate(n{k})" for k in range(20))
    module = fused(f"n0 = f32[4] parameter(0) {chain} ROOT r = f32[4] abs(n20)", "max_instructions=8")
    assert all(len(c.instructions) <= 9 for i in module.entry.instructions for c in i.called)
    assert len(fusions(module)) == 3


def test_fusing_what_was_defused_changes_nothing_but_names() -> None:
    entry = (
        """x = f32[8] parameter(0) e = f32[8] exponential(x) n = f32[8] negate(e) ROOT a = f32[8] abs(n)"""
    )
    once = rewrite(module_of(entry), "fuse")[0]
    again = rewrite(once, "defuse,fuse")[0]
    assert fusions(once) == fusions(again) == ["kLoop: exponential negate abs"]


# Rules

FIRST, SECOND = "p", "c"


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (
            "x = f32[4] parameter(0) p = f32[4] call(x), to_apply=f ROOT c = f32[4] negate(p)",
            "the producer is not fusible",
        ),
        (
            "x = f32[4] parameter(0) p = f32[4] negate(x) ROOT c = f32[4] call(p), to_apply=f",
            "the consumer is not fusible",
        ),
        (
            "x = f32[4] parameter(0) c = f32[4] abs(x) ROOT p = f32[4] negate(x)",
            "not fusing into the output of the root instruction",
        ),
        (
            "x = f32[4] parameter(0) p = f32[4] negate(x) ROOT c = f32[4] abs(p), control-predecessors={x}",
            "control dependencies would be violated",
        ),
        (
            """x = f32[4] parameter(0) i = s32[] parameter(1) u = f32[2] parameter(2) p = f32[4] negate(x)
            ROOT c = f32[4] dynamic-update-slice(p, u, i)""",
            "Non-elementwise ops in consumer lead to inplace conflict after fusion.",
        ),
        (
            """x = f32[4] parameter(0) i = s32[] parameter(1) p = f32[2] slice(x), slice={[0:2]}
            ROOT c = f32[4] dynamic-update-slice(x, p, i)""",
            "The consumer is an in-place operation that has an additional operand that has the same value"
            " as the in-place buffer",
        ),
        (
            """x = f32[4] parameter(0) p = f32[4] negate(x) i = s32[2,1] parameter(1) u = f32[2] parameter(2)
            ROOT c = f32[4] scatter(p, i, u), update_window_dims={}, inserted_window_dims={0},
              scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum""",
            "do not fuse into the in-place operand of scatter",
        ),
        (
            """x = f32[4] parameter(0) p = f32[2] slice(x), slice={[0:2]} i = s32[2,1] parameter(1)
            ROOT c = f32[4] scatter(x, i, p), update_window_dims={}, inserted_window_dims={0},
              scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum""",
            "Producer uses the in-place operand of a scatter",
        ),
        (
            """x = f32[4] parameter(0) i = s32[2,1] parameter(1) u = f32[2] parameter(2)
            p = f32[4] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0},
              scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum
            ROOT c = f32[4] negate(p)""",
            "do not fuse into the output of scatter",
        ),
        ("x = f32[4] parameter(0) p = f32[4] negate(x) ROOT c = f32[4] abs(p)", ""),
    ],
)
def test_what_makes_a_fusion_illegal(entry: str, reason: str) -> None:
    text = f"HloModule m\n{SUM}f {{ q = f32[4] parameter(0) ROOT n = f32[4] sine(q) }}\nENTRY e {{ {entry} }}"
    module = parse_module(text)
    edit = Editor(module.entry)
    producer, consumer = (next(i for i in edit if i.name == name) for name in (FIRST, SECOND))
    decision = may_fuse(Part.of(producer), Part.of(consumer), Setting(edit.users, module.entry.root), RULES)
    assert decision.reason == reason
    assert bool(decision) == (not reason)


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (
            "x = f32[4,4] parameter(0)"
            " p = f32[4,4] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
            " ROOT c = f32[4,4] negate(p)",
            "producer is not loop-fusible",
        ),
        ("x = f32[4] parameter(0) p = f32[4] exponential(x) ROOT c = f32[4] negate(p)", ""),
        (
            "x = f32[4] parameter(0) p = f32[4] exponential(x) c = f32[4] negate(p) d = f32[4] abs(p)"
            " ROOT t = (f32[4], f32[4]) tuple(c, d)",
            "expensive producer would be duplicated",
        ),
        (
            "x = f32[4] parameter(0) p = f32[4] negate(x) c = f32[4] sine(p) d = f32[4] abs(p)"
            " ROOT t = (f32[4], f32[4]) tuple(c, d)",
            "fusion pass cannot duplicate",
        ),
        (
            "x = f32[4] parameter(0) p = f32[4] exponential(x)"
            " ROOT c = f32[4,9] broadcast(p), dimensions={0}",
            "Fusion is not profitable.",
        ),
        (
            f"{' '.join(f'p{n} = f32[1] parameter({n})' for n in range(97))}"
            f" p = f32[50] concatenate({', '.join(f'p{n}' for n in range(50))}), dimensions={{0}}"
            f" ROOT c = f32[97] concatenate(p, {', '.join(f'p{n}' for n in range(50, 97))}),"
            " dimensions={0}",
            "Number of operands and output buffers is larger than allowed budget per fusion",
        ),
    ],
)
def test_what_a_loop_cannot_do(entry: str, reason: str) -> None:
    assert decide(entry, FIRST, SECOND, LOOP_RULES).reason == reason


REDUCTION = "f32[4] reduce(x, z), dimensions={1}, to_apply=sum"


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        (REDUCTION, REDUCTION, ""),
        (
            REDUCTION,
            "f32[8] reduce(x, z), dimensions={0}, to_apply=sum",
            "tiled reductions with different shapes",
        ),
        (REDUCTION, "f32[4,8] negate(x)", ""),
        (REDUCTION, "f32[32] reshape(x)", "different loop shapes"),
        ("f32[4,8] negate(x)", "f32[4,8] sine(x)", ""),
        (
            "f32[4,8] negate(x)",
            "f32[4,8] dynamic-update-slice(x, u, i, i)",
            "In-place operations are present",
        ),
        (
            "f32[4,8] negate(x), control-predecessors={x}",
            "f32[4,8] sine(x)",
            "control dependencies would be violated",
        ),
    ],
)
def test_what_may_be_outputs_of_one_kernel(first: str, second: str, reason: str) -> None:
    shapes = [text.split()[0] for text in (first, second)]
    entry = f"""x = f32[4,8] parameter(0) z = f32[] parameter(1) u = f32[1,1] parameter(2)
        i = s32[] parameter(3)
        p = {first} c = {second} ROOT t = ({", ".join(shapes)}) tuple(p, c)"""
    assert decide(entry, FIRST, SECOND, MULTI_OUTPUT_RULES).reason == reason


def test_many_reductions() -> None:
    outputs = [f"r{n} = f32[4] reduce(x, z), dimensions={{1}}, to_apply=sum" for n in range(8)]
    body = f"""f {{ x = f32[4,8] parameter(0) z = f32[] parameter(1) {" ".join(outputs)}
        ROOT t = ({", ".join(["f32[4]"] * 8)}) tuple({", ".join(f"r{n}" for n in range(8))}) }}"""
    text = f"""HloModule m\n{SUM}{body}
    ENTRY e {{ x = f32[4,8] parameter(0) z = f32[] parameter(1)
      p = ({", ".join(["f32[4]"] * 8)}) fusion(x, z), kind=kInput, calls=f
      c = f32[4] reduce(x, z), dimensions={{1}}, to_apply=sum ROOT n = f32[4] negate(c) }}"""
    module = parse_module(text)
    edit = Editor(module.entry)
    parts = [Part.of(next(i for i in edit if i.name == name)) for name in (FIRST, SECOND)]
    decision = may_fuse(*parts, Setting(edit.users, module.entry.root), MULTI_OUTPUT_RULES)
    assert decision.reason == "over 8 unnested reductions in fusion"
    assert parts[0].is_multi_output
    assert [i.name for i in parts[0].inputs] == ["x", "z"]


# Facts


def instruction(text: str) -> Instruction:
    module = module_of(
        f"x = f32[4] parameter(0) c = c64[4] parameter(1) k = s32[4] parameter(2) ROOT r = {text}"
    )
    return module.entry.root


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f32[4] add(x, x)", False),
        ("f32[4] exponential(x)", True),
        ("f32[4] divide(x, x)", True),
        ("s32[4] divide(k, k)", True),
        ("f32[4] sine(x)", False),
        ("c64[4] sine(c)", True),
    ],
)
def test_expensive(text: str, expected: bool) -> None:
    assert is_expensive(instruction(text)) == expected


def test_division_by_a_constant_is_cheap_for_integers() -> None:
    module = module_of("k = s32[] parameter(0) n = s32[] constant(7) ROOT r = s32[] divide(k, n)")
    assert not is_expensive(module.entry.root)


def test_duplicable_and_fusible() -> None:
    assert is_always_duplicable(instruction("f32[4,9] broadcast(x), dimensions={0}"))
    assert is_always_duplicable(instruction("f64[4] convert(x)"))
    assert not is_always_duplicable(instruction("f16[4] convert(x)"))
    assert not is_fusible(module_of("ROOT p = f32[] parameter(0)").entry.root)


def test_a_reduction_iterates_over_what_it_reads() -> None:
    module = module_of(f"x = f32[4,8] parameter(0) z = f32[] parameter(1) ROOT r = {REDUCTION}")
    assert loop_shape(module.entry.root) == (4, 8)
