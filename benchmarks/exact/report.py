"""The tables of the benchmark of the exact arbiter."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from statistics import median
from typing import Any, TypeVar

from benchmarks.exact.records import FaultRecord, LegalRecord, Proof, Unseen
from benchmarks.verdicts.judge import ACCUSING

_T = TypeVar("_T")

_RELATIONS = ("equal", "unequal", "refused")
#: Of the equal ones: what no residue shows, and what no point has.
_HIDDEN = (Unseen.ROUNDING, Unseen.SPECIALS)
_NAMED = (*_HIDDEN, Unseen.INDICES)


def legal_report(records: Iterable[LegalRecord]) -> Iterator[str]:
    """Lines of Markdown: what was found of legal pairs, and every pair that is accused."""
    known = list(records)
    proved = [(r, r.proof) for r in known if r.proof is not None]
    yield f"{len(proved)} legal pairs of {len({r.unit for r, _ in proved})} programs."
    yield ""
    for title, key in _GROUPINGS:
        yield from _table(
            [title, "programs", "pairs", *_RELATIONS, "decided"],
            [
                _legal_row(name, group)
                for name, group in [*_grouped(proved, lambda p, key=key: key(p[0])), ("all", proved)]
            ],
        )
    seconds = sorted(p.seconds for _, p in proved) or [0.0]
    most = seconds[len(seconds) * 9 // 10]
    yield f"- seconds per pair: {median(seconds):.2f} in the median, {most:.2f} of nine in ten"
    laws = Counter(law for _, p in proved if p.relation == "equal" for law in p.laws)
    yield "- equal only by: " + (", ".join(f"{law} ({n})" for law, n in laws.most_common()) or "nothing")
    for kind, title in (("refused", "refused"), ("unequal", "accused")):
        reasons = Counter((r.unit, p.reason[:110]) for r, p in proved if p.relation == kind)
        yield from _list(title, reasons)
    missing = Counter((r.way, r.reason.split(":")[0]) for r in known if r.proof is None)
    yield from _list("not had", missing)


_GROUPINGS: tuple[tuple[str, Callable[[LegalRecord], str]], ...] = (
    ("legal pairs", lambda r: r.way),
    ("programs", lambda r: r.group),
)


def _legal_row(name: str, group: list[tuple[LegalRecord, Proof]]) -> list[Any]:
    counts = Counter(proof.relation for _, proof in group)
    decided = 1 - counts["refused"] / max(1, len(group))
    programs = len({record.unit for record, _ in group})
    return [name, programs, len(group), *(counts[r] for r in _RELATIONS), f"{decided:.1%}"]


def fault_report(records: Iterable[FaultRecord]) -> Iterator[str]:
    """Lines of Markdown: what the arbiter says of planted faults, and the judge beside it."""
    known = list(records)
    for title, faults in (
        ("planted faults of the catalogue", [f for f in known if not f.is_small]),
        ("faults below rounding", [f for f in known if f.is_small]),
    ):
        if faults:
            yield from _table(
                [
                    title,
                    "planted",
                    *_RELATIONS,
                    *(f"equal but for {kind.value}" for kind in _NAMED),
                    "unequal of decided",
                    "judge accuses",
                ],
                [
                    _fault_row(name, group)
                    for name, group in [*_grouped(faults, lambda f: f.unit), ("all", faults)]
                ],
            )
            verdicts = Counter((f.verdict, f.proof.relation) for f in faults)
            yield from _list("judge's verdict, arbiter's relation", verdicts)
            equal = [f for f in faults if f.proof.relation == "equal" and f.unseen not in _NAMED]
            missed = Counter((f.unit, f"{f.program} {f.stage} {f.site}") for f in equal)
            yield from _list("equal", missed)


def _fault_row(name: str, faults: list[FaultRecord]) -> list[Any]:
    """What residues do not show, roundings and NaNs, is none of what is decided."""
    counts = Counter(f.proof.relation for f in faults)
    unseen = [sum(f.unseen is kind for f in faults) for kind in _NAMED]
    decided = counts["equal"] + counts["unequal"] - sum(f.unseen in _HIDDEN for f in faults)
    accused = sum(f.verdict in ACCUSING for f in faults)
    share = f"{counts['unequal'] / decided:.1%}" if decided else "–"
    return [name, len(faults), *(counts[r] for r in _RELATIONS), *unseen, share, accused]


def _list(title: str, counts: Counter[Any]) -> Iterator[str]:
    for key, count in counts.most_common():
        yield f"- {title}: {', '.join(map(str, key))}: {count}"
    yield ""


def _grouped(items: Iterable[_T], key: Callable[[_T], str]) -> list[tuple[str, list[_T]]]:
    groups: defaultdict[str, list[_T]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return list(groups.items())


def _table(header: list[str], rows: Iterable[list[Any]]) -> Iterator[str]:
    yield "| " + " | ".join(header) + " |"
    yield "|" + "---|" * len(header)
    for row in rows:
        yield "| " + " | ".join(map(str, row)) + " |"
    yield ""
