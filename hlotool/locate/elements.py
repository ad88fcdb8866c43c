"""Single elements of arrays as records."""

from __future__ import annotations

from hlotool.findings.records import finite_or_none
from hlotool.locate.records import ElementRecord
from hlotool.numerics.metrics import Element, Scalar


def element_record(element: Element | None) -> ElementRecord | None:
    """One element of a comparison."""
    if element is None:
        return None
    return ElementRecord(
        index=list(element.index),
        expected=scalar_text(element.expected),
        actual=scalar_text(element.actual),
        absolute=finite_or_none(element.absolute),
        relative=finite_or_none(element.relative),
        ulps=element.ulps,
    )


def scalar_text(value: Scalar) -> str:
    """`true`, `-7`, `0.1`, `nan`, `1+2j`: nine digits tell every f32 apart."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, complex):
        return f"{value.real:.9g}{value.imag:+.9g}j"
    return f"{value:.9g}" if isinstance(value, float) else str(value)
