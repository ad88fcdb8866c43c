"""Files that hold HLO in forms drawn at random: are the same programs read as from the plain text?

A form is up to two layers in front of lines (`lines`), up to two quotations around them, and up to two
documents and two archives around these (`quotes`), in any combination, and what happens to a text on
its way: other line ends, a byte order mark, UTF-16, a cut.
"""

from __future__ import annotations

import random
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchmarks import ROOT, SHARED
from benchmarks.found.lines import LAYERS
from benchmarks.found.quotes import ARCHIVES, DOCUMENTS, QUOTES, prose

#: Largest text that is drawn from, in bytes.
_LARGEST = 24_000
_HEADER = re.compile(r"(?:\s*//[^\n]*\n)*\s*HloModule ")
#: Outcomes, the best first; from the third on they are faults.
OUTCOMES = ("same", "cut, and said so", "refused", "fewer", "another program")


@dataclass(frozen=True, slots=True)
class Drawn:
    """A file that was drawn.

    Attributes:
        form: names of the layers, from the inside to the outside.
        name: of the file.
        content: of the file.
        programs: the prints of what it holds; of one that is cut there is none.
        is_cut: whether the text of the last program ends too early.
    """

    form: tuple[str, ...]
    name: str
    content: bytes
    programs: tuple[str, ...]
    is_cut: bool


def sources(seed: int) -> list[Path]:
    """Texts to draw from, in an order of the seed: dumps and modules of the corpus, XLA's tests, real models.

    Those without a HloModule line are left out: side by side nobody could tell where one of them ends.
    """
    shared = SHARED / "hlo"
    found = [
        *(ROOT / "corpus" / "jax").glob("*/*.txt"),
        *(ROOT / "corpus" / "tf").glob("*/*.txt"),
        *(ROOT / "corpus" / "modules").glob("*.hlo"),
        *shared.rglob("*.hlo"),
        *shared.rglob("*.txt"),
    ]
    small = sorted(path for path in found if path.stat().st_size < _LARGEST)
    random.Random(seed).shuffle(small)
    return [path for path in small if _HEADER.match(path.read_text()) and len(programs_of(path)) == 1]


@cache
def programs_of(path: Path) -> tuple[str, ...]:
    """The prints of the programs that a plain file holds; none where one of them is not read."""
    return read(path)[0]


def read(path: Path) -> tuple[tuple[str, ...], bool, str]:
    """What hlotool makes of a file: prints of whole programs, whether one was cut, and an error."""
    from hlotool.errors import HlotoolError
    from hlotool.ir.printer import print_module
    from hlotool.sources.directory import open_dump
    from hlotool.sources.stages import read_stage

    modules, errors = [], []
    try:
        owners = open_dump(path).modules
    except HlotoolError as error:
        return (), False, str(error)
    for stage in (stage for owner in owners for stage in (*owner.stages, *owner.others)):
        try:
            modules.append(read_stage(stage))
        except HlotoolError as error:
            errors.append(str(error))
    whole = tuple(sorted(print_module(module) for module in modules if not module.cut))
    return whole, len(whole) < len(modules), "; ".join(errors)


