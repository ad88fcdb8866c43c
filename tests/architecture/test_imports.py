"""Data flows one way through the house: a room imports earlier rooms, never later ones."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hlotool.errors import HlotoolError

ROOT = Path(__file__).resolve().parents[2]

#: Rooms in order; those of one rank may import each other only where MAY_ALSO says so.
RANKS = {
    "errors": 0,
    "_version": 0,
    "logs": 0,
    "ir": 1,
    "findings": 2,
    "workers": 1,
    "cache": 1,
    "grammar": 2,
    "parse": 3,
    "values": 3,
    "analysis": 2,
    "numerics": 3,
    "alignment": 3,
    "passes": 3,
    "dump": 4,
    "backends": 4,
    "locate": 5,
    "replay": 6,
    "search": 7,
    "diff": 7,
    "explain": 7,
    "check": 7,
    "inspect": 8,
    "repro": 8,
    "api": 8,
    "report": 9,
    "cli": 10,
    "__main__": 11,
    "__init__": 11,
}


def source_files() -> Iterator[tuple[str, Path]]:
    """Every source file with its module name as installed."""
    for folder, prefix in (
        ("hlotool", "hlotool"),
        ("grammar", "hlotool.grammar"),
        ("backends", "hlotool.backends"),
    ):
        for path in sorted((ROOT / folder).rglob("*.py")):
            relative = path.relative_to(ROOT / folder).with_suffix("")
            yield ".".join([prefix, *relative.parts]).removesuffix(".__init__"), path


def room(module: str) -> str:
    """`hlotool.ir.types` lives in room `ir`; the package itself in `__init__`."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def imports(path: Path) -> Iterator[str]:
    """Modules that the file imports, at the top or inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module is not None
            if node.module == "hlotool":
                yield from (f"hlotool.{alias.name}" for alias in node.names)
            else:
                yield node.module


FILES = dict(source_files())


@pytest.mark.parametrize("module", FILES)
def test_imports_only_earlier_rooms(module: str) -> None:
    mine = room(module)
    for imported in imports(FILES[module]):
        if imported.split(".")[0] != "hlotool" or room(imported) == mine:
            continue
        assert RANKS[room(imported)] < RANKS[mine], f"{module} imports {imported}"


def test_ir_needs_only_numpy() -> None:
    allowed = {"numpy", "ml_dtypes", "hlotool", *sys.stdlib_module_names}
    for module, path in FILES.items():
        if room(module) == "ir":
            assert {name.split(".")[0] for name in imports(path)} <= allowed, module


def test_every_exception_is_in_the_tree() -> None:
    """Its docstring is the map that readers rely on."""
    import hlotool.errors

    def names(cls: type) -> Iterator[str]:
        for child in cls.__subclasses__():
            yield child.__name__
            yield from names(child)

    assert hlotool.errors.__doc__ is not None
    defined = {n for n in names(HlotoolError) if hasattr(hlotool.errors, n)}
    assert all(name in hlotool.errors.__doc__ for name in defined)
