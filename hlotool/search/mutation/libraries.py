"""What is known of the results of library routines."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

import numpy as np

from hlotool.analysis.machine_range import of_integers
from hlotool.ir.module import Instruction
from hlotool.search.mutation.hashing import of_values
from hlotool.search.mutation.terms import Term, Terms

_LU: Final = re.compile(r"lapack_[sdcz]getrf(_ffi)?")


def with_facts(call: Instruction, results: Terms) -> Terms:
    """The results of a custom call, with what its routine promises of them.

    The pivots of `getrf` say with which row each row was exchanged, counted from 1: with a later one, or
    with itself. So the last one is the last row, if there is a pivot for each (LAPACK: dgetrf.f, IPIV).

    Args:
        call: the instruction.
        results: as they are where nothing is known of the routine.
    """
    if not _LU.fullmatch(call.custom_call_target) or not isinstance(results, tuple):
        return results
    matrix, pivots, *others = results
    if not isinstance(matrix, Term) or not isinstance(pivots, Term):
        return results
    rows, columns = matrix.symbols.shape[-2:]
    bounds, symbols = of_integers(1, rows), pivots.symbols
    if 0 < rows <= columns:
        symbols = np.array(symbols)
        symbols[..., rows - 1] = of_values(np.asarray(rows))
    return matrix, replace(pivots, symbols=symbols, bounds=bounds), *others
