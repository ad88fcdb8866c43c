"""Backends as the command line names them: `NAME[:WORD or KEY=VALUE,…]`, as `xla:disable=algsimp,opt=0`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, TypeAlias

from hlotool.errors import UsageError
from hlotool.names import did_you_mean

#: Values by option; a bare word has the value "".
Options: TypeAlias = Mapping[str, str]

NO_OPTIONS: Final[Options] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class BackendSpec:
    """A backend and how it is to be set up.

    Attributes:
        name: of the backend.
        options: in the order given.
    """

    name: str
    options: Options = field(default_factory=lambda: NO_OPTIONS)

    def __str__(self) -> str:
        options = ",".join(f"{key}={value}" if value else key for key, value in self.options.items())
        return f"{self.name}:{options}" if options else self.name


def parse_spec(text: str) -> BackendSpec:
    """The backend that `text` names.

    Raises:
        UsageError: it is not of the form `NAME[:WORD or KEY=VALUE,…]`, or says an option twice.
    """
    name, colon, rest = text.partition(":")
    options: dict[str, str] = {}
    for part in rest.split(",") if colon else ():
        key, equals, value = part.partition("=")
        if not key or (equals and not value):
            raise UsageError(f"backend {text!r}: {part!r} is not an option; write WORD or KEY=VALUE")
        if key in options:
            raise UsageError(f"backend {text!r}: option {key!r} is given twice")
        options[key] = value
    if not name:
        raise UsageError(f"backend {text!r} has no name")
    return BackendSpec(name, MappingProxyType(options))


def portable(text: str) -> str:
    """A backend as it is called on any machine: where an interpreter lies is this one's matter."""
    spec = parse_spec(text)
    return str(replace(spec, options={k: v for k, v in spec.options.items() if k != "python"}))


def check_options(name: str, options: Options, known: Mapping[str, str]) -> None:
    """Refuse options that a backend does not know.

    Args:
        name: of the backend.
        options: as given.
        known: what each option means, by its form: `word`, or `key=VALUE` for one that needs a value.

    Raises:
        UsageError: an unknown option, one without its value, or a value where none belongs. It lists the
            known ones.
    """
    forms = {form.partition("=")[0]: form for form in known}
    for key, value in options.items():
        form = forms.get(key)
        if form is None:
            listed = ", ".join(known) or "none"
            meant = did_you_mean(key, forms)
            raise UsageError(f"backend {name} has no option {key!r}; it knows: {listed}{meant}")
        if ("=" in form) != bool(value):
            given = f"{key}={value}" if value else key
            raise UsageError(f"backend {name}: option {given!r} is written {form}")
