"""docs/configuration.md: its tables of keys are made from the parser, its example is a configuration."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hlotool.interface.cli.configuration import (
    EXTRAS,
    Setting,
    common_settings,
    find_configuration,
    settings_of,
    values_of,
)
from hlotool.interface.cli.main import build_parser

PAGE = Path(__file__).resolve().parents[2] / "docs" / "configuration.md"
START = "`--trust`, …).\n\n"


def reference() -> str:
    """The tables of all keys: those of several commands, and those of each."""
    commands = build_parser().commands
    common = common_settings(commands)
    parts = [*_table("before the first table, or in that of a command", common)]
    for name, parser in commands.items():
        own = {key: setting for key, setting in settings_of(parser).items() if key not in common}
        extras = [extra for owner, extra in EXTRAS if owner == name]
        if own or extras:
            parts += _table(f"`[{name}]`", own)
            parts[-1:] = [f"| `{extra}` | tables | ✓ | see above |" for extra in extras] + parts[-1:]
    return "\n".join(parts).rstrip("\n") + "\n"


def _table(title: str, settings: dict[str, Setting]) -> Iterator[str]:
    yield from (f"### {title[0].upper()}{title[1:]}", "", "| key | value | found | |", "|---|---|---|---|")
    for key, setting in sorted(settings.items()):
        about = (setting.action.help or "").replace("|", "\\|")
        # What stands in brackets in `--help` is Markdown's link elsewhere.
        about = re.sub(r"([\[\]])", r"\\\1", about)
        yield f"| `{key}` | {_kind(setting)} | {'' if setting.is_grave else '✓'} | {about} |"
    yield ""


def _kind(setting: Setting) -> str:
    action = setting.action
    if setting.is_switch:
        return "true, false"
    if action.choices is not None:
        return ", ".join(f"`{choice}`" for choice in action.choices)
    shown = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    return f"`{shown}`".replace("|", "\\|") + (", list" if setting.is_list or setting.is_repeated else "")


def test_the_reference_is_current(pytestconfig: pytest.Config) -> None:
    head, start, found = PAGE.read_text(encoding="utf-8").partition(START)
    if pytestconfig.getoption("--update-golden"):
        PAGE.write_text(head + start + reference(), encoding="utf-8")
        return
    assert found == reference(), "pytest tests/docs/test_configuration.py --update-golden rewrites it"


def test_the_example_is_a_configuration(tmp_path: Path) -> None:
    """In both files."""
    [text] = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    commands = build_parser().commands
    (tmp_path / "hlotool.toml").write_text(text)
    found = find_configuration(None, tmp_path)
    assert found is not None
    assert not found.is_named
    assert values_of(found, "run", commands)["output_rtol"] == (("out[1]", 1e-2),)
    assert [row.rule for row in values_of(found, "check", commands)["ignore"]] == ["recompilation"]
    shared = re.sub(r"(?m)^(\[+)(?=\w)", r"\1tool.hlotool.", text)
    (tmp_path / "pyproject.toml").write_text(f"[tool.hlotool]\n{shared}")
    (tmp_path / "hlotool.toml").unlink()
    again = find_configuration(None, tmp_path)
    assert again is not None
    assert again.content == found.content
