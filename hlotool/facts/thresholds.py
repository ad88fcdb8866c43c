"""The thresholds of verdicts: for each its value, what it decides, why this value, and what calibrated it.

Values are read as the judge runs (`thresholds.RATIO.value`), so that `benchmarks/verdicts/thresholds.py`
can halve and double each of them and count the verdicts that change, and `benchmarks/blame/locate.py
--thresholds` those of the locator. Its table is the calibration of all of them: a value stands in the middle
of a range in which no legal pair is accused and no planted fault is missed, or the table says on which side
the edge is. Sizes that only bound time or memory stay where they are used.
"""

from __future__ import annotations

from msgspec import Struct

#: Files and headings in `benchmarks/results/`.
SENSITIVITY = "verdicts.md: Thresholds"
MARGINS = "verdicts.md: Margins of the ratio"
LEGAL = "verdicts.md: Legal pairs"
FAULTS = "verdicts.md: Planted faults"
LOCATOR = "blame.md: Thresholds of the locator"
LAYERS = "blame.md: Threshold of layers"
EXACT = "exact.md: Thresholds of constants"
EXACT_FAULTS = "exact.md: Planted faults, exactly"
ARBITER = "verdicts.md: Programs as functions in verdicts"


class Threshold(Struct, frozen=True):
    """One number that decides about verdicts.

    Attributes:
        value: the number.
        decides: what it decides, and in which unit it is.
        why: why it has this value.
        table: file and heading of the table in `benchmarks/results/` that calibrated it.
    """

    value: float
    decides: str
    why: str
    table: str = SENSITIVITY


# Without an ensemble.

FEW_ULPS = Threshold(
    4,
    decides="ulps that `agree` without another execution, of f32, f64 and complex types",
    why="one rounding more or less of the operands and of the result; 98 % of legal pairs end here",
    table=LEGAL,
)
FEW_NARROW_ULPS = Threshold(
    1,
    decides="the same of types with 11 significant bits or fewer",
    why="an ulp of bf16 is 0.8 %: two would already hide most faults",
)
COARSE_ULP = Threshold(
    2.0**-11,
    decides="from which ulp at 1 on `agree` is looked at again in f64, where the tested side is a program",
    why="the ulp of f16 and of what is coarser: a lost channel of 256 stays within a few of them",
)

# Against the ensemble.

FIRST_MEMBERS = Threshold(
    4,
    decides="executions that an ensemble begins with, the reference not counted",
    why="each can be left out and still be scored against three others and the reference",
)
MOST_MEMBERS = Threshold(
    16,
    decides="executions that it doubles to while the answer is near",
    why="the first four settle nearly all; what is still open after sixteen is not worth more executions",
)
CLEAR = Threshold(
    1.0,
    decides="ratio up to which the first members settle a leaf",
    why="the result is no further out than a member itself; of legal ones half have ratios below 0.35",
)
CERTAIN = Threshold(
    100.0,
    decides="ratio from which more members cannot acquit any more, nor more executions in f64",
    why="thirty times RATIO: more members widen what is legal, but not thirtyfold",
)
RATIO = Threshold(
    3.0,
    decides="how many times as far out as legal executions a result is `wrong`",
    why="legal pairs end at 0.9, those of one program at 2.5; faults begin at 5.6",
    table=MARGINS,
)
OTHER_LAYERS = Threshold(
    2.0,
    decides="how many times as far out as legal executions a layer of another implementation is `wrong`",
    why="legal layers, by other formulas, end at 0.6; an epsilon of 1e-6 for 1e-5 begins at 2.2",
    table=LAYERS,
)
UNSTABLE_ULPS = Threshold(
    8.0,
    decides="times the square root of an ulp: the relative spread from which nothing can be said",
    why="half of the digits are lost by then; what loses fewer is still worth a verdict",
)
UNSTABLE_WIDTH = Threshold(
    0.25,
    decides="the relative spread from which nothing can be said in any type",
    why="for narrow types eight square roots of an ulp would be more than the values themselves",
)
UNSTABLE_SHARE = Threshold(
    0.05,
    decides="share of integers that legal executions may differ in before nothing can be said",
    why="single ties are common; one integer out of twenty is a program that decides by its rounding",
)

