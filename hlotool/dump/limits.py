"""How much a dump may expand to while it is read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds that keep a damaged or hostile file from filling memory or disk.

    Attributes:
        file_bytes: of one decompressed file; a proto cannot exceed 2 GiB anyway.
        archive_bytes: of a decompressed tar archive.
        members: entries of an archive.
    """

    file_bytes: int = 2 << 30
    archive_bytes: int = 16 << 30
    members: int = 500_000


DEFAULT_LIMITS = Limits()
