"""Host memory as the compiler for TPUs finds it: what libtpu 0.0.42 says of each of these programs."""

from __future__ import annotations

import pytest

from hlotool.checks.catalogue import all_rules
from hlotool.checks.programs import findings_of
from hlotool.checks.records import Finding, Severity
from hlotool.parser.reader import parse_module

RULES = [rule for rule in all_rules().values() if rule.id.startswith("offload-")]
TO_HOST = 'custom_call_target="MoveToHost"'
TO_DEVICE = 'custom_call_target="MoveToDevice"'
TILE = "f32[8,128]"


def found(text: str, layout: str = "", partitions: int = 1) -> list[Finding]:
    header = f", num_partitions={partitions}" if partitions > 1 else ""
    header += f", entry_computation_layout={{{layout}}}" if layout else ""
    module = parse_module(f"HloModule m{header}\n{text}")
    return [f for f in findings_of(module, RULES) if f.severity is not Severity.NOTE]


def rules(text: str, layout: str = "", partitions: int = 1) -> list[str]:
    return [f.rule for f in found(text, layout, partitions)]


def choice(yes: str, no: str = "", predicate: str = "p = pred[] parameter(0)", host: str = "") -> str:
    """A conditional; the true branch gets `host` where that is given, and `x` otherwise."""
    no = no or f"ROOT n = {TILE} negate(x)"
    return f"""yes {{
  x = {TILE} parameter(0)
  {yes}
}}
no {{
  x = {TILE} parameter(0)
  {no}
}}
ENTRY main {{
  {predicate}
  x = {TILE} parameter(1)
  {host}
  ROOT c = {TILE} conditional(p, {"h" if host else "x"}, x), true_computation=yes, false_computation=no
}}"""


BACK = f"""h = {TILE} custom-call(x), {TO_HOST}
  ROOT d = {TILE} custom-call(h), {TO_DEVICE}"""


def test_a_slice_that_ends_a_branch() -> None:
    text = choice(f"""s = f32[4,8,128] broadcast(x), dimensions={{1,2}}
  h = f32[4,8,128] custom-call(s), {TO_HOST}
  r = f32[1,8,128] slice(h), slice={{[1:2], [0:8], [0:128]}}
  v = {TILE} reshape(r)
  ROOT d = {TILE} custom-call(v), {TO_DEVICE}""")
    assert rules(text) == ["offload-branches"]


def test_what_comes_to_a_branch_from_outside_is_not_followed() -> None:
    host = f"h = {TILE} custom-call(x), {TO_HOST}"
    assert rules(choice(f"ROOT d = {TILE} custom-call(x), {TO_DEVICE}", host=host)) == []


def test_the_message_names_the_computation_in_which_the_tensor_was_moved() -> None:
    loop = f"""goes_on {{
  p = (s32[], {TILE}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3)
  ROOT r = pred[] compare(i, n), direction=LT
}}
body {{
  p = (s32[], {TILE}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  x = {TILE} get-tuple-element(p), index=1
  h = {TILE} custom-call(x), {TO_HOST}
  ROOT t = (s32[], {TILE}) tuple(j, h)
}}
"""
    text = loop + choice(f"""zero = s32[] constant(0)
  t = (s32[], {TILE}) tuple(zero, x)
  w = (s32[], {TILE}) while(t), condition=goes_on, body=body
  y = {TILE} get-tuple-element(w), index=1
  ROOT d = {TILE} custom-call(y), {TO_DEVICE}""")
    [finding] = [f for f in found(text) if f.severity is Severity.ERROR]
    assert finding.message.startswith('Expected computation "body" to be called only by one caller')
    assert finding.message.endswith("There are 1 caller(s): [c]")


def test_a_branch_that_a_constant_chooses_is_none() -> None:
    known = f"""zero = f32[] constant(0)
  zeros = {TILE} broadcast(zero), dimensions={{}}
  part = f32[1,1] slice(zeros), slice={{[0:1], [0:1]}}
  first = f32[] reshape(part)
  nine = f32[] constant(9)
  p = pred[] compare(first, nine), direction=LT
  q = pred[] parameter(0)"""
    assert rules(choice(BACK, predicate=known)) == []
    assert rules(choice(BACK)) == ["offload-branches"]


