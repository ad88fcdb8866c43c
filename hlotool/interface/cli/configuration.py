"""Configuration files: where they are found, and which settings they may hold for which command."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from hlotool.errors import UsageError
from hlotool.interface.cli.parser import Parser, is_opposable, option_of, visible_names
from hlotool.runs.options.declared import Option
from hlotool.system.user_input import did_you_mean, size_text

OWN_FILE, SHARED_FILE = "hlotool.toml", "pyproject.toml"
#: The name of the file, found without `--config FILE`.
VARIABLE = "HLOTOOL_CONFIG"
#: Folders that hold a repository's history: the search ends there.
_ROOTS = (".git", ".hg")
#: Bytes; tables of options have a thousandth of that.
_MOST = 1 << 20


@dataclass(frozen=True, slots=True)
class Configuration:
    """What a file says about the options of commands.

    Attributes:
        path: of the file.
        is_named: the user named it; otherwise it was found, and may be somebody else's.
        text: of the file.
        prefix: of its keys' paths: `("tool", "hlotool")` in a pyproject.toml.
        content: its tables and keys.
    """

    path: Path
    is_named: bool
    text: str = ""
    prefix: tuple[str, ...] = ()
    content: Mapping[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """What paths in the file are relative to."""
        return self.path.parent

    def error(self, complaint: str, *keys: str | int) -> UsageError:
        """The error to raise where the key or table of that path is wrong; it names the line."""
        from hlotool.system.user_input import line_of

        line = line_of(self.text, (*self.prefix, *keys))
        return UsageError(f"{self.path}{f':{line}' if line else ''}: {complaint}")


def find_configuration(named: str | None, start: Path | None = None) -> Configuration | None:
    """The configuration that applies.

    Args:
        named: the file that the user named on the command line; else `$HLOTOOL_CONFIG` may.
        start: where to begin the search, by default the current folder.

    Raises:
        UsageError: it cannot be read, or is no TOML.
    """
    if name := named or os.environ.get(VARIABLE):
        return _read(Path(name), is_named=True)
    try:
        folder = (start or Path.cwd()).absolute()
    except OSError:  # the current folder was removed
        return None
    for around in (folder, *folder.parents):
        for name in (OWN_FILE, SHARED_FILE):
            path = Path(name) if start is None and around == folder else around / name
            if path.is_file() and (found := _read(path, is_named=False)) is not None:
                return found
        if any((around / root).exists() for root in _ROOTS):
            return None
    return None


def _read(path: Path, is_named: bool) -> Configuration | None:
    """The configuration in a file; None where it has none and was not named by the user."""
    is_shared = path.name == SHARED_FILE
    content = _bytes(path)
    if is_shared and not is_named and b"hlotool" not in content:
        return None
    from hlotool.system.paths import parse_toml

    text, document = parse_toml(path, UsageError)
    if not is_shared:
        return Configuration(path, is_named, text, (), document)
    tools = document.get("tool")
    own = tools.get("hlotool") if isinstance(tools, dict) else None
    if isinstance(own, dict):
        return Configuration(path, is_named, text, ("tool", "hlotool"), own)
    if own is not None or is_named:
        raise UsageError(f"{path}: there is no table [tool.hlotool]")
    return None


def _bytes(path: Path) -> bytes:
    from hlotool.system.paths import read_whole

    try:
        if path.is_file() and path.stat().st_size > _MOST:
            raise UsageError(f"{path}: larger than a configuration may be ({size_text(_MOST)})")
    except OSError as problem:
        raise UsageError(f"{path}: {problem.strerror or problem}") from problem
    return read_whole(path, UsageError)


#: Metavars of paths, which are relative to the file that they stand in.
_PATHS = ("FILE", "DIR", "SCRIPT.py:FUNCTION")
#: Keys of a command's table that are no options: with the type of their value, by module and name.
EXTRAS = {("check", "ignore"): ("hlotool.checks.catalogue", "Ignore")}


@dataclass(frozen=True, slots=True)
class Setting:
    """An option that can be set.

    Attributes:
        key: its name in the file.
        action: what sets it on the command line.
        option: its declaration.
    """

    key: str
    action: argparse.Action
    option: Option

    @property
    def is_switch(self) -> bool:
        """Whether it is true or false."""
        return self.action.nargs == 0

    @property
    def is_list(self) -> bool:
        """Whether its value on the command line is a list with commas."""
        return isinstance(self.action.metavar, str) and "," in self.action.metavar

    @property
    def is_repeated(self) -> bool:
        """Whether it can be given several times."""
        return self.option.kind in ("list", "by-output")

    @property
    def is_grave(self) -> bool:
        """Whether only a file that the user named may set it; a switch is harmless."""
        return not self.is_switch and self.option.is_grave

    @property
    def meaning(self) -> tuple[object, ...]:
        """Equal for options that mean the same to different commands."""
        action = self.action
        return (
            action.dest,
            type(action),
            action.type,
            action.metavar,
            action.nargs,
            tuple(action.choices or ()),
        )


def settings_of(parser: Parser) -> dict[str, Setting]:
    """The options of a command that can be set, by key."""
    found = {}
    for action in parser._actions:
        names = [name[2:] for name in visible_names(action) if name.startswith("--")]
        declared = option_of(action)
        if names and declared is not None and not declared.once:
            found[names[0]] = Setting(names[0], action, declared)
    return found


def common_settings(commands: Mapping[str, Parser]) -> dict[str, Setting]:
    """Options that mean the same to all commands that have them, which are several."""
    found: dict[str, list[Setting]] = {}
    for parser in commands.values():
        for key, setting in settings_of(parser).items():
            found.setdefault(key, []).append(setting)
    return {
        key: same[0]
        for key, same in found.items()
        if len(same) > 1 and len({setting.meaning for setting in same}) == 1
    }


def values_of(configuration: Configuration, command: str, commands: Mapping[str, Parser]) -> dict[str, Any]:
    """What the configuration sets of a command's options, by destination.

    All its tables are checked, whichever command is called.

    Raises:
        UsageError: a key or a value that there is not, or that a file which was found may not set.
    """
    chosen: dict[str, Any] = {}
    common = common_settings(commands)
    for key, value in configuration.content.items():
        if isinstance(value, dict):
            if key not in commands:
                raise configuration.error(_unknown_table(key, commands, common), key)
            continue
        if key not in common:
            raise configuration.error(_unknown_common(key, commands, common), key)
        found = _checked(configuration, common[key], value, commands[command], key)
        if key in settings_of(commands[command]):
            chosen |= found
    for name, parser in commands.items():
        own = _table_values(configuration, name, parser, is_called=name == command)
        chosen |= own if name == command else {}
    return chosen


def _table_values(configuration: Configuration, name: str, parser: Parser, is_called: bool) -> dict[str, Any]:
    """What the table of one command sets; what only the command knows is checked where it is called."""
    settings = settings_of(parser)
    chosen: dict[str, Any] = {}
    for key, value in configuration.content.get(name, {}).items():
        if (name, key) in EXTRAS:
            chosen |= {key: _extra(configuration, value, name, key)} if is_called else {}
            continue
        if key not in settings:
            known = [*settings, *(extra for owner, extra in EXTRAS if owner == name)]
            raise configuration.error(f"[{name}] has no key {key!r}{did_you_mean(key, known)}", name, key)
        chosen |= _checked(configuration, settings[key], value, parser, name, key)
    return chosen


def _extra(configuration: Configuration, value: object, name: str, key: str) -> list[Any]:
    """The rows of a list of tables, each as its type."""
    import msgspec

    from hlotool.system.paths import key_path

    module, kind = EXTRAS[name, key]
    try:
        rows: list[Any] = msgspec.convert(value, list[getattr(import_module(module), kind)])  # type: ignore[misc]
    except msgspec.ValidationError as problem:
        said, _, place = str(problem).partition(" - at `")
        raise configuration.error(f"[{name}] {key}: {said}", name, key, *key_path(place)) from problem
    return rows


def _unknown_table(key: str, commands: Mapping[str, Parser], common: Mapping[str, Setting]) -> str:
    if key in common:
        return f"{key!r} takes no table"
    return f"there is no command {key!r}{did_you_mean(key, commands)}"


def _unknown_common(key: str, commands: Mapping[str, Parser], common: Mapping[str, Setting]) -> str:
    owners = [name for name, parser in commands.items() if key in settings_of(parser)]
    if owners:
        where = " or ".join(f"[{name}]" for name in owners)
        why = "means different things to each command" if len(owners) > 1 else "is for one command"
        return f"{key!r} {why}: put it into {where}"
    if key in commands:
        return f"{key!r} is a command: its options stand in a table [{key}]"
    return f"there is no key {key!r}{did_you_mean(key, [*common, *commands])}"


def _checked(
    configuration: Configuration, setting: Setting, value: object, parser: Parser, *path: str
) -> dict[str, Any]:
    """What the parser makes of the value, by destination."""
    if setting.is_grave and not configuration.is_named:
        raise configuration.error(
            f"{setting.key!r} runs code, reads or writes files, or lifts a limit: only a file that is named"
            f" may set it (--config {configuration.path}, or $HLOTOOL_CONFIG)",
            *path,
        )
    namespace = argparse.Namespace()
    try:
        if setting.is_switch:
            _set_switch(setting, value, parser, namespace)
        else:
            for text in _texts(configuration, setting, value):
                _set_value(setting, text, parser, namespace)
    except (argparse.ArgumentTypeError, argparse.ArgumentError, UsageError) as error:
        said = error.message if isinstance(error, argparse.ArgumentError) else str(error)
        raise configuration.error(f"{setting.key}: {said}", *path) from error
    return vars(namespace)


def _set_switch(setting: Setting, value: object, parser: Parser, namespace: argparse.Namespace) -> None:
    if not isinstance(value, bool):
        raise argparse.ArgumentTypeError(f"{value!r} is neither true nor false")
    action = setting.action
    if isinstance(action, argparse.BooleanOptionalAction):
        action(parser, namespace, None, f"--{setting.key}" if value else f"--no-{setting.key}")
    elif value:
        action(parser, namespace, None, f"--{setting.key}")
    elif is_opposable(action):
        setattr(namespace, action.dest, not action.const)


def _set_value(setting: Setting, text: str, parser: Parser, namespace: argparse.Namespace) -> None:
    """As the parser does with one argument of the command line."""
    action = setting.action
    value = parser._get_value(action, text)
    parser._check_value(action, value)
    action(parser, namespace, value, f"--{setting.key}")


def _texts(configuration: Configuration, setting: Setting, value: object) -> Iterator[str]:
    """The value as it would be typed; several where the option is repeated."""
    if setting.is_repeated and isinstance(value, list):
        for part in value:
            yield _typed(part)
        return
    if setting.is_list and isinstance(value, list):
        yield ",".join(map(_typed, value))
        return
    text = _typed(value)
    if isinstance(setting.action.metavar, str) and setting.action.metavar in _PATHS:
        text = os.path.join(configuration.folder, text)
    yield text


def _typed(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise argparse.ArgumentTypeError(f"{_shown(value)} is no value of it")
    return value if isinstance(value, str) else repr(value)


def _shown(value: object) -> str:
    """A value that no option takes, as TOML has it, or its kind."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "a table"
    return "a date or time"
