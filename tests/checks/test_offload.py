"""Host offload: what XLA accepts is accepted, what it refuses or warns of is found, with its path."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hlotool.checks.catalogue import all_rules
from hlotool.checks.offload.rules import FIXES, fixed
from hlotool.checks.programs import findings_of
from hlotool.checks.records import Finding, Severity
from hlotool.interface.cli.main import main
from hlotool.ir.module import Module
from hlotool.ir.verifier import verify
from hlotool.parser.reader import parse_module

RULES = [rule for rule in all_rules().values() if rule.id.startswith(("offload-", "memory-"))]


def check(module: Module | str) -> list[Finding]:
    return list(findings_of(parse_module(module) if isinstance(module, str) else module, RULES))


def grave(module: Module | str) -> list[tuple[str, Severity]]:
    return [(f.rule, f.severity) for f in check(module) if f.severity is not Severity.NOTE]


def program(body: str, layout: str = "", before: str = "") -> str:
    header = f", entry_computation_layout={{{layout}}}" if layout else ""
    return f"HloModule m{header}\n{before}\nENTRY main {{\n{body}\n}}\n"


TO_HOST = 'custom_call_target="MoveToHost"'
TO_DEVICE = 'custom_call_target="MoveToDevice"'
LOOP = """condition {
  p = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3)
  ROOT r = pred[] compare(i, n), direction=LT
}
body {
  p = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  x = f32[8] get-tuple-element(p), index=1
  ROOT t = (s32[], f32[8]) tuple(j, x)
}"""
BUFFER = """zero = f32[] constant(0)
  index = s32[] parameter(1)
  buffer = f32[4,8] broadcast(zero), dimensions={}
  x = f32[1,8] parameter(0)
  none = s32[] constant(0)"""

#: Programs that XLA offloads without a word.
ACCEPTED = {
    "there and back": f"""x = f32[8] parameter(0)
  h = f32[8] custom-call(x), {TO_HOST}
  ROOT d = f32[8] custom-call(h), {TO_DEVICE}""",
    "through a nested tuple": f"""x = f32[8] parameter(0)
  h = f32[8] custom-call(x), {TO_HOST}
  t = (f32[8], f32[8]) tuple(h, x)
  u = ((f32[8], f32[8]), f32[8]) tuple(t, x)
  v = (f32[8], f32[8]) get-tuple-element(u), index=0
  y = f32[8] get-tuple-element(v), index=0
  ROOT d = f32[8] custom-call(y), {TO_DEVICE}""",
    "the other element computes": f"""x = f32[8] parameter(0)
  h = f32[8] custom-call(x), {TO_HOST}
  t = (f32[8], f32[8]) tuple(h, x)
  y = f32[8] get-tuple-element(t), index=0
  d = f32[8] custom-call(y), {TO_DEVICE}
  z = f32[8] get-tuple-element(t), index=1
  ROOT s = f32[8] add(d, z)""",
    "through a loop": f"""x = f32[8] parameter(0)
  h = f32[8] custom-call(x), {TO_HOST}
  zero = s32[] constant(0)
  t = (s32[], f32[8]) tuple(zero, h)
  w = (s32[], f32[8]) while(t), condition=condition, body=body
  y = f32[8] get-tuple-element(w), index=1
  ROOT d = f32[8] custom-call(y), {TO_DEVICE}""",
    "through a barrier": f"""x = f32[8] parameter(0)
  h = f32[8] custom-call(x), {TO_HOST}
  t = (f32[8], f32[8]) tuple(h, x)
  b = (f32[8], f32[8]) opt-barrier(t)
  y = f32[8] get-tuple-element(b), index=0
  ROOT d = f32[8] custom-call(y), {TO_DEVICE}""",
    "a slice is stored and loaded": f"""{BUFFER}
  h = f32[1,8] custom-call(x), {TO_HOST}
  u = f32[4,8] dynamic-update-slice(buffer, h, index, none)
  s = f32[1,8] dynamic-slice(u, index, none), dynamic_slice_sizes={{1,8}}
  ROOT d = f32[1,8] custom-call(s), {TO_DEVICE}""",
    "a view of the slice is stored": f"""zero = f32[] constant(0)
  index = s32[] parameter(1)
  buffer = f32[4,8] broadcast(zero), dimensions={{}}
  x = f32[8] parameter(0)
  none = s32[] constant(0)
  h = f32[8] custom-call(x), {TO_HOST}
  r = f32[1,8] reshape(h)
  u = f32[4,8] dynamic-update-slice(buffer, r, index, none)
  s = f32[1,8] dynamic-slice(u, index, none), dynamic_slice_sizes={{1,8}}
  ROOT d = f32[1,8] custom-call(s), {TO_DEVICE}""",
    "a static slice is loaded": f"""x = f32[8] parameter(0)
  h = f32[8] custom-call(x), {TO_HOST}
  t = (f32[8]) tuple(h)
  y = f32[8] get-tuple-element(t), index=0
  s = f32[2] slice(y), slice={{[0:2]}}
  b = f32[2] bitcast(s)
  ROOT d = f32[2] custom-call(b), {TO_DEVICE}""",
    "a custom call that works in place": f"""x = f32[8] parameter(0)
  h = f32[8] custom-call(x), {TO_HOST}
  c = f32[8] custom-call(h), custom_call_target="InPlace", output_to_operand_aliasing={{{{}}: (0, {{}})}}
  ROOT d = f32[8] custom-call(c), {TO_DEVICE}""",
}

#: With computations on the host.
HOST_CALLS = {
    "a call that runs on the host": """host {
  p = f32[8] parameter(0)
  ROOT m = f32[8] multiply(p, p)
}""",
    "an asynchronous host computation": """host {
  p = f32[8] parameter(0)
  ROOT m = f32[8] multiply(p, p)
}, execution_thread="host"
wrapper {
  p = f32[8] parameter(0)
  ROOT c = f32[8] call(p), to_apply=host, frontend_attributes={_xla_compute_type="host"}
}, execution_thread="host"
""",
}

#: With outputs or parameters in host memory.
STREAMED = {
    "an output on the host": (
        "(f32[8]{0})->(f32[8]{0:S(5)}, f32[8]{0})",
        f"""x = f32[8]{{0}} parameter(0)
  h = f32[8]{{0}} custom-call(x), {TO_HOST}
  ROOT t = (f32[8]{{0}}, f32[8]{{0}}) tuple(h, x)""",
    ),
    "a parameter on the host": (
        "(f32[8]{0:S(5)})->f32[8]{0}",
        f"""x = f32[8]{{0}} parameter(0)
  d = f32[8]{{0}} custom-call(x), {TO_DEVICE}
  ROOT r = f32[8]{{0}} negate(d)""",
    ),
    "passed through on the host": (
        "(f32[8]{0:S(5)})->f32[8]{0:S(5)}",
        "ROOT x = f32[8]{0} parameter(0)",
    ),
}

#: libtpu 0.0.42 compiles it: what is computed is copied to the host.
ACCEPTED["a buffer that is a sum"] = f"""a = f32[4,8] parameter(2)
  buffer = f32[4,8] add(a, a)
  index = s32[] parameter(1)
  none = s32[] constant(0)
  x = f32[1,8] parameter(0)
  h = f32[1,8] custom-call(x), {TO_HOST}
  u = f32[4,8] dynamic-update-slice(buffer, h, index, none)
  ROOT d = f32[4,8] custom-call(u), {TO_DEVICE}"""

ERROR, WARNING = Severity.ERROR, Severity.WARNING

#: Programs with something wrong: what is found.
REFUSED = {
    "returned": (
        f"""x = f32[8] parameter(0)
  h = f32[8] custom-call(x), {TO_HOST}
  ROOT t = (f32[8], f32[8]) tuple(h, x)""",
        ("offload-output", ERROR),
    ),
    "returned through a loop": (
        f"""x = f32[8] parameter(0)
  h = f32[8] custom-call(x), {TO_HOST}
  zero = s32[] constant(0)
  t = (s32[], f32[8]) tuple(zero, h)
  ROOT w = (s32[], f32[8]) while(t), condition=condition, body=body""",
        ("offload-output", ERROR),
    ),
    "the root itself": (
        f"x = f32[8] parameter(0)\n  ROOT h = f32[8] custom-call(x), {TO_HOST}",
        ("offload-output", WARNING),
    ),
    "computed with": (
        f"""x = f32[8] parameter(0)
  h = f32[8] custom-call(x), {TO_HOST}
  y = f32[8] tanh(h)
  ROOT d = f32[8] custom-call(y), {TO_DEVICE}""",
        ("offload-compute", WARNING),
    ),
    "computed with another tensor": (
        f"""x = f32[8] parameter(0)
  h = f32[8] custom-call(x), {TO_HOST}
  y = f32[8] add(x, h)
  ROOT d = f32[8] custom-call(y), {TO_DEVICE}""",
        ("offload-compute", WARNING),
    ),
    "a slice that stays": (
        f"""x = f32[8] parameter(0)
  h = f32[8] custom-call(x), {TO_HOST}
  t = (f32[8]) tuple(h)
  y = f32[8] get-tuple-element(t), index=0
  s = f32[2] slice(y), slice={{[0:2]}}
  n = f32[2] negate(s)
  ROOT d = f32[2] custom-call(n), {TO_DEVICE}""",
        ("offload-slice", WARNING),
    ),
    "a buffer that is no broadcast": (
        f"""buffer = f32[4,8] parameter(2)
  index = s32[] parameter(1)
  none = s32[] constant(0)
  x = f32[1,8] parameter(0)
  h = f32[1,8] custom-call(x), {TO_HOST}
  u = f32[4,8] dynamic-update-slice(buffer, h, index, none)
  ROOT d = f32[4,8] custom-call(u), {TO_DEVICE}""",
        ("offload-update", ERROR),
    ),
    "the annotation after the update": (
        f"""{BUFFER}
  u = f32[4,8] dynamic-update-slice(buffer, x, index, none)
  h = f32[1,8] custom-call(u), {TO_HOST}
  s = f32[1,8] dynamic-slice(h, index, none), dynamic_slice_sizes={{1,8}}
  ROOT d = f32[1,8] custom-call(s), {TO_DEVICE}""",
        ("offload-annotation", ERROR),
    ),
    "an unknown place": (
        """x = f32[8] parameter(0)
  ROOT h = f32[8] custom-call(x), custom_call_target="annotate_device_placement",
    frontend_attributes={_xla_buffer_placement="moon"}""",
        ("offload-annotation", ERROR),
    ),
    "two operands": (
        """x = f32[8] parameter(0)
  ROOT h = f32[8] custom-call(x, x), custom_call_target="annotate_device_placement",
    frontend_attributes={_xla_buffer_placement="pinned_host"}""",
        ("offload-annotation", ERROR),
    ),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_it_is_accepted(name: str) -> None:
    assert check(program(ACCEPTED[name], before=LOOP)) == []


def test_a_call_that_runs_on_the_host_may_compute() -> None:
    body = f"""x = f32[8] parameter(0)
  h = f32[8] custom-call(x), {TO_HOST}
  ROOT c = f32[8] call(h), to_apply=host, frontend_attributes={{_xla_compute_type="host"}}"""
    assert check(program(body, before=HOST_CALLS["a call that runs on the host"])) == []


def test_an_asynchronous_host_computation_may_compute() -> None:
    body = f"""x = f32[8] parameter(0)
  h = f32[8] custom-call(x), {TO_HOST}
  s = ((f32[8]), f32[8], s32[]) async-start(h), calls=wrapper, async_execution_thread="host"
  ROOT d = f32[8] async-done(s)"""
    assert check(program(body, before=HOST_CALLS["an asynchronous host computation"])) == []


@pytest.mark.parametrize("name", STREAMED)
def test_host_memory_at_the_border_is_accepted(name: str) -> None:
    layout, body = STREAMED[name]
    assert grave(program(body, layout)) == []


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_found(name: str) -> None:
    body, expected = REFUSED[name]
    found = grave(program(body, before=LOOP))
    assert expected in found
    # What computes with a host tensor is named as well, whatever else is wrong with it.
    assert set(found) - {expected} <= {("offload-compute", WARNING)}


def test_external_annotations_count_like_internal_ones() -> None:
    body = REFUSED["returned"][0]
    external = (
        'custom_call_target="annotate_device_placement", frontend_attributes={_xla_buffer_placement="P"}'
    )
    for place in ("pinned_host", "unpinned_host"):
        assert grave(program(body.replace(TO_HOST, external.replace('P"', f'{place}"')))) == [
            ("offload-output", ERROR)
        ]
    for place in ("vmem", "pinned_device", "device"):
        assert grave(program(body.replace(TO_HOST, external.replace('P"', f'{place}"')))) == []


def test_a_condition_that_reads_the_buffer() -> None:
    loop = """condition {
  p = (s32[], f32[4,8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  b = f32[4,8] get-tuple-element(p), index=1
  z = s32[] constant(0)
  e = f32[1,1] dynamic-slice(b, i, z), dynamic_slice_sizes={1,1}
  s = f32[] reshape(e)
  one = f32[] constant(1)
  ROOT r = pred[] compare(s, one), direction=LT
}
body {
  p = (s32[], f32[4,8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  z = s32[] constant(0)
  b = f32[4,8] get-tuple-element(p), index=1
  x = f32[1,8] constant({ {1,1,1,1,1,1,1,1} })
  h = f32[1,8] custom-call(x), custom_call_target="MoveToHost"
  u = f32[4,8] dynamic-update-slice(b, h, i, z)
  ROOT t = (s32[], f32[4,8]) tuple(i, u)
}"""
    body = f"""zero = f32[] constant(0)
  buffer = f32[4,8] broadcast(zero), dimensions={{}}
  i = s32[] parameter(0)
  t = (s32[], f32[4,8]) tuple(i, buffer)
  w = (s32[], f32[4,8]) while(t), condition=condition, body=body
  b = f32[4,8] get-tuple-element(w), index=1
  ROOT d = f32[4,8] custom-call(b), {TO_DEVICE}"""
    assert ("offload-condition", ERROR) in grave(program(body, before=loop))


ROWS = """x = f32[1,8] parameter(0)
  one = f32[] constant(1)
  w0 = f32[4,8] broadcast(one), dimensions={}
  none = s32[] constant(0)"""


@pytest.mark.parametrize("rows", [[0, 1, 2, 3], [3, 1, 0, 2], [0, 1, 3], [0, 0, 2, 3], [2], [9]])
def test_rows_that_are_not_written_are_lost(rows: list[int]) -> None:
    """Each of these is what libtpu 0.0.42 loses: `hlotool run` of its dumps shows NaN in those rows."""
    lines = [ROWS]
    for n, row in enumerate(rows):
        lines.append(f"h{n} = f32[1,8] custom-call(x), {TO_HOST}")
        lines.append(f"i{n} = s32[] constant({row})")
        lines.append(f"w{n + 1} = f32[4,8] dynamic-update-slice(w{n}, h{n}, i{n}, none)")
    lines.append(f"ROOT d = f32[4,8] custom-call(w{len(rows)}), {TO_DEVICE}")
    found = [f for f in check(program("\n  ".join(lines))) if f.rule == "offload-lost-rows"]
    written = len({min(row, 3) for row in rows})
    assert [f.message.split(" of ")[0] for f in found] == (
        [] if written == 4 else [f"{(4 - written) / 4:.0%}"]
    )


FILLED = """condition {
  p = (s32[], f32[4,8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(4)
  ROOT r = pred[] compare(i, n), direction=LT
}
body {
  p = (s32[], f32[4,8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  b = f32[4,8] get-tuple-element(p), index=1
  x = f32[1,8] constant({ {1,1,1,1,1,1,1,1} })
  h = f32[1,8] custom-call(x), custom_call_target="MoveToHost"
  z = s32[] constant(0)
  u = f32[4,8] dynamic-update-slice(b, h, i, z)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT t = (s32[], f32[4,8]) tuple(j, u)
}"""


@pytest.mark.parametrize(("rounds", "lost"), [(4, []), (3, [("offload-lost-rows", ERROR)])])
def test_a_loop_has_to_fill_the_buffer(rounds: int, lost: list[tuple[str, Severity]]) -> None:
    body = f"""zero = f32[] constant(0)
  buffer = f32[4,8] broadcast(zero), dimensions={{}}
  i = s32[] constant(0)
  t = (s32[], f32[4,8]) tuple(i, buffer)
  w = (s32[], f32[4,8]) while(t), condition=condition, body=body
  b = f32[4,8] get-tuple-element(w), index=1
  ROOT d = f32[4,8] custom-call(b), {TO_DEVICE}"""
    assert grave(program(body, before=FILLED.replace("constant(4)", f"constant({rounds})"))) == lost


def test_a_condition_that_computes_with_a_tensor_on_the_host() -> None:
    """libtpu 0.0.42 dies of it, 0.0.52 gives E1200."""
    loop = LOOP.replace(
        "  ROOT r = pred[] compare(i, n), direction=LT",
        """  b = f32[8] get-tuple-element(p), index=1
  e = f32[1] slice(b), slice={[0:1]}
  v = f32[] reshape(e)
  m = s32[] convert(v)
  ROOT r = pred[] compare(i, m), direction=LT""",
    )
    body, _ = REFUSED["returned through a loop"]
    assert ("offload-condition", ERROR) in grave(program(body, before=loop))


def test_a_condition_that_computes_in_vain_is_none() -> None:
    """Dead code is gone before the compiler looks at memory."""
    loop = LOOP.replace(
        "  n = s32[] constant(3)",
        "  n = s32[] constant(3)\n  b = f32[8] get-tuple-element(p), index=1\n  m = f32[8] negate(b)",
    )
    body, _ = REFUSED["returned through a loop"]
    assert grave(program(body, before=loop)) == [("offload-output", ERROR)]


BRANCHES = """yes {{
  x = f32[8] parameter(0)
  h = f32[8] custom-call(x), {to_host}
  ROOT r = f32[8] {root}
}}
no {{
  x = f32[8] parameter(0)
  ROOT n = f32[8] negate(x)
}}"""
CHOICE = """p = pred[] parameter(0)
  x = f32[8] parameter(1)
  ROOT c = f32[8] conditional(p, x, x), true_computation=yes, false_computation=no"""


def test_a_branch_that_ends_with_a_move_to_the_device() -> None:
    """libtpu 0.0.42 refuses it."""
    branches = BRANCHES.format(to_host=TO_HOST, root=f"custom-call(h), {TO_DEVICE}")
    [found] = [f for f in check(program(CHOICE, before=branches)) if f.severity is ERROR]
    assert found.rule == "offload-branches"
    assert '"yes" to be called only by one caller' in found.message
    used = BRANCHES.format(to_host=TO_HOST, root="negate(d)").replace(
        "  ROOT r = f32[8] neg", f"  d = f32[8] custom-call(h), {TO_DEVICE}\n  ROOT r = f32[8] neg"
    )
    assert not grave(program(CHOICE, before=used))


def test_what_is_on_the_host_chooses_no_branch() -> None:
    """libtpu 0.0.42 dies of it."""
    branches = BRANCHES.format(to_host=TO_HOST, root="negate(x)")
    body = f"""q = pred[] parameter(0)
  h = pred[] custom-call(q), {TO_HOST}
  p = pred[] not(h)
  x = f32[8] parameter(1)
  ROOT c = f32[8] conditional(p, x, x), true_computation=yes, false_computation=no"""
    assert ("offload-branches", ERROR) in grave(program(body, before=branches))


def test_an_update_of_what_comes_from_outside() -> None:
    """The buffer is to come in host memory."""
    body = BUFFER.replace(
        "buffer = f32[4,8] broadcast(zero), dimensions={}", "buffer = f32[4,8] parameter(2)"
    )
    body += f"""
  h = f32[1,8] custom-call(x), {TO_HOST}
  u = f32[4,8] dynamic-update-slice(buffer, h, index, none)
  ROOT d = f32[4,8] custom-call(u), {TO_DEVICE}"""
    [found] = [f for f in check(program(body)) if f.severity is ERROR]
    assert found.message.startswith('Entry computation parameter "buffer" (shape index {}) is not in host')


def test_what_a_call_alone_returns_is_copied_to_the_host() -> None:
    """Compilers inline calls first, and then the annotation is the root itself."""
    callee = f"""f {{
  x = f32[8] parameter(0)
  ROOT h = f32[8] custom-call(x), {TO_HOST}
}}"""
    body = "x = f32[8] parameter(0)\n  ROOT c = f32[8] call(x), to_apply=f"
    assert grave(program(body, before=callee)) == [("offload-output", WARNING)]


def test_the_path_leads_from_the_origin_to_the_end() -> None:
    body, _ = REFUSED["returned through a loop"]
    [finding] = [f for f in check(program(body, before=LOOP)) if f.rule == "offload-output"]
    names = [step.instruction for step in finding.path]
    assert names[:3] == ["x", "h", "t"]
    assert names[-1] == "w"
    assert "output {1}" in finding.remedy
    assert "f32[8]{0:S(5)}" in finding.remedy


@pytest.mark.parametrize("fix", FIXES)
@pytest.mark.parametrize("name", ["returned", "returned through a loop", "the root itself"])
def test_either_fix_makes_it_clean(name: str, fix: str) -> None:
    module = parse_module(program(REFUSED[name][0], before=LOOP))
    before = module.to_text()
    mended, count = fixed(module, fix)
    assert count == 1
    assert verify(mended) == []
    assert grave(parse_module(mended.to_text())) == []
    assert module.to_text() == before


@pytest.mark.parametrize("fix", FIXES)
def test_a_program_that_is_right_stays_as_it_is(fix: str) -> None:
    module = parse_module(program(ACCEPTED["there and back"]))
    mended, count = fixed(module, fix)
    assert (count, mended.to_text()) == (0, module.to_text())


def test_jax_lowered_for_tpu(shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = shared / "dumps" / "lowered_for_tpu_gpu" / "tpu.offload_tuple.hlo.txt"
    assert main(["check", str(file), "--json"]) == 1
    [finding] = json.loads(capsys.readouterr().out)["findings"]
    assert finding["message"] == (
        "Tensor which is moved to host (starting from tuple.1) is returned from the entry computation but "
        "the layout for this output is not set to host memory."
    )
    assert [step["instruction"] for step in finding["path"]] == ["tanh.1", "device_put.1", "tuple.1"]
    for fix in FIXES:
        mended = tmp_path / f"{fix}.hlo"
        assert main(["check", str(file), "--fix", fix, "-o", str(mended)]) == 0
        assert main(["check", str(mended)]) == 0
        assert "1 output mended" in capsys.readouterr().err


@pytest.mark.parametrize("platform", ["tpu", "cuda", "rocm", "cpu"])
@pytest.mark.parametrize("name", ["remat", "roundtrip"])
def test_jax_programs_that_are_right(shared: Path, platform: str, name: str) -> None:
    file = shared / "dumps" / "lowered_for_tpu_gpu" / f"{platform}.offload_{name}.hlo.txt"
    assert check(file.read_text(encoding="utf-8")) == []


LAYOUTS = {
    "a slice into the host": (
        """x = f32[8]{0} parameter(0)
  i = s32[] parameter(1)
  ROOT s = f32[2]{0:S(5)} dynamic-slice(x, i), dynamic_slice_sizes={2}""",
        ERROR,
    ),
    "an update out of the host": (
        """x = f32[8]{0:S(5)} parameter(0)
  y = f32[2]{0} parameter(1)
  i = s32[] parameter(2)
  ROOT u = f32[8]{0} dynamic-update-slice(x, y, i)""",
        ERROR,
    ),
    "a slice out of fast memory": (
        """x = f32[8]{0:S(1)} parameter(0)
  i = s32[] parameter(1)
  ROOT s = f32[2]{0} dynamic-slice(x, i), dynamic_slice_sizes={2}""",
        ERROR,
    ),
    "a slice out of fast memory on a TPU": (
        """x = f32[8]{0:T(128)S(1)} parameter(0)
  i = s32[] parameter(1)
  ROOT s = f32[2]{0:T(128)} dynamic-slice(x, i), dynamic_slice_sizes={2}""",
        None,
    ),
    "a copy from the host that transposes": (
        "x = f32[2,4]{1,0:S(5)} parameter(0)\n  ROOT c = f32[2,4]{0,1} copy(x)",
        ERROR,
    ),
    "compute in both memories": (
        "x = f32[8]{0:S(5)} parameter(0)\n  y = f32[8]{0} parameter(1)\n  ROOT c = f32[8]{0} add(x, y)",
        WARNING,
    ),
    "a copy from the host": ("x = f32[2,4]{1,0:S(5)} parameter(0)\n  ROOT c = f32[2,4]{1,0} copy(x)", None),
    "a copy into the host that transposes": (
        "x = f32[2,4]{1,0} parameter(0)\n  ROOT c = f32[2,4]{0,1:S(5)} copy(x)",
        None,
    ),
    "a slice out of the host": (
        """x = f32[8]{0:S(5)} parameter(0)
  i = s32[] parameter(1)
  ROOT s = f32[2]{0} dynamic-slice(x, i), dynamic_slice_sizes={2}""",
        None,
    ),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_memory_spaces_in_layouts(name: str) -> None:
    body, expected = LAYOUTS[name]
    found = [f.severity for f in check(program(body)) if f.rule == "memory-space"]
    assert found == ([] if expected is None else [expected])


def test_a_program_that_xla_has_offloaded_is_left_alone() -> None:
    body = """x = f32[8]{0:S(5)} parameter(0)
  i = s32[] parameter(1)
  d = f32[2]{0} dynamic-slice(x, i), dynamic_slice_sizes={2}
  n = f32[2]{0} negate(d)
  ROOT h = f32[2]{0:S(5)} copy(n)"""
    layout = "(f32[8]{0:S(5)}, s32[])->f32[2]{0:S(5)}"
    assert check(program(body, layout)) == []
