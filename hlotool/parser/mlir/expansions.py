"""Error functions, Bessel's function and the next number: what CHLO has, and HLO has not.

XLA: ChloLegalizeToStablehlo. Cephes (ndtr.c, i1.c) and Giles, Approximating the erfinv function, have the
coefficients.
"""

from __future__ import annotations

import math

from hlotool.ir.types import ElementType
from hlotool.parser.mlir.arithmetic import Value, function, polynomial

#: Of the inverse of erf by w = -log(1 - x²), each from the highest power on: for w below 5 and beyond.
_NEAR_32 = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
    -0.00125372503, -0.00417768164, 0.246640727, 1.50140941,
)  # fmt: skip
_TAIL_32 = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
    -0.0076224613, 0.00943887047, 1.00167406, 2.83297682,
)  # fmt: skip
#: In f64 for w below 6.25, below 16, and beyond.
_NEAR_64 = (
    -3.64441206401782e-21, -1.6850591381820166e-19, 1.28584807152564e-18, 1.1157877678025181e-17,
    -1.333171662854621e-16, 2.0972767875968562e-17, 6.637638134358324e-15, -4.054566272975207e-14,
    -8.151934197605472e-14, 2.6335093153082323e-12, -1.2975133253453532e-11, -5.415412054294628e-11,
    1.0512122733215323e-09, -4.112633980346984e-09, -2.9070369957882005e-08, 4.2347877827932404e-07,
    -1.3654692000834679e-06, -1.3882523362786469e-05, 0.00018673420803405714, -0.000740702534166267,
    -0.006033670871430149, 0.24015818242558962, 1.6536545626831027,
)  # fmt: skip
_MIDDLE_64 = (
    2.2137376921775787e-09, 9.075656193888539e-08, -2.7517406297064545e-07, 1.8239629214389228e-08,
    1.5027403968909828e-06, -4.013867526981546e-06, 2.9234449089955446e-06, 1.2475304481671779e-05,
    -4.7318229009055734e-05, 6.828485145957318e-05, 2.4031110387097894e-05, -0.0003550375203628475,
    0.0009532893797373805, -0.0016882755560235047, 0.002491442096107851, -0.003751208507569241,
    0.005370914553590064, 1.0052589676941592, 3.0838856104922208,
)  # fmt: skip
_TAIL_64 = (
    -2.7109920616438573e-11, -2.555641816996525e-10, 1.5076572693500548e-09, -3.789465440126737e-09,
    7.61570120807834e-09, -1.496002662714924e-08, 2.914795345090108e-08, -6.771199775845234e-08,
    2.2900482228026655e-07, -9.9298272942317e-07, 4.526062597223154e-06, -1.968177810553167e-05,
    7.599527703001776e-05, -0.00021503011930044477, -0.00013871931833623122, 1.0103004648645344,
    4.849906401408584,
)  # fmt: skip


@function("erf_inv")
def _erf_inv(x: Value) -> Value:
    w = -(x * -x).of("log-plus-one")
    p = (_erf_inv_64 if x.kind is ElementType.F64 else _erf_inv_32)(w)
    return abs(x).compared("EQ", 1).select(x * math.inf, p * x)


def _erf_inv_32(w: Value) -> Value:
    is_near = w < 5
    w = is_near.select(w - 2.5, w.of("sqrt") - 3)
    p = is_near.select(w.like(_NEAR_32[0]), _TAIL_32[0])
    for near, tail in zip(_NEAR_32[1:], _TAIL_32[1:]):
        p = is_near.select(w.like(near), tail) + p * w
    return p


def _erf_inv_64(w: Value) -> Value:
    is_near, is_tail = w < 6.25, w.compared("GE", 16)
    root = w.of("sqrt")
    p = polynomial(w - 3.125, _NEAR_64)
    p = is_near.select(p, polynomial(root - 3.25, _MIDDLE_64))
    return is_tail.select(polynomial(root - 5, _TAIL_64), p)


#: Of erfc in f32: of 1 - x P(x²) below 1; of exp(-x²)/|x| P(1/x²) below 2, and from there on.
_ERFC_32 = (
    (7.853861353153693e-5, -8.010193625184903e-4, 5.188327685732524e-3, -2.685381193529856e-2,
     1.128358514861418e-1, -3.761262582423300e-1, 1.128379165726710),
    (2.326819970068386e-2, -1.387039388740657e-1, 3.687424674597105e-1, -5.824733027278666e-1,
     6.210004621745983e-1, -4.944515323274145e-1, 3.404879937665872e-1, -2.741127028184656e-1,
     5.638259427386472e-1),
    (-1.047766399936249e1, 1.297719955372516e1, -7.495518717768503, 2.921019019210786, -1.015265279202700,
     4.218463358204948e-1, -2.820767439740514e-1, 5.641895067754075e-1),
)  # fmt: skip
#: In f64, quotients: of 1 - x T(x²)/U(x²) below 1; of exp(-x²) P(|x|)/Q(|x|) below 8; likewise from there on.
_ERFC_64 = (
    ((9.60497373987051638749, 90.0260197203842689217, 2232.00534594684319226, 7003.32514112805075473,
      55592.3013010394962768),
     (1.0, 33.5617141647503099647, 521.357949780152679795, 4594.32382970980127987, 22629.0000613890934246,
      49267.3942608635921086)),
    ((2.46196981473530512524e-10, 0.564189564831068821977, 7.46321056442269912687, 48.6371970985681366614,
      196.520832956077098242, 526.445194995477358631, 934.528527171957607540, 1027.55188689515710272,
      557.535335369399327526),
     (1.0, 13.2281951154744992508, 86.7072140885989742329, 354.937778887819891062, 975.708501743205489753,
      1823.90916687909736289, 2246.33760818710981792, 1656.66309194161350182, 557.535340817727675546)),
    ((0.564189583547755073984, 1.27536670759978104416, 5.01905042251180477414, 6.16021097993053585195,
      7.40974269950448939160, 2.97886665372100240670),
     (1.0, 2.26052863220117276590, 9.39603524938001434673, 12.0489539808096656605, 17.0814450747565897222,
      9.60896809063285878198, 3.36907645100081516050)),
)  # fmt: skip


