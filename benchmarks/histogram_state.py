"""A made-up state with the budget and strategy of the 2020 redistricting persons file, end to end.

Household type x voting age x ethnicity x race, 2,016 cells, 11 query groups on six levels, at three
sizes; the largest has as many blocks as Wyoming. Each size runs in a process of its own, after one
small run that compiles the kernels: measure, estimate, tables, microdata, report. Peak memory is
that of the process. `python benchmarks/histogram_state.py --verify` verifies the largest run too.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

from trellis.workflow.progress import Silent

SIZES = (6_000, 20_000, 60_000)
NATION = 8_000_000


class Clock(Silent):
    """Notes how long each stage takes."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        begin = perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + perf_counter() - begin


def one_size(folder: Path, n_blocks: int, verify: bool) -> dict[str, object]:
    import trellis
    from trellis.samples.redistricting import write_histogram_demo

    write_histogram_demo(folder, n_blocks)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    clock, begin = Clock(), perf_counter()
    release = trellis.run(trellis.Spec.load(folder / "spec.yaml"), progress=clock)
    total = perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    files = list((release.path / "measurements").rglob("*.parquet"))
    result: dict[str, object] = {
        "blocks": n_blocks,
        "people": release.table("us", "total")["count"][0].as_py(),
        "seconds": {**clock.seconds, "rest": total - sum(clock.seconds.values())},
        "total": total,
        "peak_mb": peak,
        "before_mb": before / 1024,
        "measurements_mb": sum(p.stat().st_size for p in files) / 1e6,
    }
    if verify:
        from trellis.verify import verify_run

        begin = perf_counter()
        broken = [finding.check for finding in verify_run(release.path) if finding.problems]
        result["verify"] = perf_counter() - begin
        result["broken"] = broken
    return result


def run(n_blocks: int, verify: bool = False) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        arguments = [sys.executable, __file__, "--one", folder, str(n_blocks), str(int(verify))]
        done = subprocess.run(arguments, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> int:
    if "--one" in sys.argv:
        folder, n_blocks, verify = sys.argv[sys.argv.index("--one") + 1 :]
        print(json.dumps(one_size(Path(folder), int(n_blocks), verify == "1")))
        return 0
    run(300)  # compiles
    largest = max(SIZES)
    results = [run(n, verify="--verify" in sys.argv and n == largest) for n in SIZES]
    machine = f"{platform.machine()}, {len(os.sched_getaffinity(0))} processors"
    print(f"{machine}, load {os.getloadavg()[0]:.1f}; one run of each size, warm; seconds\n")
    stages = ["plan", "tabulate", "measure", "estimate", "release", "rest"]
    columns = ["blocks", "people", *stages, "total", "peak MB", "files MB"]
    print("".join(f"{name:>10}" for name in columns))
    for r in results:
        row = [f"{r['blocks']:,}", f"{r['people']:,}"]
        row += [f"{r['seconds'].get(stage, 0.0):.1f}" for stage in stages]
        row += [f"{r['total']:.1f}", f"{r['peak_mb']:.0f}", f"{r['measurements_mb']:.0f}"]
        print("".join(f"{value:>10}" for value in row))
    small, large = results[0], results[-1]
    blocks = large["blocks"] - small["blocks"]
    time = (large["total"] - small["total"]) / blocks
    memory = (large["peak_mb"] - small["peak_mb"]) / blocks
    disk = large["measurements_mb"] / large["blocks"]
    fixed = small["total"] - time * small["blocks"]
    print(f"\nper 1,000 blocks: {1000 * time:.2f} s, {1000 * memory:.1f} MB of memory, "
          f"{1000 * disk:.2f} MB of measurements; fixed: {fixed:.1f} s")  # fmt: skip
    print(f"a nation of {NATION:,} blocks, state by state: {NATION * time / 3600:.1f} h on these "
          f"processors, {NATION * disk / 1000:.0f} GB of measurements")  # fmt: skip
    if "verify" in large:
        print(f"verify, largest: {large['verify']:.1f} s, broken promises: {large['broken']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
