"""Whether pages can be made here: asked before a long run, and told in one line where not."""

from __future__ import annotations

from importlib.util import find_spec

from hlotool.errors import UsageError


def need_jinja() -> None:
    """Raise UsageError where there is no jinja2."""
    if find_spec("jinja2") is None:
        raise UsageError("a page needs jinja2: pip install 'hlotool[html]'")
