"""What the judge says of a result of a program that stands in a test as text."""

from __future__ import annotations

from typing import Any

from hlotool.backends.numpy import NumpyBackend
from hlotool.judge.comparison import Comparison, LeafComparison
from hlotool.judge.rules.judge import judge
from hlotool.judge.rules.judgement import judgement_of
from hlotool.parser.reader import parse_module


def executed(text: str, arguments: list[Any]) -> Any:
    """What the reference returns."""
    return NumpyBackend().compile(parse_module(text)).run(arguments)


def judged(text: str, arguments: list[Any], actual: Any, **options: Any) -> Comparison:
    """The verdict on `actual`; options as `judgement_of` has them."""
    return judge(judgement_of(parse_module(text), arguments, actual, **options))


def judged_leaf(text: str, arguments: list[Any], actual: Any, **options: Any) -> LeafComparison:
    """That on the first output."""
    return judged(text, arguments, actual, **options).leaves[0]


def pair_leaf(before: str, after: str, arguments: list[Any], **options: Any) -> LeafComparison:
    """Two programs, both executed by the reference."""
    return judged_leaf(before, arguments, executed(after, arguments), tested=parse_module(after), **options)
