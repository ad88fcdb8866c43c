"""The worked example of how to write a pass."""

from __future__ import annotations

import doctest

import hlotool.rewrite.passes


def test_the_example_of_the_package_runs() -> None:
    result = doctest.testmod(hlotool.rewrite.passes)
    assert result.attempted > 10
    assert result.failed == 0
