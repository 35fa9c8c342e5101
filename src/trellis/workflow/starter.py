"""A starter spec for a file: from the names and types of its columns, never from its values.

No setting that decides on privacy is guessed, and no level: such keys say FILL_IN, and a spec that
says so is refused.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import yaml

from trellis.errors import SpecError
from trellis.ingest.columns import TEXT_KIND, WHOLE_KIND, column_kinds
from trellis.storage.atomic import write_text
from trellis.workflow.config.gaps import GAP

_TEMPLATE = """\
# A starter spec for {name}, made from the names and types of its columns alone.
# Decide on every {gap}, then run: trellis check {spec}
# docs/spec.md explains every key.
#
# Columns of {name}:
{columns}

release: {gap}              # the name of what is published
kind: counts                # or group_sizes: households, firms and the like by size
dataset: {gap}              # the name under which the ledger adds up what is spent on these records

data:
  source: {source}
  area: {gap}               # the column with the area of a row, on the last level{areas}
  # One row is one record. If a row counts several, name the column that says how many{counts}:
  # count: COLUMN
  # or, for a table with one column for each cell:
  # cells: {{total: COLUMN}}
  # or, for tables by several attributes, declare these under schema: see docs/histograms.md

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
  # shares: uniform         # how the budget is split over the levels: uniform, or a share for each

# Totals of these levels are published exactly, and are not protected (neighbours: replace):
# unprotected: {{totals: []}}

# The most that may ever be spent on these records:
# ledger: {{limit: {{rho: ..}}}}
"""


def write_starter(source: Path, out: Path) -> int:
    """Write a spec with gaps for a file of records; returns how many gaps there are."""
    if out.exists():
        raise SpecError(f"{out} is there already. Name another file with --out.")
    if not out.parent.is_dir():
        raise SpecError(f"There is no folder {out.parent}.")
    text = starter(source, out)
    write_text(out, text)
    return text.count(f": {GAP}") + text.count(f"[{GAP}]")


def starter(source: Path, out: Path) -> str:
    kinds = column_kinds(source)
    width = max(len(_shown(name)) for name in kinds)
    columns = "\n".join(f"#   {_shown(name):<{width}}  {kind}" for name, kind in kinds.items())
    return _TEMPLATE.format(
        name=_shown(source.name),
        spec=_shown(out.name),
        gap=GAP,
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
