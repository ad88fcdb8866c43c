"""The parser with actions, and its errors as those of hlotool."""

from __future__ import annotations

from typing import Any

from hlotool import grammar
from hlotool.parse.text.diagnostics import check_nesting, syntax_error
from hlotool.parse.text.structure_actions import actions
from hlotool.parse.text.syntax import Source, TextError


def parse_syntax(source: Source, start: str, strict: bool, begin: int = 0) -> Any:
    """Parse the text from `begin` on as the rule `start`; raises HloSyntaxError."""
    try:
        check_nesting(source.text)
        return grammar.parser(start, actions(strict))(source.text, begin)
    except TextError as error:
        raise source.error(error.message, error.position) from error
    except grammar.Unexpected as error:
        raise syntax_error(source, error) from None