def draw(rng: random.Random, texts: Sequence[Path]) -> Drawn:
    """One file: its programs, then layers, quotations and containers around them."""
    chosen = rng.sample(texts, rng.choice((1, 1, 1, 2, 3)))
    parts = [path.read_text(encoding="utf-8").strip("\n") + "\n" for path in chosen]
    programs = [program for path in chosen for program in programs_of(path)]
    is_cut = rng.random() < 0.08 and len(programs_of(chosen[-1])) == 1
    if is_cut:
        parts[-1] = _cut(rng, parts[-1])
        programs = programs[: -len(programs_of(chosen[-1]))]
    text = rng.choice(("", "\n", "// -----\n\n")).join(parts)
    form: list[str] = [f"{len(chosen)} texts"] if len(chosen) > 1 else []
    if rng.random() < 0.45:
        text = _layered(rng, text, form, list(LAYERS))
    quotes = rng.sample(sorted(QUOTES), rng.choice((0, 1, 1, 2)))
    for quote in quotes:
        text = QUOTES[quote](rng, text)
        form.append(quote)
    if quotes and rng.random() < 0.25:
        text = _layered(rng, text, form, ["log", "marked", "coloured", "numbered", "indented"])
    if rng.random() < 0.3:
        text = prose(rng) + text + prose(rng)
        form.append("prose")
    name = rng.choice(("report", "a b", "module", "out")) + rng.choice((".txt", ".log", "", ".hlo", ".md"))
    for document in rng.sample(sorted(DOCUMENTS), rng.choice((0, 0, 0, 1, 1, 2))):
        name, text = DOCUMENTS[document](rng, name, text)
        form.append(document)
    content = _encoded(rng, text, form)
    for archive in rng.sample(sorted(ARCHIVES), rng.choice((0, 0, 0, 1, 2))):
        name, content = ARCHIVES[archive](rng, name, content)
        form.append(archive)
    return Drawn(tuple(form), name, content, tuple(sorted(set(programs))), is_cut)


def _cut(rng: random.Random, text: str) -> str:
    """The text without its end: some line above its last computation's brace is the last."""
    lines = text.splitlines(keepends=True)
    ends = max(number for number, line in enumerate(lines) if line.startswith("}"))
    return "".join(lines[: rng.randrange(ends // 2, ends) + 1])


def _layered(rng: random.Random, text: str, form: list[str], names: Sequence[str]) -> str:
    layer = rng.choice(names)
    form.append(layer)
    return "\n".join(LAYERS[layer](rng, text.splitlines())) + "\n"


def _encoded(rng: random.Random, text: str, form: list[str]) -> bytes:
    way = rng.choice(("", "", "", "", "", "CRLF", "BOM", "UTF-16"))
    if way:
        form.append(way)
    if way == "CRLF":
        return text.replace("\n", "\r\n").encode()
    return text.encode({"BOM": "utf-8-sig", "UTF-16": "utf-16"}.get(way, "utf-8"))


def outcome(drawn: Drawn, folder: Path) -> tuple[str, str]:
    """What became of a file, and the error if there was one."""
    path = folder / drawn.name
    path.write_bytes(drawn.content)
    try:
        whole, is_cut, error = read(path)
    finally:
        path.unlink()
    found = set(map(_unnamed, whole))
    wanted = set(map(_unnamed, drawn.programs))
    if found - wanted:
        return "another program", error
    if found == wanted and is_cut == drawn.is_cut and not error:
        return "same", error
    if is_cut or (drawn.is_cut and found == wanted and error):
        return "cut, and said so", error
    return ("refused" if error else "fewer"), error


def _unnamed(text: str) -> str:
    """A print without what comes from the header's own line when that is missing."""
    return re.sub(r"\AHloModule [^\n,]+", "HloModule", text)


def measure(count: int, seed: int) -> Iterator[tuple[Drawn, str, str]]:
    """Draw files, and what became of them: the outcome and the error."""
    texts = sources(seed)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            drawn = draw(random.Random(f"{seed}:{number}"), texts)
            yield (drawn, *outcome(drawn, Path(folder)))


def table(results: Sequence[tuple[Drawn, str, str]]) -> str:
    """Outcomes by each part of the forms, as rows of Markdown."""
    by_part: dict[str, Counter[str]] = {"all": Counter()}
    for drawn, what, _ in results:
        for part in ("all", *(drawn.form or ("nothing",)), *(["cut"] if drawn.is_cut else [])):
            by_part.setdefault(part, Counter())[what] += 1
    rows = [f"| form with | files | {' | '.join(OUTCOMES)} |", f"|---|---|{'---|' * len(OUTCOMES)}"]
    for part, found in by_part.items():
        rows.append(f"| {part} | {found.total()} | {' | '.join(str(found[what]) for what in OUTCOMES)} |")
    return "\n".join(rows)
