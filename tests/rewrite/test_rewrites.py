"""What each rewrite makes of small programs."""

from __future__ import annotations

import numpy as np
import pytest
from support.rewrites import Program, check, rewrite

from hlotool.errors import Unsupported, UsageError
from hlotool.ir.module import Computation, Module
from hlotool.parser.reader import parse_module
from hlotool.rewrite.passes.base import Context, Fuel
from hlotool.rewrite.passes.manager import PassManager
from hlotool.rewrite.passes.pipeline import parse_pipeline

SUM = "sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n"


def after(text: str, pipeline: str) -> Module:
    """The rewritten module, whose results are the same."""
    module = parse_module(f"HloModule m\n{text}")
    check(Program(module), pipeline)
    return rewrite(module, pipeline)[0]


def shown(computation: Computation) -> list[str]:
    return [f"{i.name}={i.opcode}({','.join(o.name for o in i.operands)})" for i in computation.instructions]


def changes(text: str, pipeline: str) -> dict[str, int]:
    return rewrite(parse_module(f"HloModule m\n{text}"), pipeline)[1].runs[0].changes


# dce


def test_dce_drops_outputs_of_fusions() -> None:
    text = """fused { p = f32[2] parameter(0) q = f32[2] parameter(1)
        a = f32[2] negate(p) b = f32[2] sine(q) c = f32[2] cosine(p)
        ROOT t = (f32[2], f32[2], f32[2]) tuple(a, b, c) }
    ENTRY e { x = f32[2] parameter(0) y = f32[2] parameter(1)
        f = (f32[2], f32[2], f32[2]) fusion(x, y), kind=kLoop, calls=fused
        KEPT }"""
    two = after(
        text.replace(
            "KEPT",
            "u = f32[2] get-tuple-element(f), index=0 v = f32[2] get-tuple-element(f), index=2 "
            "ROOT r = f32[2] add(u, v)",
        ),
        "dce",
    )
    assert shown(two.entry) == [
        "x=parameter()", "y=parameter()", "f=fusion(x)", "u=get-tuple-element(f)", "v=get-tuple-element(f)",
        "r=add(u,v)",
    ]  # fmt: skip
    assert [i.attributes["index"] for i in two.entry.instructions[3:5]] == [0, 1]
    one = after(text.replace("KEPT", "ROOT r = f32[2] get-tuple-element(f), index=1"), "dce")
    assert shown(one.entry) == ["x=parameter()", "y=parameter()", "f=fusion(y)"]
    assert shown(one.computations[0]) == ["q=parameter()", "b=sine(q)"]
    assert (
        changes(
            text.replace("KEPT", "ROOT r = f32[2] get-tuple-element(f), index=1"), "dce{fusion_outputs=false}"
        )
        == {}
    )


def test_dce_drops_results_of_branches_that_nothing_reads() -> None:
    text = """yes { x = f32[2] parameter(0) a = f32[2] tanh(x) b = f32[2] sine(x)
        ROOT t = (f32[2], f32[2]) tuple(a, b) }
    no { x = f32[2] parameter(0) a = f32[2] abs(x) ROOT t = (f32[2], f32[2]) tuple(a, x) }
    ENTRY e { p = pred[] parameter(0) x = f32[2] parameter(1)
        c = (f32[2], f32[2]) conditional(p, x, x), true_computation=yes, false_computation=no
        u = f32[2] get-tuple-element(c), index=1 KEPT }"""
    made = after(text.replace("KEPT", "ROOT r = f32[2] negate(u)"), "dce")
    assert shown(made.entry) == ["p=parameter()", "x=parameter()", "c=conditional(p,x,x)", "r=negate(c)"]
    assert shown(made.computations[0]) == ["x=parameter()", "b=sine(x)"]
    # What something else calls, too, keeps its results.
    called = "d = (f32[2], f32[2]) call(x), to_apply=yes ROOT r = (f32[2], (f32[2], f32[2])) tuple(u, d)"
    assert len(after(text.replace("KEPT", called), "dce").computations[0].root.operands) == 2