@pytest.mark.parametrize(("partitions", "expected"), [(1, ["offload-branches"]), (4, [])])
def test_one_result_of_a_partitioned_conditional_is_in_no_tuple(partitions: int, expected: list[str]) -> None:
    assert rules(choice(BACK), partitions=partitions) == expected


@pytest.mark.parametrize(("read", "expected"), [(0, ["offload-branches"]), (1, [])])
def test_a_result_that_nothing_reads_is_gone(read: int, expected: list[str]) -> None:
    text = f"""yes {{
  x = {TILE} parameter(0)
  h = {TILE} custom-call(x), {TO_HOST}
  d = {TILE} custom-call(h), {TO_DEVICE}
  e = {TILE} sine(x)
  ROOT t = ({TILE}, {TILE}) tuple(d, e)
}}
no {{
  x = {TILE} parameter(0)
  ROOT t = ({TILE}, {TILE}) tuple(x, x)
}}
ENTRY main {{
  p = pred[] parameter(0)
  x = {TILE} parameter(1)
  c = ({TILE}, {TILE}) conditional(p, x, x), true_computation=yes, false_computation=no
  y = {TILE} get-tuple-element(c), index={read}
  ROOT r = {TILE} negate(y)
}}"""
    assert rules(text) == expected


TURNED = """ENTRY main {{
  x = f32[8,128] parameter(0)
  t = f32[128,8] transpose(x), dimensions={{1,0}}
  r = {shape} reshape(t)
  d = {shape} custom-call(r), {to_device}
  ROOT all = ({shape}, f32[8,128]) tuple({returned}, {other})
}}"""
ON_HOST = "(f32[8,128]{1,0:S(5)})->"


@pytest.mark.parametrize(
    ("shape", "returned", "other", "layout", "expected"),
    [
        ("f32[8,128]", "d", "d", "(f32[8,128]{1,0}, f32[8,128]{1,0})", True),
        # The reshape only splits a dimension, adds one of size 1, or its result stays on the host, too.
        ("f32[16,8,8]", "d", "z", "(f32[16,8,8]{2,1,0}, f32[8,128]{1,0})", False),
        ("f32[1,128,8]", "d", "z", "(f32[1,128,8]{2,1,0}, f32[8,128]{1,0})", False),
        ("f32[8,128]", "d", "r", "(f32[8,128]{1,0}, f32[8,128]{1,0:S(5)})", False),
    ],
)
def test_a_transposed_tensor_that_is_reshaped_on_the_host(
    shape: str, returned: str, other: str, layout: str, expected: bool
) -> None:
    text = TURNED.format(shape=shape, to_device=TO_DEVICE, returned=returned, other=other)
    if other == "z":
        text = text.replace("  ROOT", "  z = f32[8,128] parameter(1)\n  ROOT")
        layout = ON_HOST.replace(")->", f", f32[8,128]{{1,0}})->{layout}")
    else:
        layout = ON_HOST + layout
    assert ("offload-transpose" in rules(text, layout)) is expected
    assert "offload-transpose" not in rules(text, layout, partitions=4)  # collectives reshape it


def test_a_transpose_comes_after_what_computes_element_by_element() -> None:
    text = TURNED.format(shape=TILE, to_device=TO_DEVICE, returned="d", other="d")
    computed = text.replace("custom-call(r)", "custom-call(e)").replace(
        "  d = ", f"  e = {TILE} exponential(r)\n  d = "
    )
    layout = ON_HOST + "(f32[8,128]{1,0}, f32[8,128]{1,0})"
    assert "offload-transpose" in rules(text, layout)
    assert "offload-transpose" not in rules(computed, layout)


