"""A made-up state to try things on: skewed and sparse like a real one, and no one lives there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from trellis.errors import RunFolderError
from trellis.storage.atomic import write_text

N_BLOCKS = 50_000

SPEC = """\
# A complete release of a made-up state. Every key is explained in docs/spec.md.
release: demo
kind: counts
dataset: demo-state                # the ledger adds up what is spent on this data set
data:
  source: data/people.parquet      # one row, one person
  area: block
hierarchy:
  source: data/blocks.parquet      # the public list of blocks
  code: {column: block, width: 15}
  prefixes: {state: 2, county: 5, tract: 11, block_group: 12, block: 15}
privacy:
  unit: person                     # who is protected
  neighbours: replace              # against any change of one person's record
  max_contribution: 1              # a person has one record
  mechanism: discrete_gaussian
  budget: {rho: 1}
  shares: {county: 1/15, tract: 2/15, block_group: 4/15, block: 8/15}
unprotected:
  totals: [state]                  # published exactly
estimate: {method: gls_topdown}
output: {confidence: 9/10, csv: true}
ledger: {limit: {rho: 4}}
"""


def write_demo(folder: Path, n_blocks: int = N_BLOCKS) -> None:
    """Write data/blocks.parquet (public), data/people.parquet (confidential) and spec.yaml."""
    rng = np.random.default_rng(2020)
    codes = block_codes(rng, n_blocks)
    people = np.repeat(np.arange(n_blocks), block_populations(rng, n_blocks))
    rng.shuffle(people)
    blocks = pa.array(codes)
    try:
        (folder / "data").mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"block": blocks}), folder / "data" / "blocks.parquet")
        rows = pa.DictionaryArray.from_arrays(pa.array(people.astype(np.int32)), blocks)
        pq.write_table(pa.table({"block": rows}), folder / "data" / "people.parquet")
    except OSError as error:
        raise RunFolderError(f"{folder} could not be written ({error.strerror}).") from None
    write_text(folder / "spec.yaml", SPEC)


def block_codes(rng: np.random.Generator, n_blocks: int) -> list[str]:
    """State 99, with counties, tracts, block groups and blocks of very unequal size."""
    n_tracts = max(2, n_blocks // 100)
    tract_county = _unequal_parts(rng, n_tracts, max(2, n_tracts // 15))
    group_tract = np.repeat(np.arange(n_tracts), rng.integers(1, 6, n_tracts))
    block_group = _unequal_parts(rng, n_blocks, group_tract.size)
    tract_number, group_number = _number_within(tract_county), _number_within(group_tract)
    codes = []
    for group, block in zip(block_group, _number_within(block_group), strict=True):
        tract = group_tract[group]
        county = f"99{2 * tract_county[tract] + 1:03d}"
        codes.append(
            f"{county}{100 * (tract_number[tract] + 1):06d}{group_number[group] + 1}{block:03d}"
        )
    return codes


def block_populations(rng: np.random.Generator, size: int) -> np.ndarray:
    """About four in ten blocks are empty; the others follow a heavy-tailed law."""
    typical = rng.lognormal(3.0, 1.1, size)
    inhabited = rng.random(size) < 0.6
    return np.where(inhabited, rng.poisson(typical), 0)


def _unequal_parts(rng: np.random.Generator, n_items: int, n_parts: int) -> np.ndarray:
    """The part of each item, in order; every part has at least one item."""
    weights = rng.lognormal(0, 0.7, n_parts)
    sizes = 1 + rng.multinomial(n_items - n_parts, weights / weights.sum())
    return np.repeat(np.arange(n_parts), sizes)


def _number_within(parts: np.ndarray) -> np.ndarray:
    """0, 1, 2, .. within each run of equal parts."""
    first = np.flatnonzero(np.r_[True, parts[1:] != parts[:-1]])
    return np.arange(parts.size) - np.repeat(first, np.diff(np.append(first, parts.size)))
