"""Where a message comes from: the line of the user's program, and the place in a library that says it.

A library's text is found by the parts of it that never change: the message has three words in a row of a
string in the sources, and the whole string, with a hole for each value that is put in, fits. What was tested
there is the condition of the message, in whatever version is installed. Nothing is imported.
"""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hlotool.checks.explain.records import RaisedRecord
from hlotool.system.packages import version_of

#: Frameworks written in Python whose messages users meet; JAX's where a text names none.
PACKAGES = (
    *("jax", "flax", "optax", "equinox", "haiku", "chex", "orbax", "diffrax", "numpyro", "torch_xla"),
    *("tensorflow", "keras", "tf_keras", "triton"),
)
#: Shorter strings say too little to be found by.
_FEWEST_WORDS, _FEWEST_LETTERS = 3, 16
#: Files that are parsed for one message, the likeliest first, and places that are told.
_MOST_FILES, _MOST_PLACES = 12, 2
#: What is looked at of a message; longer ones go on with values.
_LOOKED_AT = 1500

#: What Python says itself, without blanks and quotes; where libraries say it, too, tells nothing.
_PYTHONS = {"modulehasnoattribute", "objecthasnoattribute", "cannotimportnamefrom"}
_UNQUOTED = str.maketrans("", "", "'`\"")

_HOLE = "\0"
_PERCENT = re.compile(r"%(?:\(\w+\))?[-+ #0]*\d*(?:\.\d+)?[diouxXeEfFgGcrsa]")
_BRACES = re.compile(r"\{[^{}]*\}")


def raised(message: str, around: str = "") -> list[RaisedRecord]:
    """The places that say `message`, an exception's or a warning's text, in packages that are installed.

    Args:
        message: with or without the name of the exception before it.
        around: what it stands in; packages that it names are searched.
    """
    wanted = " ".join(message[:_LOOKED_AT].split())
    probes = _probes(wanted)
    named = [name for name in PACKAGES if re.search(rf"\b{name}\b", around or message)]
    best, found = 0, list[tuple[str, Path, _Place]]()
    for name in named or PACKAGES[:1] if probes else ():
        for path in _files(name, probes):
            for place in _strings(path):
                letters = place.fits(wanted, probes)
                if letters >= max(best, _FEWEST_LETTERS):
                    found = [*(found if letters == best else []), (name, path, place)]
                    best = letters
    return [_record(*where) for where in found[:_MOST_PLACES]]


def user_line(text: str, before: int) -> str:
    """The last line of the user's own files in the traceback before a line: `train.py:3 in step`."""
    last = ""
    for line in text.splitlines()[:before]:
        if "Traceback (most recent call last)" in line:
            last = ""
        frame = next(filter(None, (form.search(line) for form in _FRAMES)), None)
        if frame and not _LIBRARY.search(frame["path"]):
            function = f" in {frame['function']}" if frame["function"] else ""
            last = f"{frame['path']}:{frame['line']}{function}"
    return last


#: Of Python and of IPython.
_FRAMES = (
    re.compile(r'File "(?P<path>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>\S+))?'),
    re.compile(r"^(?:File )?(?P<path>[^\s:]+\.py):(?P<line>\d+), in (?P<function>[\w.<>]+)\("),
    re.compile(r"^(?P<path>Cell In ?\[\d+\]), line (?P<line>\d+)(?:, in (?P<function>[\w.<>]+)\()?"),
)
_LIBRARY = re.compile(r"site-packages|dist-packages|/lib/python3|[\\/]lib[\\/]|^<|/runfiles/|^\.\.\./")


