"""Arguments for XLA's own tool: what is written are the arguments, by parameter."""

from __future__ import annotations

import ml_dtypes
import numpy as np

import hlotool
from hlotool.ir.arrays import from_literal
from hlotool.parser.proto.executions import read_executions, tool_inputs
from hlotool.parser.proto.schema import decode
from hlotool.parser.proto.values import read_literal

PROGRAM = """HloModule m
ENTRY e {
  i = s32[] parameter(0)
  x = bf16[2,3]{0,1} parameter(1)
  t = (f32[2], pred[]) parameter(2)
  ROOT r = (s32[], bf16[2,3]{0,1}, (f32[2], pred[])) tuple(i, x, t)
}
"""


def test_every_parameter_has_its_literal() -> None:
    """Field numbers as in XLA's xla/tools/run_hlo_module.proto: iterations 1, arguments 2."""
    module = hlotool.parse(PROGRAM)
    matrix = np.arange(6).reshape(2, 3).astype(ml_dtypes.bfloat16)
    pair = (np.array([1.5, np.nan], np.float32), np.bool_(True))
    content = tool_inputs(module, (np.int32(-7), matrix, pair))
    assert content[0] == 1 << 3 | 2
    [iteration] = decode("RunHloModuleLiterals", content, "inputs.pb").iterations
    found = [from_literal(read_literal(argument)) for argument in iteration.arguments]
    assert found[0] == -7
    assert found[1].tobytes() == matrix.tobytes()
    np.testing.assert_array_equal(found[2][0], pair[0])
    assert found[2][1]
    # In the order of the parameter's layout, which XLA reads the bytes in.
    assert list(iteration.arguments[1].shape.layout.minor_to_major) == [0, 1]


def test_what_is_written_is_read_in_both_forms() -> None:
    from google.protobuf import text_format

    module = hlotool.parse(PROGRAM)
    values = (np.int32(5), np.zeros((2, 3), ml_dtypes.bfloat16), (np.float32([1, 2]), np.bool_(False)))
    content = tool_inputs(module, values)
    text = text_format.MessageToString(decode("RunHloModuleLiterals", content, "x"))
    iteration = text_format.MessageToString(decode("RunHloModuleLiterals", content, "x").iterations[0])
    for form in (content, text.encode(), iteration.encode()):
        [execution] = read_executions(form, "x")
        assert from_literal(execution.arguments[0]) == 5
        assert execution.result is None
