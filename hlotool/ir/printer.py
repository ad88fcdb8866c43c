"""HLO text of modules, computations and instructions, in the form that XLA prints.

XLA: the Print functions of hlo_module.cc, hlo_computation.cc and hlo_instruction.cc, with default
HloPrintOptions and large constants. Computations and instructions keep the order of the IR, and their names
where these can be read back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from itertools import count
from typing import Any, TypeVar

from msgspec import Struct

from hlotool.ir.attribute_kinds import COMMON_ATTRIBUTES
from hlotool.ir.attributes import AttributeValue, FrontendAttributes
from hlotool.ir.module import Computation, Instruction, Module
from hlotool.ir.opcodes import OPCODES
from hlotool.ir.printed_annotations import (
    frontend_text,
    metadata_text,
    quote,
    source_position,
    stack_frame_tables_text,
    user_position,
)
from hlotool.ir.printed_attributes import (
    bool_text,
    bools_text,
    donors_text,
    entry_layout_text,
    parameter_aliases_text,
    printed_attributes,
    rank_of,
    value_text,
)
from hlotool.ir.printed_literals import literal_pieces
from hlotool.ir.types import ELEMENT_TYPES, Shape, join_indexed, strip_layouts
from hlotool.ir.walk import async_start

# Names that can be read back: legal, and each used once. XLA: name_uniquer.cc.

_LEGAL = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_ILLEGAL_CHARACTER = re.compile(r"[^A-Za-z0-9_.-]")
_RESERVED = frozenset((*ELEMENT_TYPES, "token", "opaque"))


def legal_name(name: str) -> str:
    """`name` with underscores where a character is not allowed, and after the name of an element type."""
    if not _LEGAL.fullmatch(name):
        name = _ILLEGAL_CHARACTER.sub("_", name)
        name = name if _LEGAL.fullmatch(name) else f"_{name[1:]}"
    if name in _RESERVED:
        return f"{name}_"
    reserved = name.startswith("__") and not name.startswith("__xla_")
    return f"a{name[1:]}" if reserved else name


def printed_names(items: Sequence[Computation | Instruction]) -> dict[int, str]:
    """New names, by id, of the items whose own name is illegal or already taken by an earlier one."""
    legal = {item.name: legal_name(item.name) for item in items}
    if len(legal) == len(items) and all(old == new for old, new in legal.items()):
        return {}
    taken = set(legal.values())
    seen: set[str] = set()
    renamed: dict[int, str] = {}
    for item in items:
        name = legal[item.name]
        if name in seen:
            name = next(n for i in count(1) if (n := f"{name}.{i}") not in taken)
            taken.add(name)
        seen.add(name)
        if name != item.name:
            renamed[id(item)] = name
    return renamed


class PrintOptions(Struct, frozen=True):
    """What of a program is printed.

    Attributes:
        large_constants: constants of more than ten elements in full, not as `{...}`.
        metadata: where instructions come from.
        backend_config: what a compiler backend decided.
    """

    large_constants: bool = True
    metadata: bool = True
    backend_config: bool = True


#: One line of a report: what is computed, without where it came from and how.
SHORT = PrintOptions(large_constants=False, metadata=False, backend_config=False)

_T = TypeVar("_T")

#: Header attributes in XLA's order: how their values are written, and the values that say nothing.
_HEADER: Mapping[str, tuple[Callable[[Any], str], tuple[object, ...]]] = {
    "is_scheduled": (bool_text, (False,)),
    "input_output_alias": (parameter_aliases_text, ((),)),
    "buffer_donor": (donors_text, ((),)),
    "alias_passthrough_params": (bool_text, (False,)),
    "entry_computation_layout": (entry_layout_text, ()),
    "allow_spmd_sharding_propagation_to_parameters": (bools_text, (False, (False,))),
    "allow_spmd_sharding_propagation_to_output": (bools_text, (False, (False,))),
    "replica_count": (str, (1,)),
    "num_partitions": (str, (1,)),
    "frontend_attributes": (frontend_text, (FrontendAttributes(()),)),
}


def print_module(module: Module, options: PrintOptions | None = None) -> str:
    """The whole text; XLA reads it, and so does hlotool."""
    return "".join(module_pieces(module, options))


def module_pieces(module: Module, options: PrintOptions | None = None) -> Iterator[str]:
    """The same in pieces: lines, and of large constants less."""
    return _Printer(options or PrintOptions(), module.computations).module(module)


def print_instruction(instruction: Instruction, options: PrintOptions | None = None) -> str:
    """One line, without indentation and `ROOT`."""
    return "".join(_Printer(options or PrintOptions(), []).instruction(instruction))


#: Instructions of a module that a notebook shows: a page of more is slow, and too long to read.
_HTML_LIMIT = 1000
#: Some notebooks show `pre` in a font of their own.
_PRE = '<pre style="font-family:inherit">'
_HTML_STYLE = "overflow-x:auto;font-family:Menlo,'DejaVu Sans Mono',Consolas,monospace"


def module_html(module: Module) -> str:
    """A fragment of HTML for a notebook: the entry first, every other computation folded.

    A line shows where it comes from when it is pointed at; large constants and configurations are left out.
    """
    printer = _Printer(SHORT, module.computations)
    left = _HTML_LIMIT
    parts = [f"{_PRE}{escape(printer.header(module))}</pre>"]
    for computation in sorted(printer.written(module), key=lambda c: c is not module.entry):
        parts.append(printer.folded(module, computation, left))
        left = max(0, left - len(computation.instructions))
    return f'<div style="{_HTML_STYLE}">{"".join(parts)}</div>'


class _Printer:
    """Prints with one set of options; remembers the text of values that instructions share."""

    def __init__(self, options: PrintOptions, computations: Sequence[Computation]) -> None:
        self.options = options
        self.computation_names = printed_names(computations)
        self.instruction_names: dict[int, str] = {}
        self._texts: dict[tuple[int, str], tuple[object, str]] = {}

    def module(self, module: Module) -> Iterator[str]:
        """Header line, tables, computations."""
        yield self.header(module) + "\n\n"
        if module.stack_frames:
            yield stack_frame_tables_text(module.stack_frames) + "\n"
        for computation in self.written(module):
            yield "ENTRY " if computation is module.entry else ""
            yield from self.computation(computation)
            yield "\n\n"

    def header(self, module: Module) -> str:
        """The first line."""
        return ", ".join([f"HloModule {legal_name(module.name)}", *header_parts(module.attributes)])

    def written(self, module: Module) -> list[Computation]:
        """The computations that the text has: without those that a short form implies."""
        wrapped = {id(sugar.wrapped) for sugar in map(sugar_of, module.instructions()) if sugar is not None}
        return [computation for computation in module.computations if id(computation) not in wrapped]

    def computation(self, computation: Computation) -> Iterator[str]:
        """Signature and body."""
        yield f"{self.signature(computation)} {{\n"
        for instruction in computation.instructions:
            yield from self.line(computation, instruction)
            yield "\n"
        yield f"}}{_thread(computation)}"

    def folded(self, module: Module, computation: Computation, limit: int) -> str:
        """HTML of at most `limit` instructions, which unfolds when it is clicked; the entry is unfolded."""
        is_entry = computation is module.entry
        signature = ("ENTRY " if is_entry else "") + self.signature(computation)
        lines = []
        for instruction in computation.instructions[:limit]:
            origin = _origin(module, instruction)
            title = f' title="{escape(origin)}"' if origin else ""
            lines.append(f"<span{title}>{escape(''.join(self.line(computation, instruction)))}</span>\n")
        if (missing := len(computation.instructions) - limit) > 0:
            lines.append(f"  … {missing:,} more in to_text()\n")
        return (
            f"<details{' open' if is_entry else ''}><summary>{escape(signature)}</summary>"
            f"{_PRE}{''.join(lines)}</pre></details>"
        )

    def signature(self, computation: Computation) -> str:
        """`%name (parameters) -> result`; the lines of the body follow."""
        self.instruction_names = printed_names(computation.instructions)
        parameters = ", ".join(
            f"{self._name_of(p)}: {self._logical(p.shape)}" for p in computation.parameters
        )
        name = self.computation_names.get(id(computation), computation.name)
        return f"%{name} ({parameters}) -> {self._logical(computation.root.shape)}"

    def line(self, computation: Computation, instruction: Instruction) -> Iterator[str]:
        """A line of the body, without its end."""
        yield "  ROOT " if instruction is computation.root else "  "
        yield from self.instruction(instruction)

    def instruction(self, instruction: Instruction) -> Iterator[str]:
        """`%name = shape opcode(operands), attributes`."""
        sugar = sugar_of(instruction)
        opcode = instruction.opcode if sugar is None else sugar.opcode
        shape = self._once(instruction.shape, "shape", str)
        yield f"%{self._name_of(instruction)} = {shape} {opcode}("
        if instruction.literal is not None:
            yield from literal_pieces(instruction.literal, self.options.large_constants)
        else:
            yield self._operands(instruction)
        yield f"){self._attributes(instruction, sugar)}"
        if instruction.metadata is not None and self.options.metadata:
            metadata = self._once(instruction.metadata, "", metadata_text)
            if metadata:
                yield f", metadata={{{metadata}}}"
        config = instruction.attributes.get("backend_config")
        if config is not None and self.options.backend_config:
            yield f", backend_config={self._value('', 'backend_config', config)}"

    def _name_of(self, instruction: Instruction) -> str:
        return self.instruction_names.get(id(instruction), instruction.name)

    def _logical(self, shape: Shape) -> str:
        return self._once(shape, "logical", lambda s: str(strip_layouts(s)))

    def _once(self, value: _T, purpose: str, text: Callable[[_T], str]) -> str:
        """`text(value)`, remembered for this very object."""
        key = (id(value), purpose)
        known = self._texts.get(key)
        if known is None:
            known = self._texts[key] = (value, text(value))
        return known[1]

    def _operands(self, instruction: Instruction) -> str:
        if instruction.parameter_number is not None:
            return str(instruction.parameter_number)
        names = ["%" + self._name_of(o) for o in instruction.operands]
        return ", ".join(names) if len(names) <= 5 else join_indexed(names)

    def _attributes(self, instruction: Instruction, sugar: AsyncSugar | None) -> str:
        """Everything after the operands but metadata and backend config, each with its comma."""
        predecessors = instruction.control_predecessors
        if not (instruction.attributes or predecessors or sugar):
            return ""
        opcode = instruction.opcode
        texts = {k: f", {k}={self._value(opcode, k, v)}" for k, v in printed_attributes(instruction).items()}
        if sugar is not None:
            texts.pop("calls", None)
            inner, opcode = sugar.shown, sugar.wrapped.root.opcode
            texts.update((k, f", {k}={self._value(opcode, k, v)}") for k, v in inner.items())
        if predecessors:
            names = ", ".join("%" + self._name_of(p) for p in predecessors)
            texts["control-predecessors"] = f", control-predecessors={{{names}}}"
        return "".join(texts[name] for name in sorted(texts, key=lambda name: rank_of(opcode, name)))

    def _value(self, opcode: str, name: str, value: AttributeValue) -> str:
        if isinstance(value, Computation):
            return "%" + self.computation_names.get(id(value), value.name)
        if isinstance(value, tuple) and value and isinstance(value[0], Computation):
            return "{" + ", ".join(self._value(opcode, name, c) for c in value) + "}"
        metadata = self.options.metadata
        return self._once(value, name, lambda v: value_text(opcode, name, v, metadata))


def header_parts(attributes: Mapping[str, AttributeValue]) -> Iterator[str]:
    """`name=value` of the module's attributes, then of those that only newer or older XLA knows."""
    for name, (text, defaults) in _HEADER.items():
        if name in attributes and attributes[name] not in defaults:
            yield f"{name}={text(attributes[name])}"
    for name, value in attributes.items():
        if name not in _HEADER:
            yield f"{name}={value_text('', name, value)}"


