"""Interpreters that are too old get one line, before anything that they cannot read is imported.

pip refuses them by itself; they meet hlotool in a checkout, or where `xla:python=PATH` names them.
"""

from __future__ import annotations

import sys


def refuse_before(oldest: tuple[int, ...]) -> None:
    """End the import of `hlotool` in a Python older than `oldest`.

    Raises:
        ImportError: it is too old.
        SystemExit: it is too old, and `python -m hlotool` was called: one line will do.
    """
    if sys.version_info < oldest:
        found = sys.version.split()[0]
        message = f"hlotool needs Python 3.11 or newer; {sys.executable} is Python {found}"
        # The command line of `python -m hlotool`, while the package is imported and afterwards.
        is_command = sys.argv[0] == "-m" or sys.argv[0].endswith("__main__.py")
        raise SystemExit(message) if is_command else ImportError(message)
