"""Several devices; copies that an operation in place needs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from benchmarks.adversary.plants import kind
from benchmarks.adversary.text import Place, Text

Edits = Iterator[tuple[str, ...]]


@kind("V10", promise=True)
def copy_dropped(text: Text) -> Edits:
    """A copy that scheduled text needs is gone: its operand is overwritten in place, and read afterwards."""
    if "is_scheduled=true" not in text.lines[0]:
        return
    for p in text.of("copy"):
        source = text.operand(p, 0)
        if source is None or source.line.shape != p.line.shape:
            continue
        users = text.uses.get((p.computation, p.line.name), [])
        readers = text.uses.get((p.computation, source.line.name), [])
        for u in users:
            lives = (p.entry and source.line.opcode == "parameter") or any(r.at > u.at for r in readers)
            if lives and _overwrites(text, u, p.line.name):
                made = text.changed(p, opcode="bitcast", attributes="")
                yield f"{p.line.name} dropped, before {u.line.name}; {source.line.name} lives on", made
                break


def _overwrites(text: Text, user: Place, name: str) -> bool:
    """Whether an instruction writes its result over the operand of a name."""
    line = user.line
    if line.opcode in ("dynamic-update-slice", "scatter"):
        return line.operands[0] == name
    if line.opcode == "fusion":
        inside = text.inside(line.attribute("calls"))
        roots = [q for q in inside if q.line.root and q.line.opcode in ("dynamic-update-slice", "scatter")]
        target = text.operand(roots[0], 0) if roots else None
        if target is None or target.line.opcode != "parameter":
            return False
        return line.operands[int(target.line.operands[0])] == name
    if line.opcode == "tuple" and name in line.operands:
        number = line.operands.index(name)
        for loop in text.uses.get((user.computation, line.name), []):
            for q in text.inside(loop.line.attribute("body")) if loop.line.opcode == "while" else ():
                if q.line.root and q.line.opcode == "tuple":
                    carried = text.operand(q, number)
                    kept = carried is not None and carried.line.opcode == "get-tuple-element"
                    return not kept
    return False


@kind(exact=True)
def devices_groups(text: Text) -> Edits:
    """A collective runs in smaller groups, or sends to another device."""
    for p in text.of("all-reduce", "collective-permute", "all-gather", "reduce-scatter", "all-to-all"):
        if "replica_groups={{0,1,2,3}}" in p.line.attributes and p.line.opcode == "all-reduce":
            yield (
                f"{p.line.name} in two groups",
                text.reworded(p, "{{0,1,2,3}}", "{{0,1},{2,3}}"),
            )
        for old, new in (
            ("{{0,1},{2,3}}", "{{0,2},{1,3}}"),
            ("{{0,2},{1,3}}", "{{0,1},{2,3}}"),
            ("[2,2]<=[4]", "[2,2]<=[2,2]T(1,0)"),
            ("[2,2]<=[2,2]T(1,0)", "[2,2]<=[4]"),
        ):
            if f"replica_groups={old}" in p.line.attributes:
                yield (
                    f"{p.line.name} in groups {new}",
                    text.reworded(p, f"replica_groups={old}", f"replica_groups={new}"),
                )
        if match := re.search(r"source_target_pairs=\{\{(\d),(\d)\},\{(\d),(\d)\}", p.line.attributes):
            new = f"source_target_pairs={{{{{match[1]},{match[4]}}},{{{match[3]},{match[2]}}}"
            yield (
                f"{p.line.name}: two targets swapped",
                text.reworded(p, match[0], new),
            )


@kind(exact=True)
def devices_order(text: Text) -> Edits:
    """A collective knows its devices in another order."""
    for p in text.of("all-gather", "all-to-all", "reduce-scatter"):
        if "replica_groups={{0,1,2,3}}" in p.line.attributes:
            yield (
                f"{p.line.name}: devices 1, 0, 2, 3",
                text.reworded(p, "{{0,1,2,3}}", "{{1,0,2,3}}"),
            )


@kind(exact=True)
def devices_one(text: Text) -> Edits:
    """One device alone has another result: where its number is 2."""
    if not any("num_partitions=4" in line for line in text.lines[:1]):
        return
    for p in text.of("fusion", "multiply", "add"):
        if p.entry and p.line.type == "f32" and p.line.dims:
            line = p.line
            made = text.wrapped(
                p,
                (line.shape, "negate", ("@",), ""),
                ("u32[]", "partition-id", (), ""),
                ("u32[]", "constant", ("2",), ""),
                ("pred[]", "compare", ("@1", "@2"), ", direction=EQ"),
                (line.retyped("pred"), "broadcast", ("@3",), ", dimensions={}"),
                (line.shape, "select", ("@4", "@0", "@"), ""),
            )
            yield f"{line.name} {line.opcode} is negated on device 2", made
