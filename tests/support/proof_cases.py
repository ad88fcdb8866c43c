"""Pairs of programs that are proved to be the same, or must not be.

That they are the same, or not, follows from the semantics of HLO; what is proved is also run on all sets.
"""

from __future__ import annotations

import numpy as np

from hlotool.backends.numpy import NumpyBackend
from hlotool.directed.plan import directed_sets
from hlotool.errors import HlotoolError
from hlotool.ir.module import Module
from hlotool.parse.reader import parse_module
from hlotool.search.mutation.laws import LAWS
from hlotool.search.mutation.reading import result_symbols
from hlotool.values.generate import generate_inputs
from hlotool.values.npz import arrays_in

#: Sets on which both run.
_MOST_SETS = 60


def check_case(one: str, other: str, equal: bool) -> None:
    """Fails where two programs, as texts, are proved to be the same and must not be, or the other way."""
    left, right = parse_module(one), parse_module(other)
    symbols = [result_symbols(module, LAWS) for module in (left, right)]
    assert all(map(np.array_equal, *symbols)) is equal
    if equal:
        plain = generate_inputs(left, 0).values
        for values in [plain, *(one.values for one in directed_sets(left, plain, 0))][:_MOST_SETS]:
            assert _results(left, values) == _results(right, values)


def _results(module: Module, values: tuple[object, ...]) -> list[bytes] | None:
    try:
        return [a.tobytes() for a in arrays_in(NumpyBackend().compile(module).run(values))]
    except HlotoolError:
        return None
