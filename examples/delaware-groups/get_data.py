"""Puts the blocks of Delaware into data/blocks.parquet, or made-up ones that look like them.

Counts by voting age and eight groups: Hispanic, and six races and two or more among all others. The
census file is taken from `shared/data` beside the checkout; where that is absent, blocks are made
up: same columns, same form of codes, no real people.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).resolve().parent
TARGET = HERE / "data" / "blocks.parquet"
CENSUS = HERE.parents[2] / "shared" / "data" / "census_blocks_2010_de.parquet"
GROUPS = ("hisp", "white", "black", "aian", "asian", "nhpi", "other", "two")
SHARES = (0.08, 0.65, 0.21, 0.003, 0.032, 0.0003, 0.002, 0.0227)


def main() -> None:
    if TARGET.exists():
        origin = (pq.read_schema(TARGET).metadata or {}).get(b"origin", b"unknown origin").decode()
        print(f"{TARGET.relative_to(HERE)} is there already ({origin}); delete it to remake it.")
        return
    columns = ["geoid", *(f"{kind}_{group}" for kind in ("pop", "vap") for group in GROUPS)]
    if CENSUS.is_file():
        table, origin = pq.read_table(CENSUS, columns=columns), "census of 2010"
    else:
        table, origin = made_up_blocks(np.random.default_rng(2010)), "made up"
    TARGET.parent.mkdir(exist_ok=True)
    pq.write_table(table.replace_schema_metadata({"origin": origin}), TARGET)
    print(f"Wrote {TARGET.relative_to(HERE)}: {table.num_rows:,} blocks, {origin}.")


def made_up_blocks(rng: np.random.Generator) -> pa.Table:
    """Three counties of 30 tracts, each of two block groups of ten blocks."""
    codes = [
        f"10{county:03d}{100 * tract:06d}{group}{block:03d}"
        for county in (1, 3, 5)
        for tract in range(1, 31)
        for group in (1, 2)
        for block in range(10)
    ]
    people = np.where(
        rng.random(len(codes)) < 2 / 3, rng.poisson(rng.lognormal(3.3, 1, len(codes))), 0
    )
    by_group = rng.multinomial(people, np.array(SHARES) / sum(SHARES))
    adults = rng.binomial(by_group, 0.77)
    counts = {f"pop_{group}": by_group[:, i] for i, group in enumerate(GROUPS)}
    counts |= {f"vap_{group}": adults[:, i] for i, group in enumerate(GROUPS)}
    return pa.table({"geoid": codes, **{k: v.astype("int32") for k, v in counts.items()}})


if __name__ == "__main__":
    main()
