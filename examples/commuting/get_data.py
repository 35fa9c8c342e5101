"""Puts commuters into data/, those of the census of 2000 or made-up ones like them.

    data/flows.parquet    home, work, workers    confidential: how many live here and work there
    data/tracts.parquet   tract                  public: the list of tracts

The file of the census is taken from `shared/data` beside the checkout; where that is absent, flows
are generated: same columns and codes, no real people. The list of tracts stands in for the official
one. It is made of all codes of the file, which an office must not do: a tract would then be listed
because someone works there.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).resolve().parent
FLOWS, TRACTS = HERE / "data" / "flows.parquet", HERE / "data" / "tracts.parquet"
CENSUS = HERE.parents[2] / "shared" / "data" / "od_flows_tract_2000_us.parquet"

STATES, COUNTIES, TRACTS_OF_COUNTY, DRAWS = 6, 8, 12, 20_000


def main() -> None:
    if TRACTS.exists():
        origin = (pq.read_schema(TRACTS).metadata or {}).get(b"origin", b"unknown origin").decode()
        print(f"data/ is filled already ({origin}); delete it to make it again.")
        return
    if CENSUS.is_file():
        flows, origin = pq.read_table(CENSUS), "census of 2000"
    else:
        flows, origin = made_up_flows(np.random.default_rng(2000)), "made up"
    codes = np.unique(np.concatenate([flows["home"].to_numpy(), flows["work"].to_numpy()]))
    tracts = pa.table({"tract": codes})
    FLOWS.parent.mkdir(exist_ok=True)
    for path, table in ((FLOWS, flows), (TRACTS, tracts)):
        pq.write_table(table.replace_schema_metadata({"origin": origin}), path)
    workers = sum(flows["workers"].to_pylist())
    print(f"Wrote data/: {len(flows):,} pairs of {len(codes):,} tracts, {workers:,} workers, "
          f"{origin}.")  # fmt: skip


def made_up_flows(rng: np.random.Generator) -> pa.Table:
    """Most work in their own county, some in the next, a few anywhere."""
    areas = STATES * COUNTIES * TRACTS_OF_COUNTY
    home = rng.integers(0, areas, DRAWS)
    reach = np.array([TRACTS_OF_COUNTY, TRACTS_OF_COUNTY * COUNTIES, areas])
    block = rng.choice(reach, DRAWS, p=[0.7, 0.25, 0.05])
    work = home // block * block + rng.integers(0, block)
    keys = np.unique(home * areas + work)
    home, work = np.divmod(keys, areas)
    workers = np.rint(4 / (1 - rng.random(keys.size)) ** 0.7).astype(np.int64)
    return pa.table({"home": codes(home), "work": codes(work), "workers": workers})


def codes(areas: np.ndarray) -> np.ndarray:
    """State, county and tract as one number of eleven digits."""
    county, tract = np.divmod(areas, TRACTS_OF_COUNTY)
    state, county = np.divmod(county, COUNTIES)
    return (state + 10) * 10**9 + (2 * county + 1) * 10**6 + (tract + 1) * 100


if __name__ == "__main__":
    main()
