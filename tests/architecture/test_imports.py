"""Data flows one way through the house: a room imports earlier rooms, never later ones."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from hlotool.errors import HlotoolError

ROOT = Path(__file__).resolve().parents[2]

#: Rooms in order; those of one rank may import each other only where MAY_ALSO says so.
RANKS = {
    "errors": 0,
    "_python": 0,
    "_version": 0,
    "logs": 0,
    "names": 0,
    "amounts": 0,
    "ir": 1,
    "findings": 2,
    "workers": 1.5,
    "cache": 1,
    "stores": 1.5,
    "grammar": 2,
    "parse": 3,
    "values": 3,
    "analysis": 2,
    "faults": 3,
    "numerics": 3,
    "alignment": 3,
    "scale": 3.5,
    "passes": 3,
    "dump": 4,
    "options": 4,
    "backends": 4,
    "coverage": 5,
    "locate": 5,
    "directed": 6,
    "replay": 7,
    "fleet": 8,
    "search": 8,
    "diff": 8,
    "explain": 8,
    "check": 8,
    "capture": 9,
    "inspect": 9,
    "repro": 9,
    "report": 10,
    "conformance": 10.5,
    "fuzz": 10.5,
    "mutation": 10.5,
    "api": 11,
    "cli": 12,
    "jax": 12,
    "tf": 12,
    "torch_xla": 12,
    "xla_tools": 12,
    "pytest_plugin": 12,
    "notebook": 13,
    "__main__": 13,
    "_build": 13,
    "__init__": 13,
}

#: Rooms for authors of compilers: nothing that a user's own dump needs imports them, and of the API and the
#: command line only the command's own function, when it is called.
LAB = {"conformance", "faults", "fuzz", "mutation", "xla_tools"}


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
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
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


def imported_modules(path: Path) -> Iterator[str]:
    """Our modules that the file imports when it is loaded or when its functions run; not for types alone."""
    pending: list[ast.AST] = [ast.parse(path.read_text())]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in FILES)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            parts = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (part if part in FILES else node.module for part in parts)
        pending += ast.iter_child_nodes(node)


def circles(imported: Mapping[str, set[str]]) -> list[list[str]]:
    """Modules that import each other, directly or not, each group once."""
    reached: dict[str, set[str]] = {}
    for module in imported:
        pending = [module]
        reached[module] = set()
        while pending:
            new = imported[pending.pop()] - reached[module]
            reached[module] |= new
            pending += new
    groups = {tuple(sorted(b for b in reached[a] if a in reached[b])) for a in reached if a in reached[a]}
    return sorted(map(list, groups))


@pytest.mark.parametrize("module", FILES)
def test_imports_only_earlier_rooms(module: str) -> None:
    mine = room(module)
    for imported in imports(FILES[module]):
        if imported.split(".")[0] != "hlotool" or room(imported) == mine:
            continue
        assert RANKS[room(imported)] < RANKS[mine], f"{module} imports {imported}"


def test_the_lab_is_imported_by_its_own_commands_alone() -> None:
    callers = {
        module
        for module, path in FILES.items()
        if room(module) not in LAB and any(room(name) in LAB for name in imported_modules(path))
    }
    assert callers == {f"hlotool.api.{command}" for command in ("conformance", "fuzz", "mutate")}
    loaded = "import sys, hlotool.api.fuzz, hlotool.api.conformance, hlotool.api.mutate, hlotool.cli.main"
    shown = subprocess.run(
        [sys.executable, "-c", f"{loaded}; print([m for m in sys.modules if m.startswith('hlotool.')])"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert not [m for m in ast.literal_eval(shown.stdout) if room(m) in LAB]


def test_a_circle_is_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"d"}}) == [["b", "c"], ["d"]]


def test_no_circles() -> None:
    """A module that needs itself on the way cannot be understood, or moved, alone."""
    imported = {module: {i for i in imported_modules(path) if i in FILES} for module, path in FILES.items()}
    assert "hlotool.ir.printer" in imported["hlotool.ir.module"]
    # `Module.to_text` is worth one: the printer is the only thing that a module does not need to be one.
    imported["hlotool.ir.module"].remove("hlotool.ir.printer")
    assert circles(imported) == []


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
