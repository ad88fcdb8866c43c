"""How often a fault in one of few integers is seen."""

from __future__ import annotations

from hlotool.parser.reader import parse_module
from hlotool.runs.exact.result import Relation
from hlotool.runs.exact.task import compare_modules

#: One-hot vectors of eight labels of ten classes, one of which is counted NUMBER times.
_LABELS = """HloModule labels
ENTRY e {
  labels = s32[8] parameter(0)
  classes = s32[8,10] iota(), iota_dimension=1
  each = s32[8,10] broadcast(labels), dimensions={0}
  hit = pred[8,10] compare(each, classes), direction=EQ
  once = s32[8,10] convert(hit)
  number = s32[10] constant({1, 1, 1, NUMBER, 1, 1, 1, 1, 1, 1})
  numbers = s32[8,10] broadcast(number), dimensions={1}
  ROOT r = s32[8,10] multiply(once, numbers)
}"""
_SEEDS = 64
#: Seeds of points follow each other: those of two comparisons must not be the same.
_APART = 16


def labels() -> str:
    """Of so many seeds those that show that one class is counted twice."""
    one, other = (parse_module(_LABELS.replace("NUMBER", number)) for number in "12")
    found = [compare_modules(one, other, seed=_APART * seed).relation for seed in range(_SEEDS)]
    return f"{found.count(Relation.UNEQUAL)} of {_SEEDS}"
