"""What the columns and rules of a histogram mean, in words for its readers."""

from __future__ import annotations

from trellis.model.tables.constraints import Constraints, LinearConstraint, Sense
from trellis.model.tables.schema import Schema

MOST_NAMED = 100
"""Categories that are listed one by one; a range of ages is told by its ends."""

_SENSES = {
    Sense.EQUAL: "equal to",
    Sense.AT_MOST: "at most",
    Sense.AT_LEAST: "at least",
}


def factors_in_words(schema: Schema) -> dict[str, str]:
    """Each attribute with its categories, and each recode with its groups."""
    words = {
        name: _listed(categories)
        for name, categories in zip(schema.names, schema.categories, strict=True)
    }
    for name, recode in schema.recodes:
        named = zip(recode.names, recode.groups, strict=True)
        groups = (f"{group} ({_listed(members)})" for group, members in named)
        words[name] = f"a coarser {recode.attribute}: {'; '.join(groups)}"
    return words


def _listed(categories: tuple[str, ...]) -> str:
    if len(categories) <= MOST_NAMED:
        return ", ".join(categories)
    return f"{len(categories):,} categories from {categories[0]} to {categories[-1]}"


def bounds_in_words(constraints: Constraints) -> list[str]:
    """One sentence for each stated constraint; the bounds themselves are in the run folder."""
    return [
        f"{c.query} on level {c.level}{', summed over groups of areas' if _grouped(c) else ''}: "
        f"{_SENSES[c.sense]} what a public table states ({c.label})."
        for c in constraints.linear
    ]


def _grouped(constraint: LinearConstraint) -> bool:
    return constraint.group_of is not None
