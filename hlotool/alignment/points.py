"""x"""

#: Points that a pair needs to be matched.
ENOUGH = 8.0

#: It computes the same from the same inputs.
SAME_VALUE = 8.0
#: The same is computed from it.
SAME_CONTEXT = 6.0
#: Opcode, shape, attributes and literal are the same.
SAME_LABEL = 4.0
#: Without that: only the opcode, only the shape, only the number of elements or of dimensions.
SAME_OPCODE, SAME_SHAPE, SAME_SIZE = 2.5, 2.5, 1.0
#: The frontend's name path: the same, the same but for callers in front, only its last part.
SAME_PATH, SAME_ENDING, SAME_TAIL = 4.0, 3.0, 1.0
#: Both have one, and not even the last parts are the same.
OTHER_TAIL = -3.0
#: The same line of the user's program.
SAME_LINE = 1.0
#: The compiler keeps names of what it does not touch, and gives the names of what it drops to others.
SAME_NAME = 1.5
#: The recorded values have the same bits.
SAME_BITS = 6.0
#: Values of no more elements than this may be equal by accident.
FEW = 8
#: All operands (all users) are matched with each other; some of them: a part of it.
MATCHED_NEIGHBOURS = 6.0
#: All operands (all users) are matched with others.
STRANGE_NEIGHBOURS = -3.0
