"""Data flows one way through the house: a room imports earlier rooms, never later ones.

CONTRIBUTING.md shows rooms and arrows, which `--update-golden` draws anew from the imports.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from hlotool.errors import HlotoolError

ROOT = Path(__file__).resolve().parents[2]
CONTRIBUTING = ROOT / "CONTRIBUTING.md"

#: Folders in order. `grammar` and `backends` are folders of the checkout that install as sub-packages.
ROOMS = (
    "system",
    "ir",
    "grammar",
    "parser",
    "facts",
    "rewrite",
    "backends",
    "inputs",
    "sources",
    "judge",
    "checks",
    "runs",
    "blame",
    "interface",
    "lab",
)
#: Modules below the rooms and above them stand in `hlotool/` itself: users import them by name.
FOUNDATION = ("_python", "_version", "errors")
ENTRANCES = ("jax", "tf", "torch_xla", "pytest_plugin", "notebook", "__main__", "_build", "__init__")
ORDER = {name: place for place, name in enumerate((*FOUNDATION, *ROOMS, *ENTRANCES))}

#: The arrows of CONTRIBUTING.md: a line for each room, with what it imports.
PICTURE = re.compile(r"(?<=```text\nroom       imports\n)[^`]*(?=```\n)")


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


def imports(tree: ast.AST) -> Iterator[str]:
    """Modules that a file imports, at the top or inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative import"
            assert node.module is not None
            if node.module == "hlotool":
                yield from (f"hlotool.{alias.name}" for alias in node.names)
            else:
                yield node.module


FILES = dict(source_files())
TREES = {module: ast.parse(path.read_text(encoding="utf-8")) for module, path in FILES.items()}


def imported_modules(tree: ast.AST) -> Iterator[str]:
    """Our modules that a file imports when it is loaded or when its functions run; not for types alone."""
    pending = [tree]
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


def rooms_imported() -> dict[str, set[str]]:
    """For each room or entrance the others that its files import."""
    found: dict[str, set[str]] = {name: set() for name in ORDER}
    for module, tree in TREES.items():
        ours = {room(name) for name in imported_modules(tree) if name.split(".")[0] == "hlotool"}
        found[room(module)] |= (ours & set(ORDER)) - {room(module), "__init__"}
    return found


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


def test_every_folder_is_a_room() -> None:
    """With thirteen rooms in `hlotool/` a newcomer sees from the folders what is where."""
    assert {room(module) for module in FILES} == set(ORDER)
    assert len(set(ROOMS) - {"grammar", "backends"}) <= 13


def test_a_room_imports_earlier_rooms_only() -> None:
    late = [
        f"{module} imports {name}"
        for module, tree in TREES.items()
        for name in imported_modules(tree)
        if name.startswith("hlotool.")
        and room(name) != "__init__"
        and ORDER[room(name)] > ORDER[room(module)]
    ]
    assert late == []


def test_only_the_lab_imports_the_lab() -> None:
    """What its commands need is loaded by name when they are called (`interface/cli/main.py`)."""
    importers = {room(module) for module, tree in TREES.items() if "lab" in map(room, imported_modules(tree))}
    assert importers == {"lab"}


def test_the_picture_shows_what_is_imported(pytestconfig: pytest.Config) -> None:
    found = rooms_imported()
    lines = (f"{name:10} {' '.join(r for r in ROOMS if r in found[name])}".rstrip() for name in ROOMS)
    drawn = "".join(f"{line}\n" for line in lines)
    text = CONTRIBUTING.read_text(encoding="utf-8")
    if pytestconfig.getoption("--update-golden"):
        CONTRIBUTING.write_text(PICTURE.sub(lambda _: drawn, text), encoding="utf-8")
    else:
        assert PICTURE.findall(text) == [drawn], "pytest tests/architecture --update-golden draws it"


def test_a_circle_is_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"d"}}) == [["b", "c"], ["d"]]


def test_no_circles() -> None:
    """A module that needs itself on the way cannot be understood, or moved, alone."""
    imported = {module: {i for i in imported_modules(tree) if i in FILES} for module, tree in TREES.items()}
    assert "hlotool.ir.printer" in imported["hlotool.ir.module"]
    # `Module.to_text` is worth one: the printer is the only thing that a module does not need to be one.
    imported["hlotool.ir.module"].remove("hlotool.ir.printer")
    assert circles(imported) == []


def test_no_file_is_longer_than_500_lines() -> None:
    lengths = {module: len(path.read_text(encoding="utf-8").splitlines()) for module, path in FILES.items()}
    assert {module: length for module, length in lengths.items() if length > 500} == {}


def test_ir_needs_only_numpy_and_msgspec() -> None:
    allowed = {"numpy", "ml_dtypes", "msgspec", "hlotool", *sys.stdlib_module_names}
    for module, tree in TREES.items():
        if room(module) == "ir":
            assert {name.split(".")[0] for name in imports(tree)} <= allowed, module


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
