"""Makes up the people of a state, its list of blocks and its facilities, in data/.

    python examples/redistricting/make_data.py          6,000 blocks
    python examples/redistricting/make_data.py 60000    as many as Wyoming has

Nobody lives there. The attributes are those of the redistricting persons file.
"""

from __future__ import annotations

import sys
from pathlib import Path

from trellis.samples.redistricting import N_BLOCKS, write_histogram_data

HERE = Path(__file__).resolve().parent


def main() -> None:
    if (HERE / "data" / "people.parquet").exists():
        print("data/ is there already; delete it to make it again.")
        return
    n_blocks = int(sys.argv[1]) if len(sys.argv) > 1 else N_BLOCKS
    people = write_histogram_data(HERE, n_blocks)
    print(f"Wrote data/: {people:,} people in {n_blocks:,} blocks, all made up.")


if __name__ == "__main__":
    main()
