"""Versions: what a store tells of a content, and what may be believed later."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from email.utils import formatdate
from typing import Any

import pytest

from hlotool.system.store_objects import Stored, _stored

LONG_AGO = 1_700_000_000.0
NOW = 1_800_000_000.0


def stored(**info: Any) -> Stored:
    return _stored("s3://bucket/x", info)


@pytest.mark.parametrize(
    "info",
    [
        {"ETag": '"abc"', "size": 3},
        {"generation": "17", "size": 3},
        {"mtime": LONG_AGO, "size": 3},
        {"created": datetime.fromtimestamp(LONG_AGO, UTC), "size": 3},
        {"Last-Modified": formatdate(LONG_AGO, usegmt=True), "size": 3},
        # GCS, as gcsfs hands it on.
        {"updated": "2023-11-14T22:13:20.000Z", "size": 3},
    ],
)
def test_a_version_lasts(info: dict[str, Any]) -> None:
    assert stored(**info).lasts
    assert stored(**info).version == stored(**info).version
    assert not stored(**info).is_still(stored(**{**info, "size": 4}).version)


@pytest.mark.parametrize(
    "info",
    [
        {"size": 3},
        # The same page may have other bytes (RFC 9110, 8.8.1).
        {"ETag": 'W/"abc"', "size": 3},
        # Clocks tick in seconds: a second change may follow.
        {"Last-Modified": formatdate(NOW, usegmt=True), "size": 3},
        {"mtime": "yesterday", "size": 3},
    ],
)
def test_a_version_of_one_listing(info: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: NOW)
    one, other = stored(**info), stored(**info)
    assert one.version != other.version
    assert not one.lasts
    assert one.is_still(other.version)


def test_a_listing_may_tell_less_than_a_look() -> None:
    listed = stored(ETag='"abc"', size=3)
    looked_at = stored(ETag='"abc"', size=3, VersionId="7")
    assert looked_at.is_still(listed.version)
    assert not stored(ETag='"abd"', size=3, VersionId="7").is_still(listed.version)
