"""Programs that do real harm to real XLA, each in a way of its own."""

from __future__ import annotations

GOOD = """HloModule good
ENTRY e {
  x = f32[8] parameter(0)
  ROOT y = f32[8] add(x, x)
}
"""

#: Simplifying it, XLA makes a binary instruction of the map, which dies of a CHECK: SIGABRT.
REVERSES = """HloModule reverses
f {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  zero = s32[] constant(0)
  ROOT m = s32[] shift-right-logical(a, zero)
}
ENTRY e {
  x = s32[3] parameter(0)
  c = s32[] parameter(1)
  same = s32[3] broadcast(c), dimensions={}
  mapped = s32[3] map(x, same), dimensions={0}, to_apply=f
  ROOT r = s32[3] reverse(mapped), dimensions={0}
}
"""

#: Just before the scheduler (`xla:route=pre`) XLA expects copies around loops: a CHECK fails, SIGABRT.
ABORTS = """HloModule aborts
below {
  s = (s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(4)
  ROOT t = pred[] compare(i, n), direction=LT
}
step {
  s = (s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT t = (s32[], s32[]) tuple(j, one)
}
ENTRY e {
  z = s32[] constant(0)
  s = (s32[], s32[]) tuple(z, z)
  ROOT r = (s32[], s32[]) while(s), condition=below, body=step
}
"""

#: Never ends.
FOR_EVER = """HloModule for_ever
always {
  s = s32[] parameter(0)
  ROOT t = pred[] constant(true)
}
step {
  s = s32[] parameter(0)
  one = s32[] constant(1)
  ROOT t = s32[] add(s, one)
}
ENTRY e {
  x = s32[] parameter(0)
  ROOT y = s32[] while(x), condition=always, body=step
}
"""

#: Needs 100 GB for its result.
LARGE = """HloModule large
ENTRY e {
  x = f32[] parameter(0)
  b = f32[25000,1000000] broadcast(x), dimensions={}
  ROOT y = f32[25000,1000000] exponential(b)
}
"""
