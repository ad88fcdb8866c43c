"""The page of a record as text: nothing is fetched, nothing of a dump is markup, and it is all there."""

from __future__ import annotations

import base64
import hashlib
import inspect
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support import run_records as samples

from hlotool.blame.bisection.records import CulpritRecord, SpotRecord
from hlotool.interface.api.bisect import BisectResult
from hlotool.interface.report.causes import causes_of_bisection, causes_of_run
from hlotool.interface.report.command_records import BisectRecord
from hlotool.interface.report.html.page import page
from hlotool.interface.report.records import RunRecord
from hlotool.judge.records import DivergenceRecord, HeatMapRecord, NeighbourRecord
from hlotool.judge.verdicts import Verdict
from hlotool.runs.options.kept import RunOptions
from hlotool.runs.records import ModuleRecord
from hlotool.system.records import SourceRecord

#: What ends a script, a comment, an attribute or a line of JavaScript, and what would run.
HOSTILE = "</script><img src=x onerror=alert(1)><!--\"'--> {{ 7*7 }} ${x} \u2028 \\u003c &lt; \udcff"
#: Elements without an end.
VOID = {"meta", "input", "img", "br", "link"}


class Reader(HTMLParser):
    """The elements of a page, and its texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)


def run_of(*rows: ModuleRecord) -> RunRecord:
    run = samples.run(rows)
    return msgspec.structs.replace(run, causes=causes_of_run(rows, lambda row: f"hlotool next {row.name}"))


def located(name: str, **fields: Any) -> ModuleRecord:
    """A row with everything that a page draws."""
    source = SourceRecord(instruction="mul.0", opcode="multiply", file=f"{name}.py", file_line=3)
    around = [
        NeighbourRecord(instruction="mul.0", opcode="multiply", text="%mul.0 = multiply(%x)", operands=["x"]),
        NeighbourRecord(instruction="x", opcode="parameter", text="%x", distance=1, state="agrees"),
        NeighbourRecord(instruction="y", opcode="add", text="%y", operands=["mul.0"], distance=-1),
    ]
    found = DivergenceRecord(
        finding="wrong",
        source=source,
        text=f"%mul.0 = {name}",
        expected_source=source,
        expected_text="%mul.1",
        neighbours=around,
        expected_neighbours=around[:1],
    )
    heat = HeatMapRecord(rows=2, columns=2, cells=[[0.0, 1.0], [None, 0.001]])
    leaf = msgspec.structs.replace(samples.differing_leaf(), heat=heat)
    return samples.module(name, Verdict.WRONG, leaves=[leaf], divergence=found, **fields)


def data_of(text: str) -> dict[str, Any]:
    [content] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    found: dict[str, Any] = json.loads(content)
    return found


def program(path: Path, size: int = 3) -> str:
    """A file with the accused instruction of `located`, what reads it, a fusion, and so many others."""
    chain = "".join(f"  a{n} = f32[4] add({f'a{n - 1}' if n else 'y'}, mul.0)\n" for n in range(size))
    path.write_text(
        "HloModule m\n\nfused {\n  p = f32[4] parameter(0)\n  ROOT q = f32[4] negate(p)\n}\n\nENTRY e {\n"
        "  x = f32[4] parameter(0)\n  mul.0 = f32[4] multiply(x, x)\n  y = f32[4] add(x, mul.0)\n"
        f"{chain}  ROOT f = f32[4] fusion(a{size - 1}), kind=kLoop, calls=fused\n}}\n"
    )
    return str(path)


def programs_of(text: str) -> list[dict[str, Any]]:
    shared = data_of(text)["shared"]
    lists = [one for one in shared if isinstance(one, list)]
    return [one for some in lists for one in some if isinstance(one, dict) and one.get("kind") == "program"]


def test_the_whole_program_around_what_is_accused(tmp_path: Path) -> None:
    path = program(tmp_path / "m.hlo")
    [drawn] = programs_of(page(run_of(located("a", path=path), located("b", path=path, twin_of=path))))
    names = [node[0] for node in drawn["nodes"]]
    assert drawn["title"] == "the whole program"
    assert names[drawn["spot"]] == "mul.0"
    assert sorted(names) == ["a0", "a1", "a2", "f", "mul.0", "p", "q", "x", "y"]
    assert {node[0]: node[5] for node in drawn["nodes"] if node[5]} == {"mul.0": "spot", "x": "agrees"}
    assert drawn["groups"] == [["e", -1], ["fused", 0]]
    edges = {(names[source], names[target], is_call) for source, target, is_call in drawn["edges"]}
    assert {("x", "mul.0", 0), ("mul.0", "a2", 0), ("a2", "p", 1), ("q", "f", 1)} <= edges


def test_the_program_of_a_culprit(tmp_path: Path) -> None:
    row = located("a", path=program(tmp_path / "m.hlo"))
    spot = SpotRecord(
        instructions=["mul.0"], opcodes=["multiply"], before="", after="", divergence=row.divergence
    )
    culprit = CulpritRecord(module="m", level="pass", confirmed=True, spot=spot, comparison=row)
    record = BisectRecord(
        versions={},
        paths=["d"],
        options=RunOptions(),
        culprits=[culprit],
        causes=causes_of_bisection([culprit], lambda _: ""),
        exit_code=1,
    )
    [drawn] = programs_of(page(record))
    assert drawn["nodes"][drawn["spot"]][0] == "mul.0"


def test_large_programs_are_drawn_around_it_and_not_many_of_them(tmp_path: Path) -> None:
    path = program(tmp_path / "m.hlo", 6000)
    drawn = programs_of(page(run_of(*(located(f"m{n}", path=path) for n in range(5)))))
    assert [len(one["nodes"]) for one in drawn] == [5000, 5000, 5000]
    assert drawn[0]["title"] == "the program, without 1006 instructions far away"
    assert max(max(source, target) for source, target, _ in drawn[0]["edges"]) < 5000


@pytest.mark.parametrize("change", [("mul.0", "mul.1"), ("multiply", "divide"), ("ROOT", "ROOT ROOT")])
def test_what_is_not_the_program_that_was_run_is_not_drawn(change: tuple[str, str], tmp_path: Path) -> None:
    path = tmp_path / "m.hlo"
    program(path)
    path.write_text(path.read_text().replace(*change))
    text = page(run_of(located("a", path=str(path)), located("gone", path="gone.hlo")))
    assert programs_of(text) == []
    assert "dagre" not in text


def test_the_layout_is_the_published_one_and_comes_with_its_licence(tmp_path: Path) -> None:
    folder = Path(inspect.getfile(page)).parent
    # npm view @dagrejs/dagre@3.1.3; sha256sum package/dist/dagre.min.js
    published = "54a503e346f93ca0bb10abe7999587e037262935687aca45eb4e4b0f64bbb578"
    assert hashlib.sha256((folder / "dagre.min.js").read_bytes()).hexdigest() == published
    text = page(run_of(located("a", path=program(tmp_path / "m.hlo"))))
    assert (folder / "dagre.LICENSE").read_text() in text
    assert "sourceMappingURL" not in text


@pytest.mark.parametrize("has_program", [False, True])
def test_nothing_is_fetched_and_nothing_but_its_own_script_runs(has_program: bool, tmp_path: Path) -> None:
    path = program(tmp_path / "m.hlo") if has_program else "m.hlo"
    text = page(run_of(located("a", path=path), samples.agreeing("b")))
    assert bool(programs_of(text)) == has_program
    reader = Reader(text)
    assert not reader.open
    assert not [tag for tag, _ in reader.elements if tag in ("link", "img", "iframe", "object", "base")]
    assert not [
        a for _, attributes in reader.elements for a in attributes if a.startswith("on") or a == "src"
    ]
    assert not re.findall(r"url\(|@import|https?://(?!www\.w3\.org/2000/svg)", text)
    [policy] = [a["content"] for _, a in reader.elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None
    assert policy.startswith("default-src 'none';")
    for element in ("script", "style"):
        [content] = re.findall(rf"<{element}>(.*?)</{element}>", text, re.DOTALL)
        hashed = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{element}-src 'sha256-{hashed}'" in policy


def test_names_of_a_dump_are_no_markup() -> None:
    row = located(HOSTILE, path=f"d/{HOSTILE}/x.txt", reason=HOSTILE)
    run = msgspec.structs.replace(run_of(row), paths=[HOSTILE], notes=[HOSTILE])
    text = page(run).encode("utf-8", "backslashreplace").decode()
    plain = page(run_of(located("a", path="d/x.txt", reason="r")))
    tags = [tag for tag, _ in Reader(text).elements]
    assert tags == [tag for tag, _ in Reader(plain).elements]
    assert "<img" not in text
    assert "49" not in "".join(Reader(text).texts["h3"])
    [name, *_] = data_of(text)["rows"][0]
    assert name == HOSTILE.replace("\udcff", "?") or name.startswith(HOSTILE[:40])
    assert "\u2028" not in text.partition('id="data">')[2].partition("</script>")[0]


def test_rows_hold_everything_once() -> None:
    rows = [
        samples.agreeing(
            f"m{n}",
        )
        for n in range(200)
    ]
    data = data_of(page(run_of(*rows)))
    assert [row[0] for row in data["rows"]] == [f"m{n}" for n in range(200)]
    sections = [value for value in data["shared"] if isinstance(value, list) and value and "kind" in value[0]]
    assert len(sections) == 1


def test_the_same_program_is_known_under_all_its_names() -> None:
    first = located("a", path="host0/a.txt")
    twins = [
        msgspec.structs.replace(first, name=name, path=f"{name}.txt", twin_of=first.path)
        for name in ("host1/a", "host2/a")
    ]
    text = page(run_of(first, located("b", path="host0/b.txt"), *twins))
    data = data_of(text)
    assert [data["shared"][row[11]] for row in data["rows"]] == [[0, 2, 3], [], [0, 2, 3], [0, 2, 3]]
    # What is said of them is there once.
    assert len({row[9] for row in data["rows"]}) == 2
    assert Reader(text).texts["span"].count("×3 of 1 program") == 1
    assert 'id="once"' in text
    assert 'id="once"' not in page(run_of(first))


def test_a_row_unfolds_to_all_that_is_known() -> None:
    data = data_of(page(run_of(located("a"))))
    sections = data["shared"][data["rows"][0][9]]
    kinds = [section["kind"] for section in sections]
    assert {"facts", "sides", "graph", "table", "histogram", "heat"} <= set(kinds)
    [sides] = [section for section in sections if section["kind"] == "sides"]
    assert sides["actual"] == "  %x\n→ %mul.0 = multiply(%x)\n  %y"
    commands = data["shared"][data["rows"][0][10]]
    assert commands[0].startswith("hlotool run ")
    assert commands[1].startswith("hlotool bisect ")


def test_totals_and_causes_are_there_without_a_script() -> None:
    rows = [located("a"), located("b"), samples.crashed("c"), samples.agreeing("d")]
    rows[1] = msgspec.structs.replace(rows[1], divergence=rows[0].divergence)
    reader = Reader(page(run_of(*rows)))
    assert reader.texts["h1"] == ["2 wrong, 1 could not be run, 1 passed of 4 results in 12.3 s"] or (
        reader.texts["h1"][0].startswith("2 wrong, 1 could not be run, 1 passed of 4 results")
    )
    assert "".join(reader.texts["h2"]).startswith("2 causes")
    assert reader.texts["h3"] == [
        "multiply returns other values",
        "numpy: the process died of SIGSEGV",
    ]
    assert any("checked with: " in text for text in reader.texts["li"])


def test_a_bisection_shows_the_spot() -> None:
    culprit = CulpritRecord(
        module="m",
        level="pass",
        pass_name="algsimp",
        opcodes=["add"],
        confirmed=True,
        evidence=["asked again"],
        spot=SpotRecord(instructions=["a"], opcodes=["add"], before="right program", after="wrong program"),
    )
    record = BisectRecord(
        versions={},
        paths=["d"],
        options=RunOptions(),
        culprits=[culprit],
        causes=causes_of_bisection([culprit], lambda _: "hlotool repro verify x"),
        healthy=["n"],
        exit_code=1,
    )
    text = BisectResult(record).to_page()
    data = data_of(text)
    sections = data["shared"][data["rows"][0][9]]
    assert [s["expected"] for s in sections if s["kind"] == "sides"] == ["right program"]
    assert data["shared"][data["rows"][0][10]] == ["hlotool repro verify x"]
    assert Reader(text).texts["h3"] == ["pass algsimp: add"]


def test_of_many_causes_the_first_are_shown_and_the_others_unfold() -> None:
    text = page(run_of(*(located(f"program{n}") for n in range(23))))
    head, folded = text.split("<summary>3 more</summary>")
    assert (head.count('<li class="cause'), folded.count('<li class="cause')) == (20, 3)
    assert "<summary>" not in page(run_of(*(located(f"program{n}") for n in range(20))))