# What the statistics of exchangeability may be at least: four lucky members could be close together.

LEAST_WORST = Threshold(
    3.0,
    decides="distance in spreads that the worst element may always have",
    why="with four degrees of freedom one element in 25 is that far out (Student's t)",
)
LEAST_WHOLE = Threshold(
    0.6,
    decides="root mean square of the distances that an output may always have",
    why="independent errors give 1, less what the interval of centres takes off",
)
LEAST_PART = Threshold(
    0.8,
    decides="the same of a row, a column or a slice",
    why="the worst of many parts lies above the whole",
)
LEAST_BIAS = Threshold(
    2.0,
    decides="the sum of all distances, over the root of their number, that an output may always have",
    why="two standard deviations of a sum of independent errors",
)
SMOOTHING = Threshold(
    0.25,
    decides="share of its row's and column's spread that an element has at least",
    why="members that coincide in one element by luck must not accuse; more would hide sharp elements",
)
TIES = Threshold(
    2.0,
    decides="how much a new integer counts where the members differ elsewhere",
    why="one new element passes RATIO, two do not",
)
NO_TIES = Threshold(
    4.0,
    decides="how much a new integer counts where all members agree",
    why="a single one does not pass RATIO",
)

# What excuses a result beyond the ensemble.

LOUDER = Threshold(
    16.0,
    decides="how much larger errors are made to see what flips",
    why="a tie within 16 roundings flips in one of sixteen members, so four members of usual errors miss it",
)
LOUD_MEMBERS = Threshold(
    8,
    decides="executions with such errors",
    why="a tie within them goes either way, so eight miss a flip in one case out of 256",
)
FEW_FLIPS = Threshold(
    0.02,
    decides="share of the elements that may be out of reach for flips to explain them",
    why="ties are rare; more elements than that have a common cause",
)
JUMP = Threshold(
    64.0,
    decides="distance in spreads from which on only a flip, and no error in proportion, is the cause",
    why="four times LOUDER: errors in proportion end at LOUDER spreads",
)
MANY_FLIPS = Threshold(
    0.5,
    decides="the share where the worst element is that far out",
    why="one flip high up (an argmax, a branch) may change up to half of an output",
)
SAVED = Threshold(
    1e-3,
    decides="relative error up to which a finite result is what the reference lost to an overflow",
    why="a way round an overflow, through exp and log, rounds by some hundred ulps of f32; a fault is larger",
)

# Two programs in f64.

SAME_IN_F64 = Threshold(
    1e-10,
    decides="relative differences that f64 itself makes",
    why="half a million ulps of f64; legal rewrites of whole programs differ by 2e-16 to 1e-12",
)
FIRST_WIDE_MEMBERS = Threshold(
    2,
    decides="executions with constants rounded anew that a comparison in f64 begins with, of each side",
    why="two with opposite errors: a tie that one of them does not flip, the other one does",
)
WIDE_MEMBERS = Threshold(
    6,
    decides="executions that it goes on to where those do not settle it",
    why="three pairs: what two ties make together goes every way",
)
CERTAIN_IN_F64 = Threshold(
    1e3,
    decides="ratio from which the first two settle that two programs do not compute the same",
    why="an error that is too small by luck is so by a thousandth in one of a thousand; faults begin at 1e4",
)
WIDE_RATIO = Threshold(
    5.0,
    decides="ratio beyond which two programs do not compute the same",
    why="above RATIO: few constants make heavier tails than many roundings",
)
NEIGHBOURS = Threshold(
    2,
    decides="ulps of a narrow type within which one constant stands in the place of another one",
    why="a fault in the last bits; a fold rounds by half an ulp, and of constants that differ by more",
)
LOST_DIGITS = Threshold(
    1e3,
    decides="how many times the reference's spread a less stable program may have",
    why="three digits are what another order of the same formula costs (a variance by squares)",
)
LOST_ULPS = Threshold(
    64.0,
    decides="or how many ulps of its coarsest type",
    why="about fifty operations more than the reference's, where that is exact",
)
LOST_WIDTH = Threshold(
    0.05,
    decides="and what share of the values at most",
    why="a rewrite that leaves not even one digit and a half makes noise of a sound value",
)

