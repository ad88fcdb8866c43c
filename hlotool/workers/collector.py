"""The garbage collector, where it would only be in the way."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_off() -> Iterator[None]:
    """No cyclic collection while objects only become more: it would scan them again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            if not gc.get_freeze_count():
                # What was made is old at once: nobody need look through it to see that it is still in use.
                gc.freeze()
                gc.unfreeze()
            gc.enable()
