"""Where two small programs part."""

from __future__ import annotations

import numpy as np

import hlotool
from hlotool.inputs.recorded_values import Budget
from hlotool.judge.locate.recording import on_one_device
from hlotool.judge.locate.report import first_divergence
from hlotool.judge.records import DivergenceRecord


def located(before: str, after: str, *arguments: object, output: tuple[int, ...] = ()) -> DivergenceRecord:
    """What the locator says of a leaf of the result; other arguments are the same ones, scaled."""
    scaled = {
        seed: [np.asarray(a) * np.asarray(a).dtype.type(seed + 1) for a in arguments] for seed in (1, 2)
    }
    sides = [
        on_one_device(hlotool.parse(text), arguments, lambda seed: scaled[seed])  # type: ignore[arg-type]
        for text in (before, after)
    ]
    return first_divergence(*sides, [output], Budget())
