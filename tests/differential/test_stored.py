"""What XLA computed once, against the numpy backend of today; needs no jaxlib."""

from __future__ import annotations

from pathlib import Path

import pytest
from differential.running import Tally, compare
from differential.store import files, read

from hlotool.lab.conformance.generators.cases import QUICK


@pytest.mark.parametrize("path", files(), ids=lambda path: path.stem)
def test_same_as_stored(path: Path) -> None:
    tally = Tally()
    for stored in read(path):
        compare(stored.case, stored.results, tally)
    assert tally.cases.total() == QUICK
    assert not tally.mismatches, "\n\n".join(tally.mismatches[:3])


def test_files_stay_small() -> None:
    assert files()
    assert sum(path.stat().st_size for path in files()) < 1 << 20
