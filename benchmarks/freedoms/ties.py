"""Are other orders of ties told from faults? Unstable sorts of few different keys, on real XLA.

Each program is made from a seed: sorts by one key or two, alone, one after the other, in a call or in a loop,
and what is done with what they return. XLA's result is judged as it is (legal), and with one element of one
output changed to what no order of ties gives (a fault): another element of the same output in its place, of
outputs whose elements are all different or sorted, or a number far off.

    python -m benchmarks.freedoms.ties --cases 200 --seed 1
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from hlotool.backends.numpy import NumpyBackend
from hlotool.backends.numpy.executions.ties import TieOrder, ties_in
from hlotool.backends.xla import create
from hlotool.judge.rules.judge import judge
from hlotool.judge.rules.judgement import judgement_of
from hlotool.judge.verdicts import Verdict
from hlotool.parser.reader import parse_module

#: What is done with the sorted keys (k), the permutation (i) and a float payload (x): further instructions.
TAILS = {
    "direct": "ROOT r = (T[N], s32[N], f32[N]) tuple(k, i, x)",
    "permutation": "ROOT r = (s32[N]) tuple(i)",
    "widened": "w = s64[N] convert(i) ROOT r = (T[N], s64[N]) tuple(k, w)",
    "first": "a = s32[H] slice(i), slice={[0:H]} b = f32[H] slice(x), slice={[0:H]} "
    "ROOT r = (s32[H], f32[H]) tuple(a, b)",
    "reversed": "v = s32[N] reverse(i), dimensions={0} m = s32[N,1] reshape(v) ROOT r = (s32[N,1]) tuple(m)",
    "linear": "c = s32[] constant(3) d = s32[N] broadcast(c), dimensions={} p = s32[N] multiply(i, d) "
    "ROOT r = (T[N], s32[N]) tuple(k, p)",
    "weighted": "o = s32[N] iota(), iota_dimension=0 p = s32[N] multiply(i, o) z = s32[] constant(0) "
    "u = s32[] reduce(p, z), dimensions={0}, to_apply=add ROOT r = (s32[]) tuple(u)",
    "neighbours": "z = s32[] constant(0) "
    "u = s32[N] reduce-window(i, z), window={size=2 pad=0_1}, to_apply=add ROOT r = (s32[N]) tuple(u)",
    "floats": "e = f32[N] exponential(x) l = f32[N] log(e) y = f32[N] sqrt(e) "
    "ROOT r = (f32[N], f32[N]) tuple(l, y)",
    "sorted again": "q = (s32[N], s32[N]) sort(g, i), dimensions={0}, to_apply=one_s32 "
    "a = s32[N] get-tuple-element(q), index=0 b = s32[N] get-tuple-element(q), index=1 "
    "ROOT r = (s32[N], s32[N]) tuple(a, b)",
}

#: Comparators of (key, s32, f32).
ONE = "ROOT r = pred[] compare(a, b), direction=D"
TWO = """half = s32[] constant(2)
  c2 = s32[] divide(c, half)
  d2 = s32[] divide(d, half)
  first = pred[] compare(a, b), direction=D
  same = pred[] compare(a, b), direction=EQ
  second = pred[] compare(c2, d2), direction=LT
  also = pred[] and(same, second)
  ROOT r = pred[] or(first, also)"""

PROGRAM = """HloModule ties

add {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT s = s32[] add(a, b)
}

one_s32 {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=GT
}

