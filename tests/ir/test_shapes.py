"""Shape rules: what each opcode gives, and what it refuses."""

from __future__ import annotations

import pytest
from support.shape_cases import ShapeCase, invalid_cases, valid_cases

from hlotool.errors import VerificationError
from hlotool.ir.attributes import AttributeValue, PaddingDim
from hlotool.ir.opcodes import OPCODES
from hlotool.ir.shape_inference import can_infer, check_shape, infer_shape
from hlotool.ir.shapes.base import CHECK_RULES, INFER_RULES, compatible, higher_precision
from hlotool.ir.types import ElementType, strip_layouts
from hlotool.ir.verifier import VerifyOptions, verify
from hlotool.parser.reader import parse_shape

VALID, INVALID = valid_cases(), invalid_cases()

#: (f32[], f32[]) -> f32[].
LOOP = VALID[0].module().computations[0]

#: Valid alone as shapes, but their partner is missing.
_PAIRED = ("-start", "-done", "-update", "send", "recv")


@pytest.mark.parametrize("opcode", OPCODES)
def test_every_opcode_has_a_rule(opcode: str) -> None:
    assert opcode in INFER_RULES or opcode in CHECK_RULES


@pytest.mark.parametrize("opcode", OPCODES)
def test_every_opcode_has_a_case(opcode: str) -> None:
    assert any(case.opcode == opcode for case in VALID)


@pytest.mark.parametrize("case", VALID, ids=str)
def test_valid_shapes(case: ShapeCase) -> None:
    module = case.module()
    root = module.entry.root
    shapes = [o.shape for o in root.operands]
    check_shape(case.opcode, shapes, root.attributes, root.shape)
    findings = [e for e in verify(module) if e.rule not in ("async-pair", "async-users")]
    assert not findings
    assert case.opcode.endswith(_PAIRED) or not verify(module)


@pytest.mark.parametrize("case", [c for c in VALID if can_infer(c.opcode)], ids=str)
def test_inferred_shapes(case: ShapeCase) -> None:
    """Up to layout; dot and convolution may be stated in a wider type than follows from the operands."""
    root = case.module().entry.root
    inferred = infer_shape(case.opcode, [o.shape for o in root.operands], root.attributes)
    expected = strip_layouts(root.shape)
    if case.opcode in ("dot", "convolution", "scaled-dot"):
        assert compatible(inferred, expected, any_type=True)
    else:
        assert strip_layouts(inferred) == expected


@pytest.mark.parametrize("case", INVALID, ids=str)
def test_invalid_shapes(case: ShapeCase) -> None:
    findings = verify(case.module())
    assert findings
    assert findings[0].rule == case.rule
    assert findings[0].instruction == "r"
    assert findings[0].location.line > 0


@pytest.mark.parametrize(
    ("rule", "opcode", "operands", "attributes", "stated"),
    [
        ("attribute-value", "pad", "f32[3] f32[]", {"padding": (PaddingDim(0, 0, -1),)}, "f32[3]"),
        ("operand-count", "dynamic-slice", "f32[4,5] s32[]", {"dynamic_slice_sizes": (1, 5)}, "f32[1,5]"),
        ("operand-count", "scatter", "f32[3] s32[1] f32[3] f32[3]", {}, "f32[3]"),
        ("operand-count", "reduce", "f32[3] f32[] f32[]", {"dimensions": (0,)}, "f32[]"),
        ("branch-index", "conditional", "f32[] f32[4]", {"branch_computations": ()}, "f32[4]"),
        ("branch-count", "conditional", "pred[] f32[4]", {"branch_computations": ()}, "f32[4]"),
        ("attribute-missing", "conditional", "pred[] f32[4]", {}, "f32[4]"),
        ("attribute-missing", "custom-call", "f32[3]", {}, "f32[3]"),
        ("shape-mismatch", "infeed", "token[]", {}, "f32[3]"),
        ("attribute-missing", "iota", "", {}, "f32[3]"),
        ("attribute-value", "sort", "f32[3]", {"dimensions": (0, 1)}, "f32[3]"),
        ("callee-signature", "while", "f32[]", {"condition": LOOP, "body": LOOP}, "f32[]"),
    ],
)
def test_what_the_parser_would_refuse_too(
    rule: str, opcode: str, operands: str, attributes: dict[str, AttributeValue], stated: str
) -> None:
    """Passes and protos get there without it."""
    shapes = [parse_shape(s) for s in operands.split()]
    with pytest.raises(VerificationError) as error:
        check_shape(opcode, shapes, attributes, parse_shape(stated))
    assert error.value.rule == rule


