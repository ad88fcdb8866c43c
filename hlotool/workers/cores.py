"""How many workers suit the machine."""

from __future__ import annotations

import os


def worker_count(jobs: int, most: int = 4) -> int:
    """`jobs` if given, else one per core, but at most `most`: each holds the values of a whole program."""
    return jobs or min(most, os.cpu_count() or 1)
