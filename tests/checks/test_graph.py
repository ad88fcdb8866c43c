"""Programs as graphs: what stands where, what reads what, and what graphviz and Model Explorer get of it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from support.programs import CHAOS, PAIR, SUM

import hlotool
from hlotool.checks.inspect.graph import Graph, dot, graph_of, model_explorer
from hlotool.errors import UsageError
from hlotool.interface.cli.main import main

#: A reducer of two callers, a fusion, and a name that both languages could take for more than a name.
SHARED = """HloModule m

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

fused {
  p = f32[4] parameter(0)
  q = f32[4] parameter(1)
  ROOT d = f32[4] multiply(p, q), metadata={op_name="a\\"b" source_file="x/y\\\\z.py" source_line=3}
}

ENTRY e {
  x = f32[4] parameter(0)
  z = f32[] constant(0)
  f = f32[4] fusion(x, x), kind=kLoop, calls=fused
  r = f32[] reduce(f, z), dimensions={0}, to_apply=add
  s = f32[] reduce(x, z), dimensions={0}, to_apply=add
  ROOT t = (f32[], f32[]) tuple(r, s)
}
"""


def graph(text: str) -> Graph:
    return graph_of(hlotool.parse(text), "title")


def named(found: Graph, *, calls: bool) -> set[tuple[str, str]]:
    names = [node.source.instruction for node in found.nodes]
    return {(names[edge.source], names[edge.target]) for edge in found.edges if edge.is_call == calls}


def test_who_reads_whom() -> None:
    found = graph(SHARED)
    assert named(found, calls=False) == {
        *(("x", "f"), ("f", "r"), ("z", "r"), ("x", "s"), ("z", "s"), ("r", "t"), ("s", "t")),
        *(("p", "d"), ("q", "d"), ("a", "c"), ("b", "c")),
    }
    # Elements of arrays are no values of instructions: only the result of a reducer is followed.
    assert named(found, calls=True) == {("x", "p"), ("x", "q"), ("d", "f"), ("c", "r"), ("c", "s")}


def test_what_stands_where() -> None:
    found = graph(SHARED)
    groups = {group.name: group for group in found.groups}
    assert found.groups[0].name == "e"
    assert (groups["fused"].parent, groups["fused"].caller) == (0, "f")
    assert (groups["add"].parent, groups["add"].caller) == (None, "")
    places = {node.source.instruction: found.groups[node.group].name for node in found.nodes}
    assert (places["d"], places["a"], places["t"]) == ("fused", "add", "e")


def test_the_state_of_a_loop_comes_from_before_and_from_its_body() -> None:
    found = graph(f"HloModule m\n{CHAOS}")
    ends = [(found.nodes[edge.source], found.nodes[edge.target]) for edge in found.edges if edge.is_call]
    into = {
        (found.groups[target.group].name, source.source.instruction)
        for source, target in ends
        if target.source.opcode == "parameter"
    }
    # The initial value and the root of the body are both called t.
    assert into == {("body", "t"), ("condition", "t")}
    assert sum(target.source.opcode == "parameter" for _, target in ends) == 4


_NODE = re.compile(r'(n\d+) \[label="((?:[^"\\]|\\.)*)", tooltip="((?:[^"\\]|\\.)*)"\]')
_EDGE = re.compile(r"(n\d+) -> (n\d+)(?: \[style=dashed\])?")
_OTHER = re.compile(r'digraph "(?:[^"\\]|\\.)*" \{|subgraph cluster_\d+ \{|label="(?:[^"\\]|\\.)*"|\}')


def test_the_language_of_graphviz() -> None:
    lines = [line.strip() for line in dot(graph(SHARED))]
    assert lines[1:4] == [line for line in lines if re.match(r"(graph|node|edge) \[", line)]
    del lines[1:4]
    nodes = [match.groups() for line in lines if (match := _NODE.fullmatch(line))]
    edges = [match.groups() for line in lines if (match := _EDGE.fullmatch(line))]
    assert (len(nodes), len(edges)) == (12, 17)
    assert {end for edge in edges for end in edge} <= {name for name, _, _ in nodes}
    assert sum(bool(_OTHER.fullmatch(line)) for line in lines) == len(lines) - len(nodes) - len(edges)
    depth = 0
    for line in lines:
        depth += line.endswith("{") - (line == "}")
    assert depth == 0
    assert r"multiply %d\nf32[4]\nx/y\\z.py:3" in {label for _, label, _ in nodes}


@pytest.mark.skipif(shutil.which("dot") is None, reason="there is no graphviz")
def test_graphviz_draws_it(corpus: Path) -> None:
    text = "".join(hlotool.draw([str(corpus / "jax" / "nested_loops")], "dot"))
    subprocess.run(["dot", "-Tsvg", "-o/dev/null"], input=text, text=True, check=True, timeout=100)


def test_model_explorer() -> None:
    """Fields by `graph_builder.py` of the package ai-edge-model-explorer; a namespace is cut at slashes."""
    found = model_explorer(graph(SHARED))
    nodes = {node["id"]: node for node in found["nodes"]}
    assert len(nodes) == len(found["nodes"]) == 12
    assert set(found) == {"id", "nodes"}
    for node in nodes.values():
        assert set(node) == {"id", "label", "namespace", "attrs", "incomingEdges", "outputsMetadata"}
        for edge in node["incomingEdges"]:
            assert edge["sourceNodeId"] in nodes
            assert all(isinstance(value, str) for value in edge.values())
    by_name = {node["attrs"][0]["value"]: node for node in nodes.values()}
    assert by_name["d"]["namespace"] == "f: fused"
    assert by_name["x"]["namespace"] == ""
    assert by_name["a"]["namespace"] == "add"
    assert [edge["targetNodeInputId"] for edge in by_name["f"]["incomingEdges"]] == ["0", "1", "0"]
    assert {"key": "source", "value": r"x/y\z.py:3"} in by_name["d"]["attrs"]
    assert by_name["t"]["outputsMetadata"] == [
        {"id": "0", "attrs": [{"key": "shape", "value": "(f32[], f32[])"}]}
    ]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = []
    for number, text in enumerate([SUM, PAIR]):
        paths.append(str(tmp_path / f"{number}.hlo"))
        Path(paths[-1]).write_text(text)
    assert main(["inspect", *paths, "--emit", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    # What the loader asks for: a label and graphs.
    assert [len(graph["nodes"]) for graph in found["graphs"]] == [2, 4]
    assert found["label"] == ", ".join(paths)
    assert main(["inspect", *paths, "--emit", "dot"]) == 0
    assert capsys.readouterr().out.count("digraph") == 2
    assert main(["inspect", *paths, "--emit", "dot", "--json"]) == 2
    assert "--emit prints graphs in the place of everything else: without --json" in capsys.readouterr().err
    with pytest.raises(UsageError, match="it is dot or json"):
        hlotool.draw(paths, "svg")


def test_stages_are_chosen(corpus: Path) -> None:
    path = str(corpus / "jax" / "model_fn")
    last, first = ("".join(hlotool.draw(path, "dot", stages=s)) for s in ((), ("before*",)))
    assert "cpu_after_optimizations" in last.splitlines()[0]
    assert "before_optimizations" in first.splitlines()[0]
