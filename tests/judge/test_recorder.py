"""What a recorder keeps of an execution."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from hlotool.backends.numpy import NumpyBackend
from hlotool.inputs.frames import Iteration, Node, Trace, all_frames, iteration_of
from hlotool.inputs.recorded_values import Budget, Sample, Store
from hlotool.judge.locate.recording import Recorder
from hlotool.parser.reader import parse_module

NESTED = """HloModule m
inner_cond {
  ic = (s32[], s32[]) parameter(0)
  ii = s32[] get-tuple-element(ic), index=0
  two = s32[] constant(2)
  iless = pred[] compare(ii, two), direction=LT
  ROOT iroot = pred[] copy(iless)
}
inner_body {
  ib = (s32[], s32[]) parameter(0)
  ij = s32[] get-tuple-element(ib), index=0
  ix = s32[] get-tuple-element(ib), index=1
  one = s32[] constant(1)
  inext = s32[] add(ij, one)
  twice = s32[] constant(2)
  grown = s32[] multiply(ix, twice)
  ROOT it = (s32[], s32[]) tuple(inext, grown)
}
outer_cond {
  oc = (s32[], s32[]) parameter(0)
  oi = s32[] get-tuple-element(oc), index=0
  three = s32[] constant(3)
  ROOT oless = pred[] compare(oi, three), direction=LT
}
outer_body {
  ob = (s32[], s32[]) parameter(0)
  oj = s32[] get-tuple-element(ob), index=0
  ox = s32[] get-tuple-element(ob), index=1
  zero = s32[] constant(0)
  init = (s32[], s32[]) tuple(zero, ox)
  iw = (s32[], s32[]) while(init), condition=inner_cond, body=inner_body
  iy = s32[] get-tuple-element(iw), index=1
  oone = s32[] constant(1)
  onext = s32[] add(oj, oone)
  ROOT ot = (s32[], s32[]) tuple(onext, iy)
}
ENTRY e {
  x = s32[] parameter(0)
  start = s32[] constant(0)
  state = (s32[], s32[]) tuple(start, x)
  ow = (s32[], s32[]) while(state), condition=outer_cond, body=outer_body
  ROOT r = s32[] get-tuple-element(ow), index=1
}"""


def recorded(
    text: str, *arguments: object, budget: Budget | None = None
) -> tuple[Trace, dict[str, dict[Iteration, Node]]]:
    """What was seen of an execution, and the nodes of each name by iteration."""
    module = parse_module(text)
    recorder = Recorder(module, budget or Budget())
    NumpyBackend().compile(module).run(list(arguments), recorder)  # type: ignore[arg-type]
    entry = recorder.frame(arguments)  # type: ignore[arg-type]
    found: dict[str, dict[Iteration, Node]] = {}
    for frame in all_frames(entry):
        for instruction in frame.values:
            found.setdefault(instruction.name, {})[iteration_of(frame)] = Node(frame, instruction)
    return entry.trace, found


def test_iterations_of_nested_loops() -> None:
    """Twice two iterations, three times: powers of two."""
    _, nodes = recorded(NESTED, np.int32(1))

    def values(name: str) -> dict[Iteration, int]:
        return {at: int(node.value) for at, node in sorted(nodes[name].items()) if node.value is not None}  # type: ignore[arg-type]

    assert values("grown") == {(0, 0): 2, (0, 1): 4, (1, 0): 8, (1, 1): 16, (2, 0): 32, (2, 1): 64}
    assert list(values("iless").items())[:4] == [((0, 0), 1), ((0, 1), 1), ((0, 2), 0), ((1, 0), 1)]
    assert values("onext") == {(0,): 1, (1,): 2, (2,): 3}
    assert list(values("oless").values()) == [1, 1, 1, 0]
    assert values("r") == {(): 64}


FLOATS = """HloModule m
ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] log(x)
  z = bf16[4] convert(y)
  w = f32[2,2] reshape(y)
  ROOT t = (f32[4], bf16[4], f32[2,2]) tuple(y, z, w)
}"""


def test_nan_infinity_and_equal_bits() -> None:
    """log 0 is -infinity, log -1 a NaN; a reshape has the bits of its operand, a conversion has not."""
    _, nodes = recorded(FLOATS, np.float32([0, 1, -1, 2]))
    y, z, w = (nodes[name][()].kept for name in "yzw")
    assert isinstance(y, Sample)
    assert isinstance(z, Sample)
    assert isinstance(w, Sample)
    assert (y.nan, y.inf, z.nan, z.inf) == (True, True, True, True)
    assert y.digest == w.digest
    assert y.digest != z.digest
    value = nodes["w"][()].value
    assert value is not None
    assert np.shape(value) == (2, 2)
    _, clean = recorded(FLOATS, np.float32([1, 2, 3, 4]))
    kept = [node.kept for by_iteration in clean.values() for node in by_iteration.values()]
    assert not any(sample.nan or sample.inf for sample in kept if sample is not None)


def test_the_limit_of_samples() -> None:
    """What was seen before it is there, in calls that have no end."""
    trace, nodes = recorded(NESTED, np.int32(1), budget=Budget(samples=30))
    assert trace.incomplete
    assert trace.count >= 30
    assert nodes["grown"][0, 0].value == 2
    assert nodes["ow"][()].kept is None


def test_a_store_keeps_equal_values_once_then_writes_then_drops() -> None:
    store = Store(Budget(memory=32, disk=16))
    first, second = np.arange(8, dtype=np.float32), np.arange(8, 12, dtype=np.float32)
    store.keep(b"a", first)
    store.keep(b"a", first)
    store.keep(b"b", second)
    store.keep(b"c", first + 1)
    store.keep(b"d", np.float64(3.0).reshape(()))
    assert store.dropped == 1
    assert store.get(b"a") is first
    from_disk = store.get(b"b")
    assert from_disk is not None
    np.testing.assert_array_equal(from_disk, second)
    assert store.get(b"c") is None
    assert store.get(b"d") == 3.0
    store.close()


def test_narrow_types_come_back_from_disk() -> None:
    store = Store(Budget(memory=0))
    values = np.arange(6).astype(ml_dtypes.bfloat16).reshape(2, 3)
    store.keep(b"a", values)
    back = store.get(b"a")
    assert back is not None
    assert back.dtype == values.dtype
    np.testing.assert_array_equal(back.astype(np.float32), values.astype(np.float32))
    store.close()
