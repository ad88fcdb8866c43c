"""A module as a graph: instructions, what each reads, and the computations that they stand in.

A computation that one instruction calls stands inside of the caller's; one that several call, such as a
reducer, stands beside the entry. Edges go from what computes a value to what takes it, also into and out of
called computations: an operand to the parameter that receives it, the root to the call.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hlotool.facts.dataflow import source_of
from hlotool.facts.flow import CallGraph, arguments
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.printer import SHORT, print_instruction
from hlotool.system.records import SourceRecord


@dataclass(frozen=True, slots=True)
class Group:
    """A computation.

    Attributes:
        name: of the computation.
        parent: position of the group that it stands in; None for the outermost.
        caller: the instruction that calls it, where it is the only one; empty for none.
    """

    name: str
    parent: int | None
    caller: str = ""


@dataclass(frozen=True, slots=True)
class Node:
    """An instruction.

    Attributes:
        source: its name, its line in the text, the line of the user's program.
        shape: as HLO writes it.
        text: the statement.
        group: position of its computation.
    """

    source: SourceRecord
    shape: str
    text: str
    group: int


@dataclass(frozen=True, slots=True)
class Edge:
    """A value on its way.

    Attributes:
        source: position of the node that has it.
        target: of the node that takes it.
        operand: which operand of the target; 0 of a parameter and of a call.
        is_call: it goes into a called computation, or out of it.
    """

    source: int
    target: int
    operand: int = 0
    is_call: bool = False


@dataclass(frozen=True, slots=True)
class Graph:
    """What the entry of a module reaches.

    Attributes:
        title: of the module and the stage.
        groups: callers before callees; the entry is the first.
        nodes: group by group, in the order of the text.
        edges: by their targets.
    """

    title: str
    groups: list[Group]
    nodes: list[Node]
    edges: list[Edge]


def graph_of(module: Module, title: str) -> Graph:
    """The graph of a module.

    Raises:
        ValueError: a computation calls itself.
    """
    calls = CallGraph(module)
    computations = calls.computations[::-1]
    groups = {computation: number for number, computation in enumerate(computations)}
    instructions = [i for computation in computations for i in computation.instructions]
    numbers = {instruction: number for number, instruction in enumerate(instructions)}
    return Graph(
        title,
        [_group(computation, calls, groups) for computation in computations],
        [_node(module, i, groups[calls.home[i]]) for i in instructions],
        [edge for i in instructions for edge in _edges(i, calls, numbers)],
    )


def _group(computation: Computation, calls: CallGraph, groups: dict[Computation, int]) -> Group:
    caller = calls.only_caller(computation)
    if caller is None:
        return Group(computation.name, None)
    return Group(computation.name, groups[calls.home[caller]], caller.name)


def _node(module: Module, instruction: Instruction, group: int) -> Node:
    text = print_instruction(instruction, SHORT)
    return Node(source_of(module, [instruction]), str(instruction.shape), text, group)


def _edges(instruction: Instruction, calls: CallGraph, numbers: dict[Instruction, int]) -> Iterator[Edge]:
    target = numbers[instruction]
    for position, operand in enumerate(instruction.operands):
        yield Edge(numbers[operand], target, position)
    if instruction.opcode == "parameter":
        home, number = calls.home[instruction], instruction.parameter_number or 0
        for caller in calls.callers[home]:
            for source, _ in arguments(caller, home, number, ()):
                yield Edge(numbers[source], target, is_call=True)
    for callee in dict.fromkeys(instruction.called):
        yield Edge(numbers[callee.root], target, is_call=True)


#: Characters of a shape in a box; a tuple may have hundreds of elements, and the tooltip has them all.
_WIDTH = 60


def dot(graph: Graph) -> Iterator[str]:
    """Lines of a graph in the language of graphviz: computations are clusters."""
    yield f"digraph {_quoted(graph.title)} {{"
    yield '  graph [compound=true, fontname="monospace"]'
    yield '  node [shape=box, fontname="monospace", fontsize=10]'
    yield '  edge [fontname="monospace", fontsize=8]'
    inner: dict[int | None, list[int]] = {}
    for number, group in enumerate(graph.groups):
        inner.setdefault(group.parent, []).append(number)
    nodes: dict[int, list[int]] = {}
    for number, node in enumerate(graph.nodes):
        nodes.setdefault(node.group, []).append(number)

    def cluster(number: int, indent: str) -> Iterator[str]:
        group = graph.groups[number]
        yield f"{indent}subgraph cluster_{number} {{"
        yield f"{indent}  label={_quoted(_title(group))}"
        for one in nodes[number]:
            yield f"{indent}  {_dot_node(one, graph.nodes[one])}"
        for one in inner.get(number, ()):
            yield from cluster(one, indent + "  ")
        yield f"{indent}}}"

    for number in inner[None]:
        yield from cluster(number, "  ")
    for edge in graph.edges:
        style = " [style=dashed]" if edge.is_call else ""
        yield f"  n{edge.source} -> n{edge.target}{style}"
    yield "}"


def _title(group: Group) -> str:
    return f"%{group.name}, called by %{group.caller}" if group.caller else f"%{group.name}"


def _dot_node(number: int, node: Node) -> str:
    source = node.source
    shape = node.shape if len(node.shape) <= _WIDTH else f"{node.shape[:_WIDTH]}…"
    lines = [f"{source.opcode} %{source.instruction}", shape, source.place]
    label = "\\n".join(_escaped(line) for line in lines if line)
    return f'n{number} [label="{label}", tooltip={_quoted(node.text)}]'


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"'


def _escaped(text: str) -> str:
    """In a quoted string of graphviz a backslash begins an escape, and a NUL ends the text."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\0", "")


def model_explorer(graph: Graph) -> dict[str, Any]:
    """The graph as Model Explorer reads one (`Graph` of its `graph_builder`); computations are namespaces."""
    paths = [""]  # the entry is what is seen at first
    for group in graph.groups[1:]:
        step = _step(f"{group.caller}: {group.name}" if group.caller else group.name)
        paths.append("/".join(filter(None, (paths[group.parent] if group.parent is not None else "", step))))
    nodes = [_explorer_node(number, node, paths[node.group]) for number, node in enumerate(graph.nodes)]
    for edge in graph.edges:
        one = {"sourceNodeId": str(edge.source), "sourceNodeOutputId": "0"}
        nodes[edge.target]["incomingEdges"].append(one | {"targetNodeInputId": str(edge.operand)})
    return {"id": graph.title, "nodes": nodes}


def _step(name: str) -> str:
    """A name as one step of a namespace, which slashes cut."""
    return name.replace("/", "∕")


def _explorer_node(number: int, node: Node, namespace: str) -> dict[str, Any]:
    source = node.source
    known = {
        "instruction": source.instruction,
        "HLO": node.text,
        "line": str(source.line) if source.line else "",
        "source": source.user_line,
        "operation": source.op_name,
    }
    return {
        "id": str(number),
        "label": source.opcode,
        "namespace": namespace,
        "attrs": [{"key": key, "value": value} for key, value in known.items() if value],
        "incomingEdges": [],
        "outputsMetadata": [{"id": "0", "attrs": [{"key": "shape", "value": node.shape}]}],
    }
