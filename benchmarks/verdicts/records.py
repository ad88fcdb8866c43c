"""What the benchmark of verdicts remembers: one line of JSON per judged pair, so that it can go on later."""

from __future__ import annotations

import msgspec

from benchmarks.common.units import UnitDone
from benchmarks.verdicts.judge import PairVerdict
from hlotool.inputs.adversarial.sets import PLAIN


class LegalRecord(msgspec.Struct, frozen=True, omit_defaults=True, tag="legal"):
    """A pair of legal executions.

    Attributes:
        unit: the program.
        way: what differs between the two.
        detail: of the way.
        seed: of the inputs.
        judgement: None where one of them could not be had.
        reason: why.
        set: name of the set of inputs.
        kind: of set.
        suits_other_backends: whether a replay compares different backends on it.
        is_same_program: both are executions of one text, by different backends.
    """

    unit: str
    way: str
    detail: str
    seed: int
    judgement: PairVerdict | None
    reason: str = ""
    set: str = PLAIN
    kind: str = PLAIN
    suits_other_backends: bool = True
    is_same_program: bool = False

    @property
    def is_asked(self) -> bool:
        """Whether a replay would have judged it."""
        return self.suits_other_backends or not self.is_same_program


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
