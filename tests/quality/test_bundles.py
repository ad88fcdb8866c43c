"""Bundles keep their word: what `benchmarks/blame/bundles.py` prints, on a few cases."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.blame import bundles


@pytest.mark.slow
@pytest.mark.xla
def test_every_bundle_triggers_or_says_that_it_does_not(tmp_path: Path) -> None:
    """XLA's own faults as the program as given shows them; planted ones never, after three programs."""
    own, _ = bundles.real("xla", tmp_path / "real")
    found = bundles.planted(12, 4711, "xla", tmp_path / "planted")
    for kept in (own, found):
        assert not kept.misses
        assert kept.bundles == kept.culprits == kept.same == sum(kept.says.values())
        assert not kept.leftovers
    assert max(found.judged) <= 3
