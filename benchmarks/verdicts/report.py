"""The tables of the benchmark of verdicts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from statistics import median
from typing import TypeVar

from benchmarks.verdicts.judge import ACCUSING, PairVerdict
from benchmarks.verdicts.peers import BOUNDS
from benchmarks.verdicts.records import FaultRecord, LegalRecord, Record
from hlotool.inputs.adversarial.sets import PLAIN

#: A kind's pattern counts as named when it is right for at least this share of its faults at an output.
_NAMED = 0.5

_T = TypeVar("_T")


def report(records: Iterable[Record]) -> Iterator[str]:
    """Lines of Markdown."""
    known = list(records)
    everything = [r for r in known if isinstance(r, LegalRecord)]
    legal = [r for r in everything if r.set == PLAIN]
    faults = [r for r in known if isinstance(r, FaultRecord)]
    yield from _margins(known)
    if legal:
        yield from _legal(legal)
        yield from _cost([r.judgement for r in legal if r.judgement is not None])
    if len(legal) < len(everything):
        yield from _on_sets([r for r in everything if r.set != PLAIN])
    if faults:
        yield from _faults([f for f in faults if f.counts])
        yield from _small_faults([f for f in faults if not f.counts])


def is_alarm(judgement: PairVerdict | None) -> bool:
    """Whether the tested side is accused."""
    return judgement is not None and judgement.verdict in ACCUSING


def is_false_alarm(record: Record) -> bool:
    """Whether a legal pair that a replay would judge is accused."""
    return isinstance(record, LegalRecord) and record.is_asked and is_alarm(record.judgement)


def _margins(records: list[Record]) -> Iterator[str]:
    """How far legal pairs and faults are from the ratio that tells them apart."""
    legal = [r.judgement.ratio for r in records if isinstance(r, LegalRecord) and r.judgement]
    faults = [r.as_program.ratio for r in records if isinstance(r, FaultRecord) and r.counts and r.as_program]
    for name, ratios, edge in (("legal pairs", legal, max), ("planted faults", faults, min)):
        known = [ratio for ratio in ratios if ratio is not None]
        if known:
            middle, end = median(known), edge(known)
            yield f"- ratios of {len(known)} {name}: {middle:.2g} in the median, {end:.2g} at the edge"
    yield ""


def _legal(records: list[LegalRecord]) -> Iterator[str]:
    judged = [r for r in records if r.judgement is not None]
    programs, passes = {r.unit for r in judged}, {r.detail for r in judged if r.way == "disabled pass"}
    counts = f"{len(judged)} pairs of legal executions of {len(programs)} programs"
    yield f"{counts}; {len(passes)} passes disabled, one at a time."
    yield ""
    verdicts = sorted({r.judgement.verdict for r in judged if r.judgement})
    header = ["legal pairs", "pairs", *verdicts, "false alarms", *(f"of {name}" for name in BOUNDS)]
    rows = [_legal_row(way, group) for way, group in _grouped(judged, lambda r: r.way)]
    yield from _table(header, [*(r(verdicts) for r in rows), _legal_row("all", judged)(verdicts)])
    missing = Counter(r.way for r in records if r.judgement is None)
    if missing:
        yield "Not had: " + ", ".join(f"{way} {count}" for way, count in missing.most_common()) + "."
        yield ""


def _legal_row(name: str, records: list[LegalRecord]) -> Callable[[list[str]], list[str]]:
    found = [r.judgement for r in records if r.judgement is not None]
    counts = Counter(j.verdict for j in found)
    alarms = [sum(peer not in j.peers for j in found) for peer in BOUNDS]

    def row(verdicts: list[str]) -> list[str]:
        columns = [len(found), *(counts[v] for v in verdicts), sum(map(is_alarm, found)), *alarms]
        return [name, *map(str, columns)]

    return row


def _on_sets(records: list[LegalRecord]) -> Iterator[str]:
    """The pairs on further sets: by way and by kind, then what no replay judges, and what is accused."""
    asked = [r for r in records if r.is_asked and r.judgement is not None]
    sets = {(r.unit, r.seed, r.set) for r in asked}
    pairs = {(r.unit, r.way, r.detail) for r in asked}
    yield (
        f"On further sets: {len(asked)} runs of {len(pairs)} pairs of programs and ways, on {len(sets)} sets"
        f" of {len({r.unit for r in asked})} programs."
    )
    yield ""
    yield from _verdicts("way", _grouped(asked, lambda r: r.way), asked)
    yield from _verdicts("kind of set", _by_kind(asked), asked)
    left = [r for r in records if not r.is_asked and r.judgement is not None]
    if left:
        yield "Sets that a replay runs on one backend alone, here between backends:"
        yield ""
        yield from _verdicts("kind of set", _by_kind(left), left)
    missing = Counter((r.way, r.reason.split(":")[0][:60]) for r in records if r.judgement is None)
    for (way, reason), count in missing.most_common():
        yield f"- not had: {way}, {count}: {reason}"
    for record in records:
        if is_alarm(record.judgement):
            scope = "" if record.is_asked else " (not judged by a replay)"
            yield f"- accused: {record.unit}, {record.way} {record.detail}, set {record.set}{scope}"
    yield ""


def _by_kind(records: list[LegalRecord]) -> Iterator[tuple[str, list[LegalRecord]]]:
    yield from sorted(_grouped(records, lambda r: r.kind), key=lambda group: -len(group[1]))


def _verdicts(
    first: str, groups: Iterable[tuple[str, list[LegalRecord]]], everything: list[LegalRecord]
) -> Iterator[str]:
    """A row for each group and one for all."""
    names = sorted({r.judgement.verdict for r in everything if r.judgement})

    def row(name: str, records: list[LegalRecord]) -> list[str]:
        counts = Counter(r.judgement.verdict for r in records if r.judgement)
        columns = [len(records), len({r.unit for r in records}), *(counts[n] for n in names)]
        return [name, *map(str, columns)]

    rows = [row(name, records) for name, records in groups]
    yield from _table([first, "runs", "programs", *names], [*rows, row("all", everything)])


def _cost(judgements: list[PairVerdict]) -> Iterator[str]:
    leaves = Counter(verdict for j in judgements for verdict in j.leaves)
    total = max(1, sum(leaves.values()))
    fast = sum(j.members == 0 for j in judgements)
    drawn = [j for j in judgements if j.members]
    yield f"- arrays judged `unstable`: {leaves['unstable']} of {total} ({leaves['unstable'] / total:.2%})"
    yield f"- settled without an ensemble: {fast} of {len(judgements)} ({fast / len(judgements):.1%})"
    if drawn and all(j.run_seconds for j in drawn):
        runs = median(j.seconds / j.run_seconds for j in drawn)
        fresh = median(j.seconds / (j.run_seconds + j.plan_seconds) for j in drawn)
        yield (
            f"- where one was drawn ({len(drawn)} pairs), judging took, in the median, {fresh:.1f} times"
            f" planning and running the reference once, {runs:.1f} times running it; largest ensemble"
            f" {max(j.members for j in drawn)}"
        )
    yield ""


def _faults(faults: list[FaultRecord]) -> Iterator[str]:
    yield (
        f"{len(faults)} planted faults that change a well-conditioned output by more than its legal"
        f" spread: {len({f.unit for f in faults})} kinds in {len({f.program for f in faults})} programs,"
        f" {sum(f.is_deep for f in faults)} of them inside fusions, loop bodies, branches and reducers."
    )
    yield ""
    header = ["kind of fault", "planted", "missed", "missed in XLA's result", "pattern", "named"]
    peers = [f"missed by {name}" for name in BOUNDS]
    rows = [_fault_row(kind, group) for kind, group in _grouped(faults, lambda f: f.unit)]
    yield from _table([*header, *peers], [*rows, _fault_row("all", faults)])
    yield from _patterns(faults)


def _fault_row(kind: str, faults: list[FaultRecord]) -> list[str]:
    program = [f.as_program for f in faults if f.as_program is not None]
    backend = [f.as_backend for f in faults if f.as_backend is not None]
    missed = [sum(not is_alarm(j) for j in found) for found in (program, backend)]
    pattern = faults[0].pattern or "" if len({f.pattern for f in faults}) == 1 else ""
    share = _named_share(faults)
    named = "" if share is None or not pattern else f"{share:.0%}"
    peers = [sum(peer in j.peers for j in program) for peer in BOUNDS]
    seen = [str(len(faults)), str(missed[0]), f"{missed[1]} of {len(backend)}"]
    return [kind, *seen, pattern, named, *map(str, peers)]


def _named_share(faults: list[FaultRecord]) -> float | None:
    """Of the faults at an output, how many were called by the pattern that they show."""
    shown = [f for f in faults if f.pattern and f.at_output and is_alarm(f.as_program)]
    if not shown:
        return None
    return sum(_is_named(f) for f in shown) / len(shown)


def _is_named(fault: FaultRecord) -> bool:
    return fault.as_program is not None and fault.pattern in fault.as_program.patterns


def _patterns(faults: list[FaultRecord]) -> Iterator[str]:
    shares = {kind: _named_share(group) for kind, group in _grouped(faults, lambda f: f.unit)}
    recognisable = {kind: share for kind, share in shares.items() if share is not None}
    named = sum(share >= _NAMED for share in recognisable.values())
    if recognisable:
        yield (
            f"- kinds with a recognisable pattern that are named right: {named} of {len(recognisable)}"
            f" ({named / len(recognisable):.0%})"
        )
    refused = Counter(f.refusal.split(":")[0] for f in faults if f.refusal)
    for reason, count in refused.most_common():
        yield f"- {reason}: {count}"
    yield ""


def _small_faults(faults: list[FaultRecord]) -> Iterator[str]:
    judged = [f for f in faults if f.as_program is not None]
    found = sum(is_alarm(f.as_program) for f in judged)
    yield f"Of {len(judged)} faults that change outputs by one to ten legal spreads, {found} are found."
    yield ""


def _grouped(items: list[_T], key: Callable[[_T], str]) -> Iterator[tuple[str, list[_T]]]:
    """In the order in which the groups first appear."""
    groups: defaultdict[str, list[_T]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    yield from groups.items()


def _table(header: list[str], rows: Iterable[list[str]]) -> Iterator[str]:
    yield "| " + " | ".join(header) + " |"
    yield "|" + "---|" * len(header)
    for row in rows:
        yield "| " + " | ".join(row) + " |"
    yield ""