def test_dce_keeps_what_acts() -> None:
    text = """ENTRY e { t = token[] after-all() x = f32[] parameter(0)
        o = token[] outfeed(x, t), outfeed_shape=f32[] n = f32[] negate(x) ROOT r = f32[] abs(x) }"""
    module = rewrite(parse_module(f"HloModule m {text}"), "dce")[0]
    assert [i.opcode for i in module.entry.instructions] == ["after-all", "parameter", "outfeed", "abs"]


# cse


def test_cse_merges_equal_expressions_in_one_sweep() -> None:
    module = after(
        SUM
        + SUM.replace("sum", "again")
        + """ENTRY e { x = f32[4] parameter(0) z = f32[] constant(0) zz = f32[] constant(0)
        m = f32[] constant(-0)
        a = f32[] reduce(x, z), dimensions={0}, to_apply=sum
        b = f32[] reduce(x, zz), dimensions={0}, to_apply=again
        c = f32[] reduce(x, m), dimensions={0}, to_apply=sum
        ROOT t = (f32[], f32[], f32[]) tuple(a, b, c) }""",
        "cse",
    )
    assert shown(module.entry) == [
        "x=parameter()", "z=constant()", "m=constant()", "a=reduce(x,z)", "c=reduce(x,m)", "t=tuple(a,a,c)",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "a = f32[2] add(x, y) b = f32[2] add(y, x)",
        "a = f32[2] rng(l, h), distribution=rng_uniform b = f32[2] rng(l, h), distribution=rng_uniform",
        "a = f32[2] opt-barrier(x) b = f32[2] opt-barrier(x)",
        "a = f32[2] convert(x) b = f32[2]{0:S(5)} convert(x)",
        "a = f32[2] negate(x) b = f32[2] negate(x), control-predecessors={y}",
        'a = f32[2] negate(x), frontend_attributes={k="1"} b = f32[2] negate(x), frontend_attributes={k="2"}',
    ],
)
def test_cse_leaves_alone_what_may_differ(text: str) -> None:
    whole = f"""ENTRY e {{ x = f32[2] parameter(0) y = f32[2] parameter(1) l = f32[] parameter(2)
        h = f32[] parameter(3) {text} ROOT r = f32[2] multiply(a, b) }}"""
    assert changes(whole, "cse") == {}


def test_cse_keeps_copies_of_a_schedule() -> None:
    text = (
        "ENTRY e { x = f32[2] parameter(0) a = f32[2] copy(x) b = f32[2] copy(x) ROOT r = f32[2] add(a, b) }"
    )
    assert changes(text, "cse") == {"copy": 1}
    scheduled = parse_module(f"HloModule m, is_scheduled=true {text}")
    assert rewrite(scheduled, "cse")[1].runs[0].changes == {}


# inline, flatten, defuse

CALLS = """leaf { p = f32[] parameter(0) ROOT n = f32[] sine(p) }
middle { p = f32[] parameter(0) a = f32[] call(p), to_apply=leaf ROOT b = f32[] call(a), to_apply=leaf }
ENTRY e { x = f32[] parameter(0) c = f32[] call(x), to_apply=middle
  ROOT d = f32[] call(c), to_apply=leaf, frontend_attributes={inlineable="false"} }"""


def test_inline() -> None:
    module = after(CALLS, "inline")
    assert shown(module.entry) == ["x=parameter()", "n=sine(x)", "n.1=sine(n)", "d=call(n.1)"]
    assert [c.name for c in module.computations] == ["leaf", "e"]
    once = after(CALLS, "inline{single_use}")
    assert shown(once.entry) == ["x=parameter()", "a=call(x)", "b=call(a)", "d=call(b)"]


def test_composites_stay_when_asked_for() -> None:
    text = """c { p = f32[] parameter(0) ROOT n = f32[] sine(p) }
    ENTRY e { x = f32[] parameter(0)
    ROOT r = f32[] call(x), to_apply=c, is_composite=true, frontend_attributes={composite.name="my.sine"} }"""
    assert changes(text, "inline") == {"call": 1}
    assert changes(text, "inline{composites=false}") == {}


