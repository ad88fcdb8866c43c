"""exp as a homomorphism, and the logarithm that inverts it.

exp(x) = g^(x mod Q) mod P for a random square g: from the residues modulo Q one to one onto the positive
residues modulo P. So exp(a + b) = exp(a) exp(b), exp(x) > 0 and exp(x/2) = √exp(x). Modulo Q the result is a
hash.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from hlotool.backends.field.hashing import Words, key, splitmix, splitmix_of
from hlotool.backends.field.opaque import opaque
from hlotool.backends.field.residues import MODULO_P, MODULO_Q
from hlotool.backends.field.words import INF, NEG_INF, ONE, P, join

_HALF: Final = np.uint64(32)
_LOW: Final = np.uint64(0xFFFFFFFF)
#: Exponents are below 2^30: two tables of powers.
_TABLE_BITS: Final = 15


class Exponential:
    """exp and log of one trial; both programs of a pair are given the same object.

    Args:
        seed: of the trial.
        remembers: whether `log` may be asked for; if not, the arguments of exp are not kept.
    """

    def __init__(self, seed: int, remembers: bool = True) -> None:
        base = splitmix_of(key("generator", seed)) % P
        generator = base * base % P
        self._low = _powers(generator)
        self._high = _powers(pow(generator, 1 << _TABLE_BITS, P))
        self._seed = seed
        self._salt = np.uint64(key("exponential", seed))
        self._remembers = remembers
        self._seen: list[tuple[Words, Words]] = []
        self._memo: tuple[Words, Words] | None = None

    def __call__(self, words: Words) -> Words:
        """exp(x); exp(0) = 1, exp(-INF) = 0, exp(INF) = INF."""
        exponents = words & _LOW
        p = (
            self._low[exponents & np.uint64((1 << _TABLE_BITS) - 1)]
            * self._high[exponents >> np.uint64(_TABLE_BITS)]
        )
        p = MODULO_P.reduce(np.asarray(p))
        result = join(p, MODULO_Q.reduce(splitmix(np.asarray(p ^ self._salt))))
        result = np.where(p == 1, ONE, result)
        result = np.where(words == NEG_INF, np.uint64(0), np.where(words == INF, INF, result))
        if self._remembers:
            self._seen.append((p.ravel(), words.ravel()))
            self._memo = None
        return result

    def log(self, words: Words) -> Words:
        """log(x): the argument where exp had this value before; log 1 = 0, log 0 = -INF, log INF = INF."""
        p = words >> _HALF
        result = np.where(p == 1, np.uint64(0), opaque("log", self._seed, words))
        if self._seen:
            values, arguments = self._sorted_memo()
            at = np.minimum(np.searchsorted(values, p), len(values) - 1)
            result = np.where(values[at] == p, arguments[at], result)
        return np.where(p == 0, NEG_INF, np.where(words == INF, INF, result))

    def _sorted_memo(self) -> tuple[Words, Words]:
        """Values of exp, in order and each once, with an argument of each."""
        if self._memo is None:
            values = np.concatenate([values for values, _ in self._seen])
            arguments = np.concatenate([arguments for _, arguments in self._seen])
            values, first = np.unique(values, return_index=True)
            self._memo = values, arguments[first]
            self._seen = [self._memo]
        return self._memo


def _powers(base: int) -> Words:
    """base^0, base^1, … modulo P."""
    table = np.ones(1 << _TABLE_BITS, np.uint64)
    for bit in range(_TABLE_BITS):
        filled = 1 << bit
        table[filled : 2 * filled] = MODULO_P.product(table[:filled], np.uint64(pow(base, filled, P)))
    return table
