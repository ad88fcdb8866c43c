"""The counts of a campaign."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from hlotool.findings.records import Record
from hlotool.fuzz.oracle import Judged, Kind

#: What is data in a message: names, numbers, texts that are quoted.
_DATA = re.compile(r"%[\w.-]+|'[^']*'|\"[^\"]*\"|\w*\d[\w.]*")
#: Reasons that are told apart; more would be data that is not recognised as such.
_MOST_REASONS = 200
#: Characters of a reason.
_LONGEST = 160


class Tally(Record, frozen=True, kw_only=True):
    """The counts of a campaign.

    Attributes:
        drawn: programs that were drawn and judged.
        kinds: programs by what became of them.
        origins: programs by what made them.
        refused: why the backend refuses programs, without names and numbers.
        unjudged: why nobody knows what is right, likewise.
        passes: that changed programs, of those that were looked at.
        words: opcodes, types and attributes that were compiled.
        seconds: of all calls.
        looked: seconds of these that looking into failures took.
    """

    drawn: int = 0
    kinds: dict[str, int] = {}
    origins: dict[str, int] = {}
    refused: dict[str, int] = {}
    unjudged: dict[str, int] = {}
    passes: list[str] = []
    words: list[str] = []
    seconds: float = 0.0
    looked: float = 0.0

    @property
    def accepted(self) -> int:
        """Programs that the backend did not refuse."""
        return self.drawn - self.kinds.get("refused", 0)

    @property
    def rate(self) -> float:
        """Programs a minute, while programs were judged."""
        judging = self.seconds - self.looked
        return 60.0 * self.drawn / judging if judging > 0 else 0.0

    def with_one(self, origin: str, words: Iterable[str], judged: Judged) -> Tally:
        """These counts and one more program."""
        is_run = judged.kind not in ("refused", "unjudged")
        return msgspec.structs.replace(
            self,
            drawn=self.drawn + 1,
            kinds=_and_one(self.kinds, judged.kind),
            origins=_and_one(self.origins, origin),
            refused=_and_reason(self.refused, judged, "refused"),
            unjudged=_and_reason(self.unjudged, judged, "unjudged"),
            passes=sorted({*self.passes, *judged.passes}),
            words=sorted({*self.words, *words}) if is_run else self.words,
        )


def _and_one(counts: Mapping[str, int], name: str) -> dict[str, int]:
    return {**counts, name: counts.get(name, 0) + 1}


def _and_reason(counts: dict[str, int], judged: Judged, kind: Kind) -> dict[str, int]:
    if judged.kind != kind:
        return counts
    reason = _DATA.sub("·", " ".join(judged.reason.split()))[:_LONGEST]
    return _and_one(counts, reason if reason in counts or len(counts) < _MOST_REASONS else "other reasons")
