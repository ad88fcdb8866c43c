"""Everything that is known of the arrays of random programs, on all pairs of bytes.

Arrays with the same symbols are the same arrays, in whatever program they are, and all of them lie where
their bounds say. That asks more than mutants do: whatever is false of any array shows, whether a result hangs
on it or not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from support.byte_programs import cases_program, float_program, low_bits_program

from hlotool.backends.numpy import NumpyBackend
from hlotool.ir.module import Module
from hlotool.parse.reader import parse_module
from hlotool.search.mutation.hashing import whole
from hlotool.search.mutation.laws import LAWS
from hlotool.search.mutation.symbols import Reader
from hlotool.search.mutation.terms import Term, flat
from hlotool.values.npz import arrays_in

_BYTES = np.arange(-128, 128, dtype=np.int8)


def with_all_arrays(text: str) -> Module:
    """The program with all its arrays as results."""
    body, _, _ = text.partition("\nROOT ")
    arrays = re.findall(r"(\w+) = (\w+\[\d+\]) ", body)
    names, shapes = (", ".join(part) for part in zip(*arrays))
    return parse_module(f"{body}\nROOT all = ({shapes}) tuple({names})\n}}")


def terms_of(module: Module) -> list[Term]:
    reader = Reader(module, LAWS)
    return flat(reader.result(module.entry, reader.fresh(module.entry)))


def numbers_of(value: npt.NDArray[np.generic]) -> npt.NDArray[np.float64]:
    """All zeros and all NaNs are one number each."""
    numbers = np.asarray(value).astype(np.float64) + 0.0
    return np.where(np.isnan(numbers), np.nan, numbers)


def check(written: Callable[[int, str], str], seeds: Sequence[int], kind: type | np.dtype[np.generic]) -> int:
    """Fails where something is not as it is said; returns how many arrays have the symbols of others."""
    values = tuple(array.view(kind) for array in (np.repeat(_BYTES, 256), np.tile(_BYTES, 256)))
    found: dict[int, bytes] = {}
    count = 0
    for seed in seeds:
        terms = terms_of(with_all_arrays(written(seed, "2")))
        results = arrays_in(NumpyBackend().compile(with_all_arrays(written(seed, "65536"))).run(values))
        for term, numbers in zip(terms, map(numbers_of, results), strict=True):
            is_within = (numbers >= term.bounds.low) & (numbers <= term.bounds.high)
            assert (is_within | np.isnan(numbers)).all(), seed
            assert term.bounds.nan or not np.isnan(numbers).any(), seed
            if term.known is not None:
                np.testing.assert_array_equal(numbers, numbers_of(term.known)[0], f"seed {seed}")
            assert found.setdefault(int(whole(term.symbols)), numbers.tobytes()) == numbers.tobytes(), seed
            count += 1
    return count - len(found)


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        (cases_program, np.int8),
        (partial(cases_program, kind="u8"), np.uint8),
        (low_bits_program, np.int8),
        (float_program, np.dtype(ml_dtypes.float8_e5m2)),
    ],
    ids=["choices", "choices without signs", "low bits", "floats"],
)
def test_what_is_known_of_arrays_is_true_of_all_pairs_of_bytes(
    written: Callable[[int, str], str], kind: type | np.dtype[np.generic]
) -> None:
    assert check(written, range(12), kind) > 50
