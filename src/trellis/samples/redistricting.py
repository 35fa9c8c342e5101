"""A made-up state with the attributes of the redistricting persons file; no one lives there."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from pathlib import Path
from textwrap import fill

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from trellis.errors import RunFolderError
from trellis.samples.demo import block_codes, block_populations
from trellis.storage.atomic import write_text

N_BLOCKS = 6_000

HHGQ = ("household", "correctional", "juvenile", "nursing", "other institution", "college",
        "military", "other facility")  # fmt: skip
RACES = ("white", "black", "native", "asian", "pacific", "other")
CENRACE = tuple("+".join(group) for n in range(1, 7) for group in combinations(RACES, n))
"""One to six races: 63 groups."""

RHO = Fraction(293764, 114921)
LEVELS = {"us": 104, "state": 1440, "county": 447, "tract": 687, "block_group": 1256, "block": 165}
_SMALL = ("hispanic", "votingage", "hhinstlevels", "hhgq", "votingage * hispanic")
_QUERIES = {
    "total": (0, 3773, 3126, 1567, 1705, 5),
    "cenrace": (52, 6, 10, 8, 3, 9),
    **dict.fromkeys(_SMALL, (26, 6, 10, 5, 3, 5)),
    "hispanic * cenrace": (130, 12, 28, 1933, 1055, 21),
    "votingage * cenrace": (130, 12, 28, 20, 9, 21),
    "votingage * hispanic * cenrace": (442, 34, 101, 67, 24, 71),
    "detailed": (3213, 230, 754, 482, 1288, 3945),
}


def strategy() -> dict[str, dict[str, Fraction]]:
    """Shares of the queries by level, as the redistricting persons file of 2020 had them."""
    return {
        level: {query: Fraction(text) for query, text in queries.items()}
        for level, queries in _written_strategy().items()
    }


def _written_strategy() -> dict[str, dict[str, str]]:
    """As published: not reduced."""
    found = {}
    for i, level in enumerate(LEVELS):
        weights = {query: numbers[i] for query, numbers in _QUERIES.items() if numbers[i]}
        total = sum(weights.values())
        found[level] = {query: f"{weight}/{total}" for query, weight in weights.items()}
    return found


def spec_text() -> str:
    """The spec, with the shares written out."""
    total = sum(LEVELS.values())
    shares = ", ".join(f"{level}: {n}/{total}" for level, n in LEVELS.items())
    races = fill(", ".join(CENRACE), 96, initial_indent="    ", subsequent_indent="    ")
    lines = []
    for level, queries in _written_strategy().items():
        lines.append(f"  {level}:")
        lines += [f"    {query}: {share}" for query, share in queries.items()]
    return f"""\
# A redistricting file of a made-up state: household type x voting age x ethnicity x race, with the
# budget and the strategy of the persons file of 2020. Every key is explained in docs/spec.md.
release: redistricting
kind: histograms
dataset: made-up-state
data:
  source: data/people.parquet        # one row, one person; a column for each attribute
  area: block
hierarchy:
  source: data/blocks.parquet        # the public list of blocks
  code: {{column: block, width: 15}}
  prefixes: {{state: 2, county: 5, tract: 11, block_group: 12, block: 15}}
  root: {{us: US}}
schema:                              # 8 x 2 x 2 x 63 = 2,016 cells
  hhgq:
    [{", ".join(HHGQ)}]
  votingage: {{ordered: [minor, adult]}}
  hispanic: [not hispanic, hispanic]
  cenrace: [
{races}
  ]
recodes:
  hhinstlevels:
    of: hhgq
    groups:
      household: [{HHGQ[0]}]
      institutional: [{", ".join(HHGQ[1:5])}]
      other: [{", ".join(HHGQ[5:])}]
privacy:
  unit: person
  neighbours: replace
  max_contribution: 1
  mechanism: discrete_gaussian
  budget: {{rho: {RHO}}}
  shares:
    {{{shares}}}
strategy:
{chr(10).join(lines)}
unprotected:
  totals: [state]                    # published exactly
structural_zeros:
  - "votingage = minor and hhgq = nursing: impossible"
constraints:
  - name: facilities                 # at least one person in each, none where there is no facility
    source: data/facilities.parquet
    area: block
    query: hhgq
    facilities: facilities
    open_to_all: [household]
edit_rules:
  - votingage = minor requires votingage = adult
