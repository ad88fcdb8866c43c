"""What `hlotool diff` finds, as plain data."""

from __future__ import annotations

from hlotool.judge.verdicts import Verdict
from hlotool.runs.records import LeafRecord
from hlotool.system.records import ErrorRecord, Record, SourceRecord


class ChangeRecord(Record, frozen=True, kw_only=True):
    """One thing that differs.

    Attributes:
        what: `opcode`, `shape`, `layout`, `operand N`, `value`, `parameter number`, or an attribute's name.
        left: as text; empty when it is not there.
        right: likewise.
    """

    what: str
    left: str
    right: str


class LineRecord(Record, frozen=True, kw_only=True):
    """An instruction of one or both programs.

    Attributes:
        status: `same`, `moved`, `changed`, `only left` or `only right`.
        left: the instruction as HLO, empty when it is not there.
        right: likewise.
        left_line: in the file, 0 when unknown.
        right_line: likewise.
        left_computation: where it stands.
        right_computation: where it stands.
        changes: what differs.
        renamed: the names differ.
        reordered: both programs are scheduled, and it is executed at another time.
        source: where it comes from in the user's program; None for instructions that are the same.
    """

    status: str
    left: str = ""
    right: str = ""
    left_line: int = 0
    right_line: int = 0
    left_computation: str = ""
    right_computation: str = ""
    changes: list[ChangeRecord] = []
    renamed: bool = False
    reordered: bool = False
    source: SourceRecord | None = None


class ComputationRecord(Record, frozen=True, kw_only=True):
    """A computation in which something differs.

    Attributes:
        left: its name there, empty when it is not there.
        right: likewise.
        is_entry: it is the one that runs.
        hunks: what differs, with a few instructions around it.
    """

    left: str = ""
    right: str = ""
    is_entry: bool = False
    hunks: list[list[LineRecord]] = []


class OpcodeRecord(Record, frozen=True, kw_only=True):
    """Instructions of one opcode.

    Attributes:
        opcode: of the right program, where it changed.
        same: instructions that are in both and equal.
        moved: that are in both, in computations that are no partners.
        changed: that are in both and differ.
        only_left: that are on the left only.
        only_right: that are on the right only.
    """

    opcode: str
    same: int = 0
    moved: int = 0
    changed: int = 0
    only_left: int = 0
    only_right: int = 0


class ProgramDiffRecord(Record, frozen=True, kw_only=True):
    """Two programs.

    Attributes:
        name: of the module within its dump, and its stage.
        left: file.
        right: file.
        is_same: nothing differs but names.
        left_instructions: number of instructions that the entry reaches.
        right_instructions: likewise.
        matched: pairs of instructions.
        renamed: pairs whose names differ.
        moved: pairs in computations that are no partners.
        reordered: pairs that are scheduled in another order.
        changed: pairs that differ.
        only_left: instructions without a partner.
        only_right: likewise.
        header: attributes of the module that differ.
        computations: those in which something differs.
        opcodes: all opcodes that occur.
        notes: what was not compared.
        error: why nothing was compared.
        seconds: wall time.
    """

    name: str
    left: str
    right: str
    is_same: bool = False
    left_instructions: int = 0
    right_instructions: int = 0
    matched: int = 0
    renamed: int = 0
    moved: int = 0
    reordered: int = 0
    changed: int = 0
    only_left: int = 0
    only_right: int = 0
    header: list[ChangeRecord] = []
    computations: list[ComputationRecord] = []
    opcodes: list[OpcodeRecord] = []
    notes: list[str] = []
    error: ErrorRecord | None = None
    seconds: float = 0.0


class ResultDiffRecord(Record, frozen=True, kw_only=True):
    """Two arrays.

    Attributes:
        name: key or file name.
        left: file.
        right: file.
        comparison: what the numbers say; the left side is the expected one.
    """

    name: str
    left: str
    right: str
    comparison: LeafRecord


class LayerRecord(Record, frozen=True, kw_only=True):
    """A value of one execution, and that of the other one which belongs to it.

    Attributes:
        left: name of the array.
        right: likewise.
        layers: whose result it is, the innermost first, as the frontend calls them.
        right_layers: likewise on the right, where a program is known.
        aligned_by: `map`, `layer` (of one name on both sides), `value`, or `order`.
        left_shape: such as `f32[4,8]`.
        right_shape: likewise.
        axes: of the right array, in the order of the left one's; empty where it was reshaped.
        verdict: IDENTICAL; ROUNDING, within the spread of legal executions; WRONG, beyond it; STRUCTURAL, of
            another shape.
        reason: in one sentence.
        difference: root mean square of the difference, relative to that of the left array; null where a value
            is not finite.
        spread: the same of the legal execution that is furthest off; where no program is known, the bound.
        ratio: how many times as far off it is as legal executions are; null where no program is known.
        comparison: of the elements, of the first few that are wrong.
        source: where the left one comes from, or else the right one.
    """

    left: str
    right: str
    layers: list[str] = []
    right_layers: list[str] = []
    aligned_by: str = "order"
    left_shape: str
    right_shape: str
    axes: list[int] = []
    verdict: Verdict
    reason: str = ""
    difference: float | None = None
    spread: float | None = None
    ratio: float | None = None
    comparison: LeafRecord | None = None
    source: SourceRecord | None = None

    @property
    def name(self) -> str:
        """What people call it: the innermost layer, or else the array on the right, which a module gave."""
        return next(iter([*self.layers, *self.right_layers]), self.right)


class LayersRecord(Record, frozen=True, kw_only=True):
    """Two executions, layer by layer.

    Attributes:
        layers: what was compared, in the order in which the left side computes it.
        first: number of the first layer that leaves legal spread; null where none does.
        basis: what is legal.
    """

    layers: list[LayerRecord] = []
    first: int | None = None
    basis: str = ""
