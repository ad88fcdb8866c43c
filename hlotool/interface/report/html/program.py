"""The whole program around an accused instruction, for the page's script to lay out and search.

It is read again from the file of the row, which holds nothing of it. Programs that are large are drawn around
the instruction, and a page has room for some programs only; the section says so.
"""

from __future__ import annotations

import os
from collections import deque
from typing import Any

from hlotool.checks.inspect.graph import Graph, graph_of
from hlotool.errors import HlotoolError
from hlotool.judge.records import DivergenceRecord
from hlotool.sources.directory import open_dump
from hlotool.sources.stages import read_stage

#: Instructions of one program in a page, and of all together; bytes of a file that is read for it.
_MOST, _IN_ALL, _BYTES = 5000, 15_000, 8 << 20
#: Characters of a statement: of long ones the file has the rest.
_TEXT = 240


class Programs:
    """The programs of one page."""

    def __init__(self) -> None:
        self._left = _IN_ALL

    def sections(self, path: str, divergence: DivergenceRecord | None) -> list[dict[str, Any]]:
        """The program in the file `path` that has the accused instruction.

        Returns:
            a section of a row; none where nothing is accused, there is no room, and where the file is gone,
            holds several programs or not this instruction, as where what was run was compiled from it.
        """
        found = self._section(path, divergence) if divergence is not None else None
        return [found] if found is not None else []

    def _section(self, path: str, divergence: DivergenceRecord) -> dict[str, Any] | None:
        if not self._left or not os.path.isfile(path) or os.path.getsize(path) > _BYTES:
            return None
        try:
            stages = [
                stage for module in open_dump(path).modules for stage in (*module.stages, *module.others)
            ]
            graph = graph_of(read_stage(stages[0], reads_literals=False), path) if len(stages) == 1 else None
        except (HlotoolError, ValueError, RecursionError):
            return None
        accused = divergence.source
        names = {} if graph is None else {node.source.instruction: n for n, node in enumerate(graph.nodes)}
        spot = names.get(accused.instruction)
        if graph is None or spot is None or graph.nodes[spot].source.opcode != accused.opcode:
            return None
        chosen = _around(graph, spot, min(_MOST, self._left))
        self._left -= len(chosen)
        return _section(graph, spot, chosen, divergence)


def _around(graph: Graph, spot: int, most: int) -> list[int]:
    """The nodes nearest to one, in the order of the graph."""
    near: dict[int, list[int]] = {}
    for edge in graph.edges:
        near.setdefault(edge.source, []).append(edge.target)
        near.setdefault(edge.target, []).append(edge.source)
    found, waiting = {spot}, deque([spot])
    while waiting and len(found) < most:
        for other in near.get(waiting.popleft(), ()):
            if other not in found and len(found) < most:
                found.add(other)
                waiting.append(other)
    return sorted(found)


def _section(graph: Graph, spot: int, chosen: list[int], divergence: DivergenceRecord) -> dict[str, Any]:
    places = {number: place for place, number in enumerate(chosen)}
    states = {one.instruction: one.state for one in divergence.neighbours if one.state}
    states |= dict.fromkeys(divergence.instructions, "differs") | {divergence.source.instruction: "spot"}
    groups = list(dict.fromkeys(graph.nodes[number].group for number in chosen))
    nodes = [graph.nodes[number] for number in chosen]
    # What encloses others is drawn, too.
    for group in groups:
        parent = graph.groups[group].parent
        if parent is not None and parent not in groups:
            groups.append(parent)
    order = {group: place for place, group in enumerate(groups)}
    edges = [
        [places[edge.source], places[edge.target], int(edge.is_call)]
        for edge in graph.edges
        if edge.source in places and edge.target in places
    ]
    left = len(graph.nodes) - len(chosen)
    return {
        "kind": "program",
        "title": "the whole program" if not left else f"the program, without {left} instructions far away",
        "spot": places[spot],
        "groups": [
            [
                graph.groups[group].name,
                -1 if (parent := graph.groups[group].parent) is None else order[parent],
            ]
            for group in groups
        ],
        "nodes": [
            [
                node.source.instruction,
                node.source.opcode,
                node.text[:_TEXT],
                node.source.place,
                order[node.group],
                states.get(node.source.instruction, ""),
            ]
            for node in nodes
        ],
        "edges": edges,
    }
