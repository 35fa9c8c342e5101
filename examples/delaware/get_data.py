"""Puts the blocks of Delaware into data/blocks.parquet, or made-up ones that look like them.

The census file is taken from `shared/data` beside the checkout. Where that is absent, blocks are
generated: same columns, same codes of 15 digits, about as many areas on each level, no real people.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).resolve().parent
TARGET = HERE / "data" / "blocks.parquet"
CENSUS = HERE.parents[2] / "shared" / "data" / "census_blocks_2010_de.parquet"
COLUMNS = ["geoid", "pop", "vap"]

TRACTS_OF_COUNTY = {"10001": 33, "10003": 131, "10005": 54}
N_GROUPS, N_BLOCKS = 574, 24_115


def main() -> None:
    if TARGET.exists():
        origin = (pq.read_schema(TARGET).metadata or {}).get(b"origin", b"unknown origin").decode()
        print(f"{TARGET.relative_to(HERE)} is there already ({origin}); delete it to remake it.")
        return
    if CENSUS.is_file():
        table, origin = pq.read_table(CENSUS, columns=COLUMNS), "census of 2010"
    else:
        table, origin = made_up_blocks(np.random.default_rng(2010)), "made up"
    TARGET.parent.mkdir(exist_ok=True)
    pq.write_table(table.replace_schema_metadata({"origin": origin}), TARGET)
    print(f"Wrote {TARGET.relative_to(HERE)}: {table.num_rows:,} blocks, {origin}.")


def made_up_blocks(rng: np.random.Generator) -> pa.Table:
    """Blocks of very unequal size, a third of them empty; adults are about three in four."""
    tracts = [
        f"{county}{100 * (number + 1):06d}"
        for county, n_tracts in TRACTS_OF_COUNTY.items()
        for number in range(n_tracts)
    ]
    n_small = 3 * len(tracts) - N_GROUPS  # tracts of two block groups; the others have three
    groups = [
        f"{tract}{number + 1}"
        for tract, rank in zip(tracts, rng.permutation(len(tracts)), strict=True)
        for number in range(2 if rank < n_small else 3)
    ]
    codes = [
        f"{groups[group]}{number:03d}"
        for group, n_blocks in enumerate(unequal_sizes(rng, N_BLOCKS, N_GROUPS))
        for number in range(n_blocks)
    ]
    typical = rng.lognormal(3.3, 1.2, N_BLOCKS)
    people = np.where(rng.random(N_BLOCKS) < 2 / 3, rng.poisson(typical), 0)
    adults = rng.binomial(people, 0.77)
    return pa.table({"geoid": codes, "pop": people.astype("int32"), "vap": adults.astype("int32")})


def unequal_sizes(rng: np.random.Generator, n_items: int, n_parts: int) -> list[int]:
    """Sizes of at least one that sum to `n_items`."""
    weights = rng.lognormal(0, 0.7, n_parts)
    return (1 + rng.multinomial(n_items - n_parts, weights / weights.sum())).tolist()


if __name__ == "__main__":
    main()