less {
  a = T[] parameter(0)
  b = T[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  e = f32[] parameter(4)
  f = f32[] parameter(5)
  COMPARE
}

sorted {
  k = T[N] parameter(0)
  i = s32[N] parameter(1)
  x = f32[N] parameter(2)
  ROOT called_sort = (T[N], s32[N], f32[N]) sort(k, i, x), dimensions={0}, to_apply=less
}

body {
  t = (s32[], T[N], s32[N], f32[N]) parameter(0)
  n = s32[] get-tuple-element(t), index=0
  k = T[N] get-tuple-element(t), index=1
  i = s32[N] get-tuple-element(t), index=2
  x = f32[N] get-tuple-element(t), index=3
  v = T[N] reverse(k), dimensions={0}
  looped_sort = (T[N], s32[N], f32[N]) sort(v, i, x), dimensions={0}, to_apply=less
  k2 = T[N] get-tuple-element(looped_sort), index=0
  i2 = s32[N] get-tuple-element(looped_sort), index=1
  x2 = f32[N] get-tuple-element(looped_sort), index=2
  one = s32[] constant(1)
  n2 = s32[] add(n, one)
  ROOT r = (s32[], T[N], s32[N], f32[N]) tuple(n2, k2, i2, x2)
}

goes_on {
  t = (s32[], T[N], s32[N], f32[N]) parameter(0)
  n = s32[] get-tuple-element(t), index=0
  three = s32[] constant(3)
  ROOT r = pred[] compare(n, three), direction=LT
}

ENTRY main {
  keys = T[N] parameter(0)
  numbers = f32[N] parameter(1)
  g = s32[N] parameter(2)
  places = s32[N] iota(), iota_dimension=0
  SORT
  k = T[N] get-tuple-element(s), index=OFF0
  i = s32[N] get-tuple-element(s), index=OFF1
  x = f32[N] get-tuple-element(s), index=OFF2
  TAIL
}
"""

SORTS = {
    "alone": "s = (T[N], s32[N], f32[N]) sort(keys, places, numbers), dimensions={0}, to_apply=less",
    "called": "s = (T[N], s32[N], f32[N]) call(keys, places, numbers), to_apply=sorted",
    "twice": "f = (s32[N], s32[N]) sort(g, places), dimensions={0}, to_apply=one_s32 "
    "h = s32[N] get-tuple-element(f), index=1 "
    "s = (T[N], s32[N], f32[N]) sort(keys, h, numbers), dimensions={0}, to_apply=less",
    "looped": "n0 = s32[] constant(0) t0 = (s32[], T[N], s32[N], f32[N]) tuple(n0, keys, places, numbers) "
    "s = (s32[], T[N], s32[N], f32[N]) while(t0), condition=goes_on, body=body",
}


def program(draw: random.Random) -> tuple[str, str, int]:
    """Its text, what it is made of, and how many elements it sorts."""
    sort, tail = draw.choice(list(SORTS)), draw.choice(list(TAILS))
    size = draw.choice((draw.randint(2, 40), draw.randint(17, 300)))
    offset = sort == "looped"
    words = {
        "SORT": SORTS[sort],
        "TAIL": TAILS[tail],
        "COMPARE": draw.choice((ONE, TWO)),
        "direction=D": f"direction={draw.choice(('LT', 'GT'))}",
        **{f"OFF{n}": str(n + offset) for n in range(3)},
        "T[": f"{draw.choice(('s32', 'f32', 's8', 'u16', 'f64'))}[",
        "[N": f"[{size}",
        "H]": f"{max(1, size // 2)}]",
    }
    text = PROGRAM
    for word, value in words.items():
        text = text.replace(word, value)
    return text, f"{sort}, {tail}", size


def arguments(draw: random.Random, module: Any, size: int) -> list[Any]:
    """Keys with ties, floats that are all different, and further keys with ties."""
    rng = np.random.default_rng(draw.randrange(1 << 30))
    keys, _, _ = module.entry.parameters
    some = rng.integers(0, draw.choice((2, 5, max(2, size // 3))), (2, size))
    dtype = {"s32": np.int32, "f32": np.float32, "s8": np.int8, "u16": np.uint16, "f64": np.float64}
    return [
        some[0].astype(dtype[str(keys.element_type)]),
        rng.permutation(size).astype(np.float32) / 7,
        some[1].astype(np.int32),
    ]


def faulty(draw: random.Random, tail: str, value: tuple[Any, ...]) -> tuple[Any, ...]:
    """The result with one element of one output changed, to what no order of ties gives."""
    parts = [np.array(part) for part in value]
    number = draw.randrange(len(parts))
    flat = parts[number].reshape(-1)
    place = draw.randrange(flat.size)
    others = np.flatnonzero(flat != flat[place])
    if others.size and not tail.endswith(("weighted", "neighbours")):
        flat[place] = flat[draw.choice(others.tolist())]
    else:
        flat[place] += flat.dtype.type(100 if flat.dtype.itemsize < 4 else 100_000)
    return tuple(parts)


def random_ties(seed: int) -> TieOrder:
    """Another order, as no library has it."""
    rng = np.random.default_rng(seed)

    def order_of(_: Any, __: Any, order: Any, groups: Any) -> Any:
        chosen = np.lexsort((rng.random(groups.shape), groups), axis=1)
        return np.take_along_axis(order, chosen, axis=1)

    return order_of


def judged(cases: int, seed: int, is_random: bool) -> Iterator[tuple[str, bool, Verdict, Verdict]]:
    """What each is made of, whether XLA and the reference differ, the verdicts on it and on its fault."""
    engine = create()
    for number in range(cases):
        draw = random.Random(f"{seed}.{number}")
        text, made_of, size = program(draw)
        module = parse_module(text)
        given = arguments(draw, module, size)
        if is_random:
            with ties_in(random_ties(number)):
                actual = NumpyBackend().compile(module).run(given)
        else:
            actual = engine.compile(module).run(given)
        expected: Any = NumpyBackend().compile(module).run(given)
        differs = any(not np.array_equal(*pair) for pair in zip(expected, actual))
        legal = judge(judgement_of(module, given, actual, expected=expected))
        wrong = faulty(draw, made_of, actual)
        found = judge(judgement_of(module, given, wrong, expected=expected))
        yield made_of, differs, legal.verdict, found.verdict


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--random", action="store_true", help="a random order in place of XLA's")
    given = parser.parse_args()
    legal: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    differing = 0
    for made_of, differs, verdict, on_fault in judged(given.cases, given.seed, given.random):
        legal[verdict.value] += 1
        faults[on_fault.value] += 1
        differing += differs
        if verdict is Verdict.WRONG or on_fault is not Verdict.WRONG:
            print(f"{made_of}: legal {verdict.value}, fault {on_fault.value}")
    print(f"other than in the stable order in {differing} of {given.cases}")
    print("legal:", dict(legal))
    print("faults:", dict(faults))


if __name__ == "__main__":
    main()
