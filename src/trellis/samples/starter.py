"""A starter spec for a file: from the names and types of its columns, never from its values.

Values decide on one thing alone: whether the first line of a text file names its columns.

No setting that decides on privacy is guessed, and no level: such keys say FILL_IN, and a spec that
says so is refused.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import yaml

from trellis.errors import SpecError
from trellis.ingest.column_kinds import TEXT_KIND, WHOLE_KIND, column_kinds
from trellis.spec.reading.gaps import GAP
from trellis.storage.atomic import write_text

_HEAD = """\
# A starter spec for {name}, made from the names and types of its columns alone.
# Decide on every {gap}, then run: trellis check {spec}
# docs/spec.md explains every key.
#
# Columns of {name}:
{columns}

release: {gap}              # the name of what is published
kind: {kind}{others}
dataset: {gap}              # the name under which the ledger adds up what is spent on these records

data:
  source: {source}
"""

_OTHERS = "                # other kinds: trellis init --kind histograms, group_sizes or flows"

_COUNTS = """\
  area: {gap}               # the column with the area of a row, on the last level{areas}
  # One row is one record. If a row counts several, name the column that says how many{counts}:
  # count: COLUMN
  # or, for a table with one column for each cell:
  # cells: {{total: COLUMN}}
"""

_HISTOGRAMS = """\
  area: {gap}               # the column with the area of a row, on the last level{areas}
  # One row is one record. If a row counts several, name the column that says how many{counts}:
  # count: COLUMN
  # If a column has another name than its attribute:
  # attributes: {{age: COLUMN}}

# The attributes with all their categories, declared here and never read from the records, such as
# {{age: {{range: [0, 115]}}, sex: [f, m]}}; see docs/histograms.md
schema: {gap}
# Queries that are measured, and tables that are published:
# strategy: {{default: {{sex: 1/4, detailed: 3/4}}}}
# output: {{tables: {{default: [total, sex]}}}}
"""

_GROUP_SIZES = """\
  group: {gap}              # the column with the group of a record, such as its household{areas}
  # A record adds 1 to the size of its group. If it adds more, name the column, and the most:
  # quantity: COLUMN
  # max_quantity: 10
  # In place of records, a table may say how many groups have which size: area, size and groups

# The groups that exist, and where: the records do not tell which groups are empty.
group_register:
  source: {gap}             # a public file with one row per group
  group: {gap}              # its column of groups
  area: {gap}               # its column of areas, on the last level

sizes:
  cap: {gap}                # the largest size; it must not be read off the records
  # top_code: true          # larger groups count as the largest size, and are not refused

# The number of groups of every area is published exactly: write true if that is public.
unprotected:
  groups: {gap}
"""

_FLOWS = """\
  origin: {gap}             # the column with the area where a trip begins{areas}
  destination: {gap}        # the column with the area where it ends
  # One row is one trip. If a row counts several, name the column that says how many{counts}:
  # count: COLUMN
  # Whose trip it is, so that trips are checked against max_contribution:
  # unit: COLUMN

# trips: {{number: at_most}}  # where not everyone has exactly max_contribution trips
# schema: {{mode: [car, bus]}}  # attributes of a trip, columns of the records
# destinations: {{source: .., columns: [..]}}  # if they are areas of another list
"""

_REST = """
hierarchy:
  source: {gap}             # a public file that lists every area, also those without records
  columns: [{gap}]          # its columns of codes, one for each level, the whole country first
  # In place of columns, levels may be prefixes of one code:
  # code: {{column: COLUMN, width: 15}}
  # prefixes: {{state: 2, county: 5, tract: 11}}
  # or each area may name the one above it (then leave out source):
  # parent_child: areas.csv
  # hrc: areas.hrc

# Nothing in this section has a default: it says who is protected, and how well.
privacy:
  unit: {gap}               # who is protected, such as person or household
  neighbours: {gap}         # replace (what a record says) or add_remove (also whether it is there)
  max_contribution: {gap}   # the most records that one such unit can have
  mechanism: {gap}          # discrete_gaussian or discrete_laplace
  budget: {gap}             # {{rho: ..}} or {{epsilon: .., delta: ..}}; for Laplace {{epsilon: ..}}
  {shares}# how the budget is split over the levels: uniform, or a share for each
{totals}
# The most that may ever be spent on these records:
# ledger: {{limit: {{rho: ..}}}}
"""

_TOTALS = """
# Totals of these levels are published exactly, and are not protected (neighbours: replace):
# unprotected: {totals: []}
"""

_DATA = {
    "counts": _COUNTS,
    "histograms": _HISTOGRAMS,
    "group_sizes": _GROUP_SIZES,
    "flows": _FLOWS,
}


def write_starter(
    source: Path, out: Path, kind: str = "counts", *, has_header: bool = False
) -> int:
    """Write a spec with gaps for a file of records; returns how many gaps there are."""
    if out.exists():
        raise SpecError(f"{out} exists already. Name another file with --out.")
    if not out.parent.is_dir():
        raise SpecError(f"There is no folder {out.parent}.")
    text = starter(source, out, kind, has_header=has_header)
    write_text(out, text)
    return text.count(f": {GAP}") + text.count(f"[{GAP}]")


def starter(source: Path, out: Path, kind: str, *, has_header: bool) -> str:
    kinds = column_kinds(source, has_header=has_header)
    width = max(len(_shown(name)) for name in kinds)
    columns = "\n".join(f"#   {_shown(name):<{width}}  {kind}" for name, kind in kinds.items())
    has_shares, has_totals = kind == "group_sizes", kind in ("counts", "histograms")
    return (_HEAD + _DATA[kind] + _REST).format(
        name=_shown(source.name),
        spec=_shown(out.name),
        gap=GAP,
        kind=kind,
        others=_OTHERS if kind == "counts" else "",
        shares=f"shares: {GAP}          " if has_shares else "# shares: uniform         ",
        totals=_TOTALS if has_totals else "",
        columns=columns,
        source=_scalar(os.path.relpath(source, out.parent)),
        areas=_one_of(kinds, (TEXT_KIND, WHOLE_KIND)),
        counts=_one_of(kinds, (WHOLE_KIND,)),
    )


def _one_of(kinds: dict[str, str], wanted: tuple[str, ...]) -> str:
    fitting = [_shown(name) for name, kind in kinds.items() if kind in wanted]
    return f": {', '.join(fitting)}" if 0 < len(fitting) <= 6 else ""


def _shown(text: str) -> str:
    """Text that stays on its line: a name with a line break must not become a key."""
    return text if text.isprintable() else json.dumps(text)


def _scalar(text: str) -> str:
    return yaml.safe_dump(text, allow_unicode=True, width=10_000).splitlines()[0]
