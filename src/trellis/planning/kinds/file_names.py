"""Names of levels and queries become names of files: those that cannot are refused before a charge.

Without this, a run would be charged and then fail for good.
"""

from __future__ import annotations

from trellis.errors import SpecError
from trellis.model.plans.plan import Plan

MOST_BYTES = 200
"""Of a level or a query. File systems allow 255 bytes, and words such as `query=` are added."""

ENDINGS = (".parquet", ".csv", ".json", ".md", ".html")
"""A level of such a name could not be told from a file."""


def check_file_names(plan: Plan) -> None:
    """Raise where a level, a query or a category of areas cannot be the name of a file."""
    tables = (query for _, query in plan.design.published_tables())
    queries = {*(planned.query for planned in plan.queries), *tables}
    levels = {*plan.levels, *plan.tree_levels, *(area.name for area in plan.interests)}
    for kind, name in [("level", n) for n in levels] + [("query", n) for n in queries]:
        if (size := len(name.encode())) > MOST_BYTES:
            raise SpecError(
                f"The {kind} {name[:60]!r} .. has a name of {size} bytes, but names of files allow "
                f"only {MOST_BYTES}. Give levels and attributes shorter names, or take attributes "
                "out of the query."
            )
    if named := sorted(name for name in levels if name.lower().endswith(ENDINGS)):
        raise SpecError(f"The level {named[0]!r} is named like a file. Give it another name.")
