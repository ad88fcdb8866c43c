"""What the compiler was told by flags, and compilations that began and did not finish.

Flags are those in the `debug_options` of a dump that are not at their defaults. A compilation does not
finish where the compiler died, refused the program, or was killed.

XLA writes `before_optimizations` first, then a file at the start of every pipeline and after every pass
that changed something, where passes are dumped, and `after_optimizations` last. No flag but
`--xla_dump_max_hlo_modules` leaves out the last of them, which people do by copying some files only. So a
module without it is taken for a compilation that did not finish only where one of these holds:

- its passes are numbered from 0 without a gap, as XLA counts what it writes;
- no pass is there, it is the last module of a folder, and all others there are complete and have the
  reports that XLA writes beside the HLO: nothing was picked from such a folder.

A TPU's compiler may go on under another number (`grouping.py`): where a module of the same name has an end
and no beginning, the one without an end is not accused.

XLA: hlo/pass/hlo_pass_pipeline.cc (RunPassesInternal, MaybeDumpHloAndSaveFilenames), service/dump.cc.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from hlotool.errors import InputError
from hlotool.sources.records import DumpFile, DumpModule

#: Allow a compiler to lose NaN and infinity, or to compute as if there were none. Fast math alone does so,
#: whatever it is told to honor: x - x is 0, and (x + y) - y is x (measured with jaxlib 0.10.2).
#: XLA: xla.proto, DebugOptions.
_FAST_MATH = re.compile(
    r"^(xla_(?:cpu|gpu)_enable_fast_(?:math|min_max)=true|xla_cpu_fast_math_honor_(?:nans|infs)=false)$"
)
#: Allow it to multiply by a reciprocal, and to take other functions than asked for.
_INEXACT = re.compile(r"^xla_cpu_fast_math_honor_(?:division|functions)=false$")
#: Forbids to leave a rounding to a narrow type out.
_EVERY_ROUNDING = "xla_allow_excess_precision=false"

#: A flag in a text proto.
_FLAG = re.compile(rb"^(xla_\w+): (true|false)$", re.MULTILINE)

#: How the file ends that holds them.
SUFFIX = ".debug_options"


def switches(module: DumpModule) -> list[str]:
    """The flags of a module's compilation that are on or off, and not as by default, as `NAME=VALUE`."""
    texts = [file.source.read_bytes() for file in module.artefacts if file.path.endswith(SUFFIX)]
    found = (match for text in texts for match in _FLAG.finditer(text))
    return list(dict.fromkeys(f"{match[1].decode()}={match[2].decode()}" for match in found))


def fast_math(flags: Iterable[str]) -> list[str]:
    """Those of some flags under which NaN and infinity need not survive."""
    return [flag for flag in flags if _FAST_MATH.match(flag)]


def inexact(flags: Iterable[str]) -> list[str]:
    """Those under which divisions and functions need not be what they are called."""
    return [flag for flag in flags if _INEXACT.match(flag)]


def keeps_every_rounding(flags: Iterable[str]) -> bool:
    """Whether no rounding to a narrow type may be left out."""
    return _EVERY_ROUNDING in flags


#: What XLA says before it aborts, in the format of its logs: severity, date, time, process, file and line; of
#: a status that was not expected it says in a second line what that is.
_FATAL = re.compile(
    rb"^(?:F\d{4} [\d:.]+ +\d+ |\d{4}-\d\d-\d\d [\d:.]+: F )"
    rb"(\S+\.(?:cc|h|cpp):\d+\] .*(?:\nStatus: .*)?)$",
    re.MULTILINE,
)
#: Of a stage within a pass.
_NUMBER = re.compile(r"\d{4,}(?=\.)")
_LOGS = (".log", ".err", ".out", ".txt", ".stderr")
#: Of a log that is larger only the end is read, which is where a process dies.
_LOG_BYTES = 1 << 20
_CUT = re.compile(rb"^xla_dump_max_hlo_modules: [1-9]", re.MULTILINE)
_PIPELINE_END = "pipeline-end"


