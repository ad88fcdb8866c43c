"""What was measured of planted faults, as lines and as a record."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from benchmarks.adversary.cases import Case
from benchmarks.adversary.measure import Said
from benchmarks.adversary.plants import KINDS, Kind

#: Reasons for leaving places out that are printed: the rest are few places each.
_REASONS = 20


@dataclass
class Measured:
    """A case, and what was said of it.

    Attributes:
        name: of its module.
        case: the fault.
        before: path of the text before optimisation; the other one lies beside it.
        said: by default.
        again: with `--thorough`, where it was missed and that was asked.
    """

    name: str
    case: Case
    before: Path
    said: Said
    again: Said | None = None

    @property
    def kind(self) -> Kind:
        """The kind; of a fault on either side the one of the tested text."""
        return KINDS[self.case.kind.split("+")[0]]

    @property
    def thorough(self) -> bool:
        """Seen, at the latest with `--thorough`."""
        return self.said.seen or (self.again is not None and self.again.seen)

    def to_dict(self) -> dict[str, object]:
        """For JSON."""
        case, said, again = self.case, self.said, self.again
        return {
            "name": self.name,
            "kind": case.kind,
            "row": self.kind.row,
            "program": case.subject.name,
            "stage": case.stage,
            "said": case.said,
            "witness": case.style,
            "outputs": case.outputs,
            "verdict": said.verdict,
            "seen": said.seen,
            "reason": said.reason,
            "coverage": said.coverage,
            "sets": said.sets,
            "leaves": said.leaves,
            "thorough": again.verdict if again else None,
            "thorough_seen": again.seen if again else None,
            "before": str(self.before),
        }


def table(rows: list[Measured]) -> list[str]:
    """A line for each kind, then the totals."""
    out = [f"{'kind':28}{'row':6}{'seen':>6}{'of':>5}"]
    for kind in KINDS.values():
        mine = [row for row in rows if row.kind is kind]
        if mine:
            out.append(f"{kind.name:28}{kind.row:6}{sum(row.said.seen for row in mine):6}{len(mine):5}")
    shown = [row for row in rows if not row.kind.promise]
    out.append(f"seen: {_share(rows)}; of those that values show: {_share(shown)}")
    if any(row.again for row in rows):
        out.append(f"seen with --thorough: {sum(row.thorough for row in rows)} of {len(rows)}")
    both = [row for row in rows if row.said.seen and len(row.case.outputs) > 1]
    whole = sum(
        all(row.said.leaves[k] not in _FINE for k in row.case.outputs) for row in both if row.said.leaves
    )
    out.append(f"where several outputs are off, all of them are named: {whole} of {len(both)}")
    out.append(
        f"verdicts of the missed: {dict(Counter(row.said.verdict for row in rows if not row.said.seen))}"
    )
    return out


_FINE = ("identical", "agree", "rounding")


def _share(rows: list[Measured]) -> str:
    return f"{sum(row.said.seen for row in rows)} of {len(rows)}"


def missed(rows: list[Measured]) -> list[str]:
    """Two lines for each fault that was not seen."""
    out = []
    for row in rows:
        if row.said.seen:
            continue
        case, said = row.case, row.said
        witness = f"{case.style} {case.outputs}" if case.style else "by construction"
        more = f"; thorough: {row.again.verdict}" if row.again else ""
        head = f"- {case.kind} [{row.kind.row}] {case.subject.name} ({case.stage})"
        out.append(f"{head}: {case.said}; witness {witness}")
        counts = f"covers {said.coverage}; {said.sets} sets"
        out.append(f"    {said.verdict}: {said.reason[:160]}; {counts}{more}; {row.name}")
    return out


def left_out(lost: Counter[str]) -> list[str]:
    """Places that had no witness, or broke the text."""
    out = [f"left out: {sum(lost.values())} places"]
    return out + [f"    {number:4} {reason}" for reason, number in lost.most_common(_REASONS)]