def test_flatten() -> None:
    module = after(CALLS, "flatten")
    called = [c for computation in module.computations for i in computation.instructions for c in i.called]
    assert len(called) == len(set(called)) == 4
    assert [c.name for c in module.computations] == ["leaf.2", "leaf.1", "leaf", "middle", "e"]
    assert changes(CALLS, "flatten") == {"computation": 2}


def test_flatten_does_not_touch_reducers_but_their_callers() -> None:
    module = after(
        SUM
        + """ENTRY e { x = f32[4] parameter(0) z = f32[] constant(0)
        a = f32[] reduce(x, z), dimensions={0}, to_apply=sum
        b = f32[] reduce(x, z), dimensions={0}, to_apply=sum
        ROOT c = f32[] call(a, b), to_apply=sum }""",
        "flatten",
    )
    assert [c.name for i in module.entry.instructions for c in i.called] == ["sum", "sum", "sum.1"]


def test_flatten_asynchronous_calls_and_branches() -> None:
    text = """work { p = f32[4] parameter(0) ROOT n = f32[4] sine(p) }
    ENTRY e { x = f32[4] parameter(0) i = s32[] parameter(1)
      s = ((f32[4]), f32[4], s32[]) async-start(x), calls=work
      d = f32[4] async-done(s), calls=work
      c = f32[4] conditional(i, x, d), branch_computations={work, work}
      ROOT r = f32[4] add(c, d) }"""
    module = after(text, "flatten")
    called = {i.name: [c.name for c in i.called] for i in module.entry.instructions if list(i.called)}
    assert called["s"] == called.get("d", called["s"]) == ["work"]
    assert called["c"] == ["work.1", "work.2"]


def test_flatten_follows_the_start_of_an_asynchronous_call() -> None:
    text = """work { p = f32[4] parameter(0) ROOT n = f32[4] sine(p) }
    ENTRY e { x = f32[4] parameter(0) c = f32[4] call(x), to_apply=work
      s = ((f32[4]), f32[4], s32[]) async-start(c), calls=work
      ROOT d = f32[4] async-done(s), calls=work }"""
    module = after(text, "flatten")
    start, done = module.entry.instructions[-2:]
    assert [c.name for c in start.called] == ["work.1"]
    assert all(c in start.called for c in done.called)


def test_defuse() -> None:
    text = """f { p = f32[] parameter(0) ROOT n = f32[] sine(p) }
    g { p = f32[] parameter(0) ROOT n = f32[] cosine(p) }
    ENTRY e { x = f32[] parameter(0) a = f32[] fusion(x), kind=kLoop, calls=f
      ROOT b = f32[] fusion(a), kind=kCustom, calls=g }"""
    assert shown(after(text, "defuse").entry) == ["x=parameter()", "n=sine(x)", "n.1=cosine(n)"]
    assert shown(after(text, "defuse{kind=kCustom}").entry) == ["x=parameter()", "a=fusion(x)", "n=cosine(a)"]


# tuples


def test_simplify_tuples() -> None:
    module = after(
        """ENTRY e { p = (f32[], s32[]) parameter(0) x = f32[] parameter(1)
        a = f32[] get-tuple-element(p), index=0 b = s32[] get-tuple-element(p), index=1
        whole = (f32[], s32[]) tuple(a, b) swapped = (s32[], f32[]) tuple(b, a)
        c = f32[] get-tuple-element(whole), index=0 d = f32[] get-tuple-element(swapped), index=1
        s = f32[] add(c, d)
        ROOT r = (f32[], (f32[], s32[])) tuple(s, whole) }""",
        "simplify-tuples",
    )
    assert shown(module.entry) == [
        "p=parameter()", "x=parameter()", "a=get-tuple-element(p)", "c=get-tuple-element(p)",
        "s=add(c,a)", "r=tuple(s,p)",
    ]  # fmt: skip


def test_tuples_of_other_layouts_stay() -> None:
    text = """ENTRY e { x = f32[2,3]{1,0} parameter(0) t = (f32[2,3]{0,1}) tuple(x)
        ROOT g = f32[2,3]{0,1} get-tuple-element(t), index=0 }"""
    assert changes(text, "simplify-tuples") == {}