@function("erfc")
def _erfc(x: Value) -> Value:
    is_double = x.kind is ElementType.F64
    size, square = abs(x), x * x
    exponent = -square
    scale = exponent.of("exponential")
    if is_double:
        inner, middle, tail = (
            (polynomial(at, above), polynomial(at, below))
            for at, (above, below) in zip((square, size, size), _ERFC_64)
        )
        near = 1 - (x * inner[0]) / inner[1]
        far = (size < 8).select((scale * middle[0]) / middle[1], (scale * tail[0]) / tail[1])
    else:
        near = 1 - x * polynomial(square, _ERFC_32[0])
        inverse = 1 / square
        chosen = (size < 2).select(polynomial(inverse, _ERFC_32[1]), polynomial(inverse, _ERFC_32[2]))
        far = (scale * (1 / size)) * chosen
    # Below the negative of this, exp is 0.
    largest = 7.09782712893383996843e2 if is_double else 88.72283905206835
    far = (exponent < -largest).select(far.like(0), far)
    far = (x < 0).select(2 - far, far)
    return (size < 1).select(near, far)


#: Chebyshev's, of exp(-|x|) I₁(x): of x by |x| / 2 - 2 up to 8, of 1 / √|x| by 32 / |x| - 2 beyond.
_BESSEL_64 = (
    (2.77791411276104639959e-18, -2.11142121435816608115e-17, 1.55363195773620046921e-16,
     -1.10559694773538630805e-15, 7.60068429473540693410e-15, -5.04218550472791168711e-14,
     3.22379336594557470981e-13, -1.98397439776494371520e-12, 1.17361862988909016308e-11,
     -6.66348972350202774223e-11, 3.62559028155211703701e-10, -1.88724975172282928790e-9,
     9.38153738649577178388e-9, -4.44505912879632808065e-8, 2.00329475355213526229e-7,
     -8.56872026469545474066e-7, 3.47025130813767847674e-6, -1.32731636560394358279e-5,
     4.78156510755005422638e-5, -1.61760815825896745588e-4, 5.12285956168575772895e-4,
     -1.51357245063125314899e-3, 4.15642294431288815669e-3, -1.05640848946261981558e-2,
     2.47264490306265168283e-2, -5.29459812080949914269e-2, 1.02643658689847095384e-1,
     -1.76416518357834055153e-1, 2.52587186443633654823e-1),
    (7.51729631084210481353e-18, 4.41434832307170791151e-18, -4.65030536848935832153e-17,
     -3.20952592199342395980e-17, 2.96262899764595013876e-16, 3.30820231092092828324e-16,
     -1.88035477551078244854e-15, -3.81440307243700780478e-15, 1.04202769841288027642e-14,
     4.27244001671195135429e-14, -2.10154184277266431302e-14, -4.08355111109219731823e-13,
     -7.19855177624590851209e-13, 2.03562854414708950722e-12, 1.41258074366137813316e-11,
     3.25260358301548823856e-11, -1.89749581235054123450e-11, -5.58974346219658380687e-10,
     -3.83538038596423702205e-9, -2.63146884688951950684e-8, -2.51223623787020892529e-7,
     -3.88256480887769039346e-6, -1.10588938762623716291e-4, -9.76109749136146840777e-3,
     7.78576235018280120474e-1),
)  # fmt: skip
#: In f32 the last of them do.
_BESSEL_32 = (_BESSEL_64[0][12:], _BESSEL_64[1][18:])


@function("bessel_i1e")
def _bessel_i1e(x: Value) -> Value:
    size = abs(x)
    inner, outer = _BESSEL_64 if x.kind is ElementType.F64 else _BESSEL_32
    near = size * _chebyshev(0.5 * size - 2, inner)
    far = _chebyshev(32 / size - 2, outer) / size.of("sqrt")
    return x.of("sign") * (size <= 8).select(near, far)


def _chebyshev(at: Value, coefficients: tuple[float, ...]) -> Value:
    before = last = made = at.like(0)
    for coefficient in coefficients:
        before, last = last, made
        made = at * last - before + coefficient
    return (made - before) * 0.5


@function("next_after", count=2, narrowest=0)
def _next_after(x: Value, y: Value) -> Value:
    bits = ElementType(f"s{x.kind.bits}")
    sign = -(1 << x.kind.bits - 1)
    start, aim = (one.of("bitcast-convert", kind=bits) for one in (x, y))
    size, size_of_aim = (one & ~sign for one in (start, aim))
    is_inward = (size > size_of_aim) | (start & sign).compared("NE", aim & sign)
    result = start + is_inward.select(start.like(-1), 1)
    # From zero: to a zero, or to the smallest number of the aim's sign.
    from_zero = size_of_aim.compared("EQ", 0).select(aim, (aim & sign) | 1)
    result = size.compared("EQ", 0).select(from_zero, result)
    result = x.compared("EQ", y).select(aim, result)
    is_nan = x.compared("NE", x) | y.compared("NE", y)
    nan = x.like(math.nan).of("bitcast-convert", kind=bits)
    return is_nan.select(nan, result).of("bitcast-convert", kind=x.kind)