@pytest.mark.parametrize("opcode", [o for o in OPCODES if not can_infer(o)])
def test_what_cannot_be_inferred_says_so(opcode: str) -> None:
    count = OPCODES[opcode].min_operands
    with pytest.raises(VerificationError) as error:
        infer_shape(opcode, [parse_shape("f32[2]")] * count, {})
    assert error.value.rule == "shape-needed"


def test_unknown_opcode() -> None:
    with pytest.raises(VerificationError) as error:
        infer_shape("frobnicate", [], {})
    assert error.value.rule == "unknown-opcode"


@pytest.mark.parametrize(
    ("opcode", "count", "allowed"), [("add", 1, "2"), ("dot", 5, "2 to 4"), ("concatenate", 0, "at least 1")]
)
def test_operand_counts(opcode: str, count: int, allowed: str) -> None:
    with pytest.raises(VerificationError, match=f"takes {allowed} operands, not {count}"):
        infer_shape(opcode, [parse_shape("f32[2]")] * count, {})


@pytest.mark.parametrize(
    ("operand", "result"),
    [("f32[2,3]", "f32[3,2]{0,1}"), ("f32[2,3]{0,1}", "f32[3,2]{1,0}"), ("f32[3]{0:S(5)}", "f32[3]{0:S(5)}")],
)
def test_transpose_takes_the_layout_along(operand: str, result: str) -> None:
    dimensions = (1, 0) if "," in operand[:7] else (0,)
    assert str(infer_shape("transpose", [parse_shape(operand)], {"dimensions": dimensions})) == result


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("f32[2,3]{1,0}", "f32[2,3]{0,1}", True),
        ("f32[2,<=3]", "f32[2,3]", True),
        ("f32[2,?]", "f32[2,3]", True),
        ("f32[2]", "f32[3]", False),
        ("f32[2]", "bf16[2]", False),
        ("(f32[2], token[])", "(f32[2], token[])", True),
        ("(f32[2])", "f32[2]", False),
        ("token[]", "opaque[]", False),
        ("b(f32[2])", "b(f32[2]{0})", True),
        ("b(f32[2])", "f32[2]", False),
    ],
)
def test_compatible(a: str, b: str, expected: bool) -> None:
    assert compatible(parse_shape(a), parse_shape(b)) is expected


def test_mixed_precision_is_an_option() -> None:
    case = ShapeCase("add", "f32[2] ~ bf16[2]", "", "bf16[2]")
    module = case.module()
    assert verify(module) == []
    strict = verify(module, VerifyOptions(mixed_precision=False))
    assert {e.rule for e in strict} == {"mixed-precision", "shape-mismatch"}


@pytest.mark.parametrize(
    ("a", "b", "wider"),
    [
        ("f32", "bf16", "f32"),
        ("f16", "bf16", "bf16"),
        ("f8e4m3fn", "f8e5m2", "f8e5m2"),
        ("c64", "f64", "c64"),
    ],
)
def test_higher_precision(a: str, b: str, wider: str) -> None:
    """Range counts before digits."""
    x, y = ElementType(a), ElementType(b)
    assert higher_precision(x, y) is higher_precision(y, x) is ElementType(wider)
