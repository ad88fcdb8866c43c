"""All rules: the modules that define them are imported here, and nowhere else."""

from __future__ import annotations

from importlib import import_module

from hlotool.check.rules import RULES, Rule

_MODULES = (
    "hlotool.check.fusions",
    "hlotool.check.lints.bounds",
    "hlotool.check.lints.compilation",
    "hlotool.check.lints.compile_time",
    "hlotool.check.lints.floats",
    "hlotool.check.lints.interface",
    "hlotool.check.lints.repeatability",
    "hlotool.check.offload.rules",
    "hlotool.check.promises",
    "hlotool.check.validity",
)
for _module in _MODULES:
    import_module(_module)


def all_rules() -> dict[str, Rule]:
    """All rules by id."""
    return RULES
