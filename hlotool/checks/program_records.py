"""What rules on whole dumps need to know of each program: small enough to keep of thousands."""

from __future__ import annotations

from hlotool.system.records import Record


class ParameterFact(Record, frozen=True, kw_only=True):
    """An entry parameter.

    Attributes:
        name: of the user's program where the dump has it, else of the HLO.
        shape: without layout.
    """

    name: str
    shape: str


class ProgramFacts(Record, frozen=True, kw_only=True):
    """A program as the frontend gave it.

    Attributes:
        module: of the dump.
        file: where it stands.
        function: of the user's program.
        frontend: `jax`, `tensorflow`, `torch`, or empty.
        trace: TensorFlow's number of the trace, empty elsewhere.
        parameters: of the entry.
        results: shapes of the leaves of the result.
        instructions: how many there are.
        structure: digest of opcodes and graph, without shapes and constants.
        text: digest of the program without names and positions.
        constants: small constants, `name: shape value`, in order.
        source: file and line of the user's program, empty when the dump does not say.
        unfinished: that the compiler did not come to an end with it, and where.
        is_eager: a call of the library that was executed as soon as it was made: no function of the user's.
    """

    module: str
    file: str
    function: str
    frontend: str
    trace: str
    parameters: list[ParameterFact]
    results: list[str]
    instructions: int
    structure: str
    text: str
    constants: list[str]
    source: str = ""
    unfinished: str = ""
    is_eager: bool = False
