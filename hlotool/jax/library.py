"""JAX, imported when it is needed."""

from __future__ import annotations

from typing import Any

from hlotool.errors import BackendUnavailable


def load_jax() -> Any:
    """The package; raises BackendUnavailable where it is missing."""
    try:
        import jax
    except ImportError as error:
        raise BackendUnavailable(f"JAX cannot be imported (pip install jax): {error}") from error
    return jax
