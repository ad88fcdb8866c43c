"""CONTRIBUTING names what exists: each file and folder, and each name of the code."""

from __future__ import annotations

import re
from pathlib import Path, PurePath

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
#: Words in backticks, but those that hold the place of a name.
QUOTED = {word.rstrip(",:") for text in re.findall(r"`([^`\n]+)`", TEXT) for word in text.split()}
NAMED = sorted(word for word in QUOTED if not re.search(r"the-opcode|[<(]|^/", word))
ROOMS = (".ci", "backends", "benchmarks", "corpus", "docs", "grammar", "hlotool", "scripts", "tests")
FILES = [file.relative_to(ROOT) for room in ROOMS for file in (ROOT / room).rglob("*") if file.is_file()]

_ENDING = re.compile(r"\.(?:py|md|toml|hlo|proto|binpb|json)")
#: Files and folders that commands write.
_WRITTEN = {"gpu.json", "gpu.md", "build/site", ".whl/"}
PATHS = [
    word
    for word in NAMED
    if word not in _WRITTEN and ("/" in word or _ENDING.fullmatch(PurePath(word).suffix))
]


def unknown(paths: list[str], files: list[Path]) -> list[str]:
    """The paths that end the path of no file and of no folder; `*` stands for any part of a name."""
    known = {*files, *(folder for file in files for folder in file.parents)}
    return [path for path in paths if not any(place.match(path) for place in known)]


def test_every_file_and_folder_exists() -> None:
    assert len(PATHS) > 90
    assert not unknown(PATHS, [*FILES, Path("README.md")])
    assert unknown(["rules/gone.py", "a/*.py"], [Path("b/rules/there.py"), Path("a/x.py")]) == [
        "rules/gone.py"
    ]


def test_every_name_of_the_code_exists() -> None:
    """Names with an underscore or a capital inside."""
    words = {part for word in set(NAMED) - set(PATHS) for part in re.findall(r"\w+", word)}
    names = {word for word in words if re.search(r"\w_\w|[a-z][A-Z]", word)}
    assert len(names) > 10
    texts = (file for file in FILES if file.suffix == ".py" and file.parts[0] != "corpus")
    known = {word for file in texts for word in re.findall(r"\w+", (ROOT / file).read_text(encoding="utf-8"))}
    assert not names - known