# Two programs as functions of real numbers.

EXACT_TRIALS = Threshold(
    2,
    decides="random points at which programs are compared as functions",
    why="each shows other rational functions with all but a millionth of probability",
    table=ARBITER,
)
EXACT_ELEMENTS = Threshold(
    4e6,
    decides="elements that both programs may compute, at the first points, to be compared unasked",
    why="that takes a second or two, and four times that to excuse decisions; a training step of a thousand "
    "instructions computes 3e5",
    table=ARBITER,
)
EXACT_SECONDS = Threshold(
    10.0,
    decides="seconds of work (`system.resources.work_limit`) after which it is given up all the same",
    why="several times what EXACT_ELEMENTS take; counted, so that no load of a machine changes a verdict",
    table=ARBITER,
)
EXACT_SHARE = Threshold(
    0.5,
    decides="the share of the time left for a judgement that it may take",
    why="what it leaves open needs executions, and those are cheaper",
    table=ARBITER,
)

# Explanations: which pattern a wrong result shows.

PATTERN_ULPS = Threshold(
    16,
    decides="ulps within which a pattern's values are the wrong ones, of f32, f64 and complex types",
    why="the pattern's own arithmetic (a factor, an addend) rounds a few times more",
    table=FAULTS,
)
PATTERN_NARROW_ULPS = Threshold(
    2, decides="the same of narrow types", why="as FEW_NARROW_ULPS, on both sides", table=FAULTS
)
PATTERN_WIDTHS = Threshold(
    8,
    decides="or spreads of the ensemble",
    why="elements of legal executions are that far apart in large outputs",
    table=FAULTS,
)
PATTERN_ELEMENTS = Threshold(
    5,
    decides="wrong elements that a saturation or right values in wrong places must show in",
    why="four numbers fit some shift, swap or limit by chance; at 8 many small arrays have no name",
    table=FAULTS,
)
PATTERN_VALUES = Threshold(
    4,
    decides="different values that they must have",
    why="what consists of two values is its own shift, swap and transpose in many ways",
    table=FAULTS,
)

# Of the locator.

ONE_OPERATION = Threshold(
    8,
    decides="units of the type's epsilon by which two roundings of one operation may be apart",
    why="a few ulps of the result, and as many of what an approximation computes on the way",
    table=LOCATOR,
)
FEW_OPERATIONS = Threshold(
    256,
    decides="the same of the few operations that a rewrite puts in the place of others",
    why="some rounding errors that add up, with cancellation; faults that show are far above",
    table=LOCATOR,
)
ROUNDED_CONSTANTS = Threshold(
    1e-5,
    decides="relative difference of values in f64 that still are the same",
    why="compilers fold constants in f32, whose rounding stays in f64",
    table=LOCATOR,
)
SHOWN = Threshold(
    1 / 8,
    decides="the part of the difference of a result that a value must show to be to blame for it",
    why="differences fade on the way to a result more often than they grow; rounding is far below",
    table=LOCATOR,
)
TELLING_SIZE = Threshold(
    8,
    decides="elements from which on equal arrays are one value",
    why="smaller ones, indices above all, are equal by chance",
    table=LOCATOR,
)
TELLING_BITS = Threshold(
    32,
    decides="significant bits of different elements from which on equal smaller arrays are one value, too",
    why="two rounded f32 have 48; indices, factors and other short numbers have a few each",
    table=LOCATOR,
)
SURVIVING_NAMES = Threshold(
    0.3,
    decides="the share of names of operations that both programs have, below which names say nothing",
    why="compilers number names anew: a few of them are the same by chance",
    table=LOCATOR,
)
ERROR_LEFT = Threshold(
    0.05,
    decides="the part of its error that a result may keep to be repaired",
    why="room for rounding, which differs once an operation is another one",
    table=LOCATOR,
)

