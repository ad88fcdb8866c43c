// It's shown in the viewer.
export const hlo = `HloModule while.counter

body {
  s = (s32[], f32[3]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[3] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  twice = f32[3] add(x, x)
  ROOT r = (s32[], f32[3]) tuple(next, twice)
}

condition {
  s = (s32[], f32[3]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)
  ROOT more = pred[] compare(i, n), direction=LT
}

ENTRY main {
  x = f32[3] parameter(0)
  zero = s32[] constant(0)
  start = (s32[], f32[3]) tuple(zero, x)
  end = (s32[], f32[3]) while(start), condition=condition, body=body
  ROOT y = f32[3] get-tuple-element(end), index=1
}
`;