@pytest.mark.parametrize(
    ("before", "after", "partitions", "expected"),
    [
        ("f32[8,128]", "f32[1,8,128]", 1, []),
        ("f32[32,128]", "f32[4,8,128]", 1, []),
        ("f32[8,128]", "f32[128,8]", 1, ["offload-compute"]),
        ("f32[8,128]", "f32[4,2,128]", 1, ["offload-compute"]),
        ("f32[8,128]", "f32[1,8,128]", 4, []),
    ],
)
def test_a_reshape_that_leaves_data_in_their_tiles_is_no_compute(
    before: str, after: str, partitions: int, expected: list[str]
) -> None:
    text = f"""ENTRY main {{
  x = {before} parameter(0)
  r = {after} reshape(x)
  ROOT d = {after} custom-call(r), {TO_DEVICE}
}}"""
    rank = after.count(",") + 1
    order = ",".join(map(str, reversed(range(rank))))
    layout = f"({before}{{1,0:S(5)}})->{after}{{{order}}}"
    assert rules(text, layout, partitions) == expected


@pytest.mark.parametrize(("partitions", "expected"), [(1, []), (4, ["offload-compute"])])
def test_a_reshape_before_the_tensor_is_on_the_host(partitions: int, expected: list[str]) -> None:
    """The copy to the host follows it, but where several devices exchange data for it."""
    text = f"""ENTRY main {{
  x = {TILE} parameter(0)
  h = {TILE} custom-call(x), {TO_HOST}
  t = f32[128,8] transpose(h), dimensions={{1,0}}
  ROOT r = {TILE} reshape(t)
}}"""
    layout = f"({TILE}{{1,0}})->{TILE}{{1,0:S(5)}}"
    assert rules(text, layout, partitions) == expected


STACK = "f32[4,8,128]"


def stack(rows: int, then: str) -> str:
    """A buffer of zeros with some rows written on the host."""
    lines = [
        "x = f32[1,8,128] parameter(0)",
        "zero = f32[] constant(0)",
        f"w0 = {STACK} broadcast(zero), dimensions={{}}",
        "none = s32[] constant(0)",
    ]
    for n in range(rows):
        lines.append(f"h{n} = f32[1,8,128] custom-call(x), {TO_HOST}")
        lines.append(f"i{n} = s32[] constant({n})")
        lines.append(f"w{n + 1} = {STACK} dynamic-update-slice(w{n}, h{n}, i{n}, none, none)")
    return "ENTRY main {\n  " + "\n  ".join([*lines, then]) + "\n}"


@pytest.mark.parametrize("rows", [1, 2, 4])
def test_the_host_copies_a_buffer_that_moves_to_the_device_after_several_updates(rows: int) -> None:
    text = stack(rows, f"ROOT d = {STACK} custom-call(w{rows}), {TO_DEVICE}")
    copies = [f for f in found(text) if f.rule == "offload-compute"]
    assert [f.instruction for f in copies] == ([] if rows == 1 else [f"w{rows}"])


def test_a_slice_beside_the_update_reads_no_host_memory() -> None:
    read = """r = f32[1,8,128] slice(w1), slice={[ROW], [0:8], [0:128]}
  ROOT n = f32[1,8,128] negate(r)"""
    assert rules(stack(1, read.replace("ROW", "1:2"))) == []
    assert "offload-slice" in rules(stack(1, read.replace("ROW", "0:1")))


def test_a_dynamic_slice_at_constants_is_a_slice() -> None:
    text = f"""ENTRY main {{
  x = {STACK} parameter(0)
  i = s32[] INDEX
  z = s32[] constant(0)
  r = f32[1,8,128] dynamic-slice(x, i, z, z), dynamic_slice_sizes={{1,8,128}}
  ROOT n = f32[1,8,128] negate(r)
}}"""
    layout = f"({STACK}{{2,1,0:S(5)}}OTHER)->f32[1,8,128]{{2,1,0:S(5)}}"
    for index, other, opcode in (("constant(2)", "", "slice"), ("parameter(1)", ", s32[]", "dynamic-slice")):
        findings = found(text.replace("INDEX", index), layout.replace("OTHER", other))
        assert [f.message.split(" on ")[0] for f in findings if f.rule == "offload-slice"] == [
            f"Encountered {opcode}"
        ]