# Constants as exact numbers.

SNAP_UNITS = Threshold(
    1.5,
    decides="how far a constant may be from the number it is read as, in units of 2^-bits of its value",
    why="one is the largest error of a rounding, and half of one is left for what it was made of",
    table=EXACT,
)
FURTHER_UNITS = Threshold(
    0.5,
    decides="by how much that grows with every further operation that a compiler rounds",
    why="an operation is off by 0.4 units in the mean, and errors of four hardly ever all go one way",
    table=EXACT,
)
FOLDS = Threshold(
    4,
    decides="operations that a compiler may round on the way to a constant that no relation explains",
    why="products of four occur; at eight a constant that is 3 ulps off would be excused",
    table=EXACT,
)
SAME_FIT = Threshold(
    1e-12,
    decides="relative differences in f64 up to which constants that may be off make two programs the same",
    why="legal rewrites differ by 2e-16 to 1e-12; rounding a constant of f32 changes a result by some 1e-8",
    table=EXACT,
)
APART_IN_F64 = Threshold(
    1e-10,
    decides="the relative difference in f64, beyond roundings of constants, that makes functions `unequal`",
    why="a hundred times what legal rewrites differ by there, and a thousandth of an ulp of f32",
    table=EXACT,
)
ACCIDENTS = Threshold(
    0.02,
    decides="how many relations of one kind may be as near to a constant by chance for one to explain it",
    why="a fault in a constant goes unseen as often, and ten constants in f32 have 0.002 products of three",
    table=EXACT,
)
FOLDED_UNITS = Threshold(
    6,
    decides="the same for what a function of constants is: erf(0.6) as a compiler folds it, and as we do",
    why="two ulps are up to four units, and functions differ by as much between libraries",
    table=EXACT,
)
TINY_CONSTANT = Threshold(
    1e-30,
    decides="below which size constants are 0 where two programs are different functions otherwise",
    why="generators add 1e-38 to keep away from 0, and 1 - 1e-38 is folded to 1",
    table=EXACT,
)

# Programs as functions of real numbers.

EXACT_DEGREE = Threshold(
    1024,
    decides="for which degree of the difference of two programs the stated probability of an error speaks",
    why="a layer of a network multiplies a few values, and a model has some hundred layers",
    table=EXACT_FAULTS,
)
DECISIONS = Threshold(
    16,
    decides="how many elements of every comparison and rounding of floats are looked at, over all points",
    why="a fault in one of two branches shows at every second of them: one in 65,536 is missed",
    table=EXACT_FAULTS,
)
INTEGERS = Threshold(
    64,
    decides="how many elements of every integer argument are looked at, over all points",
    why="a fault in one of ten labels is missed by 16 of them once in five times, by 64 once in 800",
    table=EXACT_FAULTS,
)
MOST_POINTS = Threshold(
    8,
    decides="points at most for few decisions and integers, and how many equality takes to excuse decisions",
    why="eight of a scalar miss one fault in 256 that shows at every second point; each costs a run of both",
    table=EXACT_FAULTS,
)
ROOTS = Threshold(
    24,
    decides="up to how many roots, of both programs, points are sought at which all under them is a square",
    why="every second number is a square: points of more than seven different ones are hardly found",
    table=EXACT_FAULTS,
)
POINTS_FOR_ROOTS = Threshold(
    1024,
    decides="points that are tried to find such ones; a quarter of them, where hardly any is one",
    why="eight of them are such ones for six different roots, in 98 programs of 100",
    table=EXACT_FAULTS,
)
