"""What takes secrets out of URLs, and puts them back."""

from __future__ import annotations

import pytest

from hlotool.errors import UsageError
from hlotool.system.urls import adopt, hidden, masked, secrets, taken_in, unmasked

SIGNED = "https://host/dump/a.hlo?X-Amz-Date=1&X-Amz-Signature=abc%2F1&versionId=7"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://me:pass@host:81/dump", "https://***@host:81/dump"),
        ("sftp://token@host/dump", "sftp://***@host/dump"),
        (SIGNED, "https://host/dump/a.hlo?X-Amz-Date=***&X-Amz-Signature=***&versionId=7"),
        ("https://me:p@ss@host/a?sig=1", "https://***@host/a?sig=***"),
        ("https://host/dump?versionId=7", "https://host/dump?versionId=7"),
        # No query: keys of stores may hold any character.
        ("s3://bucket/what?x=1", "s3://bucket/what?x=1"),
        ("s3://bucket/you@me/x", "s3://bucket/you@me/x"),
        ("not/a@url:x", "not/a@url:x"),
    ],
)
def test_a_mask_hides_and_gives_back(url: str, shown: str) -> None:
    assert masked(url) == shown
    assert masked(shown) == shown
    assert unmasked(shown) == url


def test_what_lies_below_a_masked_folder_has_its_password() -> None:
    folder = masked("https://me:pass@host/dump")
    assert unmasked(f"{folder}/module_0001.jit_f.txt") == "https://me:pass@host/dump/module_0001.jit_f.txt"
    assert unmasked("https://other/dump") == "https://other/dump"


def test_two_secrets_of_one_name_are_refused() -> None:
    masked(SIGNED)
    with pytest.raises(UsageError, match=r"Signature=\*\*\*.*: two URLs that differ in passwords or queries"):
        masked(SIGNED.replace("abc", "def"))


def test_another_process_can_adopt_them(monkeypatch: pytest.MonkeyPatch) -> None:
    masked(SIGNED)
    known = secrets()
    monkeypatch.setenv("HLOTOOL_URL_SECRETS", "{}")
    assert unmasked(masked("https://host/x")) == "https://host/x"
    adopt(known)
    assert unmasked("https://host/dump/a.hlo?X-Amz-Date=***&X-Amz-Signature=***&versionId=7") == SIGNED


def test_errors_of_libraries() -> None:
    masked("https://me:pass@host/dump")
    said = "GET https://me:pass@host/dump?x-goog-signature=12ab&q=1 and ftp://a:b@c/d failed"
    assert hidden(said) == "GET https://***@host/dump?x-goog-signature=***&q=1 and ftp://***@c/d failed"


def test_files_of_this_machine_are_paths() -> None:
    assert taken_in("file:///tmp/a%20dump") == "/tmp/a dump"
    assert taken_in("file://localhost/tmp") == "/tmp"
    assert taken_in("dump") == "dump"
