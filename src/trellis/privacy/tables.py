"""How plans and ledgers write down what a query costs: the one place that lists tables.

A table is its name and a bound. What cannot be written down is refused: read back as something
else, it would cost something else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from trellis.errors import PrivacyError
from trellis.privacy.changes import PARTITION, Partition, Table
from trellis.privacy.flow_changes import FlowQuery, FlowTable
from trellis.privacy.group_size_changes import SizeQuery, SizeTable

PARTITION_NAME, BOUNDED_NAME = "partition", "bounded"


@dataclass(frozen=True, slots=True)
class WrittenTable:
    """`bound_name` is what a plan calls the bound; a partition of records has none."""

    name: str
    bound_name: str = ""
    bound: int = 1


def written(table: Table) -> WrittenTable:
    if table == PARTITION:
        return WrittenTable(PARTITION_NAME)
    if isinstance(table, Partition):
        return WrittenTable(BOUNDED_NAME, "bound", table.bound)
    if isinstance(table, SizeTable):
        return WrittenTable(str(table.query), "max_quantity", table.max_quantity)
    if isinstance(table, FlowTable):
        return WrittenTable(str(table.query), "trips", table.trips)
    raise PrivacyError(f"The price of a table {type(table).__name__} cannot be written down.")


_READ: dict[str, Callable[[int], Table]] = {
    PARTITION_NAME: lambda _: PARTITION,
    BOUNDED_NAME: Partition,
    **{query: lambda bound, query=query: SizeTable(query, bound) for query in SizeQuery},
    **{query: lambda bound, query=query: FlowTable(query, bound) for query in FlowQuery},
}


def read_table(name: str, bound: int = 1) -> Table:
    if name not in _READ:
        raise PrivacyError(f"There is no table {name!r} that could price a query.")
    return _READ[name](bound)
