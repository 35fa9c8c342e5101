"""Measuring only what `topdown` uses, against measuring completely, on a made-up state.

The strategy of the 2020 redistricting persons file with `output.measurements: complete` and `used`
in one process, after a small run of each that compiles the kernels: values drawn, bytes on disk,
and seconds. Under `used`, the inner levels are fitted while measuring, so the sum of both stages is
what counts. `python benchmarks/histogram_used.py 20000` chooses the number of blocks.
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from pathlib import Path

import pyarrow.parquet as pq
import yaml
from histogram_state import Clock

import trellis
from trellis.samples.redistricting import write_histogram_demo

N_BLOCKS = 6_000
CHOICES = ("complete", "used")


def run(folder: Path, n_blocks: int, choice: str) -> dict[str, float]:
    write_histogram_demo(folder, n_blocks)
    content = yaml.safe_load((folder / "spec.yaml").read_text(encoding="utf-8"))
    content["estimate"] = {"method": "topdown"}
    content["output"]["measurements"] = choice
    clock = Clock()
    release = trellis.run(trellis.Spec.parse(content, folder), progress=clock)
    parts = list((release.path / "measurements").rglob("part-*.parquet"))
    files = [path for path in (release.path / "measurements").rglob("*") if path.is_file()]
    return {
        "values": sum(pq.read_metadata(part).num_rows for part in parts),
        "MB": sum(file.stat().st_size for file in files) / 1e6,
        "measure": clock.seconds["measure"],
        "estimate": clock.seconds["estimate"],
        "both": clock.seconds["measure"] + clock.seconds["estimate"],
    }


def main() -> int:
    n_blocks = int(sys.argv[1]) if len(sys.argv) > 1 else N_BLOCKS
    found = {}
    for blocks in (300, n_blocks):
        for choice in CHOICES:
            with tempfile.TemporaryDirectory() as folder:
                found[choice] = run(Path(folder), blocks, choice)
    machine = f"{platform.machine()}, {len(os.sched_getaffinity(0))} processors"
    print(f"{machine}, load {os.getloadavg()[0]:.1f}; {n_blocks:,} blocks, topdown; seconds\n")
    print(f"{'':10}" + "".join(f"{name:>14}" for name in found["used"]))
    for choice in CHOICES:
        drawn, *rest = found[choice].values()
        print(f"{choice:10}{drawn:>14,}" + "".join(f"{value:>14.2f}" for value in rest))
    ratios = [found["used"][name] / found["complete"][name] for name in found["used"]]
    print(f"{'ratio':10}" + "".join(f"{ratio:>14.3f}" for ratio in ratios))
    return 0


if __name__ == "__main__":
    sys.exit(main())
