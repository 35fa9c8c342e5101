"""Puts the blocks of the United States into data/blocks.parquet, or made-up ones like them.

    python examples/nation/get_data.py            all 51 states, 8,131,456 blocks
    python examples/nation/get_data.py 10         the first ten of them, by code
    python examples/nation/get_data.py 1          one

The census file of 2020 is taken from `shared/data` beside the checkout. Where that is absent, about
as many blocks are generated: same columns, same codes of 15 digits, no real people.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).resolve().parent
BLOCKS = HERE / "data" / "blocks.parquet"
CENSUS = HERE.parents[2] / "shared" / "data" / "census_blocks_2020_us.parquet"
STATES = [f for f in range(1, 57) if f not in (3, 7, 14, 43, 52)]


def main(n_states: int = len(STATES), place: Path = BLOCKS) -> None:
    if CENSUS.is_file():
        table, origin = pq.read_table(CENSUS, columns=["geoid", "pop"]), "census of 2020"
        geoid, pop = (table[column].to_numpy() for column in ("geoid", "pop"))
        chosen = geoid // 10**13 <= STATES[n_states - 1]
        geoid, pop = geoid[chosen], pop[chosen]
    else:
        geoid, pop = made_up_blocks(np.random.default_rng(2020), STATES[:n_states])
        origin = "made up"
    place.parent.mkdir(parents=True, exist_ok=True)
    columns = pa.table({"geoid": geoid, "pop": pop})
    pq.write_table(columns.replace_schema_metadata({"origin": origin}), place)
    print(f"Wrote {place.name}: {geoid.size:,} blocks, {pop.sum():,} people, {origin}.")


def made_up_blocks(rng: np.random.Generator, states: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """About 60 counties in a state, 27 tracts in a county, 3 groups in a tract, 33 blocks each."""
    codes = np.array(states)
    for mean, step, places in ((60, 2, 3), (27, 100, 6), (2.8, 1, 1), (33, 1, 3)):
        children = 1 + rng.poisson(mean - 1, codes.size)
        children = np.minimum(children, (10**places - 1) // step)
        ends = np.cumsum(children)
        number = np.arange(ends[-1]) - np.repeat(ends - children, children)
        codes = np.repeat(codes, children) * 10**places + step * (number + 1)
    people = np.floor(rng.lognormal(3, 1.2, codes.size)) * (rng.random(codes.size) < 0.7)
    return codes, people.astype(np.int32)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
