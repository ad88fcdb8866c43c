"""Options, each declared once: as an attribute of a class of arguments.

>>> from hlotool.runs.options.parsers import seed
>>> class Draw(Arguments, group="what is drawn"):
...     seed: int = option("of random numbers [0]", default=0, parse=seed)
>>> @takes(Draw)
... def draw(asked: Draw) -> int:
...     "Draw a number."
...     return asked.seed
>>> draw(seed=7)
7
>>> draw(seed=-7)
Traceback (most recent call last):
    ...
hlotool.errors.UsageError: seed=-7: '-7' is no whole number from 0 to 9223372036854775807

Made of the declaration are the argument of the command line (`hlotool/interface/cli/parser.py`), the keyword
argument of the function with its description and the check of its value, the key of a configuration
(`hlotool/interface/cli/configuration.py`), and the tables of the documentation. Classes of arguments are put
together by inheritance: a class has the options of its bases, in their order, then its own. An option that a
base has, too, stays where it is, and only what is said of it anew changes.
"""

from __future__ import annotations

import argparse
import inspect
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, Generic, ParamSpec, TypeAlias, TypeVar, dataclass_transform

from hlotool.errors import UsageError
from hlotool.system.urls import taken_in


def path_text(path: str | os.PathLike[str]) -> str:
    """A path, or a URL without its secrets."""
    return taken_in(os.fspath(path))


