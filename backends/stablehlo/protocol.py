"""What the backend says to the process in which the interpreter runs."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from hlotool.backends.xla.protocol import ArrayData


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One run of one program.

    Attributes:
        text: HLO, of whose types NumPy knows those of the parameters and results.
        arguments: one array per parameter.
    """

    text: str
    arguments: list[ArrayData]


class Converted(msgspec.Struct, frozen=True):
    """A program as StableHLO.

    Attributes:
        text: of the StableHLO; empty where there is none.
        refusal: why there is none, in XLA's words.
    """

    text: str
    refusal: str = ""