# despecialize


def test_synchronize() -> None:
    module = after(
        """wrapped { p = f32[4] parameter(0) ROOT n = f32[4] sine(p) }, execution_thread="side"
    ENTRY e { x = f32[4] parameter(0)
      cs = (f32[4], f32[4], u32[]) copy-start(x), cross_program_prefetch_index=0
      cd = f32[4] copy-done(cs)
      s = ((f32[4]), f32[4], s32[]) async-start(cd), async_execution_thread="side", calls=wrapped
      u = ((f32[4]), f32[4], s32[]) async-update(s)
      after = f32[4] cosine(x), control-predecessors={u}
      d = f32[4] async-done(u)
      ROOT r = f32[4] add(d, after) }""",
        "synchronize",
    )
    assert shown(module.entry) == [
        "x=parameter()", "cd.1=copy(x)", "n=sine(cd.1)", "after=cosine(x)", "r=add(n,after)",
    ]  # fmt: skip
    assert [p.name for p in module.entry.instructions[3].control_predecessors] == ["n"]
    assert "cross_program_prefetch_index" not in module.entry.instructions[1].attributes
    assert [c.name for c in module.computations] == ["e"]


def test_despecialize() -> None:
    text = """HloModule m, is_scheduled=true, entry_computation_layout={(f32[2,3]{0,1})->f32[3,2]{1,0}}
    f { p = f32[2,3]{0,1} parameter(0) ROOT n = f32[2,3]{0,1} sine(p) }
    ENTRY e { x = f32[2,3]{0,1} parameter(0) a = f32[2,3]{0,1} fusion(x), kind=kLoop, calls=f
      ROOT b = f32[3,2]{1,0} bitcast(a), control-predecessors={x} }"""
    module = parse_module(text)
    check(Program(module), "despecialize")
    plain = rewrite(module, "despecialize")[0]
    assert not plain.is_scheduled
    assert "]{" not in plain.to_text()
    assert [i.opcode for i in plain.entry.instructions] == ["parameter", "sine", "transpose"]


@pytest.mark.parametrize(
    ("given", "result"),
    [
        ("f32[2,3,4]{2,1,0}", "f32[6,4]{1,0}"),
        ("f32[2,3,4]{0,2,1}", "f32[12,2]{1,0}"),
        ("f32[2,3,4]{0,1,2}", "f32[4,6]{0,1}"),
        ("f32[2,3]{0,1}", "s32[3,2]{1,0}"),
        ("f32[6]{0}", "f32[6]{0}"),
        ("f32[1,6]{0,1}", "f32[6,1]{1,0}"),
    ],
)
def test_bitcasts_become_logical(given: str, result: str) -> None:
    text = f"ENTRY e {{ x = {given} parameter(0) ROOT b = {result} bitcast(x) }}"
    module = parse_module(f"HloModule m {text}")
    plain = rewrite(module, "drop-layouts")[0]
    assert "bitcast" not in {i.opcode for i in plain.entry.instructions}
    program = Program(module)
    expected, actual = program.run(module)[0], program.run(plain)[0]
    assert np.array_equal(np.asarray(expected), np.asarray(actual))


def test_bitcasts_without_a_logical_form_are_named() -> None:
    module = parse_module("HloModule m ENTRY e { x = f32[4] parameter(0) ROOT b = u8[16]{0} bitcast(x) }")
    with pytest.raises(Unsupported, match="has no logical form"):
        rewrite(module, "drop-layouts")


def test_literals_lose_their_layouts_too() -> None:
    module = parse_module(
        """HloModule m, entry_computation_layout={()->(f32[2,2]{0,1}, s32[1]{0})}
        ENTRY e { ROOT c = (f32[2,2]{0,1}, s32[1]{0}) constant(({ {1, 2}, {3, 4} }, {5})) }"""
    )
    plain = rewrite(module, "drop-layouts")[0]
    assert "]{" not in plain.to_text()
    assert "{ { 1, 2 }, { 3, 4 } }" in plain.to_text()


