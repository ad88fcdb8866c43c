"""Whether a loop that updates one row of a buffer takes time by its iterations or by the buffer's bytes.

    python -m benchmarks.speed.loops [--repeat N]

The program is what `jax.lax.scan` makes of writing a row into its carry. The buffer is an argument, so it is
copied once.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from hlotool.backends.numpy import NumpyBackend
from hlotool.parser.reader import parse_module

_SCAN = """HloModule scan
condition {{
  state = (s32[], f32[{rows},1024], f32[{count},1024]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  count = s32[] constant({count})
  ROOT more = pred[] compare(i, count), direction=LT
}}
body {{
  state = (s32[], f32[{rows},1024], f32[{count},1024]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  buffer = f32[{rows},1024] get-tuple-element(state), index=1
  inputs = f32[{count},1024] get-tuple-element(state), index=2
  zero = s32[] constant(0)
  one = s32[] constant(1)
  size = s32[] constant({rows})
  row = s32[] remainder(i, size)
  new = f32[1,1024] dynamic-slice(inputs, i, zero), dynamic_slice_sizes={{1,1024}}
  old = f32[1,1024] dynamic-slice(buffer, row, zero), dynamic_slice_sizes={{1,1024}}
  sum = f32[1,1024] add(old, new)
  updated = f32[{rows},1024] dynamic-update-slice(buffer, sum, row, zero)
  next = s32[] add(i, one)
  ROOT result = (s32[], f32[{rows},1024], f32[{count},1024]) tuple(next, updated, inputs)
}}
ENTRY e {{
  start = s32[] constant(0)
  buffer = f32[{rows},1024] parameter(0)
  inputs = f32[{count},1024] parameter(1)
  init = (s32[], f32[{rows},1024], f32[{count},1024]) tuple(start, buffer, inputs)
  loop = (s32[], f32[{rows},1024], f32[{count},1024]) while(init), condition=condition, body=body
  ROOT result = f32[{rows},1024] get-tuple-element(loop), index=1
}}"""


def seconds(rows: int, count: int, repeat: int) -> float:
    """The fastest of several runs of `count` iterations on a buffer of `rows` rows of 4 KB."""
    executable = NumpyBackend().compile(parse_module(_SCAN.format(rows=rows, count=count)))
    arguments = [np.zeros((rows, 1024), np.float32), np.ones((count, 1024), np.float32)]
    runs = []
    for _ in range(repeat):
        start = time.perf_counter()
        executable.run(arguments)
        runs.append(time.perf_counter() - start)
    return min(runs)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeat", type=int, default=3)
    repeat = parser.parse_args().repeat
    print(f"{'buffer':>8}{'iterations':>12}{'ms':>10}{'us each':>10}")
    times = {}
    for rows in (256, 2560, 25600):
        for count in (100, 1000, 10000):
            taken = times[rows, count] = seconds(rows, count, repeat)
            print(
                f"{rows * 4 // 1024:6} MB{count:12}{taken * 1e3:10.1f}{taken / count * 1e6:10.1f}", flush=True
            )
    small, large = ((times[rows, 10000] - times[rows, 100]) / 9900 * 1e6 for rows in (256, 25600))
    verdict = "met" if large <= 1.5 * small else "MISSED"
    print(f"(e) an iteration more takes {small:.1f} us on 1 MB, {large:.1f} us on 100 MB: {verdict}")


if __name__ == "__main__":
    main()
