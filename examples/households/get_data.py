"""Puts households by size into data/, those of the census of 2000 or made-up ones like them.

    data/sizes.parquet    geoid, size, households    confidential: how many have which size
    data/tracts.parquet   geoid, households          public: how many there are

The census file (California and Massachusetts) is taken from `shared/data` beside the checkout.
Where that is absent, tracts are generated: same columns and codes, no real people.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).resolve().parent
SIZES, TRACTS = HERE / "data" / "sizes.parquet", HERE / "data" / "tracts.parquet"
CENSUS = HERE.parents[2] / "shared" / "data" / "household_size_tract_2000_ca_ma.parquet"
COLUMNS = ["h1", "h2", "h3", "h4", "h5", "h6", "h7p"]

COUNTIES_OF_STATE = {"06": 58, "25": 14}
SHARES = [0.24, 0.30, 0.16, 0.15, 0.08, 0.04, 0.03]
N_TRACTS = 1_500


def main() -> None:
    if TRACTS.exists():
        origin = (pq.read_schema(TRACTS).metadata or {}).get(b"origin", b"unknown origin").decode()
        print(f"data/ is filled already ({origin}); delete it to make it again.")
        return
    if CENSUS.is_file():
        table, origin = pq.read_table(CENSUS, columns=["geoid", *COLUMNS]), "census of 2000"
        codes = table["geoid"].to_pylist()
        counts = np.stack([table[column].to_numpy() for column in COLUMNS], axis=1)
    else:
        codes, counts = made_up_tracts(np.random.default_rng(2000))
        origin = "made up"
    SIZES.parent.mkdir(exist_ok=True)
    n_tracts, n_sizes = counts.shape
    sizes = {
        "geoid": np.repeat(np.array(codes, dtype=object), n_sizes),
        "size": np.tile(np.arange(1, n_sizes + 1), n_tracts),  # the last stands for 7 and more
        "households": counts.astype(np.int64).ravel(),
    }
    tracts = {"geoid": codes, "households": counts.sum(axis=1).astype(np.int64)}
    for path, columns in ((SIZES, sizes), (TRACTS, tracts)):
        pq.write_table(pa.table(columns).replace_schema_metadata({"origin": origin}), path)
    print(f"Wrote data/: {n_tracts:,} tracts, {counts.sum():,} households, {origin}.")


def made_up_tracts(rng: np.random.Generator) -> tuple[list[str], np.ndarray]:
    """Tracts of about 1,600 households; some have larger ones than others."""
    counties = [f"{s}{2 * i + 1:03d}" for s, n in COUNTIES_OF_STATE.items() for i in range(n)]
    weights = rng.lognormal(0, 1, len(counties))
    per_county = 1 + rng.multinomial(N_TRACTS - len(counties), weights / weights.sum())
    codes = [
        f"{county}{100 * (number + 1):06d}"
        for county, n_tracts in zip(counties, per_county, strict=True)
        for number in range(n_tracts)
    ]
    shares = rng.dirichlet(30 * np.array(SHARES), len(codes))
    totals = rng.poisson(rng.lognormal(7.2, 0.6, len(codes)))
    return codes, rng.multinomial(totals, shares)


if __name__ == "__main__":
    main()
