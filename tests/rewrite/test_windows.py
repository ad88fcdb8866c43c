"""Windows, steps and padding between elements: what they make of other sizes is what HLO says of them."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest

from hlotool.backends.registry import get_backend
from hlotool.parser.reader import parse_module
from hlotool.rewrite.scale.classes import classes_of
from hlotool.rewrite.scale.limits import Limits
from hlotool.rewrite.scale.plan import scaled
from hlotool.rewrite.scale.resize import Rewrite

NO_LIMITS = Limits(float("inf"), float("inf"))

HEAD = """HloModule m

sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }

"""


def pooled(size: int, stride: int, low: int, high: int, length: int, *, apart: int = 1) -> str:
    """A window over one dimension of two."""
    made = ((length - 1) * apart + 1 + low + high - size) // stride + 1
    window = f"size=1x{size} stride=1x{stride} pad=0_0x{low}_{high} lhs_dilate=1x{apart}"
    return f"""{HEAD}ENTRY e {{
  x = f32[40,{length}] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[40,{made}] reduce-window(x, z), window={{{window}}}, to_apply=sum
}}"""


def drawn(seed: int) -> Iterator[str]:
    """Programs with windows, slices and padding of many kinds, over lengths that are no special ones."""
    rng = random.Random(seed)
    for _ in range(60):
        size, stride, length = rng.randint(1, 7), rng.randint(1, 4), rng.randint(24, 60)
        low, high = rng.randint(0, size - 1), rng.randint(0, size - 1)
        yield pooled(size, stride, low, high, length)
        yield pooled(size, 1, low, high, length, apart=rng.randint(2, 3))
        start, behind = rng.randint(0, 3), rng.randint(0, 3)
        made = -(-(length - behind - start) // stride)
        yield f"""HloModule m ENTRY e {{
  x = f32[{length}] parameter(0)
  ROOT r = f32[{made}] slice(x), slice={{[{start}:{length - behind}:{stride}]}} }}"""
        between = rng.randint(1, 3)
        made = length + (length - 1) * between + low + high
        yield f"""HloModule m ENTRY e {{
  x = f32[{length}] parameter(0) z = f32[] constant(0)
  ROOT r = f32[{made}] pad(x, z), padding={low}_{high}_{between} }}"""


def test_shapes_are_right_whatever_sizes_become() -> None:
    """The verifier infers every shape anew; most of the lengths can change at all."""
    changed = count = 0
    rng = random.Random(12)
    for text in drawn(11):
        module = parse_module(text)
        classes = classes_of([module])
        chosen = {atom: rng.randint(2, atom.value) for atom in classes.free}
        copy = Rewrite(module, classes)
        copy.set_sizes(chosen)
        copy.verify()
        length = module.entry.parameters[0].dims[-1]
        changed += any(length in (atom.value, 0) or length > atom.value > 8 for atom in classes.free)
        count += 1
    assert changed > 0.5 * count


def test_a_strided_convolution_halves_the_image() -> None:
    """7 by 7 in steps of 2 over 224, as the first layer of a residual network: 112, whatever 224 becomes."""
    text = """HloModule m ENTRY e {
  x = f32[4,224,224,3] parameter(0)
  k = f32[7,7,3,64] parameter(1)
  ROOT c = f32[4,112,112,64] convolution(x, k), window={size=7x7 stride=2x2 pad=2_3x2_3},
    dim_labels=b01f_01io->b01f
}"""
    found = scaled({"": parse_module(text)}, "112=13", NO_LIMITS)
    assert found is not None
    module = found.programs[""]
    assert module.entry.parameters[0].dims == (4, 26, 26, 3)
    assert module.entry.root.dims == (4, 13, 13, 64)
    assert module.entry.parameters[1].dims == (7, 7, 3, 64)


TREE = """{head}ENTRY e {{
  x = f32[40,150] parameter(0)
  z = f32[] constant(0)
{sums}
}}"""
PLAIN = TREE.format(head=HEAD, sums="  ROOT r = f32[40] reduce(x, z), dimensions={1}, to_apply=sum")
TILED = TREE.format(
    head=HEAD,
    sums="""  t = f32[40,5] reduce-window(x, z), window={size=1x32 stride=1x32 pad=0_0x5_5}, to_apply=sum
  ROOT r = f32[40] reduce(t, z), dimensions={1}, to_apply=sum""",
)


def test_a_sum_in_tiles_is_still_the_sum() -> None:
    """XLA sums 150 elements in five tiles of 32 with padding; nothing but the number of tiles must stay."""
    found = scaled({"a": parse_module(PLAIN), "b": parse_module(TILED)}, "150=17", NO_LIMITS)
    assert found is not None
    values = (np.random.default_rng(5).normal(size=(40, 17)).astype(np.float32),)
    first, second = (get_backend("numpy").compile(module).run(values) for module in found.programs.values())
    assert isinstance(first, np.ndarray)
    np.testing.assert_allclose(first, second, rtol=1e-5, atol=1e-5)  # type: ignore[arg-type]


def test_every_other_element_is_half_of_them() -> None:
    """A rotation of pairs takes the even and the odd elements apart, and puts them together again."""
    text = """HloModule m ENTRY e {
  x = f32[40,64] parameter(0)
  a = f32[40,32] slice(x), slice={[0:40], [0:64:2]}
  b = f32[40,32] slice(x), slice={[0:40], [1:64:2]}
  z = f32[] constant(0)
  even = f32[40,64] pad(b, z), padding=0_0x0_1_1
  odd = f32[40,64] pad(a, z), padding=0_0x1_0_1
  ROOT r = f32[40,64] add(even, odd)
}"""
    found = scaled({"": parse_module(text)}, "32=5", NO_LIMITS)
    assert found is not None
    (value,) = values = (np.arange(400, dtype=np.float32).reshape(40, 10),)
    result = get_backend("numpy").compile(found.programs[""]).run(values)
    np.testing.assert_array_equal(np.asarray(result), value.reshape(40, 5, 2)[:, :, ::-1].reshape(40, 10))


@pytest.mark.xla
@pytest.mark.parametrize("text", [TILED, pooled(3, 2, 1, 1, 48), pooled(5, 1, 2, 2, 48)])
def test_xla_takes_them(text: str) -> None:
    module = parse_module(text)
    classes = classes_of([module])
    copy = Rewrite(module, classes)
    copy.set_sizes({atom: 7 for atom in classes.free if atom.value > 8})
    values = (np.random.default_rng(6).normal(size=copy.module.entry.parameters[0].dims).astype(np.float32),)
    theirs = get_backend("xla").compile(copy.module).run(values)
    ours = get_backend("numpy").compile(copy.module).run(values)
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-5, atol=1e-5)
