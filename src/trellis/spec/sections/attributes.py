"""Attributes with their categories, and recodes of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator, InstanceOf, PlainSerializer

from trellis.model.tables.schema import COLUMNS
from trellis.spec.sections.base import Model
from trellis.spec.sections.values import Name

MOST_CATEGORIES = 100_000
MOST_IN_ALL = 1_000_000
"""Categories of one attribute, and of all together: each is kept as text."""

_FORMS = "write a list of categories, {ordered: [..]} or {range: [first, last]}"


@dataclass(frozen=True, slots=True)
class Attribute:
    """The categories of one attribute, and whether their order means something."""

    categories: tuple[str, ...]
    ordered: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "categories", _categories(self.categories))


def to_attribute(value: Any) -> Attribute:
    """An attribute from a list, `{ordered: list}` or `{range: [first, last]}`."""
    if isinstance(value, Attribute):
        return Attribute(value.categories, value.ordered)
    if isinstance(value, list | tuple):
        return Attribute(tuple(value))
    if isinstance(value, dict) and list(value) == ["ordered"]:
        return Attribute(value["ordered"], ordered=True)
    if isinstance(value, dict) and list(value) == ["range"]:
        return Attribute(_whole_numbers(value["range"]), ordered=True)
    raise ValueError(_FORMS)


def _categories(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list | tuple) or not values:
        raise ValueError(_FORMS)
    if any(isinstance(v, bool) or not isinstance(v, str | int) for v in values):
        raise ValueError("categories are text or whole numbers; quote yes, no, on, off and dates")
    names = tuple(str(v).strip() for v in values)
    if not all(0 < len(name) <= 80 and name.isprintable() for name in names):
        raise ValueError("a category is 1 to 80 printable characters")
    if len(set(names)) != len(names):
        twice = next(name for name, times in Counter(names).items() if times > 1)
        raise ValueError(f"category {twice!r} is listed twice")
    return names


def _whole_numbers(ends: Any) -> tuple[str, ...]:
    is_pair = isinstance(ends, list | tuple) and len(ends) == 2
    if not is_pair or any(isinstance(e, bool) or not isinstance(e, int) for e in ends):
        raise ValueError("range takes two whole numbers: [first, last]")
    first, last = ends
    if not 0 <= last - first < MOST_CATEGORIES:
        raise ValueError(f"range [{first}, {last}] must grow, to {MOST_CATEGORIES} at most")
    return tuple(map(str, range(first, last + 1)))


def few_enough(attributes: Any) -> Any:
    """Refuse attributes whose categories, written out, would fill the memory."""
    if isinstance(attributes, dict) and _listed(attributes.values()) > MOST_IN_ALL:
        raise ValueError(
            f"the attributes have more than {MOST_IN_ALL:,} categories together; take out or "
            "coarsen some"
        )
    return attributes


def _listed(values: Iterable[Any]) -> int:
    """How many categories are written out, as far as that is known before reading them."""
    return sum(_n_categories(value) for value in values)


def _n_categories(value: Any) -> int:
    if isinstance(value, Attribute):
        return len(value.categories)
    inner = next(iter(value.values())) if isinstance(value, dict) and len(value) == 1 else value
    if not isinstance(inner, list | tuple):
        return 0
    is_range = isinstance(value, dict) and "range" in value and len(inner) == 2
    if is_range and all(isinstance(end, int) for end in inner):
        return max(0, inner[1] - inner[0] + 1)
    return len(inner)


def _write_attribute(attribute: Attribute) -> Any:
    categories = list(attribute.categories)
    return {"ordered": categories} if attribute.ordered else categories


AttributeField = Annotated[
    InstanceOf[Attribute], BeforeValidator(to_attribute), PlainSerializer(_write_attribute)
]
"""Categories of an attribute, as written in a spec."""

Attributes = Annotated[dict[Name, AttributeField], BeforeValidator(few_enough)]


def to_groups(groups: Any) -> Any:
    """Groups of categories, each a list or `{range: [first, last]}`."""
    if not isinstance(groups, dict):
        raise ValueError("name groups with their categories, such as {minor: [0, 1], adult: [2]}")
    if _listed(groups.values()) > MOST_CATEGORIES:
        raise ValueError(f"the groups have more than {MOST_CATEGORIES:,} categories together")
    out = {}
    for name, values in groups.items():
        try:
            out[str(name)] = to_attribute(values).categories
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return out


class RecodeSpec(Model):
    """A coarser version of one attribute."""

    of: str
    groups: Annotated[dict[Name, tuple[str, ...]], BeforeValidator(to_groups)]


def column_faults(key: str, names: Iterable[str]) -> Iterator[str]:
    """Attributes become columns of tables, next to others."""
    for name in names:
        if name in COLUMNS:
            yield (
                f"{key}: {name!r} is the name of a column that tables have already. Give it "
                "another name; data.attributes says which column of the records it is."
            )
