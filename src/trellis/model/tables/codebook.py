"""What the columns and rules of a histogram mean, in words for its readers."""

from __future__ import annotations

from trellis.model.tables.constraints import Constraints
from trellis.model.tables.schema import Schema
from trellis.wording import guides as words


def factors_in_words(schema: Schema) -> dict[str, str]:
    """Each attribute with its categories, and each recode with its groups."""
    text = {
        name: _listed(categories)
        for name, categories in zip(schema.names, schema.categories, strict=True)
    }
    for name, recode in schema.recodes:
        named = zip(recode.names, recode.groups, strict=True)
        groups = (words.GROUP.format(group=g, members=_listed(members)) for g, members in named)
        text[name] = words.RECODE.format(attribute=recode.attribute, groups="; ".join(groups))
    return text


def _listed(categories: tuple[str, ...]) -> str:
    if len(categories) <= words.MOST_NAMED:
        return ", ".join(categories)
    first, last = categories[0], categories[-1]
    return words.RANGE.format(number=len(categories), first=first, last=last)


def bounds_in_words(constraints: Constraints) -> list[str]:
    """One sentence for each stated constraint; the bounds themselves are in the run folder."""
    return [
        words.BOUND.format(
            query=c.query,
            level=c.level,
            grouped="" if c.group_of is None else words.GROUPED,
            sense=words.SENSES[c.sense],
            label=c.label,
        )
        for c in constraints.linear
    ]
