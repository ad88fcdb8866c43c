"""The words of the opcode table (`opcodes.py`): each row states the facts that are true of its opcode.

What is done about an opcode (a kernel, a shape, a law of ranges) is a rule and stands in its room; what the
opcode is stands in the table alone. XLA: hlo_opcode.h, hlo_instruction.cc (HasSideEffect, IsElementwise),
hlo_cost_analysis.cc (HandleElementwiseOp).
"""

from __future__ import annotations

import enum


class Class(enum.Enum):
    """What an opcode does to its operands."""

    ELEMENTWISE = "elementwise"
    DATA_MOVEMENT = "data movement"
    INDEXING = "indexing"
    REDUCTION = "reduction"
    CONTRACTION = "contraction"
    CONTROL = "control flow"
    TUPLE = "tuple"
    COLLECTIVE = "collective"
    HOST = "host transfer"
    RANDOM = "random"
    LIBRARY = "library"
    SOURCE = "source"
    DYNAMIC = "dynamic shape"
    ANNOTATION = "annotation"


class Trait(enum.Enum):
    """A fact about an opcode; its value is the word that rows state it by."""

    # How the numbers of the result come about: one of the first five for each elementwise opcode.
    #: Results on floats need no rounding: numbers are chosen, split, or change their sign.
    EXACT = "exact"
    #: Defined for integers only, and exact.
    INTEGER = "integer"
    #: A formula of arithmetic, rounded.
    ROUNDS = "rounds"
    #: What XLA counts as a transcendental operation.
    TRANSCENDENTAL = "transcendental"
    #: Applies a computation to elements.
    APPLIES = "applies"
    #: Nothing is computed: elements go to places that shapes and attributes decide.
    MOVES = "moves"
    #: Of those, with all elements of the operand, in dimensions that are split, joined, permuted or added.
    REGROUPS = "regroups"
    #: Of those, in the same row-major order.
    SAME_ORDER = "same-order"
    #: Elements go where data decides, or to another device or memory.
    PLACES = "places"
    #: Numbers are made of nothing, of a hidden state or of the position in the array.
    MAKES = "makes"
    #: The value is that of the first operand.
    FORWARDS = "forwards"
    #: Holds a computation together; nothing runs.
    STRUCTURE = "structure"
    #: Says what happens before what.
    ORDERS = "orders"
    #: Asks or changes what size a dimension has.
    SIZES = "sizes"

    # Laws.
    #: Operands may change places.
    COMMUTATIVE = "commutative"
    #: Associative, but for rounding, with a neutral element (`OpcodeRow.identity`).
    ASSOCIATIVE = "associative"
    #: Of equal operands the result is that operand.
    IDEMPOTENT = "idempotent"
    #: The larger or the smaller of two.
    EXTREMUM = "extremum"
    #: The result is one of the operands, or decided by comparing them.
    COMPARES = "compares"
    #: Bit by bit.
    BITWISE = "bitwise"
    SHIFTS = "shifts"
    #: To one of the whole numbers beside.
    TO_INTEGER = "to-integer"
    #: The number of the operand, at most rounded.
    CONVERTS = "converts"
    #: f(-x) is -f(x), or f(x).
    ODD = "odd"
    EVEN = "even"
    #: Infinite at zero, at one or at other isolated points.
    SINGULAR = "singular"
    #: As a function of real numbers, continuous nowhere or not everywhere.
    JUMPS = "jumps"
    #: The result lies within [-1, 1].
    BOUNDED = "bounded"
    #: Comes as close to ±1 as its type can tell, and never gets there.
    SATURATES = "saturates"
    #: Made of exponentials.
    EXPONENTIAL = "exponential"
    #: Takes roots.
    ROOT = "root"
    #: No complex operands.
    REAL = "real"
    #: Made of several operations by XLA's expanders, for any type.
    EXPANDED = "expanded"

    # Calls.
    #: The operands are the parameters of a computation that runs once; its result is the result.
    INLINED = "inlined"
    #: The computations that are called decide what runs next.
    CONTROL_FLOW = "control-flow"
    #: Combines many elements by a computation.
    COMBINES = "combines"
    ASYNC = "async"
    #: The first half of a pair, and the second.
    STARTS = "starts"
    FINISHES = "finishes"
    BATCH_NORM = "batch-norm"

    # What is outside of the program.
    #: Acts on something outside, or draws from a hidden state.
    SIDE_EFFECT = "side-effect"
    #: The operands do not determine the result, or it is not known how.
    UNDETERMINED = "undetermined"
    #: Text must state its shape. XLA: CanInferShape.
    STATES_SHAPE = "states-shape"


#: How the numbers of an elementwise result come about: one of these.
ARITHMETIC = frozenset({Trait.EXACT, Trait.INTEGER, Trait.ROUNDS, Trait.TRANSCENDENTAL, Trait.APPLIES})


class Identity(enum.Enum):
    """The neutral element of an associative operation."""

    ZERO = "0"
    ONE = "1"
    LOWEST = "the lowest value"
    HIGHEST = "the highest value"
    ALL_BITS = "all bits set"
