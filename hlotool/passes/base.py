"""What a pass is, and what it is told about its run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, TypeAlias

from hlotool.ir.edit import Editor, Names, computation_names, editing
from hlotool.ir.edit_dead import remove_dead_computations
from hlotool.ir.module import Instruction, Module
from hlotool.ir.walk import call_order

#: The value of a module without parameters: an array per array shape, a tuple per tuple shape.
#: Raises HlotoolError when it cannot tell.
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

    Each comes with the editor of its computation and the names of the module's computations. What nobody
    calls any more is removed when all of them have been visited.
    """
    names = computation_names(module)
    for computation in call_order(module):
        if any(i.opcode in opcodes for i in computation.instructions):
            with editing(computation) as edit:
                yield from ((edit, i, names) for i in edit if i.opcode in opcodes)
    remove_dead_computations(module)
