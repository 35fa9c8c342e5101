"""Puts blocks of Rhode Island and New Mexico into data/, or made-up ones that look like them.

The census files are taken from `shared/data` next to the checkout. If that folder is
absent, small states are generated: the same columns and codes, areas that cut across block groups,
no real people.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).resolve().parent
DATA = HERE / "data"
SHARED = HERE.parents[2] / "shared" / "data"

FILES = {
    "rhode-island": (
        "census_blocks_2020_ri",
        ["geoid", "pop", "place", "cousub", "aiannh", "sduni", "vtd"],
    ),
    "new-mexico": ("census_blocks_2020_nm", ["geoid", "pop", "place", "vtd"]),
    "tribal-areas": ("aiannh_by_bg_2020_approx", ["geoid", "aiannh"]),
}


def main() -> None:
    DATA.mkdir(exist_ok=True)
    is_real = all((SHARED / f"{name}.parquet").is_file() for name, _ in FILES.values())
    tables = census_tables() if is_real else made_up_tables(np.random.default_rng(2020))
    for name, table in tables.items():
        target = DATA / f"{name}.parquet"
        if target.exists():
            print(f"{target.relative_to(HERE)} is there already; delete it to make it again.")
            continue
        pq.write_table(table.replace_schema_metadata(None), target)
        origin = "census of 2020" if is_real else "made up"
        print(f"Wrote {target.relative_to(HERE)}: {table.num_rows:,} rows, {origin}.")


def census_tables() -> dict[str, pa.Table]:
    return {
        name: pq.read_table(SHARED / f"{file}.parquet", columns=columns)
        for name, (file, columns) in FILES.items()
    }


def made_up_tables(rng: np.random.Generator) -> dict[str, pa.Table]:
    island, mexico = made_up_state(rng, "44", 60), made_up_state(rng, "35", 120)
    groups = sorted({code[:12] for code in mexico["geoid"].to_pylist()})
    tribal = [f"{i // 6:04d}R" for i in range(len(groups)) if i % 12 < 3]
    listed = [group for i, group in enumerate(groups) if i % 12 < 3]
    return {
        "rhode-island": island,
        "new-mexico": mexico.select(["geoid", "pop", "place", "vtd"]),
        "tribal-areas": pa.table({"geoid": listed, "aiannh": tribal}),
    }


def made_up_state(rng: np.random.Generator, state: str, n_tracts: int) -> pa.Table:
    """Tracts of three block groups with 15 to 40 blocks; areas begin and end anywhere."""
    codes = [
        f"{state}{2 * (tract // 12) + 1:03d}{100 * (tract % 12 + 1):06d}{group + 1}{block:03d}"
        for tract in range(n_tracts)
        for group in range(3)
        for block in range(rng.integers(15, 40))
    ]
    n_blocks = len(codes)
    people = np.where(rng.random(n_blocks) < 2 / 3, rng.poisson(rng.lognormal(3, 1, n_blocks)), 0)
    columns = {"geoid": codes, "pop": people.astype("int32")}
    for name, typical, share in (
        ("place", 90, 0.5), ("cousub", 250, 1.0), ("aiannh", 60, 0.05), ("sduni", 400, 1.0),
        ("vtd", 50, 1.0),
    ):  # fmt: skip
        columns[name] = made_up_areas(rng, n_blocks, typical, share)
    return pa.table(columns)


def made_up_areas(
    rng: np.random.Generator, n_blocks: int, typical: int, share: float
) -> list[str | None]:
    """Runs of blocks of unequal length, each an area with probability `share`."""
    found: list[str | None] = []
    number = 0
    while len(found) < n_blocks:
        number += 1
        is_area = rng.random() < share or number == 1
        found += [f"{number:05d}" if is_area else None] * int(rng.integers(1, 2 * typical))
    return found[:n_blocks]


if __name__ == "__main__":
    main()
