"""Functions of JAX, checked where they are called.

>>> import hlotool.jax
>>> result = hlotool.jax.check(f, x)  # doctest: +SKIP
>>> result.verdict  # doctest: +SKIP
<Verdict.IDENTICAL: 'identical'>

JAX is imported when a function here is called, and not before.
"""

from __future__ import annotations

from hlotool.api.called import CheckedCall
from hlotool.jax.capturing import capture
from hlotool.jax.checking import Checker, check, checked

__all__ = ["CheckedCall", "Checker", "capture", "check", "checked"]
