"""The counts of a campaign, program by program."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from hlotool.fuzz.oracle import Judged
from hlotool.report.fuzz_records import Kind, Tally

#: What is data in a message: names, numbers, texts that are quoted.
_DATA = re.compile(r"%[\w.-]+|'[^']*'|\"[^\"]*\"|\w*\d[\w.]*")
#: Reasons that are told apart; more would be data that is not recognised as such.
_MOST_REASONS = 200
#: Characters of a reason.
_LONGEST = 160


def counted(tally: Tally, origin: str, words: Iterable[str], judged: Judged) -> Tally:
    """The counts of a campaign and one more program."""
    is_run = judged.kind not in ("refused", "unjudged")
    return msgspec.structs.replace(
        tally,
        drawn=tally.drawn + 1,
        kinds=_and_one(tally.kinds, judged.kind),
        origins=_and_one(tally.origins, origin),
        refused=_and_reason(tally.refused, judged, "refused"),
        unjudged=_and_reason(tally.unjudged, judged, "unjudged"),
        passes=sorted({*tally.passes, *judged.passes}),
        words=sorted({*tally.words, *words}) if is_run else tally.words,
    )


def _and_one(counts: Mapping[str, int], name: str) -> dict[str, int]:
    return {**counts, name: counts.get(name, 0) + 1}


def _and_reason(counts: dict[str, int], judged: Judged, kind: Kind) -> dict[str, int]:
    if judged.kind != kind:
        return counts
    reason = _DATA.sub("·", " ".join(judged.reason.split()))[:_LONGEST]
    return _and_one(counts, reason if reason in counts or len(counts) < _MOST_REASONS else "other reasons")
