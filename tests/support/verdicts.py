"""Real XLA and hlotool on many texts: who accepts what, and whether XLA reads the same from hlotool's print.

    PYTHONPATH=.:tests python -m support.verdicts [FILE or FOLDER]...      (default: ../shared and corpus)

XLA's verdicts are kept in the temporary folder.
"""

from __future__ import annotations

import argparse
import hashlib
import pickle
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from hlotool.errors import HloSyntaxError
from hlotool.parser.reader import parse_module
from support.xla import Oracle, XlaError, oracle

REPOSITORY = Path(__file__).resolve().parents[2]
DEFAULT = (
    REPOSITORY.parent / "shared" / "hlo",
    REPOSITORY.parent / "shared" / "dumps",
    REPOSITORY / "corpus",
)
#: XLA reads `-0` as 0; hlotool keeps the sign, and prints it so that XLA reads it too.
_NEGATIVE_ZERO = re.compile(r"(?<![\w.])-0(?![\w.])")
_ABORT = re.compile(r"xla: (the process|no answer)")


class Verdicts:
    """What XLA says to texts, remembered from run to run."""

    def __init__(self) -> None:
        self._path = Path(tempfile.gettempdir()) / f"hlotool-verdicts-{version('jaxlib')}.pickle"
        self._known: dict[str, str | None] = {}
        if self._path.exists():
            self._known = pickle.loads(self._path.read_bytes())

    def canonical(self, text: str) -> str | None:
        """XLA's print of the text; None where XLA rejects it; XlaError where XLA dies of it."""
        key = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
        if key not in self._known:
            try:
                self._known[key] = _NEGATIVE_ZERO.sub("0", _judge(text).canonical(text))
            except XlaError as error:
                if _ABORT.match(str(error)):
                    raise
                self._known[key] = None
        return self._known[key]

    def save(self) -> None:
        """Keep them for the next run."""
        self._path.write_bytes(pickle.dumps(self._known))


def _judge(text: str) -> Oracle:
    """XLA counts on where it fills in elided values, so it begins anew for each text that has some."""
    if "..." in text:
        oracle().close()
    return oracle()


@dataclass(frozen=True, slots=True)
class Comparison:
    """One text.

    Attributes:
        valid: XLA accepts it; None where XLA dies of it.
        parsed: hlotool accepts it.
        round_trip: XLA takes what hlotool prints for the same module; None where there is nothing to print.
    """

    valid: bool | None
    parsed: bool
    round_trip: bool | None

    @property
    def is_fine(self) -> bool:
        """Both agree."""
        return self.valid in (None, self.parsed) and self.round_trip is not False


def compare(text: str, verdicts: Verdicts, strict: bool = False) -> Comparison:
    """Ask both."""
    try:
        expected = verdicts.canonical(text)
    except XlaError:
        expected, valid = None, None
    else:
        valid = expected is not None
    try:
        module = parse_module(text, strict=strict)
    except HloSyntaxError:
        return Comparison(valid, False, None)
    if expected is None:
        return Comparison(valid, True, None)
    try:
        return Comparison(valid, True, verdicts.canonical(module.to_text()) == expected)
    except XlaError:
        return Comparison(valid, True, False)


def texts(paths: list[Path]) -> Iterator[Path]:
    """HLO texts among the files and in the folders."""
    for path in paths:
        if path.is_file():
            yield path
            continue
        yield from sorted(path.rglob("*.hlo"))
        dumps = (p for p in path.rglob("*.txt") if re.search(r"(before|after)_optimizations\.txt$", p.name))
        yield from sorted(dumps)


def main() -> int:
    """Print the table; 1 where the two disagree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--strict", action="store_true", help="read as strictly as XLA")
    arguments = parser.parse_args()
    verdicts = Verdicts()
    counts: dict[str, Counter[str]] = {}
    for root in arguments.paths or [path for path in DEFAULT if path.exists()]:
        for path in texts([root]):
            text = path.read_text(encoding="utf-8", errors="surrogateescape")
            found = compare(text, verdicts, arguments.strict)
            row = counts.setdefault(_group(path, root), Counter())
            row.update(_columns(found))
            if not found.is_fine:
                print(f"{path}: {found}", file=sys.stderr)
    verdicts.save()
    names = ("files", "valid", "parsed", "round trip", "wrongly rejected", "wrongly accepted", "XLA died")
    print(f"{'':40}" + "".join(f"{name:>18}" for name in names))
    for group, row in [*counts.items(), ("total", sum(counts.values(), Counter()))]:
        print(f"{group:40}" + "".join(f"{row[name]:18}" for name in names))
    return int(any(row["wrong"] for row in counts.values()))


def _group(path: Path, root: Path) -> str:
    parts = path.relative_to(root.parent).parts if root.is_dir() else (path.name,)
    return "/".join(parts[:2])


def _columns(found: Comparison) -> list[str]:
    columns = ["files"]
    columns += ["valid"] if found.valid else []
    columns += ["XLA died"] if found.valid is None else []
    columns += ["parsed"] if found.parsed else []
    columns += ["round trip"] if found.round_trip else []
    columns += ["wrongly rejected"] if found.valid and not found.parsed else []
    columns += ["wrongly accepted"] if found.valid is False and found.parsed else []
    return columns + ([] if found.is_fine else ["wrong"])


if __name__ == "__main__":
    sys.exit(main())
