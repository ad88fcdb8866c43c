"""All scripts by name: importing their files registers them."""

from __future__ import annotations

from benchmarks.training_steps import (
    scripts_graphs,
    scripts_language,
    scripts_numeric,
    scripts_parallel,
    scripts_precision,
    scripts_sequences,
    scripts_unsupervised,
    scripts_vision,
)
from benchmarks.training_steps.drawing import SCRIPTS

__all__ = [
    "SCRIPTS",
    "scripts_graphs",
    "scripts_language",
    "scripts_numeric",
    "scripts_parallel",
    "scripts_precision",
    "scripts_sequences",
    "scripts_unsupervised",
    "scripts_vision",
]
