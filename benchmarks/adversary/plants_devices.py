"""Several devices; copies that an operation in place needs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from benchmarks.adversary.plants import kind
from benchmarks.adversary.text import Text

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
        others = [
            u for u in text.uses.get((p.computation, source.line.name), []) if u.at != p.at and u.at > p.at
        ]
        written = [
            u
            for u in users
            if u.line.opcode in ("dynamic-update-slice", "scatter", "while")
            and u.line.operands[0] == p.line.name
        ]
        written += [
            u
            for u in users
            if u.line.opcode == "fusion"
            and u.line.shape == p.line.shape
            and "output_to_operand" in u.line.attributes
        ]
        if written and (
            any(o.at > written[0].at for o in others) or source.line.opcode == "parameter" or source.line.root
        ):
            made = []
            for at, raw in enumerate(text.lines):
                if at == p.at:
                    continue
                made.append(
                    re.sub(rf"{re.escape(p.line.name)}(?![\w.\-])", source.line.name, raw)
                    if any(u.at == at for u in users)
                    else raw
                )
            yield (
                f"{p.line.name} (copy of {source.line.name} before {written[0].line.opcode}) dropped",
                "\n".join(made) + "\n",
            )


@kind(exact=True)
def devices_groups(text: Text) -> Edits:
    """A collective runs in smaller groups, or sends to another device."""
    for p in text.of("all-reduce", "collective-permute", "all-gather", "reduce-scatter", "all-to-all"):
        if "replica_groups={{0,1,2,3}}" in p.line.attributes and p.line.opcode == "all-reduce":
            yield (
                f"{p.line.name} in two groups",
                text.changed(p, attributes=p.line.attributes.replace("{{0,1,2,3}}", "{{0,1},{2,3}}")),
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
                    text.changed(
                        p,
                        attributes=p.line.attributes.replace(
                            f"replica_groups={old}", f"replica_groups={new}"
                        ),
                    ),
                )
        if match := re.search(r"source_target_pairs=\{\{(\d),(\d)\},\{(\d),(\d)\}", p.line.attributes):
            new = f"source_target_pairs={{{{{match[1]},{match[4]}}},{{{match[3]},{match[2]}}}"
            yield (
                f"{p.line.name}: two targets swapped",
                text.changed(p, attributes=p.line.attributes.replace(match[0], new)),
            )


@kind(exact=True)
def devices_order(text: Text) -> Edits:
    """A collective knows its devices in another order."""
    for p in text.of("all-gather", "all-to-all", "reduce-scatter"):
        if "replica_groups={{0,1,2,3}}" in p.line.attributes:
            yield (
                f"{p.line.name}: devices 1, 0, 2, 3",
                text.changed(p, attributes=p.line.attributes.replace("{{0,1,2,3}}", "{{1,0,2,3}}")),
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