def _origin(module: Module, instruction: Instruction) -> str:
    """The user's line, or else a library's, and the frontend's name; empty where nothing is known."""
    metadata = instruction.metadata
    if metadata is None:
        return ""
    tables = module.stack_frames
    position = user_position(metadata, tables) or source_position(metadata, tables)
    return " ".join(filter(None, [str(position or ""), metadata.op_name]))


def _thread(computation: Computation) -> str:
    """What follows the closing brace."""
    others = "".join(f", {name}={value_text('', name, v)}" for name, v in computation.attributes.items())
    if computation.execution_thread == "main":
        return others
    return f", execution_thread={quote(computation.execution_thread)}{others}"


# When an asynchronous instruction is written `custom-call-start(…)` instead of `async-start(…), calls=%c`:
# the short form says nothing of the wrapped computation, so it stands only for one that the text implies, the
# parameters in order and one instruction on them. XLA (async_ops.md, CanExpandIntoSingleInstruction) shortens
# even where that reorders operands or reads back as another opcode; here the long form stays then.

_SUFFIXES = {"async-start": "-start", "async-update": "-update", "async-done": "-done"}


class AsyncSugar(Struct, frozen=True):
    """The short form of one instruction.

    Attributes:
        wrapped: the computation that it leaves unsaid.
        opcode: such as `custom-call-start`.
        shown: attributes of the wrapped instruction that its text shows.
    """

    wrapped: Computation
    opcode: str
    shown: Mapping[str, AttributeValue]