def words(text: str) -> tuple[str, ...]:
    """`A,B,...`."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def several(given: str | Sequence[str]) -> tuple[str, ...]:
    """Words: several, or one text as a command line has it, in which commas separate them."""
    return words(given) if isinstance(given, str) else tuple(given)


P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Given_contra = TypeVar("Given_contra", contravariant=True)
Kept_co = TypeVar("Kept_co", covariant=True)

#: Of an option that must be given.
REQUIRED: Any = inspect.Parameter.empty


class As(Generic[Given_contra, Kept_co]):
    """The type of an option that is given as one type and kept as another: `As[str | Path, str]`.

    It is one for type checkers, which take it for a descriptor.
    """

    if TYPE_CHECKING:

        def __get__(self, owner: object, kind: type | None = None) -> Kept_co: ...
        def __set__(self, owner: object, value: Given_contra) -> None: ...


#: A file or a folder, which need not be given; words.
File: TypeAlias = As[str | os.PathLike[str] | None, str | None]
Folder: TypeAlias = As[str | os.PathLike[str] | None, str | None]
Words: TypeAlias = As[str | Sequence[str], tuple[str, ...]]
#: What these types say of an option.
NAMED: dict[str, tuple[object, dict[str, Any]]] = {
    "File": (File, {"convert": path_text, "metavar": "FILE"}),
    "Folder": (Folder, {"convert": path_text, "metavar": "DIR"}),
    "Words": (Words, {"convert": several}),
}


class Option:
    """How an option is called, what it takes, and what it means.

    Attributes:
        name: of the attribute, which is that of the function's argument.
        annotation: its type, as it is written.
        default: where it is not given; REQUIRED where it must be.
        typed_default: the same on the command line, where it is another.
        help: what it does, as `--help` says it.
        doc: the same for Python, where something is to be said otherwise there.
        parse: makes the value of a text, or raises `argparse.ArgumentTypeError`; None takes the text.
        convert: makes the value of what Python gives, where that is more than the text or the value itself;
            it is asked whether `parse` takes it, too.
        choices: the values that there are.
        metavar: what `--help` calls the value; for several values a tuple.
        flags: its names on the command line, where these are others than `--name`.
        kind: `value`; `switch`; `off`, a switch `--no-name`, as what is true by default has; `yes-no`, which
            has both; `list`, which can be given several times; or an action of
            `hlotool/interface/cli/parser.py`.
        nargs: how many values, as argparse has it.
        without: what `--no-name` does, which sets None.
        kw_only: whether it is an option; otherwise its place says what it is.
        init: whether the function has it; type checkers know what that means.
        typed: whether the command line has it.
        grave: it runs code, reads or writes files, or lifts a limit: no configuration that was merely found
            may set it. Plain text counts as grave, as long as nothing is said.
        once: it says what a command does this time: no configuration may set it.
        exclusive: the name that it shares with those of which only one can be given.
        group: the title in `--help`, that of the class.
        about: what holds for all of the group.
    """

    name = annotation = help = doc = group = about = exclusive = without = ""
    default = REQUIRED
    typed_default = REQUIRED
    parse: Callable[[str], Any] | None = None
    convert: Callable[[Any], Any] | None = None
    choices: Sequence[str] | None = None
    metavar: str | tuple[str, ...] | None = None
    flags: tuple[str, ...] = ()
    kind = "value"
    nargs: str | int | None = None
    kw_only = init = typed = True
    grave: bool | None = None
    once = False

    def __init__(self, **said: Any) -> None:
        unknown = [name for name in said if not hasattr(Option, name)]
        assert not unknown, f"options have no {unknown}"
        self.__dict__ |= said

    def but(self, **said: Any) -> Option:
        """The same option, of which something else is said."""
        return Option(**{**vars(self), **said})

    @property
    def is_grave(self) -> bool:
        """Whether only a configuration that the user named may set it."""
        if self.grave is not None:
            return self.grave
        return self.kind in ("value", "list") and self.parse is None and self.choices is None

    @property
    def default_typed(self) -> Any:
        """The default on the command line."""
        return self.default if self.typed_default is REQUIRED else self.typed_default

    @property
    def description(self) -> str:
        """What it does, for readers of Python; the default is added where it stands for another one."""
        found = re.fullmatch(r"(.*?)(?: \[([^]]*)\])?", self.doc or self.help)
        assert found is not None
        text, default = found.groups()
        if self.choices and not self.doc:
            text += f" ({', '.join(f'`{choice}`' for choice in self.choices)})"
        if default not in (None, "yes", f"{self.default}".removesuffix(".0")):
            text += f"; by default {default}"
        return text if text.endswith((".", "?", "…")) else f"{text}."

    @property
    def parameter(self) -> inspect.Parameter:
        """The argument of the function."""
        kind = inspect.Parameter.KEYWORD_ONLY if self.kw_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Parameter(
            self.name, kind, default=self.default, annotation=types_of(self.annotation)[0]
        )

    def taken(self, value: Any) -> Any:
        """What is kept of a value that Python gives; text is taken as the command line takes it.

        Raises:
            UsageError: the value is impossible.
        """
        if value is None or isinstance(value, bool):
            return value
        try:
            kept = value if self.convert is None else self.convert(value)
            if isinstance(kept, list | tuple) and not kept:
                return ()
            if isinstance(kept, str | int | float) and kept == self.default:
                return kept
            if self.choices is not None and kept not in self.choices:
                raise UsageError(f"it is one of {', '.join(self.choices)}")
            if self.parse is None or (self.convert is not None and not kept):
                return kept
            parsed = self.parse(as_text(kept))
            return parsed if self.convert is None else kept
        except (argparse.ArgumentTypeError, UsageError, TypeError, ValueError) as error:
            raise UsageError(f"{self.name}={value!r}: {error}") from error


def option(help: str = "", doc: str = "", **said: Any) -> Any:
    """An option, in the body of a class of arguments: what `Option` has; only what is said of it counts."""
    return Option(**{"help": help} if help else {}, **{"doc": doc} if doc else {}, **said)


@dataclass_transform(kw_only_default=True, field_specifiers=(option,))
class Arguments:
    """What a command and its function take; an instance is one call.

    Args:
        group: of a class: what `--help` calls its options together.
        about: what holds for all of them.

    Raises:
        TypeError: there is no such argument, or one is missing.
        UsageError: a value is impossible.
    """

    options: ClassVar[Mapping[str, Option]] = {}

    def __init_subclass__(cls, group: str = "", about: str = "") -> None:
        found: dict[str, Option] = {}
        for base in cls.__bases__:
            found |= getattr(base, "options", {})
        for name, value in vars(cls).items():
            if isinstance(value, Option):
                before = found.get(name) or _implied(cls.__annotations__[name], value)
                # A new text in `--help` replaces the old one for Python, too.
                said = {"doc": ""} | vars(value) if "help" in vars(value) else vars(value)
                found[name] = before.but(**said, name=name)
        if group:
            found = {name: one.but(group=group, about=about) for name, one in found.items()}
        cls.options = found

    def __init__(self, *places: Any, **given: Any) -> None:
        bound = self.signature().bind(*places, **given).arguments
        for name, one in self.options.items():
            setattr(self, name, one.taken(bound[name]) if name in bound else one.default)

    @classmethod
    def signature(cls, returned: Any = inspect.Signature.empty) -> inspect.Signature:
        """That of the function; options of the command line alone are not in it."""
        return inspect.Signature([one.parameter for one in cls.called()], return_annotation=returned)

    @classmethod
    def description(cls) -> str:
        """The section `Args:` of the function's docstring."""
        return "\n".join(["Args:", *(f"    {one.name}: {one.description}" for one in cls.called())])

    @classmethod
    def called(cls) -> list[Option]:
        """The options of the function, in the order of its arguments."""
        return sorted((one for one in cls.options.values() if one.init), key=lambda one: one.kw_only)


