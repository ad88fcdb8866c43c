"""What is taken for HLO and is none: how the HLO of the same program is had."""

from __future__ import annotations

import re

from hlotool.dump.mended import mended
from hlotool.dump.source import Source
from hlotool.errors import DumpError

#: As much of a file as is looked at.
_HEAD_BYTES = 1 << 14
_MADE_FROM = "the HLO that it was made from is dumped with"
_DUMP = 'XLA_FLAGS="--xla_dump_to=DIR --xla_dump_hlo_as_text"'
_UNPACK = "unpack it, and name what is in it"
#: What a binary file begins with.
_MAGIC = (
    (b"\x28\xb5\x2f\xfd", f"compressed by zstd; {_UNPACK}"),
    (b"\x04\x22\x4d\x18", f"compressed by lz4; {_UNPACK}"),
    (b"7z\xbc\xaf\x27\x1c", f"an archive of 7-Zip; {_UNPACK}"),
    (b"Rar!", f"an archive of RAR; {_UNPACK}"),
    (b"\x80\x04", "a pickle, which is not opened; a compiled function gives its HLO as compiled.as_text()"),
    (b"\x80\x05", "a pickle, which is not opened; a compiled function gives its HLO as compiled.as_text()"),
    (b"\x93NUMPY", "an array of NumPy: it can be the --inputs of a program"),
    (b"\x7fELF", f"machine code; its HLO is dumped with {_DUMP}"),
    (b"BC\xc0\xde", f"bitcode of LLVM; its HLO is dumped with {_DUMP}"),
    (b"\x89PNG", "a picture; the text is needed"),
    (b"\xff\xd8\xff", "a picture; the text is needed"),
    (b"%PDF", "a PDF; the text is needed"),
)
#: Lines that only a text of that kind has.
_LINES = (
    (r"\{ ?lambda\b", "a jaxpr; its HLO is jax.jit(f).lower(*arguments).as_text('hlo')"),
    (
        r"; ModuleID =|target triple =|define [^\n]*@",
        f"LLVM IR; {_MADE_FROM} {_DUMP}",
    ),
    (r"\.version \d+\.\d+\n", f"PTX; {_MADE_FROM} {_DUMP}"),
    (r"(?:di)?graph [^\n(]*\{", f"a graph for drawing; the text of the HLO is dumped with {_DUMP}"),
    (
        r"IR \{",
        "the graph of a tensor of PyTorch/XLA; its HLO is torch_xla._XLAC._get_xla_tensors_hlo(tensors)",
    ),
    (r"graph\([^\n]*(?:\n[^\n]*){0,40}aten::", f"a graph of TorchScript; its HLO is dumped with {_DUMP}"),
    (
        r"(?:node|graph_def) \{\n",
        "a graph of TensorFlow; its HLO is f.experimental_get_compiler_ir(*arguments)(stage='hlo')",
    ),
    (r"(?:module|func)\b[^\n]*[@{]$", f"MLIR, but no StableHLO; the HLO is dumped with {_DUMP}"),
)
_STRANGERS = [(re.compile(rf"^[ \t]*(?:{line})", re.MULTILINE), what) for line, what in _LINES]


def what_it_is(source: Source) -> str:
    """What a file is that holds no HLO, and how to get at some."""
    try:
        head = source.read_head(_HEAD_BYTES)
    except DumpError as error:
        return str(error)
    if not head:
        return "it is empty"
    known = [what for magic, what in _MAGIC if head.startswith(magic)]
    known += [what for line, what in _STRANGERS if line.search(mended(head)) is not None]
    return (known or ["neither HLO text nor an XLA proto"])[0]