def test_without_fuel_bitcasts_keep_the_layouts_they_need() -> None:
    module = parse_module(
        "HloModule m ENTRY e { x = f32[2,3]{0,1} parameter(0) ROOT b = f32[6]{0} bitcast(x) }"
    )
    manager = PassManager(Context(fuel=Fuel(0)))
    manager.run(module, parse_pipeline("drop-layouts"))
    assert "f32[2,3]{0,1}" in module.to_text()


def test_custom_calls_keep_their_layouts() -> None:
    module = after(
        """ENTRY e { x = f32[2,3]{0,1} parameter(0)
        ROOT c = f32[2,3]{0,1} custom-call(x), custom_call_target="Sharding",
          operand_layout_constraints={f32[2,3]{0,1}}, sharding={replicated} }""",
        "drop-layouts",
    )
    assert [str(i.shape) for i in module.entry.instructions] == ["f32[2,3]", "f32[2,3]{0,1}"]


# conditionals


def conditional(index: str, text: str = "") -> str:
    return f"""one {{ p = f32[3] parameter(0) ROOT n = (f32[3], f32[]) tuple(p, HALF) }}
    two {{ p = f32[] parameter(0) s = f32[3] broadcast(p), dimensions={{}} {text}
      ROOT n = (f32[3], f32[]) tuple(s, p) }}
    ENTRY e {{ i = {index} x = f32[3] parameter(1) y = f32[] parameter(2)
      c = (f32[3], f32[]) conditional(i, x, y, y), branch_computations={{one, two, two}}
      a = f32[3] get-tuple-element(c), index=0 b = f32[] get-tuple-element(c), index=1
      s = f32[3] broadcast(b), dimensions={{}} ROOT r = f32[3] add(a, s) }}""".replace(
        "ROOT n = (f32[3], f32[]) tuple(p, HALF)",
        "h = f32[] constant(0.5) ROOT n = (f32[3], f32[]) tuple(p, h)",
    )


@pytest.mark.parametrize(("value", "branch"), [(0, 0), (1, 1), (-1, 2), (7, 2)])
def test_a_known_branch_is_taken(value: int, branch: int) -> None:
    text = conditional(f"s32[] constant({value}) unused = s32[] parameter(0)")
    module = after(text, "simplify-conditionals,simplify-tuples,dce")
    opcodes = {i.opcode for i in module.entry.instructions}
    assert ("constant" in opcodes) == (branch == 0)
    assert "conditional" not in opcodes


@pytest.mark.parametrize(("index", "branch"), [("true", "sine"), ("false", "cosine")])
def test_true_is_the_first_branch(index: str, branch: str) -> None:
    text = f"""t {{ p = f32[] parameter(0) ROOT n = f32[] sine(p) }}
    f {{ p = f32[] parameter(0) ROOT n = f32[] cosine(p) }}
    ENTRY e {{ i = pred[] constant({index}) x = f32[] parameter(0)
      ROOT c = f32[] conditional(i, x, x), true_computation=t, false_computation=f }}"""
    assert after(text, "simplify-conditionals").entry.root.opcode == branch


def test_branches_become_selects() -> None:
    text = conditional("s32[] parameter(0)")
    assert changes(text, "simplify-conditionals") == {}
    module = after(text, "simplify-conditionals{select}")
    assert sum(i.opcode == "select" for i in module.entry.instructions) == 4
    assert changes(text, "simplify-conditionals{select max_instructions=5}") == {}
    acting = conditional(
        "s32[] parameter(0)",
        'z = () custom-call(p), custom_call_target="act", custom_call_has_side_effect=true',
    )
    assert changes(acting, "simplify-conditionals{select}") == {}


# loops

