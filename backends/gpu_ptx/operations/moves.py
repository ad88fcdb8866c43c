"""Moves, loads and stores, state spaces (PTX ISA, "mov", "ld", "st", "cvta", "isspacep")."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hlotool.backends.gpu_ptx.arena import UNSIGNED, AccessFault
from hlotool.backends.gpu_ptx.lowering import WINDOWS, Reader, Site, Step, elementwise, executes
from hlotool.backends.gpu_ptx.model import Address, Operand, Place, Register, Vector
from hlotool.backends.gpu_ptx.types import Type, Values, type_of

if TYPE_CHECKING:
    from hlotool.backends.gpu_ptx.machine import Machine

#: Words about caches and order. All accesses are done in the order in which threads execute here.
CACHING = (
    "ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "weak", "relaxed", "acquire", "release",
    "acq_rel", "volatile", "mmio", "cta", "cluster", "gpu", "sys", "L1::evict_normal",
    "L1::evict_unchanged", "L1::evict_first", "L1::evict_last", "L1::no_allocate",
    "L2::evict_normal", "L2::evict_first", "L2::evict_last", "L2::cache_hint", "L2::64B",
    "L2::128B", "L2::256B",
)  # fmt: skip
SPACES = {
    "global": "global",
    "const": "global",
    "shared": "shared",
    "shared::cta": "shared",
    "local": "local",
    "param": "param",
    "param::entry": "param",
    "param::func": "param",
}
_VECTORS = {"v2": 2, "v4": 4, "v8": 8}


@executes("mov")
def move(site: Site) -> Step:
    """A copy; with braces, registers are packed into one or unpacked."""
    site.accept()
    kind = site.type()
    bits = kind if kind.bits == 1 else type_of(f"b{kind.bits}")
    target, source = site.operands
    if isinstance(target, Vector):
        return _unpack(site, target, site.reader(source, bits), bits.bits)
    if isinstance(source, Vector):
        return _pack(site, source, bits.bits)
    if isinstance(source, Address):
        offset = bits.unsigned(source.offset)
        base = site.reader(source.base, bits)
        write = site.write(0, bits)
        return lambda machine: write(machine, base(machine) + offset)
    return elementwise(site, bits, [bits], lambda a: a)


def _unpack(site: Site, target: Vector, read: Reader, bits: int) -> Step:
    """The parts of a register, lowest first."""
    width = bits // len(target.elements)
    part = type_of(f"b{width}")
    writes = [site.writer(element, part) for element in target.elements]
    source, dtype = UNSIGNED[bits], UNSIGNED[width]

    def step(machine: Machine) -> None:
        whole = read(machine)
        for place, write in enumerate(writes):
            write(machine, (whole >> source(place * width)).astype(dtype))

    return step


def _pack(site: Site, source: Vector, bits: int) -> Step:
    """Registers side by side, the first one lowest."""
    width = bits // len(source.elements)
    reads = [site.reader(element, type_of(f"b{width}")) for element in source.elements]
    dtype = UNSIGNED[bits]
    write = site.write(0, type_of(f"b{bits}"))

    def step(machine: Machine) -> None:
        whole = reads[0](machine).astype(dtype)
        for place, read in enumerate(reads[1:], 1):
            whole = whole | (read(machine).astype(dtype) << dtype(place * width))
        write(machine, whole)

    return step


@executes("cvta")
def convert_address(site: Site) -> Step:
    """To and from generic addresses."""
    words = site.accept("to", *SPACES)
    kind = type_of(f"b{site.type().bits}")
    space = next(SPACES[word] for word in words if word in SPACES)
    base = kind.unsigned(WINDOWS.get(space, 0))
    if "to" in words:
        return elementwise(site, kind, [kind], lambda a: a - base)
    return elementwise(site, kind, [kind], lambda a: a + base)


@executes("isspacep")
def is_space(site: Site) -> Step:
    """Whether a generic address lies in a space."""
    (word,) = site.accept(*SPACES)
    window = WINDOWS.get(SPACES[word], 0) >> 48
    read, write = site.read(1, type_of("u64")), site.write(0, type_of("pred"))
    return lambda machine: write(machine, (read(machine) >> np.uint64(48)) == window)


def space_of(site: Site) -> str:
    """The space that an access names: `global`, `shared`, `local`, `param` or `generic`."""
    return next((SPACES[word] for word in site.words if word in SPACES), "generic")


def load_words(machine: Machine, space: str, addresses: Values, bits: int) -> Values:
    """Words from memory, for addresses of the active threads that are multiples of the word's size."""
    if space == "global":
        if machine.block_races is not None:
            machine.block_races.reads(machine, addresses, bits // 8)
        return machine.memory.load(addresses, bits)
    if space == "generic":
        for active, name, places in _by_space(machine, addresses):
            if active is None:
                return load_words(machine, name, places, bits)
        found = np.zeros(machine.active_count, UNSIGNED[bits])
        everyone = machine.active
        for chosen, name, places in _by_space(machine, addresses):
            machine.active = machine.active_threads[chosen]
            found[chosen] = load_words(machine, name, places, bits)
            machine.active = everyone
        return found
    if space == "param":
        return _parameter_words(machine, addresses, bits)
    arena, offsets = machine.locate(space, addresses, bits // 8)
    found = arena.load(offsets, bits)
    if space == "shared":
        machine.races.reads(offsets, bits // 8)
    return found


def store_words(machine: Machine, space: str, addresses: Values, values: Values, bits: int) -> None:
    """Words to memory; of two threads at one address, the later one wins."""
    if space == "global":
        if machine.block_races is not None:
            machine.block_races.writes(machine, addresses, bits // 8, values)
        machine.memory.store(addresses, values, bits)
        return
    if space == "generic":
        everyone = machine.active
        for chosen, name, places in _by_space(machine, addresses):
            if chosen is None:
                store_words(machine, name, places, values, bits)
                continue
            machine.active = machine.active_threads[chosen]
            store_words(machine, name, places, values[chosen] if values.ndim else values, bits)
            machine.active = everyone
        return
    if space == "param":
        raise AccessFault("bounds", "stores to a parameter of the kernel")
    arena, offsets = machine.locate(space, addresses, bits // 8)
    if space == "shared":
        machine.races.writes(offsets, bits // 8, values)
    arena.store(offsets, values, bits)


def _by_space(machine: Machine, addresses: Values) -> list[tuple[Values | None, str, Values]]:
    """Generic addresses by the window that they lie in: which of the active threads, the space, addresses in
    it.
    """
    names = {base >> 48: (space, base) for space, base in WINDOWS.items()}
    windows = addresses >> np.int64(48)
    first = windows.flat[0] if windows.size else np.int64(0)
    if (windows == first).all():
        space, base = names.get(int(first), ("global", 0))
        return [(None, space, addresses - np.int64(base))]
    parts: list[tuple[Values | None, str, Values]] = []
    for window in np.unique(windows):
        space, base = names.get(int(window), ("global", 0))
        chosen = np.flatnonzero(windows == window)
        parts.append((chosen, space, addresses[chosen] - np.int64(base)))
    return parts


def _parameter_words(machine: Machine, addresses: Values, bits: int) -> Values:
    width = bits // 8
    if ((addresses < 0) | (addresses + width > machine.parameters.size)).any():
        raise AccessFault("bounds", "reads beyond the parameters")
    each = np.atleast_1d(addresses)[:, None] + np.arange(width)
    found = machine.parameters[each].view(UNSIGNED[bits])[:, 0]
    return found if addresses.ndim else found[0]


def checked_addresses(machine: Machine, addresses: Values, width: int) -> Values:
    """`addresses`, all multiples of `width` bytes.

    Raises:
        AccessFault: one is not.
    """
    wrong = (addresses & np.int64(width - 1)) != 0
    if wrong.any():
        which = int(np.argmax(wrong))
        where = int(machine.spread(addresses)[which])
        raise AccessFault("alignment", f"address {where:#x} is no multiple of {width} bytes", which)
    return addresses


def _transferred(site: Site, registers: int, address: int) -> tuple[Type, tuple[Operand, ...], Reader, str]:
    """What `ld` and `st` move: its type, the registers, where in memory, and in which space.

    Args:
        site: the instruction.
        registers: number of the operand that names them.
        address: of the other one.
    """
    site.accept(*CACHING, *SPACES, *_VECTORS)
    space, operand = space_of(site), site.operands[address]
    elements = site.elements(registers)
    if len(elements) != _VECTORS.get(site.choice(*_VECTORS) or "", 1):
        raise site.unsupported("the number of its registers")
    if space == "param" and isinstance(operand, Address) and isinstance(operand.base, Place):
        space = operand.base.space  # a parameter of a device function lies in local memory
    return site.type(), elements, site.address(operand), space


@executes("ld", "ldu")
def load(site: Site) -> Step:
    """Load one register, or a vector of them."""
    kind, elements, read, space = _transferred(site, 0, 1)
    width = kind.bits // 8
    bits = type_of(f"b{kind.bits}")
    writes = [site.writer(element, kind if kind.kind == "s" else bits) for element in elements]
    step_bytes = np.int64(width)
    signed = np.dtype(f"i{width}") if kind.kind == "s" else None
    total = width * len(elements)

    def step(machine: Machine) -> None:
        addresses = checked_addresses(machine, read(machine), total)
        if addresses.ndim == 0 and space not in ("global", "param"):
            addresses = machine.spread(addresses)
        found = []
        for _ in writes:
            words = load_words(machine, space, addresses, kind.bits)
            found.append(words if signed is None else words.view(signed))
            addresses = addresses + step_bytes
        for write, words in zip(writes, found):
            write(machine, words)

    return step


@executes("st")
def store(site: Site) -> Step:
    """Store one register, or a vector of them."""
    kind, elements, read, space = _transferred(site, 1, 0)
    width = kind.bits // 8
    reads = [site.reader(element, type_of(f"b{kind.bits}")) for element in elements]
    step_bytes = np.int64(width)
    total = width * len(elements)

    def step(machine: Machine) -> None:
        addresses = machine.spread(checked_addresses(machine, read(machine), total))
        for value in reads:
            store_words(machine, space, addresses, value(machine), kind.bits)
            addresses = addresses + step_bytes

    return step


@executes(
    "prefetch", "prefetchu", "applypriority", "discard", "membar", "fence", "griddepcontrol", "nanosleep"
)
@executes("setmaxnreg", "pmevent")
def nothing(site: Site) -> Step:
    """What is about speed, or about the order of accesses, which all threads here see in one order; that
    asynchronous accesses wait for others is checked.
    """
    if site.instruction.has("proxy") and site.instruction.has("async"):
        return lambda machine: machine.races.fenced()
    return lambda machine: None


@executes("call")
def call(site: Site) -> Step:
    """External functions: what they print is not printed, and as the device's `printf` the result is the
    number of arguments.
    """
    name = next(
        (part.name for part in site.operands if hasattr(part, "name") and not isinstance(part, Register)), ""
    )
    results = site.operands[0]
    if name != "vprintf" or not isinstance(results, Vector):
        raise site.unsupported(f"function {name} is not known")
    place = results.elements[0]
    if not isinstance(place, Place):
        raise site.unsupported("its result")
    offset = np.int64(place.offset)

    def step(machine: Machine) -> None:
        store_words(machine, place.space, machine.spread(offset), np.uint32(0), 32)

    return step
