"""All rules: the modules that define them are imported here, and nowhere else."""

from __future__ import annotations

import hlotool.check.fusions
import hlotool.check.lints
import hlotool.check.offload.rules
import hlotool.check.promises
import hlotool.check.validity  # noqa: F401
from hlotool.check.rules import RULES, Rule


def all_rules() -> dict[str, Rule]:
    """All rules by id."""
    return RULES
