"""Exact values rounded to floating-point formats, by fractions of Python's integers."""

from __future__ import annotations

from fractions import Fraction

#: Of each format the bits of its significand, its least exponent and its largest finite value.
FORMATS = {
    "f16": (11, -14, Fraction(65504)),
    "bf16": (8, -126, Fraction(2) ** 127 * (2 - Fraction(1, 1 << 7))),
    "f32": (24, -126, Fraction(2) ** 127 * (2 - Fraction(1, 1 << 23))),
    "f64": (53, -1022, Fraction(2) ** 1023 * (2 - Fraction(1, 1 << 52))),
    "tf32": (11, -126, Fraction(2) ** 127 * (2 - Fraction(1, 1 << 10))),
}


def rounded(exact: Fraction, name: str, mode: str) -> float:
    """`exact` rounded once. Zeros have no sign.

    Args:
        mode: `rn` (ties to even), `rna` (ties away from zero), `rz`, `rm` (down), `rp` (up).
    """
    precision, least, largest = FORMATS[name]
    if exact == 0:
        return 0.0
    size = abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exponent > size:
        exponent -= 1
    unit = Fraction(2) ** (max(exponent, least) - precision + 1)
    whole, rest = divmod(size / unit, 1)
    away = {
        "rn": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1),
        "rna": rest >= Fraction(1, 2),
        "rz": False,
        "rm": rest > 0 and exact < 0,
        "rp": rest > 0 and exact > 0,
    }[mode]
    found = (int(whole) + away) * unit
    if found > largest:
        inward = mode == "rz" or (mode == "rm" and exact > 0) or (mode == "rp" and exact < 0)
        return (
            float(largest if inward else Fraction(0)) * (1 if exact > 0 else -1)
            if inward
            else float("inf") * (1 if exact > 0 else -1)
        )
    return float(found) * (1 if exact > 0 else -1)
