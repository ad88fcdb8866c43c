"""What a parser error says: where, what was found, what could have stood there instead, in readable words."""

from __future__ import annotations

import re

from hlotool import grammar
from hlotool.errors import HloSyntaxError
from hlotool.parser.text.syntax import Source, TextError

#: How deep brackets may nest: more than any program needs, less than any recursion limit.
DEEPEST_NESTING = 100

_WORDS = {
    **dict.fromkeys(("COLON_NAME", "IDENTIFIER", "PERCENT_NAME"), "a name"),
    **dict.fromkeys(("NUMBER", "NUMBERS", "NUMBER_WORD"), "a number"),
    **dict.fromkeys(("BUFFER_OPEN", "ELEMENT_TYPE"), "a shape"),
    **dict.fromkeys(("CONSTANT_OPEN", "PARAMETER_OPEN"), "an opcode"),
    **dict.fromkeys(("RAW_STRING", "RAW_TEXT"), "text"),
    "$END": "the end of the text",
    "BOOL": "true or false",
    "BOUND": "'<='",
    "DIM_LABELS": "dimension labels such as b01f_01io->b01f",
    "DIM_LEVEL": "one of D, C, S, H",
    "ELLIPSIS": "'...'",
    "ENTRY": "ENTRY",
    "FILE_LOCATIONS": "FileLocations",
    "FILE_NAMES": "FileNames",
    "FUNCTION_NAMES": "FunctionNames",
    "HLO_MODULE": "HloModule",
    "INT": "an integer",
    "KEY": "an attribute",
    "LAYOUT_OPEN": "a layout",
    "PADDING": "padding such as 0_1x2_2",
    "PERMUTATION_OPEN": "T(",
    "ROOT": "ROOT",
    "SHARD_GROUP": "shard_as or shard_like",
    "SIZES": "sizes such as 2x2",
    "STACK_FRAMES": "StackFrames",
    "STRING": "a string",
}
#: A pattern that lists words, or begins with a list of them.
_ALTERNATIVES = re.compile(r"(?:\(\?:)?([A-Za-z_|]+)\)?")
#: Keys in a list of expected words; more of them are called an attribute.
_MOST_KEYS = 6
_FOUND = re.compile(r"%?[A-Za-z0-9_.\-]+[:=]?|->|<=|\.\.\.")
_LONGEST_FOUND = 40
_MLIR = re.compile(r"(?>(?:\s|//[^\n]*+)*)(?:#loc|(?:builtin\.)?module\s+(?:@|attributes|\{))")
#: `x=f32[…`, `x=(…` or `x=add(…`: an instruction, not an attribute.
_GLUED_NAME = re.compile(r"%?[A-Za-z_][A-Za-z0-9_.\-]*=\s*(?:\(|[a-z0-9]+\[|[a-z\-]+\()")
#: `x = …` where `x=…` is meant.
_LOOSE_KEY = re.compile(r"([A-Za-z_][A-Za-z0-9_.\-]*)\s+=")
#: An element type that does not exist; longer words are none.
_WORD_BEFORE = re.compile(r"(?<![A-Za-z0-9_])[A-Za-z0-9_]{1,40}\Z")
_BRACKET = re.compile(
    r"""(?P<opening>[(\[{])|(?P<closing>[)\]}])|"[^"\\]*+(?>(?:\\.[^"\\]*+)*)"|/\*.*?\*/|//[^\r\n]*|(?P<open_end>"|/\*)""",
    re.DOTALL,
)


def check_nesting(text: str) -> None:
    """Raise TextError where brackets nest so deep that no program means it."""
    depth = 0
    for found in _BRACKET.finditer(text):
        match found.lastgroup:
            case "opening":
                depth += 1
                if depth > DEEPEST_NESTING:
                    raise TextError(f"brackets nest more than {DEEPEST_NESTING} deep", found.start())
            case "closing":
                depth = max(depth - 1, 0)
            case "open_end":
                return  # a string or comment without an end: the parser says so


def syntax_error(source: Source, found: grammar.Unexpected) -> HloSyntaxError:
    """The error to raise for what the parser found."""
    message = f"expected {_expected(found.expected)}, found {_found(source.text, found.position)}"
    hint = _hint(source.text, found.position, found.expected)
    return source.error(f"{message}: {hint}" if hint else message, found.position)


def _expected(accepted: frozenset[str]) -> str:
    """What could have stood there; where any key could, particular ones are not listed."""
    if "KEY" in accepted:
        accepted = frozenset(name for name in accepted if not name.endswith("_KEY"))
    if len(accepted) > 1:
        accepted -= {"HASH"}  # of an element of a tuple: never what is missing
    words = sorted({word for name in accepted for word in _words(name)}) or [_WORDS["$END"]]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _words(name: str) -> list[str]:
    """What a terminal is called."""
    if name in _WORDS:
        return [_WORDS[name]]
    literal = grammar.literal(name)
    if literal is not None:
        return [f"'{literal}'"]
    listed = _ALTERNATIVES.match(grammar.terminal(name))
    alternatives = listed[1].split("|") if listed else []
    if name.endswith("_KEY"):
        return [f"{key}=" for key in alternatives] if len(alternatives) <= _MOST_KEYS else ["an attribute"]
    return alternatives


def _found(text: str, position: int | None) -> str:
    """The word or character at `position`, or what is wrong with it."""
    if position is None or position >= len(text):
        return "the end of the text"
    if text.startswith("/*", position):
        return "a comment that does not end"
    character = text[position]
    if character in "\"'":
        return "a string that does not end" if _is_open_string(text, position) else "a string"
    word = _FOUND.match(text, position)
    if word is not None:
        return word[0] if len(word[0]) <= _LONGEST_FOUND else word[0][:_LONGEST_FOUND] + "…"
    return f"'{character}'" if character.isprintable() else f"the character {character!r}"


def _hint(text: str, position: int | None, accepted: frozenset[str]) -> str | None:
    """What was probably meant."""
    if _MLIR.match(text):
        return "the text is MLIR, not HLO"
    if position is None:
        return None
    if _GLUED_NAME.match(text, position):
        return "a name needs a blank before its '='"
    if "KEY" in accepted and (key := _LOOSE_KEY.match(text, position)):
        return f"there is no blank before the '=' of {key[1][:_LONGEST_FOUND]}="
    before = _WORD_BEFORE.search(text, max(0, position - _LONGEST_FOUND - 1), position)
    if text.startswith("[", position) and before is not None:
        return f"{before[0]} is not an element type"
    word = _FOUND.match(text, position)
    end = position if word is None else word.end()
    if "\udc80" <= text[end : end + 1] <= "\udcff":
        return "the text is not UTF-8"
    return None


def _is_open_string(text: str, position: int) -> bool:
    quote = text[position]
    return (
        re.compile(rf"{quote}[^{quote}\\]*+(?>(?:\\.[^{quote}\\]*+)*){quote}").match(text, position) is None
    )
