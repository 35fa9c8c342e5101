"""Rules over categories, read again: which cells of the schema they describe.

    rule        := part ("or" part)*
    part        := term ("and" term)*
    term        := "not" term | "(" rule ")" | comparison
    comparison  := name ("=" | "==" | "!=" | "<" | "<=" | ">" | ">=") value
                 | name "in" "[" value ("," value)* "]"

Each is a question that is asked of one cell after another, with the categories that the cell has.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from trellis.verify.files.safe_files import Unreadable

_TOKEN = re.compile(r"""\s*([<>!=]=|[=<>()\[\],]|"[^"]*"|'[^']*'|[^\s=<>!()\[\],]+)""")
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "==": operator.eq, "!=": operator.ne,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")

Question = Callable[[dict[str, str]], bool]
"""Of the label that each attribute and recode has in a cell."""


def rule_cells(plan: dict[str, Any], rule: str) -> np.ndarray:
    """Which cells of the schema of plan.json a rule describes."""
    question = _Reader(plan, rule).whole()
    return np.array([question(labels) for labels in _cells(plan)], dtype=bool)


def edit_rule_cells(plan: dict[str, Any], rule: str) -> tuple[np.ndarray, np.ndarray]:
    """The cells on both sides of `a requires b`."""
    given, needed = rule.split(" requires ")
    return rule_cells(plan, given), rule_cells(plan, needed)


def _cells(plan: dict[str, Any]) -> list[dict[str, str]]:
    groups = {
        name: (recode["attribute"], {c: g for g, cs in recode["groups"].items() for c in cs})
        for name, recode in plan.get("recodes", {}).items()
    }
    found = []
    for categories in product(*plan["schema"].values()):
        labels = dict(zip(plan["schema"], categories, strict=True))
        labels |= {name: group[labels[of]] for name, (of, group) in groups.items()}
        found.append(labels)
    return found


class _Reader:
    """Turns the tokens of a rule into a question, from left to right."""

    def __init__(self, plan: dict[str, Any], rule: str) -> None:
        self._tokens = _TOKEN.findall(rule)
        if "".join(self._tokens) != _without_spaces(rule):
            raise Unreadable("plan.json has a rule that cannot be read")
        self._schema, self._ordered = plan["schema"], plan["histogram"]["ordered"]

    def whole(self) -> Question:
        question = self._joined("or", any, lambda: self._joined("and", all, self._term))
        if self._tokens:
            raise Unreadable("plan.json has a rule that cannot be read")
        return question

    def _joined(
        self, word: str, join: Callable[..., bool], part: Callable[[], Question]
    ) -> Question:
        parts = [part()]
        while self._next(word):
            parts.append(part())
        return lambda labels: join(question(labels) for question in parts)

    def _term(self) -> Question:
        if self._next("not"):
            inner = self._term()
            return lambda labels: not inner(labels)
        if self._next("("):
            inner = self._joined("or", any, lambda: self._joined("and", all, self._term))
            self._require(")")
            return inner
        name = _plain(self._tokens.pop(0))
        if self._next("in"):
            self._require("[")
            values = [_plain(self._tokens.pop(0))]
            while self._next(","):
                values.append(_plain(self._tokens.pop(0)))
            self._require("]")
            return lambda labels: labels[name] in values
        compare = _COMPARE[sign := self._tokens.pop(0)]
        value = _plain(self._tokens.pop(0))
        if sign in ("=", "==", "!="):
            return lambda labels: compare(labels[name], value)
        place = self._order(name, value)
        return lambda labels: compare(place(labels[name]), place(value))

    def _order(self, name: str, value: str) -> Callable[[str], int]:
        """By position, or, for a whole number that is not a category itself, by number."""
        labels = self._schema[name]
        if name not in self._ordered:
            raise Unreadable("plan.json has a rule that orders categories without an order")
        if value in labels:
            return labels.index
        if all(_WHOLE.fullmatch(text) for text in [value, *labels]):
            return int
        raise Unreadable("plan.json has a rule that cannot be read")

    def _next(self, token: str) -> bool:
        if self._tokens[:1] == [token]:
            del self._tokens[0]
            return True
        return False

    def _require(self, token: str) -> None:
        if not self._next(token):
            raise Unreadable("plan.json has a rule that cannot be read")


def _plain(token: str) -> str:
    return token[1:-1] if token[0] in "\"'" else token


def _without_spaces(rule: str) -> str:
    """Outside of quotes."""
    return "".join(re.findall(r""""[^"]*"|'[^']*'|[^\s"']+""", rule))
