"""What a pass is, its options as text, and what it knows about its run."""

from __future__ import annotations

import re
import types
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, Union, get_args, get_origin, get_type_hints

from hlotool.errors import UsageError
from hlotool.ir.edit import Editor, Names, computation_names, editing
from hlotool.ir.edit_programs import remove_dead_computations
from hlotool.ir.module import Instruction, Module
from hlotool.ir.walk import call_order
from hlotool.rewrite.passes.records import OptionRecord
from hlotool.system.user_input import did_you_mean

#: The value of a module without parameters: an array per array shape, a tuple per tuple shape.
#: Raises HlotoolError when it cannot decide.
Evaluator: TypeAlias = Callable[[Module], Any]


class Pass(Protocol):
    """A rewrite of a whole module. Passes are frozen dataclasses; their fields are their options.

    The first line of the class's docstring is what `hlotool opt --list-passes` says of it, and a field's
    comment line in `Attributes:` what it says of the option.
    """

    #: As on the command line, in lower case with hyphens.
    name: ClassVar[str]

    def run(self, module: Module, context: Context) -> None:
        """Change `module` in place, and leave it valid: names unique, operands and callees first.

        Every single transformation asks `context.spend` first and happens only when the answer is yes: that
        counts it, and lets a search stop the pass after N transformations.

        Raises:
            HlotoolError: the options do not fit the module.
        """


@dataclass(slots=True)
class Fuel:
    """How many transformations may still happen. XLA: `--xla_fuel=PASS=N`.

    Attributes:
        left: over all passes; None is no limit.
        by_pass: of single passes.
    """

    left: int | None = None
    by_pass: dict[str, int] = field(default_factory=dict)

    def spend(self, name: str) -> bool:
        """Take one unit for the pass `name`; False when there is none left."""
        if self.left == 0 or self.by_pass.get(name) == 0:
            return False
        if self.left is not None:
            self.left -= 1
        if name in self.by_pass:
            self.by_pass[name] -= 1
        return True


@dataclass(slots=True)
class Context:
    """One run of one pass.

    Attributes:
        name: of the pass.
        fuel: shared by all passes of a pipeline.
        evaluate: computes constants; None where there is no reference to do it.
        changes: how often each transformation happened.
    """

    name: str = ""
    fuel: Fuel = field(default_factory=Fuel)
    evaluate: Evaluator | None = None
    changes: Counter[str] = field(default_factory=Counter)

    def spend(self, what: str) -> bool:
        """Whether the transformation called `what` may happen now; counts it when it may."""
        if not self.fuel.spend(self.name):
            return False
        self.changes[what] += 1
        return True

    def for_pass(self, name: str) -> Context:
        """The context of the next pass: same fuel and evaluator, nothing counted yet."""
        return Context(name, self.fuel, self.evaluate)


def each_caller(module: Module, *opcodes: str) -> Iterator[tuple[Editor, Instruction, Names]]:
    """The instructions of these opcodes, called computations first, to be replaced by what they call.

    Each comes with the editor of its computation and the names of the module's computations. What nothing
    calls any more is removed when all of them have been visited.
    """
    names = computation_names(module)
    for computation in call_order(module):
        if any(i.opcode in opcodes for i in computation.instructions):
            with editing(computation) as edit:
                yield from ((edit, i, names) for i in edit if i.opcode in opcodes)
    remove_dead_computations(module)


_ATTRIBUTE = re.compile(r"^ {4,}(\w+): (.+?)(?=^ {4,}\w+: |^\S|\Z)", re.MULTILINE | re.DOTALL)


# Types: `bool` (a bare name is true), `int`, `float`, `str`, `Literal[…]` of texts, `tuple[str, …]` (joined
# by `+`), each perhaps `| None`.


def make_pass(kind: type[Pass], given: Mapping[str, str | None]) -> Pass:
    """The pass with the options `given`; the value of a bare name is None.

    Raises:
        UsageError: an option it does not have, a value that does not fit, or one that is missing.
    """
    types_of, own = get_type_hints(kind), _fields(kind)
    unknown = [name for name in given if name not in own]
    if unknown:
        known = ", ".join(own) or "none"
        meant = did_you_mean(unknown[0], own)
        raise UsageError(f"pass {kind.name} has no option {unknown[0]!r}; there are: {known}{meant}")
    missing = [name for name, f in own.items() if f.default is MISSING and name not in given]
    if missing:
        raise UsageError(f"pass {kind.name} needs the option {missing[0]}: {kind.name}{{{missing[0]}=…}}")
    values = {name: _value(kind.name, name, types_of[name], text) for name, text in given.items()}
    return kind(**values)


def options_of(kind: type[Pass]) -> list[OptionRecord]:
    """The options of the pass, in the order of its fields."""
    types_of, about = get_type_hints(kind), _descriptions(kind)
    return [
        OptionRecord(name, _in_words(types_of[name]), _default(f), about.get(name, ""))
        for name, f in _fields(kind).items()
    ]


def summary(kind: type[Pass]) -> str:
    """The first line of the pass's docstring."""
    return (kind.__doc__ or "").strip().split("\n")[0].rstrip(".")


def _fields(kind: type[Pass]) -> dict[str, Field[Any]]:
    return {f.name: f for f in fields(kind)}  # type: ignore[arg-type]


def _descriptions(kind: type[Pass]) -> dict[str, str]:
    _, _, attributes = (kind.__doc__ or "").partition("Attributes:\n")
    return {name: " ".join(text.split()).rstrip(".") for name, text in _ATTRIBUTE.findall(attributes)}


def _default(own: Field[Any]) -> str | None:
    if own.default is MISSING:
        return None
    if isinstance(own.default, bool):
        return str(own.default).lower()
    return "+".join(own.default) if isinstance(own.default, tuple) else str(own.default)


def _alternatives(hint: Any) -> list[Any]:
    """The types of a union but for None."""
    if get_origin(hint) in (Union, types.UnionType):
        return [part for part in get_args(hint) if part is not type(None)]
    return [hint]


def _in_words(hint: Any) -> str:
    (kind,) = _alternatives(hint)
    if get_origin(kind) is Literal:
        return "|".join(get_args(kind))
    if get_origin(kind) is tuple:
        return "names joined by +"
    return {bool: "true|false", int: "whole number", float: "number", str: "text"}[kind]


def _value(owner: str, name: str, hint: Any, text: str | None) -> Any:
    (kind,) = _alternatives(hint)
    try:
        return _convert(kind, text)
    except (ValueError, KeyError):
        given = name if text is None else f"{name}={text}"
        raise UsageError(f"pass {owner}: {given}: {name} takes {_in_words(hint)}") from None


def _convert(kind: Any, text: str | None) -> Any:
    if kind is bool:
        return {None: True, "true": True, "false": False}[text]
    if text is None:
        raise ValueError
    if get_origin(kind) is Literal:
        if text not in get_args(kind):
            raise ValueError
        return text
    if get_origin(kind) is tuple:
        return tuple(text.split("+"))
    return kind(text)
