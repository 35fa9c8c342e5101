"""Public rules: impossible cells, edit rules, bounds from tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, InstanceOf, PlainSerializer, model_validator

from trellis.spec.sections.base import Model
from trellis.spec.sections.values import Name, PathText


def to_rules(value: Any) -> Any:
    """Rules from a list of texts; `rule: impossible` is short for the rule."""
    if isinstance(value, dict):
        value = [{rule: verdict} for rule, verdict in value.items()]
    if not isinstance(value, list | tuple):
        raise ValueError("list rules such as age < 18 and hhgq = nursing: impossible")
    return tuple(_rule(item) for item in value)


def _rule(item: Any) -> str:
    if isinstance(item, dict) and len(item) == 1 and list(item.values()) == ["impossible"]:
        item = next(iter(item))
    if not isinstance(item, str) or not 0 < len(item.strip()) <= 1000:
        raise ValueError("a rule is a text such as age < 18 and hhgq = nursing: impossible")
    return item.strip().removesuffix(": impossible").rstrip()


def _edit_rule(text: str) -> str:
    if len(text) > 1000 or len(text.split(" requires ")) != 2:
        raise ValueError("an edit rule is a text such as age < 18 requires age >= 18")
    return text.strip()


EditRule = Annotated[str, AfterValidator(_edit_rule)]

Binds = Literal["records", "output"]
"""What a public rule binds: the records, which are refused if they break it, or the output."""


@dataclass(frozen=True, slots=True)
class Zeros:
    """Rules that describe impossible cells, and what they bind."""

    rules: tuple[str, ...]
    binds: Binds | None = None

    @property
    def binds_records(self) -> bool:
        return self.binds != "output"


def to_zeros(value: Any) -> Zeros:
    """Structural zeros from a list of rules, or `{binds: output, rules: [..]}`."""
    if isinstance(value, Zeros):
        value = {"binds": value.binds, "rules": value.rules}
    if not isinstance(value, dict) or "rules" not in value:
        return Zeros(to_rules(value))
    if unknown := [key for key in value if key not in ("binds", "rules")]:
        raise ValueError(f"{unknown[0]!r} is not a key here; there are rules and binds")
    if (binds := value.get("binds")) not in (None, "records", "output"):
        raise ValueError("binds is records or output")
    return Zeros(to_rules(value["rules"]), binds)


def _write_zeros(zeros: Zeros) -> Any:
    rules = list(zeros.rules)
    return rules if zeros.binds is None else {"binds": zeros.binds, "rules": rules}


ZerosField = Annotated[InstanceOf[Zeros], BeforeValidator(to_zeros), PlainSerializer(_write_zeros)]
"""Structural zeros, as written in a spec."""


class ConstraintSpec(Model):
    """Bounds on the answers to one query, from a public table."""

    name: Name
    source: PathText | None = None
    level: str | None = None
    area: str
    query: str = "total"
    equal: str | None = None
    at_most: str | None = None
    at_least: str | None = None
    facilities: str | None = None
    open_to_all: tuple[str, ...] = ()
    group: str | None = None
    binds: Binds | None = None

    @property
    def binds_records(self) -> bool:
        return self.binds != "output"

    @model_validator(mode="after")
    def _one_bound(self) -> Self:
        given = [self.equal, self.at_most, self.at_least, self.facilities]
        if sum(column is not None for column in given) != 1:
            raise ValueError(
                "name the column of the bound in exactly one of equal, at_most, at_least, "
                "facilities"
            )
        if self.open_to_all and self.facilities is None:
            raise ValueError("open_to_all goes with facilities")
        if self.group is not None and self.facilities is not None:
            raise ValueError("group does not go with facilities")
        return self
