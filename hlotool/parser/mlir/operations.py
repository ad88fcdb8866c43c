"""Operations of MLIR text, in their generic and in their pretty form.

Pretty forms are read by one rule: names are operands, `key = value` and braces are attributes, words and
symbols say what they are by their place, types follow a colon. What is written otherwise is in `pretty.py`.

MLIR: docs/LangRef.md#operations. StableHLO: dialect/StablehloOps.td (assemblyFormat), AssemblyFormat.cpp.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hlotool.errors import HloSyntaxError
from hlotool.parser.mlir.attributes import AttributeReader, unquoted
from hlotool.parser.mlir.syntax import (
    Argument,
    Attribute,
    Dense,
    Foreign,
    FunctionType,
    Name,
    Operation,
    Region,
    Type,
)
from hlotool.parser.mlir.tokens import Text

#: Kinds of words that may stand behind an operation.
_FOLLOWING = frozenset({"word", "value", "string", "hash", "bang", "open", "end"})


class OperationReader(AttributeReader):
    """Reads operations.

    Args:
        source: the text.
        pretty: how operations are written that have a form of their own, by name.
        is_known: whether there is an operation of this name; of others the form is not known either.

    Attributes:
        scopes: names of locations that the text has given an alias.
    """

    def __init__(
        self,
        source: Text,
        pretty: Mapping[str, Callable[[OperationReader, Operation], None]],
        is_known: Callable[[str], bool],
    ) -> None:
        super().__init__(source)
        self.scopes: dict[str, str] = {}
        self._pretty = pretty
        self._is_known = is_known
        self._foreign: Operation | None = None

    def operations(self, closing: str) -> list[Operation]:
        """All up to `closing`, which stays."""
        found: list[Operation] = []
        with self:
            while self.word != closing or self.kind == "string":
                if self.kind == "hash" or (self.kind == "bang" and self.ahead() == "="):
                    self.alias()
                elif self.kind == "open":
                    return found
                else:
                    found.append(self.operation())
        return found

    def alias(self) -> None:
        """`#name = attribute`, `!name = type`."""
        kind, name = self.kind, self.next()
        self.take("=")
        if kind == "bang":
            self.type_aliases[name] = self.type()
        elif self.word == "loc":
            self.scopes[name] = self.location()
        else:
            self.aliases[name] = self.attribute()

    def operation(self) -> Operation:
        """One operation, with its location."""
        before, self._foreign = self._foreign, None
        try:
            results = self._results() if self.kind == "value" else []
            made = Operation("", self.position, results)
            is_generic = self.kind == "string"
            made.name = unquoted(self.next()) if is_generic else self.of_kind("word", "an operation")
            if before is not None and "." not in made.name and not self._is_known(made.name):
                raise self.error("an operation")
        except HloSyntaxError:
            if before is None:
                raise
            raise self.source.no_operation(before.name, before.position) from None
        if is_generic:
            self._generic(made)
        else:
            self._in_pretty_form(made)
        if self.word == "loc" and self.ahead() == "(":
            made.scope = self.location()
        return made

    def _in_pretty_form(self, made: Operation) -> None:
        """What follows the name of an operation, whose form may be unknown."""
        is_foreign = "." in made.name and not self._is_known(made.name)
        try:
            self._pretty.get(made.name, OperationReader.loose)(self, made)
        except HloSyntaxError:
            if not is_foreign:
                raise
        else:
            if not is_foreign or self.kind in _FOLLOWING or self.word in ("}", ""):
                # Where the next one cannot be read, it is a part of this one's form.
                self._foreign = made if is_foreign else None
                return
        raise self.source.no_operation(made.name, made.position)

    def _results(self) -> list[tuple[str, int]]:
        found: list[tuple[str, int]] = []
        while True:
            name = self.of_kind("value", "the name of a result")
            found.append((name, self.integer() if self.taken(":") else 1))
            if not self.taken(","):
                self.take("=")
                return found

    def name_used(self) -> Name:
        """`%x` or `%x#1`."""
        position = self.position
        name, _, number = self.of_kind("value", "a value").partition("#")
        return Name(name, int(number or 0), position)

    def _generic(self, made: Operation) -> None:
        """`(%operands) <{properties}> ({regions}) {attributes} : type`."""
        made.operands = self.listed("(", ")", self.name_used)
        if self.word == "[":
            raise self.source.unsupported(f"{made.name} jumps to another block", self.position)
        if self.word == "<" and self.ahead() == "{":
            self.next()
            made.attributes |= self.dictionary()
            self.take(">")
        if self.word == "(":
            made.regions = self.listed("(", ")", self.region)
        if self.word == "{":
            made.attributes |= self.dictionary()
        self.take(":")
        signature = self.function_type()
        made.operand_types, made.result_types = signature.operands, signature.results

    def region(self) -> Region:
        """`{ ^bb0(%x: type): operations }`."""
        self.take("{")
        arguments: list[Argument] = []
        if self.kind == "caret":
            self.next()
            if self.word == "(":
                arguments = self.listed("(", ")", self.argument)
            self.take(":")
        body = self.operations("}")
        if self.kind == "caret":
            raise self.source.unsupported("a region of several blocks has no HLO", self.position)
        self.take("}")
        return Region(arguments, body)

    def argument(self) -> Argument:
        """`%x: type {attributes} loc(…)`; a declaration names no `%x`."""
        position = self.position
        name = ""
        if self.kind == "value":
            name = self.next()
            self.take(":")
        found = Argument(name, self.type(), {}, position)
        if self.word == "{":
            found.attributes = self.dictionary()
        if self.word == "loc" and self.ahead() == "(":
            self.location()
        return found

    def location(self) -> str:
        """`loc(…)`: the name that it gives, or the alias of one."""
        self.next()
        kind, word = self.kind_ahead(), self.ahead()
        is_name = kind == "string" and self.ahead(2) != ":"
        self.balanced()
        if kind == "hash":
            return word
        return unquoted(word).rstrip(":") if is_name else ""

    def loose(self, made: Operation) -> None:
        """The pretty form of nearly all operations."""
        depth = 0
        while self.kind != "end":
            word = self.word
            if word == "(" or (word == ")" and depth):
                depth += 1 if word == "(" else -1
                self.next()
            elif word == ",":
                self.next()
            elif word == ":":
                self.next()
                self.signature(made)
                return
            elif not self._part(made):
                if depth:
                    raise self.error("')'")
                return

    def _part(self, made: Operation) -> bool:
        """One operand or attribute of a pretty form; whether there is one."""
        kind, word = self.kind, self.word
        if kind == "value" and self.ahead() != "=" and not self._begins_results():
            made.operands.append(self.name_used())
        elif kind == "word" and self.ahead() == "=":
            self.next()
            made.attributes[word] = self._keyword()
        elif kind == "word" and "." not in word and word not in ("loc", "return", "call", "func", "module"):
            made.attributes["words"] = (*made.attributes.get("words", ()), self.next())
        elif kind == "symbol":
            made.attributes["callee"] = self.symbol()
        elif kind == "string" and self.ahead() != "(":
            made.attributes["name"] = unquoted(self.next())
        elif word == "{":
            self.attributes_or_region(made)
        elif word == "<" and self.ahead() == "{":
            self.next()
            made.attributes |= self.dictionary()
            self.take(">")
        elif word == "<":
            made.attributes["text"] = Foreign(self.balanced())
        elif word == "[" or kind in ("dense", "number"):
            made.attributes["value"] = value = self.attribute() if kind == "dense" else self.bare()
            if isinstance(value, Dense) and value.type is not None:
                made.result_types = (value.type,)
        else:
            return False
        return True

    def _begins_results(self) -> bool:
        """Whether a value is the first of `%x, %y =` or `%x:2 =`, results of the next operation."""
        count = 1
        while self.ahead(count) == ":" and self.kind_ahead(count + 1) == "number":
            count += 2
        return count > 1 and self.ahead(count) in ("=", ",")

    def _keyword(self) -> Attribute:
        """What follows `key =`: one attribute, or `[0] x [1]`."""
        self.next()
        if self.word == "<" and self.kind_ahead() == "word" and self.ahead(2) == "=":
            return dict(self.listed("<", ">", self.entry))
        if self.word == "<":
            return Foreign(self.balanced())
        first = self.bare()
        if self.word == "x" and self.ahead() == "[":
            self.next()
            return first, self.bare()
        return first

    def attributes_or_region(self, made: Operation) -> None:
        """`{key = value}` or `{ operations }`."""
        kind, second = self.kind_ahead(), self.ahead(2)
        if self.ahead() == "}" or (kind in ("word", "string") and second in ("=", ",", "}")):
            made.attributes |= self.dictionary()
        else:
            made.regions.append(self.region())

    def signature(self, made: Operation) -> None:
        """The types behind the colon of a pretty form."""
        if self.word == "(":
            types = tuple(self.listed("(", ")", self.type))
        else:
            types = (self.type(),)
            while self.taken(","):
                types = (*types, self.type())
        if self.taken("->"):
            results: tuple[Type, ...] = self.types()
            while self.taken(","):
                results = (*results, self.type())
            made.operand_types, made.result_types = types, results
            return
        count = sum(number for _, number in made.results)
        if count and len(types) == 1:
            types *= count
        made.result_types = types[len(types) - count :] if count else ()

    def function(self, made: Operation) -> None:
        """`func.func public @name(%x: type) -> type attributes {…} { … }`."""
        if self.word in ("public", "private", "nested"):
            made.attributes["sym_visibility"] = self.next()
        made.attributes["sym_name"] = self.symbol()
        arguments = self.listed("(", ")", self.argument)
        results: list[Argument] = []
        if self.taken("->"):
            is_listed = self.word == "("
            results = self.listed("(", ")", self.argument) if is_listed else [Argument("", self.type())]
        if self.taken("attributes"):
            made.attributes |= self.dictionary()
        made.attributes["results"] = tuple(results)
        if self.word == "{":
            body = self.region()
            made.regions = [Region(arguments, body.operations)]

    def functions_of(self, made: Operation) -> None:
        """Let a function in generic form have what the pretty form gives it."""
        signature = made.attributes.get("function_type")
        if not made.regions or not isinstance(signature, FunctionType):
            raise self.source.error("a function without type or body", made.position)
        stated: tuple[Any, ...] = made.attributes.get("res_attrs") or ({},) * len(signature.results)
        made.attributes["results"] = tuple(
            Argument("", kind, noted) for kind, noted in zip(signature.results, stated)
        )
        noted = made.attributes.get("arg_attrs") or ()
        for argument, attributes in zip(made.regions[0].arguments, noted):
            argument.attributes = attributes

    def module(self, made: Operation) -> None:
        """`module @name attributes {…} { … }`."""
        if self.kind == "symbol":
            made.attributes["sym_name"] = self.symbol()
        if self.taken("attributes"):
            made.attributes |= self.dictionary()
        made.regions = [self.region()]