COUNTING = """cond { p = (s32[], s32[]) parameter(0) i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(10) ROOT c = pred[] compare(i, n), direction=LT }
body { p = (s32[], s32[]) parameter(0) i = s32[] get-tuple-element(p), index=0
  s = s32[] get-tuple-element(p), index=1 two = s32[] constant(2) j = s32[] add(i, two)
  t = s32[] add(s, i) ROOT r = (s32[], s32[]) tuple(j, t) }
ENTRY e { z = s32[] constant(0) s = (s32[], s32[]) tuple(z, z)
  ROOT w = (s32[], s32[]) while(s), condition=cond, body=body CONFIG }"""


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ("", '{"known_trip_count":{"n":"5"}}'),
        (', backend_config={"a":1}', '{"a":1,"known_trip_count":{"n":"5"}}'),
        (', backend_config={"known_trip_count":{"n":"5"}}', None),
        (', backend_config="text"', None),
    ],
)
def test_trip_counts_are_written_as_xla_does(config: str, expected: str | None) -> None:
    module = parse_module(f"HloModule m {COUNTING.replace('CONFIG', config)}")
    rewritten, manager = rewrite(module, "annotate-trip-counts")
    assert sum(manager.runs[0].changes.values()) == (expected is not None)
    if expected is not None:
        assert f"backend_config={expected}" in rewritten.to_text()


@pytest.mark.parametrize(
    ("iterations", "result"), [(0, (0, 0)), (1, (2, 0)), (3, (6, 6)), (5, (10, 20)), (9, (10, 20))]
)
def test_loops_end_when_told_to(iterations: int, result: tuple[int, int]) -> None:
    module = parse_module(f"HloModule m {COUNTING.replace('CONFIG', '')}")
    limited = rewrite(module, f"limit-loops{{iterations={iterations}}}")[0]
    assert tuple(map(int, Program(limited).results[0])) == result


# fold


def test_fold() -> None:
    text = """ENTRY e { x = f32[2,2] parameter(0) a = f32[] constant(2) b = f32[] constant(3)
        c = f32[] multiply(a, b) d = f32[2] broadcast(c), dimensions={} i = f32[2] iota(), iota_dimension=0
        s = f32[2] add(d, i) w = f32[2,2] broadcast(s), dimensions={0} ROOT r = f32[2,2] add(x, w) }"""
    module = after(text, "fold")
    assert shown(module.entry) == ["x=parameter()", "s.1=constant()", "w=broadcast(s.1)", "r=add(x,w)"]
    literal = module.entry.instructions[1].literal
    assert literal is not None
    assert literal.array.tolist() == [6, 7]
    assert changes(text, "fold{max_elements=1}") == {"multiply": 1}


def test_fold_runs_no_loops_unless_asked_for() -> None:
    text = CALLS.replace("x = f32[] parameter(0) c", "x = f32[] constant(1) c")
    assert changes(text, "fold") == {}
    assert after(text, "fold{loops}").entry.root.opcode == "constant"


def test_fold_leaves_what_the_reference_cannot_compute() -> None:
    text = """ENTRY e { a = f32[] constant(2)
        ROOT c = f32[] custom-call(a), custom_call_target="unheard_of" }"""
    assert changes(text, "fold") == {}


def test_fold_needs_a_reference() -> None:
    module = parse_module("HloModule m ENTRY e { ROOT c = s32[] constant(7) }")
    with pytest.raises(UsageError, match="pass fold needs an evaluator"):
        PassManager(Context()).run(module, parse_pipeline("fold"))


# extract


def test_extract() -> None:
    text = f"HloModule m {CALLS}"
    module = rewrite(parse_module(text), "extract{instruction=%b}")[0]
    assert shown(module.entry) == ["param_0=parameter()", "a=call(param_0)", "b=call(a)"]
    one = rewrite(parse_module(text), "extract{instruction=a+b height=0}")[0]
    assert str(one.entry.root.shape) == "(f32[], f32[])"
    named = rewrite(parse_module(text.replace("n =", "a =")), "extract{instruction=a computation=leaf}")[0]
    assert named.entry.root.opcode == "sine"


@pytest.mark.parametrize(
    ("instruction", "message"),
    [
        ("nothing", "m has no instruction nothing"),
        ("p", "p is in several computations: say computation= one of leaf, middle"),
        ("a+d", "extract: "),
    ],
)
def test_extract_says_what_is_wrong(instruction: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        rewrite(parse_module(f"HloModule m {CALLS}"), f"extract{{instruction={instruction}}}")
