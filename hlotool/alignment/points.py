"""What speaks for one instruction being another, in points.

The points were calibrated on the corpus: 114 programs before and after optimisation, executed on the same
inputs, where a pair is right when its values agree, and 680 pairs of neighbouring passes, where what keeps
its name and opcode must be paired with itself. `benchmarks/alignment.py` measures what happens without each,
with half of it and with twice as much; the table is in benchmarks/RESULTS.md, "Alignment". What changed
nothing, or nothing for the better (equal values, equal users, equal last parts of paths), has no points.
"""

from __future__ import annotations

#: Points that a pair needs to be matched. Without, every fifth pair is wrong instead of every seventh; with
#: twice as many hundreds of right pairs are lost.
ENOUGH = 8.0

#: Opcode, shape, attributes and literal are the same: enough where neither paths nor neighbours contradict.
#: Without it a third of the right pairs is lost.
SAME_LABEL = 8.0
#: Without that: only the opcode, only the shape. With twice as much strangers are paired; without the
#: shape 150 right pairs are lost.
SAME_OPCODE, SAME_SHAPE = 2.5, 2.5
#: The frontend's name path: the same, or the same but for callers in front. They find what was rewritten;
#: without the second 55 right pairs are lost, and as many wrong ones.
SAME_PATH, SAME_ENDING = 4.0, 3.0
#: Both have a path, and not even the last parts are the same. Without it a quarter more pairs are wrong.
OTHER_TAIL = -3.0
#: The same line of the user's program: decides between equals, and is less than half of any path.
SAME_LINE = 1.0
#: The compiler keeps names of what it does not touch, and gives the names of what it drops to others: it
#: decides between equals, too. From pass to pass twice as many are strangers without it.
SAME_NAME = 1.5
#: All operands (all users) are matched with each other; some of them: a part of it. Not enough alone, so that
#: one wrong pair does not pull in its whole neighbourhood.
MATCHED_NEIGHBOURS = 6.0
#: All operands (all users) are matched with others.
STRANGE_NEIGHBOURS = -3.0
