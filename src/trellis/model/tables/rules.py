"""Rules over categories, such as `age < 18 and hhgq = nursing`: which cells they describe.

    rule        := part ("or" part)*
    part        := term ("and" term)*
    term        := "not" term | "(" rule ")" | comparison
    comparison  := name ("=" | "!=" | "<" | "<=" | ">" | ">=") value
                 | name "in" "[" value ("," value)* "]"

A name is an attribute or a recode, a value one of its categories or groups; either may be in
quotes. Order is defined for attributes that were declared as ordered, and there a whole number need
not be a category itself. The text is parsed here and never evaluated as a program.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trellis.errors import StructureError
from trellis.model.plans.kinds.histograms import HistogramDesign
from trellis.model.tables.queries import Factor, parse_query
from trellis.model.tables.schema import Schema

RuleSides = tuple[NDArray[np.bool_], NDArray[np.bool_]]
"""The cells of a and those of b in `a requires b`."""

_TOKEN = re.compile(r"\s*(?:(<=|>=|!=|==|[=<>()\[\],])|\"([^\"]*)\"|'([^']*)'|([^\s=<>!()\[\],]+))")
_WORDS = ("and", "or", "not", "in")
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_DEEPEST = 50

Token = tuple[str, str]
"""A kind (`sign`, `word` or `text`) and the characters; quoted text is never a word."""


def rule_cells(schema: Schema, ordered: Collection[str], rule: str) -> NDArray[np.bool_]:
    """Which cells of the schema a rule describes."""
    return _Parser(schema, ordered, rule).cells()


def impossible_cells(
    schema: Schema, ordered: Collection[str], rules: Sequence[str]
) -> NDArray[np.bool_]:
    """Cells that some structural zero rules out."""
    impossible = np.zeros(schema.n_cells, dtype=np.bool_)
    for rule in rules:
        impossible |= rule_cells(schema, ordered, rule)
    return impossible


def edit_rule_cells(schema: Schema, ordered: Collection[str], rule: str) -> RuleSides:
    """The cells on both sides of `a requires b`: where a counts anyone, b must count someone."""
    parts = rule.split(" requires ")
    if len(parts) != 2:
        raise StructureError(f"Edit rule {rule[:120]!r} is not of the form a requires b.")
    given, needed = (rule_cells(schema, ordered, part) for part in parts)
    return given, needed


def enforced_rules(schema: Schema, histogram: HistogramDesign) -> list[RuleSides]:
    """Both sides of the edit rules that estimates keep; none if they are only audited."""
    rules = histogram.edit_rules if histogram.enforce_edit_rules else ()
    return [edit_rule_cells(schema, histogram.ordered, rule) for rule in rules]


class _Parser:
    """Recursive descent over the tokens of one rule."""

    def __init__(self, schema: Schema, ordered: Collection[str], rule: str) -> None:
        self._schema, self._ordered, self._rule = schema, ordered, rule
        self._tokens, self._next, self._depth = self._split(rule), 0, 0

    def cells(self) -> NDArray[np.bool_]:
        found = self._either()
        if self._next < len(self._tokens):
            raise self._error(f"{self._tokens[self._next][1]!r} does not fit there")
        return found

    # -- grammar --------------------------------------------------------------------------------

    def _either(self) -> NDArray[np.bool_]:
        found = self._both()
        while self._accept("word", "or"):
            found = found | self._both()
        return found

    def _both(self) -> NDArray[np.bool_]:
        found = self._term()
        while self._accept("word", "and"):
            found = found & self._term()
        return found

    def _term(self) -> NDArray[np.bool_]:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._error("it is nested too deeply")
        try:
            if self._accept("word", "not"):
                return ~self._term()
            if self._accept("sign", "("):
                found = self._either()
                self._expect(")")
                return found
            return self._comparison()
        finally:
            self._depth -= 1

    def _comparison(self) -> NDArray[np.bool_]:
        factor = self._factor(self._text("the name of an attribute or a recode"))
        if self._accept("word", "in"):
            self._expect("[")
            values = [self._text("a category")]
            while self._accept("sign", ","):
                values.append(self._text("a category"))
            self._expect("]")
            return self._spread(factor, [self._equal(factor, v) for v in values])
        sign = self._take("a comparison such as =")
        if sign[0] != "sign" or sign[1] not in _COMPARE:
            raise self._error(f"{sign[1]!r} is not a comparison; use = != < <= > >= or in [..]")
        value = self._text("a category")
        if sign[1] in ("=", "=="):
            return self._spread(factor, [self._equal(factor, value)])
        if sign[1] == "!=":
            return ~self._spread(factor, [self._equal(factor, value)])
        return self._spread(factor, [self._compared(factor, sign[1], value)])

    # -- meaning --------------------------------------------------------------------------------

    def _factor(self, name: str) -> Factor:
        known = [*self._schema.names, *(name for name, _ in self._schema.recodes)]
        if name not in known:
            raise self._error(
                f"{name!r} is neither an attribute nor a recode; there are {_listed(known)}"
            )
        return parse_query(self._schema, name).factors[0]

    def _equal(self, factor: Factor, value: str) -> NDArray[np.bool_]:
        if value not in factor.labels:
            known = _listed(factor.labels)
            raise self._error(f"{value!r} is not a category of {factor.name!r}, which has {known}")
        return np.array([label == value for label in factor.labels])

    def _compared(self, factor: Factor, sign: str, value: str) -> NDArray[np.bool_]:
        if factor.name not in self._ordered:
            raise self._error(
                f"the categories of {factor.name!r} have no order; declare it with ordered: [..] "
                "or range: [..], or list categories with in [..]"
            )
        if value in factor.labels:
            here: Sequence[int] = range(len(factor.labels))
            there = factor.labels.index(value)
        elif all(map(_is_whole, (value, *factor.labels))):
            here, there = [int(label) for label in factor.labels], int(value)
        else:
            self._equal(factor, value)  # says what is wrong with the value
            raise AssertionError("a value that is not a category was let through")
        return np.array([bool(_COMPARE[sign](position, there)) for position in here])

    def _spread(self, factor: Factor, chosen: list[NDArray[np.bool_]]) -> NDArray[np.bool_]:
        """From groups of one factor to cells of the schema."""
        groups = np.logical_or.reduce(chosen)
        position = np.unravel_index(np.arange(self._schema.n_cells), self._schema.shape)
        return groups[np.asarray(factor.group_of)][position[factor.attribute]]

    # -- tokens ---------------------------------------------------------------------------------

    def _split(self, rule: str) -> list[Token]:
        tokens: list[Token] = []
        position, text = 0, rule.rstrip()
        while position < len(text):
            found = _TOKEN.match(text, position)
            if found is None:
                raise self._error(f"it cannot be read from {text[position : position + 20]!r} on")
            sign, double, single, word = found.groups()
            if sign is not None:
                tokens.append(("sign", sign))
            elif word is not None:
                tokens.append(("word" if word in _WORDS else "text", word))
            else:
                tokens.append(("text", double if double is not None else single))
            position = found.end()
        if not tokens:
            raise self._error("it is empty")
        return tokens

    def _accept(self, kind: str, text: str) -> bool:
        if self._next < len(self._tokens) and self._tokens[self._next] == (kind, text):
            self._next += 1
            return True
        return False

    def _take(self, what: str) -> Token:
        if self._next == len(self._tokens):
            raise self._error(f"it ends where {what} is expected")
        self._next += 1
        return self._tokens[self._next - 1]

    def _text(self, what: str) -> str:
        kind, text = self._take(what)
        if kind != "text":
            raise self._error(f"{text!r} is where {what} is expected")
        return text

    def _expect(self, sign: str) -> None:
        if not self._accept("sign", sign):
            raise self._error(f"{sign!r} is missing")

    def _error(self, what: str) -> StructureError:
        return StructureError(f"Rule {self._rule[:120]!r}: {what}.")


def _is_whole(text: str) -> bool:
    return re.fullmatch(r"[+-]?[0-9]{1,18}", text) is not None


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return ", ".join(names[:8]) + more