def _implied(annotation: str, said: Option) -> Option:
    """What the type of an option and its parser say of it."""
    known: dict[str, Any] = {"annotation": annotation, **getattr(said.parse, "said", {})}
    if annotation == "bool" and said.default is not REQUIRED:
        known["kind"] = "off" if said.default else "switch"
    if annotation in NAMED:
        alias, said_by_type = NAMED[annotation]
        written = repr(alias).partition("As")[2].replace("collections.abc.", "")
        known |= {"annotation": f"As{written}", **said_by_type}
    return Option(**known)


def parser(metavar: str, **said: Any) -> Callable[[Callable[[str], T]], Callable[[str], T]]:
    """Of a function that makes values of texts: what it says of options with such values."""

    def known(parse: Callable[[str], T]) -> Callable[[str], T]:
        parse.said = {"metavar": metavar, **said}  # type: ignore[attr-defined]
        return parse

    return known


def takes(kind: Callable[P, Any]) -> Callable[[Callable[[Any], R]], Callable[P, R]]:
    """Make a function of a class of arguments one that has these arguments.

    Its docstring gets their description, before what it raises or returns.
    """

    def made(function: Callable[[Any], R]) -> Callable[P, R]:
        @wraps(function)
        def call(*places: P.args, **given: P.kwargs) -> R:
            return function(kind(*places, **given))

        assert isinstance(kind, type)
        assert issubclass(kind, Arguments)
        call.arguments = kind  # type: ignore[attr-defined]
        call.__signature__ = kind.signature(function.__annotations__["return"])  # type: ignore[attr-defined]
        call.__annotations__ = {one.name: one.parameter.annotation for one in kind.called()}
        call.__annotations__["return"] = function.__annotations__["return"]
        about = inspect.cleandoc(function.__doc__ or "")
        before, *section = re.split(r"(?m)^(?=(?:Returns|Raises):$)", about, maxsplit=1)
        call.__doc__ = "\n\n".join([before.rstrip(), kind.description(), *section])
        return call

    return made


def types_of(annotation: str) -> tuple[str, str]:
    """The types that are given and kept, of an annotation as it is written."""
    inner = re.fullmatch(r"As\[(.*)\]", annotation, re.DOTALL)
    if inner is None:
        return annotation, annotation
    depth = 0
    for place, letter in enumerate(inner[1]):
        depth += {"[": 1, "]": -1}.get(letter, 0)
        if letter == "," and not depth:
            return inner[1][:place].strip(), inner[1][place + 1 :].strip()
    raise TypeError(f"{annotation} has one type")


def as_text(value: Any) -> str:
    """A value of Python as a command line has it."""
    if isinstance(value, str | os.PathLike):
        return os.fspath(value)
    if isinstance(value, tuple | list):
        return ",".join(map(as_text, value))
    whole = isinstance(value, int) or hasattr(value, "__index__")
    return str(int(value)) if whole else repr(float(value))