@dataclass(frozen=True, slots=True)
class _Place:
    """A string of a source.

    Attributes:
        text: of it, with a hole for each value.
        line: where it begins.
        function: around it.
        test: what was tested last before it.
        holds: whether that held.
    """

    text: str
    line: int
    function: str
    test: ast.AST | None
    holds: bool

    def fits(self, message: str, probes: list[str]) -> int:
        """How many letters of it the message has, if it is this string with its holes filled; else 0."""
        text = " ".join(self.text.split())
        if not any(probe in text for probe in probes):
            return 0
        pattern = ".*?".join(map(re.escape, text.split(_HOLE)))
        fixed = text.replace(_HOLE, " ").split()
        if (
            len(fixed) < _FEWEST_WORDS
            or "".join(fixed).translate(_UNQUOTED) in _PYTHONS
            or not re.search(rf"(?:^|: |E  ){pattern}", message)
        ):
            return 0  # what only occurs within a message is not what says it
        return sum(map(len, fixed))

    @property
    def condition(self) -> str:
        """As Python; of a handler what it caught."""
        if isinstance(self.test, ast.ExceptHandler):
            return f"{ast.unparse(self.test.type)} was raised" if self.test.type else ""
        said = ast.unparse(self.test) if self.test is not None else ""
        return said if self.holds or not said else f"not ({said})"


def _record(package: str, path: Path, place: _Place) -> RaisedRecord:
    root = _root(package)
    return RaisedRecord(
        package=f"{package} {version_of(package)}".rstrip(),
        path=path.relative_to(root.parent).as_posix() if root else str(path),
        line=place.line,
        function=place.function,
        condition=place.condition,
    )


@cache
def _root(package: str) -> Path | None:
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    return Path(spec.submodule_search_locations[0]) if spec and spec.submodule_search_locations else None


def _probes(message: str) -> list[str]:
    """Three words in a row of the message, as a source may have them: values are not among them."""
    words = message.split(" ")
    rows = (words[i : i + _FEWEST_WORDS] for i in range(len(words) - _FEWEST_WORDS + 1))
    plain = (
        " ".join(row)
        for row in rows
        if all(re.fullmatch(r"[A-Za-z`(,'\-]+[A-Za-z`,.;:)'\-]*", w) for w in row)
    )
    return [row for row in dict.fromkeys(plain) if len(row) >= _FEWEST_LETTERS - 4]


def _files(package: str, probes: list[str]) -> list[Path]:
    """The files of a package that have the most of `probes`."""
    root = _root(package)
    counted: list[tuple[int, Path]] = []
    for path in sorted(root.rglob("*.py")) if root else ():
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        if count := sum(probe in text for probe in probes):
            counted.append((-count, path))
    return [path for _, path in sorted(counted)[:_MOST_FILES]]


@cache
def _strings(path: Path) -> tuple[_Place, ...]:
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        return tuple(_places(tree, "", None, True))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return ()


def _places(node: ast.AST, function: str, test: ast.AST | None, holds: bool) -> Iterator[_Place]:
    """The strings below `node`, each as a whole, with what was tested last before it is reached."""
    text = _template(node) if isinstance(node, ast.expr) else None
    if text is not None:
        yield _Place(text, getattr(node, "lineno", 0), function, test, holds)
        return
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        function, test = f"{function}.{node.name}".lstrip("."), None
    for name, value in ast.iter_fields(node):
        known = (test, holds)
        if isinstance(node, ast.If | ast.Assert) and name != "test":
            known = (node.test, name == "body")
        elif isinstance(node, ast.ExceptHandler) and name == "body":
            known = (node, True)
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _places(child, function, *known)
            if isinstance(child, ast.Assert) or (isinstance(child, ast.If) and _leaves(child)):
                known = (child.test, isinstance(child, ast.Assert))


def _leaves(branch: ast.If) -> bool:
    """What stands behind it is reached only where it does not hold."""
    return not branch.orelse and isinstance(branch.body[-1], ast.Return | ast.Raise | ast.Continue)


def _template(node: ast.expr) -> str | None:
    """The string that an expression makes, a hole for each value in it; None where it makes none."""
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_HOLE if isinstance(p, ast.FormattedValue) else _template(p) or "" for p in parts)
        case ast.BinOp(left=left, op=ast.Mod()):
            made = _template(left)
            return None if made is None else _PERCENT.sub(_HOLE, made)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            sides = _template(left), _template(right)
            return None if sides == (None, None) else "".join(_HOLE if s is None else s for s in sides)
        case ast.Call(func=ast.Attribute(value=value, attr="format")):
            made = _template(value)
            return None if made is None else _BRACES.sub(_HOLE, made)
    return None
