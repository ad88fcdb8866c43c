"""What MkDocs asks when it builds the site: pages made from the program, and links that leave `docs/`.

Nothing that is made here is committed: commands are described by their parsers, functions by their
docstrings, records by their schemas, and the README is the first page.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import sys
import tempfile
import weakref
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import generated  # noqa: E402
from mkdocs.plugins import event_priority  # noqa: E402
from mkdocs.structure.files import File, Files  # noqa: E402

#: Pages of the site that are documents elsewhere in the repository.
ELSEWHERE = {
    "index.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "security.md": "SECURITY.md",
    "changes.md": "CHANGELOG.md",
    "corpus.md": "corpus/README.md",
    "results.md": "benchmarks/RESULTS.md",
} | {f"results/{log.name}": f"benchmarks/results/{log.name}" for log in ROOT.glob("benchmarks/results/*.md")}
_LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)(#[^)]*)?\)")


@event_priority(100)  # before mkdocstrings reads its configuration
def on_config(config: Any) -> Any:
    """Complete the navigation by the pages of commands, verdicts and functions."""
    config.plugins["mkdocstrings"].config.handlers["python"]["paths"] = [str(_as_installed(config))]
    for section in config.nav:
        for title, pages in section.items():
            pages += generated.pages_of(title)
    named = {
        page
        for section in config.nav
        for pages in section.values()
        for page in pages
        if isinstance(page, str)
    }
    # A page that is not in the navigation yet is found all the same.
    [*_, last] = config.nav[-1].values()
    last += sorted({path.name for path in (ROOT / "docs").glob("*.md")} - named)
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages and files that are made."""
    made: dict[str, str | bytes] = {page: _read(source) for page, source in ELSEWHERE.items()}
    made |= generated.pages()
    made |= {name: (ROOT / "docs/site" / name).read_bytes() for name in ("site.css", "site.svg")}
    for name, content in made.items():
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Let links lead to the page that shows a document; what is no page of the site is only named."""
    here = page.file.src_uri
    source = ELSEWHERE.get(here, f"docs/{here}")

    def relinked(match: re.Match[str]) -> str:
        target, anchor = match[1], match[2] or ""
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        place = next((name for name, document in ELSEWHERE.items() if document == path), "")
        place = place or path.removeprefix("docs/")
        if files.get_file_from_path(place) is None or not (place in ELSEWHERE or path.startswith("docs/")):
            return "]" + _NOWHERE
        return f"]({posixpath.relpath(place, posixpath.dirname(here) or '.')}{anchor})"

    text = _LINK.sub(relinked, markdown)
    text = re.sub(rf"\[([^\]]*)\]{_NOWHERE}", r"\1", text)
    return text + generated.addition_to(here)


#: Marks a link to a file of the repository that is no page.
_NOWHERE = "\x00"


def _as_installed(config: Any) -> Path:
    """A folder with the package as it is installed, where `backends/` and `grammar/` are parts of it."""
    folder = Path(tempfile.mkdtemp(prefix="hlotool-site-"))
    weakref.finalize(config, shutil.rmtree, folder, ignore_errors=True)
    package = folder / "hlotool"
    package.mkdir()
    for path in (*(ROOT / "hlotool").iterdir(), ROOT / "backends", ROOT / "grammar"):
        (package / path.name).symlink_to(path)
    return folder


def _read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")
