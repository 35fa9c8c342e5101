"""Keys of a release of histograms: attributes, recodes, strategy and rules."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, InstanceOf
from pydantic import PlainSerializer

from trellis.errors import StructureError
from trellis.model.schema import Recode, Schema
from trellis.workflow.config.values import Name, SharesField

MOST_CATEGORIES = 100_000

_FORMS = "write a list of categories, {ordered: [..]} or {range: [first, last]}"


@dataclass(frozen=True, slots=True)
class Attribute:
    """The categories of one attribute, and whether their order means something."""

    categories: tuple[str, ...]
    ordered: bool = False


def to_attribute(value: Any) -> Attribute:
    """An attribute from a list, `{ordered: list}` or `{range: [first, last]}`."""
    if isinstance(value, Attribute):
        return value
    if isinstance(value, list | tuple):
        return Attribute(_categories(value))
    if isinstance(value, dict) and list(value) == ["ordered"]:
        return Attribute(_categories(value["ordered"]), ordered=True)
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
        twice = next(name for name in names if names.count(name) > 1)
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


def _write_attribute(attribute: Attribute) -> Any:
    categories = list(attribute.categories)
    return {"ordered": categories} if attribute.ordered else categories


AttributeField = Annotated[
    InstanceOf[Attribute], BeforeValidator(to_attribute), PlainSerializer(_write_attribute)
]
"""Categories of an attribute, as written in a spec."""


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
    return item.strip()


Rules = Annotated[tuple[str, ...], BeforeValidator(to_rules)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _texts(groups: Mapping[str, Sequence[Any]]) -> Mapping[str, Sequence[Any]]:
    return {name: tuple(map(str, values)) for name, values in groups.items()}


class RecodeSpec(_Model):
    """A coarser version of one attribute."""

    of: str
    groups: Annotated[dict[Name, tuple[str | int, ...]], AfterValidator(_texts)]


with warnings.catch_warnings():
    # pydantic has a method of that name, which nobody needs; the key is the clear one.
    warnings.filterwarnings("ignore", "Field name \"schema\"")

    class HistogramKeys(_Model):
        """Keys of a spec that make a release of counts one of histograms."""

        schema: dict[Name, AttributeField] | None = None  # type: ignore[assignment]
        recodes: dict[Name, RecodeSpec] | None = None
        strategy: dict[Name, SharesField] | None = None
        structural_zeros: Rules | None = None

        @property
        def attributes(self) -> Mapping[str, Attribute] | None:
            """The declared attributes, or None if this is no histogram."""
            declared: Any = self.schema
            return declared

        def cell_schema(self) -> Schema:
            """The declared cells with their recodes."""
            assert self.attributes is not None
            return Schema(
                {name: attribute.categories for name, attribute in self.attributes.items()},
                {n: Recode(r.of, _texts(r.groups)) for n, r in (self.recodes or {}).items()},
            )


def check_schema(keys: HistogramKeys) -> None:
    """Keys that go with `schema`, and a schema that can be built."""
    if keys.attributes is None:
        for key in ("recodes", "strategy", "structural_zeros"):
            if getattr(keys, key):
                raise StructureError(f"{key} goes with schema: declare the attributes.")
        return
    keys.cell_schema()