def sugar_of(instruction: Instruction) -> AsyncSugar | None:
    """The short form of `instruction`, or None when it has none or would lose something."""
    suffix, start = _SUFFIXES.get(instruction.opcode), async_start(instruction)
    if suffix is None or start.opcode != "async-start":
        return None
    wrapped = start.attribute("calls", Computation, None)
    if wrapped is None or not _is_implied(wrapped, start):
        return None
    inner = wrapped.root
    if instruction is not start:
        return AsyncSugar(wrapped, inner.opcode + suffix, {})
    shown = {k: v for k, v in printed_attributes(inner).items() if k not in COMMON_ATTRIBUTES}
    return AsyncSugar(wrapped, inner.opcode + suffix, shown)


def _is_implied(wrapped: Computation, start: Instruction) -> bool:
    inner = wrapped.root
    ambiguous = any(f"{inner.opcode}{suffix}" in OPCODES for suffix in _SUFFIXES.values())
    thread = start.text("async_execution_thread", "main")
    return (
        not ambiguous
        and all(i is inner or i.opcode == "parameter" for i in wrapped.instructions)
        and inner.operands == tuple(wrapped.parameters)
        and inner.opcode != "parameter"
        and wrapped.execution_thread == thread
        and inner.metadata in (None, start.metadata)
        and all(v == start.attributes.get(k) for k, v in inner.attributes.items() if k in COMMON_ATTRIBUTES)
    )
