"""Attributes and shapes read by their kind; what is expected stands in the instruction that is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hlotool.backends.numpy import NumpyBackend
from hlotool.errors import Unsupported, VerificationError
from hlotool.ir.attributes import (
    BackendConfig,
    FrontendAttributes,
    Metadata,
    ParameterAlias,
    ReplicaGroups,
    SliceDim,
    Window,
    WindowDim,
)
from hlotool.ir.builder import Builder, array
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.types import ElementType, TupleShape

F32 = array("f32", 4, 6)
PARAMETER = Instruction("x", "parameter", F32, parameter_number=0)
NEGATE = Computation("negate", [PARAMETER], PARAMETER)
WINDOW = Window((WindowDim(2),))
GROUPS = ReplicaGroups(groups=((0, 1),))

#: One attribute of every kind; the opcode does not matter for reading them.
READ = Instruction(
    "read",
    "custom-call",
    F32,
    (PARAMETER, PARAMETER),
    {
        "index": 3,
        "epsilon": 0.5,
        "is_stable": True,
        "lower": False,
        "direction": "LT",
        "dimensions": (1, 0),
        "slice": (SliceDim(0, 4, 2),),
        "operand_precision": ("highest", "default"),
        "to_apply": NEGATE,
        "window": WINDOW,
        "replica_groups": GROUPS,
        "custom_call_target": "Known",
        "backend_config": BackendConfig('{"n": 1}'),
        "frontend_attributes": FrontendAttributes((("place", '"host"'),)),
    },
    line=7,
)
BARE = Instruction("bare", "sort", TupleShape((F32,)), (), {}, line=8)


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        (lambda i: i.integer("index"), 3),
        (lambda i: i.number("epsilon"), 0.5),
        (lambda i: i.flag("is_stable"), True),
        (lambda i: i.flag("lower", True), False),
        (lambda i: i.text("direction"), "LT"),
        (lambda i: i.integers("dimensions"), (1, 0)),
        (lambda i: i.listed("slice", SliceDim), (SliceDim(0, 4, 2),)),
        (lambda i: i.listed("operand_precision", str), ("highest", "default")),
        (lambda i: i.computation("to_apply"), NEGATE),
        (lambda i: i.attribute("window", Window), WINDOW),
        (lambda i: i.window, WINDOW),
        (lambda i: i.replica_groups, GROUPS),
        (lambda i: i.custom_call_target, "Known"),
        (lambda i: i.config_text, '{"n": 1}'),
        (lambda i: i.frontend_attribute("place"), "host"),
        (lambda i: i.frontend_attribute("elsewhere"), None),
        (lambda i: i.array_shape, F32),
        (lambda i: i.dims, (4, 6)),
        (lambda i: i.element_type, ElementType.F32),
        (lambda i: i.operand_types, (ElementType.F32, ElementType.F32)),
    ],
)
def test_reads_the_value(read: Callable[[Instruction], Any], expected: object) -> None:
    assert read(READ) == expected


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        (lambda i: i.integer("index", 9), 9),
        (lambda i: i.flag("is_stable"), False),
        (lambda i: i.flag("largest", True), True),
        (lambda i: i.text("direction", "EQ"), "EQ"),
        (lambda i: i.integers("dimensions", ()), ()),
        (lambda i: i.listed("slice", SliceDim, ()), ()),
        (lambda i: i.attribute("metadata", Metadata, None), None),
        (lambda i: i.window, Window(())),
        (lambda i: i.replica_groups, ReplicaGroups(groups=())),
        (lambda i: i.custom_call_target, ""),
        (lambda i: i.config_text, ""),
        (lambda i: i.frontend_attribute("place"), None),
        (lambda i: i.tuple_shape, TupleShape((F32,))),
    ],
)
def test_gives_the_default_where_the_attribute_is_absent(
    read: Callable[[Instruction], Any], expected: object
) -> None:
    assert read(BARE) == expected


@pytest.mark.parametrize(
    "read",
    [
        lambda i: i.integer("index"),
        lambda i: i.number("epsilon"),
        lambda i: i.text("direction"),
        lambda i: i.integers("dimensions"),
        lambda i: i.listed("slice", SliceDim),
        lambda i: i.computation("to_apply"),
        lambda i: i.attribute("window", Window),
    ],
)
def test_a_missing_attribute_names_opcode_instruction_and_line(read: Callable[[Instruction], Any]) -> None:
    with pytest.raises(VerificationError, match=r"^<text>:8: bare: sort needs the attribute \w+ ") as caught:
        read(BARE)
    assert caught.value.rule == "attribute-missing"


@pytest.mark.parametrize(
    ("read", "named"),
    [
        (lambda i: i.integer("direction"), "direction of custom-call must be of kind int, not 'LT'"),
        (lambda i: i.integer("direction", 1), "direction of custom-call must be of kind int, not 'LT'"),
        (lambda i: i.integer("lower"), "lower of custom-call must be of kind int, not False"),
        (lambda i: i.number("index"), "index of custom-call must be of kind float, not 3"),
        (lambda i: i.flag("index"), "index of custom-call must be of kind bool, not 3"),
        (lambda i: i.text("index"), "index of custom-call must be of kind str, not 3"),
        (lambda i: i.integers("index"), "index of custom-call must be of kind tuple, not 3"),
        (lambda i: i.integers("slice"), "slice of custom-call must be of kind list of int, not"),
        (lambda i: i.listed("dimensions", SliceDim), "must be of kind list of SliceDim, not"),
        (lambda i: i.computation("index"), "index of custom-call must be of kind Computation, not 3"),
        (lambda i: i.attribute("index", Window, None), "must be of kind Window, not 3"),
    ],
)
def test_another_kind_names_instruction_line_and_value(
    read: Callable[[Instruction], Any], named: str
) -> None:
    with pytest.raises(VerificationError) as caught:
        read(READ)
    assert caught.value.rule == "attribute-kind"
    assert str(caught.value).startswith("<text>:7: read: the attribute ")
    assert named in str(caught.value)


@pytest.mark.parametrize("read", [lambda i: i.array_shape, lambda i: i.dims, lambda i: i.element_type])
def test_a_tuple_has_no_dimensions(read: Callable[[Instruction], Any]) -> None:
    with pytest.raises(VerificationError, match=r"^<text>:8: bare: .* must be an array, not ") as caught:
        read(BARE)
    assert caught.value.rule == "array-expected"


def test_an_array_is_no_tuple() -> None:
    with pytest.raises(VerificationError, match=r"^<text>:7: read: .* must be a tuple, not ") as caught:
        _ = READ.tuple_shape
    assert caught.value.rule == "tuple-expected"


def test_the_header_is_read_likewise() -> None:
    alias = ParameterAlias((), 0, ())
    header = {"replica_count": 2, "is_scheduled": True, "input_output_alias": (alias,)}
    module = Module("m", [NEGATE], NEGATE, header, path="dump/m.txt")
    assert (module.replica_count, module.num_partitions, module.is_scheduled) == (2, 1, True)
    assert module.listed("input_output_alias", ParameterAlias) == (alias,)
    with pytest.raises(VerificationError, match=r"^dump/m.txt: the module needs the attribute buffer_donor"):
        module.attribute("buffer_donor", tuple)


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [({}, "reverse needs the attribute dimensions"), ({"dimensions": 1}, "must be of kind tuple, not 1")],
)
def test_a_backend_refuses_what_it_cannot_read(attributes: dict[str, Any], reason: str) -> None:
    builder = Builder("e")
    x = builder.parameter(0, array("f32", 4))
    builder.add(Instruction("y", "reverse", array("f32", 4), (x,), attributes, line=3))
    with pytest.raises(Unsupported, match=reason) as caught:
        NumpyBackend().compile(builder.build_module())
    assert (caught.value.instruction, caught.value.location.line) == ("y", 3)
