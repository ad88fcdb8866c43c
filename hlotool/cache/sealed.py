"""Entries with a checksum: what a process that died, a full disk or another version wrote is not believed.

A checksum finds accidents. It is no protection from somebody who may write to the folder and means harm.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from hlotool._version import __version__

_CHECK = 8


def sealed(form: str, key: str, value: Any) -> bytes:
    """A line, without its end, that holds a key and a value of plain data.

    Args:
        form: names what the value is, and its version: lines of other forms are not believed.
        key: of the value.
        value: what JSON can hold.
    """
    body = json.dumps([key, value], separators=(",", ":")).encode()
    return _checksum(form, body) + b" " + body


def unsealed(form: str, line: bytes) -> tuple[str, Any] | None:
    """Key and value of a line; None for a damaged or foreign one."""
    check, _, body = line.partition(b" ")
    if len(check) != 2 * _CHECK or check != _checksum(form, body):
        return None
    key, value = json.loads(body)
    return key, value


def _checksum(form: str, body: bytes) -> bytes:
    version = f"hlotool {__version__} {form}".encode()
    return hashlib.blake2b(body, digest_size=_CHECK, key=version).hexdigest().encode()
