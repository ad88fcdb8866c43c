"""What the benchmark of verdicts remembers: one line of JSON per judged pair, so that it can go on later."""

from __future__ import annotations

import msgspec
from units import UnitDone
from verdicts_judge import PairVerdict


class LegalRecord(msgspec.Struct, frozen=True, tag="legal"):
    """A pair of legal executions; `judgement` is None where one of them could not be had, for `reason`."""

    unit: str
    way: str
    detail: str
    seed: int
    judgement: PairVerdict | None
    reason: str = ""


class FaultRecord(msgspec.Struct, frozen=True, tag="fault"):
    """A planted fault.

    Attributes:
        unit: kind of fault.
        pattern: that the kind shows.
        program: that it is in.
        stage: `before` or `after` optimisation.
        site: where.
        seed: that it was planted with.
        is_deep: not in the entry computation.
        at_output: the program returns the value at the site.
        ratio: largest change over the legal spread.
        counts: it must be found.
        as_program: verdict on the faulty program beside the right one, both on numpy.
        as_backend: verdict on what XLA returns for the faulty program; None where it cannot run it.
        refusal: why it cannot.
    """

    unit: str
    pattern: str | None
    program: str
    stage: str
    site: str
    seed: int
    is_deep: bool
    at_output: bool
    ratio: float
    counts: bool
    as_program: PairVerdict | None
    as_backend: PairVerdict | None
    refusal: str = ""


Record = LegalRecord | FaultRecord | UnitDone

DECODER = msgspec.json.Decoder(Record)
