"""Keys of a release of histograms: attributes, recodes, strategy and rules."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    InstanceOf,
    PlainSerializer,
    Tag,
    model_validator,
)

from trellis.errors import SpecError, StructureError
from trellis.model.plans.histograms import USED
from trellis.model.tables.schema import COLUMNS, Recode, Schema
from trellis.spec.base import Model
from trellis.spec.cells import SAFE_CELL, join_cell, split_cell
from trellis.spec.planning import form_of_shares, form_of_weights, optimal_word
from trellis.spec.values import Exact, Name, PathText, SharesField

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


TableWeights = Annotated[
    Annotated[dict[str, Exact], Tag("~named")] | Annotated[Exact, Tag("~")],
    Discriminator(form_of_weights),
]
"""What the errors of a level count for: all alike, or by query."""


class OptimalQueriesSpec(Model):
    """Which queries may be measured, and what the errors of published tables count for."""

    queries: dict[Name, tuple[str, ...]] | None = None
    weights: dict[Name, TableWeights] | None = None


class OptimalStrategySpec(Model):
    """Shares of queries that are computed: `optimal`, or `{optimal: {..}}`."""

    optimal: OptimalQueriesSpec = OptimalQueriesSpec()

    @model_validator(mode="before")
    @classmethod
    def _word(cls, values: Any) -> Any:
        return optimal_word(values)


AnyStrategy = Annotated[
    Annotated[dict[Name, SharesField], Tag("~")] | Annotated[OptimalStrategySpec, Tag("~optimal")],
    Discriminator(form_of_shares),
]
"""Shares of queries by level, or how to compute them."""


with warnings.catch_warnings():
    # pydantic has a method of that name, which nobody needs; the key is the clear one.
    warnings.filterwarnings("ignore", 'Field name "schema"')

    class HistogramKeys(Model):
        """Keys of a spec that make a release of counts one of histograms."""

        schema: Attributes | None = None  # type: ignore[assignment]
        recodes: dict[Name, RecodeSpec] | None = None
        strategy: AnyStrategy | None = None
        constraints: tuple[ConstraintSpec, ...] | None = None
        structural_zeros: ZerosField | None = None
        edit_rules: tuple[EditRule, ...] | None = None

        @property
        def declared_attributes(self) -> Mapping[str, Attribute] | None:
            """The declared attributes, or None if this is no histogram."""
            declared: Any = self.schema
            return declared

        def cell_schema(self) -> Schema:
            """The declared cells with their recodes."""
            assert self.declared_attributes is not None
            return Schema(
                {
                    name: attribute.categories
                    for name, attribute in self.declared_attributes.items()
                },
                {n: Recode(r.of, r.groups) for n, r in (self.recodes or {}).items()},
            )


def _column_faults(key: str, names: Iterable[str]) -> Iterator[str]:
    """Attributes become columns of tables, beside others."""
    for name in names:
        if name in COLUMNS:
            yield (
                f"{key}: {name!r} is the name of a column that tables have already. Give it "
                "another name; data.attributes says which column of the records it is."
            )


def histogram_faults(spec: Any) -> Iterator[str]:
    """Keys that go with `schema`, and a schema that cannot be built."""
    if spec.kind != "counts":
        return
    if spec.declared_attributes is None:
        yield from _without_schema(spec)
        return
    if spec.estimate.edit_rules and not spec.edit_rules:
        yield "estimate.edit_rules goes with edit_rules: state the rules, or take it out."
    if spec.output.measurements == USED and spec.estimate.method != "topdown":
        yield (
            f"output.measurements: used leaves out what {spec.estimate.method} reads: every "
            "measurement. Set estimate.method to topdown, or output.measurements to complete."
        )
    if spec.areas or spec.spine:
        yield "areas and spine do not go with schema. Take them out, or release counts."
    if spec.estimate.method == "gls":
        yield from _faults_of_real(spec)
    try:
        schema = spec.cell_schema()
    except StructureError as error:
        yield f"schema: {error}"
        return
    yield from _column_faults("schema", schema.names)
    yield from _column_faults("recodes", [name for name, _ in schema.recodes])
    if spec.data.cells is not None:
        if spec.data.attributes is not None:
            yield "data: use attributes (a long table) or cells (a wide one), not both."
        try:
            wide_cells(schema, spec.data.cells)
        except SpecError as error:
            yield from error.faults
    for name in spec.data.attributes or {}:
        if name not in schema.names:
            yield f"data.attributes names {name!r}; the attributes are {', '.join(schema.names)}."


def _without_schema(spec: Any) -> Iterator[str]:
    keys = {
        **{key: getattr(spec, key) for key in HistogramKeys.model_fields},
        "output.tables": spec.output.tables,
        "output.microdata": spec.output.microdata,
        "output.measurements": spec.output.measurements,
        "data.attributes": spec.data.attributes,
        "estimate.edit_rules": spec.estimate.edit_rules,
        "estimate.passes": spec.estimate.passes,
    }
    for key in (key for key, value in keys.items() if value):
        yield f"{key} goes with schema: declare the attributes."
    for name in spec.data.cells or {}:
        if not SAFE_CELL.fullmatch(name):
            yield (
                f"data.cells: {name!r} cannot name a cell: use letters, digits, spaces, commas, "
                "dots, hyphens, plus signs and underscores (200 at most)."
            )


def _faults_of_real(spec: Any) -> Iterator[str]:
    """Real estimates that may be negative keep no rule, and cannot be counted out as records."""
    unfit = {
        "output.microdata": spec.output.microdata,
        "constraints": spec.constraints,
        "structural_zeros": spec.structural_zeros,
        "edit_rules": spec.edit_rules,
        "estimate.passes": spec.estimate.passes,
    }
    if named := [key for key, value in unfit.items() if value]:
        yield (
            f"{', '.join(named)}: not with estimate.method gls, whose estimates are real numbers "
            "without bounds. Take out, or use gls_topdown."
        )
    if spec.output.tables is not None and not any(spec.output.tables.values()):
        yield "output.tables: estimate.method gls publishes tables alone. Name one."


def wide_cells(schema: Schema, cells: Iterable[str]) -> dict[int, str]:
    """The position of each cell of a wide table, and its name in the spec."""
    # Looked up by attribute: a list of all cells may be too long for any machine.
    places = [{c: i for i, c in enumerate(categories)} for categories in schema.categories]
    named: dict[int, str] = {}
    faults = []
    for name in cells:
        cell = split_cell(name)
        if len(cell) != len(places) or any(c not in p for c, p in zip(cell, places, strict=True)):
            example = join_cell([categories[0] for categories in schema.categories])
            faults.append(
                f"data.cells: {name!r} is not a cell; write one category of each attribute with "
                f"commas between (and quotes around a category that has a comma): {example}."
            )
            continue
        position = 0
        for category, place in zip(cell, places, strict=True):
            position = position * len(place) + place[category]
        if position in named:
            faults.append(f"data.cells lists {join_cell(cell)!r} twice.")
        named[position] = name
    if faults:
        raise SpecError(*faults)
    return named