estimate: {{method: gls_topdown}}
output:
  tables:
    default: [total, hispanic * cenrace, votingage * hispanic * cenrace]
    county: [total, hhgq, hispanic * cenrace, votingage * hispanic * cenrace, detailed]
    block: [total, hispanic * cenrace]
  microdata: true
  csv: false
ledger: {{limit: {{rho: 6}}}}
"""


def write_histogram_demo(folder: Path, n_blocks: int = N_BLOCKS) -> None:
    """Write the data and spec.yaml."""
    write_histogram_data(folder, n_blocks)
    write_text(folder / "spec.yaml", spec_text())


def write_histogram_data(folder: Path, n_blocks: int = N_BLOCKS) -> int:
    """Write blocks and facilities (public) and people (confidential); return how many."""
    rng = np.random.default_rng(2020)
    codes = np.array(block_codes(rng, n_blocks))
    people = made_up_people(rng, codes)
    facilities = made_up_facilities(rng, people, n_blocks)
    blocks = pa.array(codes)
    try:
        (folder / "data").mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"block": blocks}), folder / "data" / "blocks.parquet")
        columns = {"block": _coded(people["block"], blocks)}
        for name, labels in ATTRIBUTES.items():
            columns[name] = _coded(people[name], pa.array(labels))
        pq.write_table(pa.table(columns), folder / "data" / "people.parquet")
        block, kind, number = facilities
        table = {"block": blocks.take(pa.array(block)), "hhgq": _coded(kind, pa.array(HHGQ))}
        table["facilities"] = pa.array(number)
        pq.write_table(pa.table(table), folder / "data" / "facilities.parquet")
    except OSError as error:
        raise RunFolderError(f"{folder} could not be written ({error.strerror}).") from None
    return people["block"].size


ATTRIBUTES = {
    "hhgq": HHGQ,
    "votingage": ("minor", "adult"),
    "hispanic": ("not hispanic", "hispanic"),
    "cenrace": CENRACE,
}

_AGES = np.array([0.76, 0.98, 0.05, 1.0, 0.9, 0.97, 1.0, 0.9])
"""Adults among the people of each kind of household or facility."""


def made_up_people(
    rng: np.random.Generator, codes: NDArray[np.str_]
) -> dict[str, NDArray[np.int64]]:
    """Races and ethnicities vary from tract to tract; few blocks have facilities."""
    n_blocks = codes.size
    block = np.repeat(np.arange(n_blocks), block_populations(rng, n_blocks))
    tracts, tract = np.unique([code[:11] for code in codes], return_inverse=True)
    kind_of_block = np.where(rng.random(n_blocks) < 0.015, rng.integers(1, 8, n_blocks), 0)
    in_facility = rng.random(block.size) < 0.7
    hhgq = np.where(in_facility, kind_of_block[block], 0)
    size = np.array([label.count("+") for label in CENRACE])
    common = np.array([0.72, 0.12, 0.01, 0.06, 0.002, 0.07])
    share = np.array([np.prod([common[RACES.index(r)] for r in label.split("+")])
                      for label in CENRACE]) * 0.35**size  # fmt: skip
    mixes = rng.dirichlet(60 * share / share.sum() + 1e-3, size=tracts.size)
    ends = mixes.cumsum(axis=1)
    race = (rng.random(block.size)[:, np.newaxis] > ends[tract[block]]).sum(axis=1)
    hispanic_share = rng.beta(1.2, 7, tracts.size)
    return {
        "block": block,
        "hhgq": hhgq,
        "votingage": (rng.random(block.size) < _AGES[hhgq]).astype(np.int64),
        "hispanic": (rng.random(block.size) < hispanic_share[tract[block]]).astype(np.int64),
        "cenrace": np.minimum(race, len(CENRACE) - 1),
    }


def made_up_facilities(
    rng: np.random.Generator, people: dict[str, NDArray[np.int64]], n_blocks: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Where anyone lives in a facility there is one, or two if there are enough people."""
    place = people["block"] * len(HHGQ) + people["hhgq"]
    number = np.bincount(place, minlength=n_blocks * len(HHGQ))
    where = np.flatnonzero((number > 0) & (np.arange(number.size) % len(HHGQ) > 0))
    facilities = 1 + (rng.random(where.size) < 0.2) * (number[where] > 10)
    return where // len(HHGQ), where % len(HHGQ), facilities


def _coded(index: NDArray[np.int64], labels: pa.Array) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(index.astype(np.int32)), labels)
