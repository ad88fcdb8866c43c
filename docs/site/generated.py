"""The pages that are made from the program: options, functions, schemas, exit codes."""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import hlotool
from hlotool.interface.cli.main import build_parser
from hlotool.interface.cli.parser import Parser
from hlotool.interface.cli.process import EXIT_CODES
from hlotool.interface.cli.reference import Entry, sections_of

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = sorted((ROOT / "hlotool/interface/report/schema").glob("*.json"))

#: Pages of the API, with the modules whose public names they show; the first has those of `hlotool` itself.
MODULES = {
    "reference/hlotool.md": "hlotool",
    "reference/hlotool.jax.md": "hlotool.jax",
    "reference/hlotool.tf.md": "hlotool.tf",
    "reference/hlotool.torch_xla.md": "hlotool.torch_xla",
    "reference/hlotool.interface.api.results.md": "hlotool.interface.api.results",
    "reference/hlotool.backends.base.md": "hlotool.backends.base",
    "reference/hlotool.ir.module.md": "hlotool.ir.module",
    "reference/hlotool.ir.types.md": "hlotool.ir.types",
    "reference/hlotool.rewrite.passes.base.md": "hlotool.rewrite.passes.base",
    "reference/hlotool.errors.md": "hlotool.errors",
}
#: Titles of the navigation, with what their lists of pages end with.
_FOLDERS = {"Commands": "commands", "Verdicts": "verdicts"}


def pages_of(title: str) -> list[str | dict[str, str]]:
    """The pages that a section of the navigation has beside those that the configuration names."""
    if title == "Python":
        return [{module: page} for page, module in MODULES.items()]
    if title not in _FOLDERS:
        return []
    folder = ROOT / "docs" / _FOLDERS[title]
    names = [path.stem for path in folder.glob("*.md")]
    order = {name: number for number, name in enumerate(_order(title))}
    return [f"{folder.name}/{name}.md" for name in sorted(names, key=lambda n: order.get(n, len(order)))]


def _order(title: str) -> list[str]:
    """Commands as `--help` lists them; verdicts from the best to the worst."""
    if title == "Commands":
        return list(_commands())
    from hlotool.judge.verdicts import Verdict

    return [verdict.value.replace(" ", "-") for verdict in Verdict]


def pages() -> dict[str, str | bytes]:
    """Every page and file that is made, by its place on the site."""
    made: dict[str, str | bytes] = {page: _module_page(module) for page, module in MODULES.items()}
    made |= {f"schemas/{path.name}": path.read_bytes() for path in SCHEMAS}
    return made


def addition_to(page: str) -> str:
    """What is made for the end of a page that is written by hand."""
    folder, _, name = page.removesuffix(".md").rpartition("/")
    if folder == "commands" and name in _commands():
        return "\n\n" + "\n".join(_options(_commands()[name]))
    if page == "schemas.md":
        return "\n\n" + "\n".join(_schema_list())
    if page == "exit-codes.md":
        rows = [f"| {code.value} | `{code.name}` | {meaning} |" for code, meaning in EXIT_CODES.items()]
        return "\n".join(["\n\n| status | `hlotool.errors.ExitCode` | means |", "|---|---|---|", *rows, ""])
    return ""


@cache
def _commands() -> dict[str, Parser]:
    return build_parser().commands


def _options(parser: Parser) -> Iterator[str]:
    """The usage and the options of a command."""
    yield from ("## Options", "", "```text", (parser.usage or "").replace("%%", "%"), "```", "")
    for section in sections_of(parser):
        entries = [entry for entry in section.entries if "--help" not in entry.names]
        if not entries:
            continue
        yield from (f"### {section.title}", "")
        if section.about:
            yield from (f"{_words(section.about[:1].upper() + section.about[1:])}:", "")
        yield from (*_table(entries), "")


def _table(entries: Sequence[Entry]) -> Iterator[str]:
    yield from (f"| {'option' if entries[0].names else 'argument'} | |", "|---|---|")
    for entry in entries:
        names = [f"{name} {entry.value}".strip() for name in entry.names] or [entry.value]
        yield f"| {', '.join(f'`{name}`' for name in map(_cell, names))} | {_words(_cell(entry.about))} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _words(text: str) -> str:
    """Text of `--help` as Markdown that says the same."""
    for sign in "*_[]<":
        text = text.replace(sign, f"\\{sign}")
    return text


def _module_page(module: str) -> str:
    """The public names of a module, each where it is defined, for its docstring."""
    found = importlib.import_module(module)
    about = (inspect.getdoc(found) or "").partition("\n\n")[0]
    lines = [f"# {module}", "", about, ""]
    for name in _public(module):
        value = getattr(found, name)
        place = getattr(value, "__module__", "")
        if place != module and place in MODULES.values():
            lines += [f"- [`{name}`]({place}.md)", ""]
        elif place.startswith("hlotool") and hasattr(value, "__qualname__"):
            lines += [f"::: {place}.{value.__qualname__}", ""]
    return "\n".join(lines)


def _public(module: str) -> list[str]:
    found = importlib.import_module(module)
    if module == "hlotool":
        return sorted(hlotool.__all__, key=str.lower)
    own = [name for name, value in vars(found).items() if getattr(value, "__module__", "") == module]
    return [name for name in getattr(found, "__all__", own) if not name.startswith("_")]


def _schema_list() -> Iterator[str]:
    yield from ("| record | |", "|---|---|")
    for path in SCHEMAS:
        schema = json.loads(path.read_text(encoding="utf-8"))
        record = schema["$defs"][schema["$ref"].rpartition("/")[2]]
        about = " ".join(record["description"].split())
        yield f"| [`{path.name}`](schemas/{path.name}) | {_words(_cell(about))} |"
