"""A bundle as a pytest file: it fails as expected until the fault is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hlotool.repro.bundle import Bundle

_TEST = '''\
"""{title}

Passes as an expected failure while the fault is there; fails (XPASS) when it is gone. Run: pytest {name}
"""

from pathlib import Path

import pytest

from hlotool.repro.verify import verify


@pytest.mark.xfail(reason={reason!r}, strict=True)
def test_repro() -> None:
    found = verify(Path(__file__).parent{trust})
    assert found.fails is not None, f"nothing could be compared: {{found.reason}}"
    assert not found.fails, found.reason
'''


def test_text(bundle: Bundle) -> str:
    """The text of `test_repro.py`: a pytest test that fails as long as the bundle does."""
    title = bundle.title.replace("\\", "\\\\").replace('"""', "'''")
    # Who runs this file trusts what lies beside it.
    trust = ", trust=True" if bundle.command else ""
    return _TEST.format(title=title.rstrip("."), name="test_repro.py", reason=bundle.signature, trust=trust)
