"""Small dump directories, made on the spot."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

_MODULE = """HloModule {name}, entry_computation_layout={{(f32[2]{{0}})->f32[2]{{0}}}}

ENTRY %main (x: f32[2]) -> f32[2] {{
  %x = f32[2]{{0}} parameter(0)
  ROOT %y = f32[2]{{0}} {opcode}(%x)
}}
"""


def module_text(name: str = "jit_f", opcode: str = "negate") -> str:
    """A whole module."""
    return _MODULE.format(name=name, opcode=opcode)


class Write(Protocol):
    """Write files below a fresh folder and return it; a bare name gets a module, `(name, content)` that."""

    def __call__(self, *items: str | tuple[str, str | bytes]) -> Path: ...