def with_unfinished(
    modules: Sequence[DumpModule], others: Iterable[DumpFile] = (), is_whole: bool = False, log: str = ""
) -> list[DumpModule]:
    """The modules, with a word on those whose compilation did not finish.

    Args:
        modules: of a dump.
        others: files of the dump that belong to no module; logs among them may say why.
        is_whole: the dump is known to be as XLA wrote it, and nothing is written any more.
        log: the end of what the program wrote, where it is known.
    """
    families: defaultdict[tuple[object, ...], list[DumpModule]] = defaultdict(list)
    for module in modules:
        families[module.directory, module.timestamp is None].append(module)
    broken = {
        module
        for family in families.values()
        for module in family
        if _is_half_way(module, family) and (is_whole or _is_as_written(module, family))
    }
    if not broken:
        return list(modules)
    said = _last_words(others, log)
    return [replace(m, unfinished=_words(m, modules, said)) if m in broken else m for m in modules]


def _is_half_way(module: DumpModule, family: Sequence[DumpModule]) -> bool:
    """Whether it has a beginning and no end, neither under this number nor under another one."""
    began = module.number is not None and module.before is not None and not module.incomplete
    halves = (other for other in family if _is_second_half(other, module) and other.after is not None)
    return began and module.after is None and not any(True for _ in halves)


def _is_second_half(other: DumpModule, module: DumpModule) -> bool:
    """Whether it may be what a compilation went on with."""
    is_later = (other.number or 0) > (module.number or 0)
    return other.name == module.name and other.before is None and is_later


def _is_as_written(module: DumpModule, family: Sequence[DumpModule]) -> bool:
    """Whether what is there of a module is all that XLA wrote of it."""
    if module.passes:
        beside = {int(found[0]) for stage in module.others if (found := _NUMBER.match(stage.label))}
        return _is_gapless([stage.sequence or 0 for stage in module.passes], beside)
    others = [other for other in family if other is not module and other.number is not None]
    is_last = all((other.number or 0) < (module.number or 0) for other in others)
    whole = all(other.before and other.after and other.artefacts for other in others)
    return bool(others) and is_last and whole and not any(map(_is_cut, (module, *others)))


def _is_gapless(numbers: Sequence[int], beside: Collection[int]) -> bool:
    """Whether XLA may have written just these: from 0, and from 0 again in a module with another number.

    Args:
        numbers: of the stages between passes, in order.
        beside: numbers of stages whose place the name does not tell, such as those where a pass begins.
    """
    return all(
        number == 0 or (number > before and all(missing in beside for missing in range(before + 1, number)))
        for before, number in zip((-1, *numbers), numbers)
        if number != before + 1
    )


def _is_cut(module: DumpModule) -> bool:
    """Whether XLA was told to write so many modules and no more."""
    return any(_CUT.search(_content(f)) for f in module.artefacts if f.path.endswith(SUFFIX))


def _words(module: DumpModule, modules: Sequence[DumpModule], said: str) -> str:
    """`the compilation did not finish: it died in algsimp (pipeline simplification)`, and what is unsure."""
    later = (
        m for m in modules if m.directory == module.directory and _is_second_half(m, module) and m.passes
    )
    words = f"the compilation did not finish: {_where(next(later, module))}"
    return f"{words}; the log says: {said}" if said else words


def _where(module: DumpModule) -> str:
    if not module.passes:
        return "nothing was written after before_optimizations, and no passes are dumped"
    last = module.passes[-1]
    if not last.before_pass:
        return f"it died in {last.pipeline}, after its step {last.after_pass}"
    if last.before_pass == _PIPELINE_END:
        return f"it died after the pipeline {last.pipeline}"
    return (
        f"it died in {last.before_pass} (pipeline {last.pipeline}), or in a pass behind it that left no file"
    )


def _last_words(others: Iterable[DumpFile], log: str) -> str:
    """The last fatal message of `log` and the logs that lie in the dump; empty where several have one."""
    logs = [log.encode(), *(_content(file) for file in others if file.path.endswith(_LOGS))]
    fatal = [messages[-1] for content in logs if (messages := _FATAL.findall(content))]
    return " ".join(fatal[0].decode(errors="backslashreplace").split()) if len(fatal) == 1 else ""


def _content(file: DumpFile) -> bytes:
    """The end of a file; nothing where it cannot be read."""
    try:
        return file.source.read_bytes()[-_LOG_BYTES:]
    except InputError:
        return b""
