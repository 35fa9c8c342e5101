"""Flows: the projection, the published experiments, US commuters, and a very large set.

`python -m benchmarks flows` prints four tables. Those of whole releases are made in processes of
their own, warm: kernels are compiled before. Memory is the most that a process held.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from fractions import Fraction
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from _flow_data import balanced, gravity_flows, published_sets
from _flow_mechanisms import (
    all_levels,
    descent,
    errors,
    exact_noise,
    mean_errors,
    published_noise,
    tables_of,
    written_out,
)

from trellis.estimate import project_chebyshev_families, project_l2_families

US = Path(__file__).parents[2] / "shared" / "data" / "od_flows_tract_2000_us.parquet"
REFERENCE_SECONDS = {"binary sparse": 28, "random sparse": 19}
"""CPU seconds of the published code at epsilon = 1 on a machine of two cores."""
PUBLISHED_ERROR = {"binary sparse": 132, "random sparse": 117}
RUNS = 10


def projection() -> None:
    print("Projection of 4 million children, one thread, ns per child")
    print(f"{'children':>9} {'chebyshev':>10} {'l2':>8} {'ratio':>6}")
    rng = np.random.default_rng(0)
    for size in (2, 10, 100, 10_000, 1_000_000):
        families = 4_000_000 // size
        x, start = rng.integers(-60, 60, families * size), np.arange(families + 1) * size
        totals = rng.integers(0, 20 * size, families)
        times = []
        for project in (project_chebyshev_families, project_l2_families):
            project(x[:size], start[:2], totals[:1])
            begin = process_time()
            project(x, start, totals, workers=1)
            times.append((process_time() - begin) / x.size * 1e9)
        print(f"{size:>9,} {times[0]:>10.0f} {times[1]:>8.0f} {times[0] / times[1]:>6.1f}")


def published() -> None:
    print(f"\nSparse sets of the paper, epsilon = 1, delta = 1e-8, means of {RUNS} runs")
    print(f"{'set':>14} {'noise':>10} {'leaf max error':>15} {'to published':>13} {'FDR %':>6} "
          f"{'CPU s':>7} {'times faster':>13}")  # fmt: skip
    for data in published_sets():
        if data.name not in REFERENCE_SECONDS:
            continue
        levels = len(data.tree.shape.steps)
        table = written_out(data, data.flows.origin, data.flows.destination, data.flows.count)
        truth = all_levels(data, table)
        for name, noise in (("published", published_noise(Fraction(1), levels)),
                            ("exact", exact_noise(Fraction(1), levels))):  # fmt: skip
            descent(data, noise, "chebyshev")
            runs, begin = [], process_time()
            found = [descent(data, noise, "chebyshev", seed=100 * i) for i in range(RUNS)]
            seconds = (process_time() - begin) / RUNS
            runs = mean_errors([errors(truth, tables_of(data, f)) for f in found])
            print(f"{data.name:>14} {name:>10} {runs.largest[-1]:>15.1f} "
                  f"{runs.largest[-1] / PUBLISHED_ERROR[data.name]:>13.2f} "
                  f"{100 * runs.false_discovery[-1]:>6.1f} {seconds:>7.3f} "
                  f"{REFERENCE_SECONDS[data.name] / seconds:>13,.0f}")  # fmt: skip


def released(folder: Path, pairs: pa.Table, codes: np.ndarray, widths: dict[str, int]) -> dict:
    """A whole release in a process of its own: seconds and memory."""
    folder.mkdir()
    pq.write_table(pairs, folder / "pairs.parquet")
    pq.write_table(pa.table({"area": codes}), folder / "areas.parquet")
    spec = {
        "release": "flows", "kind": "flows", "dataset": "flows",
        "data": {"source": "pairs.parquet", "origin": "home", "destination": "work",
                 "count": "workers"},
        "hierarchy": {"source": "areas.parquet", "prefixes": widths, "root": {"all": "all"},
                      "code": {"column": "area", "width": list(widths.values())[-1]}},
        "privacy": {"unit": "worker", "neighbours": "replace", "max_contribution": 1,
                    "mechanism": "discrete_gaussian", "budget": {"epsilon": 1, "delta": "1e-8"}},
        "output": {"csv": False},
    }  # fmt: skip
    (folder / "spec.json").write_text(json.dumps(spec))
    code = (
        "import json, resource, sys, time, trellis\n"
        "spec = trellis.Spec.parse(json.load(open(sys.argv[1] + '/spec.json')), sys.argv[1])\n"
        "begin = time.perf_counter()\n"
        "release = trellis.run(spec)\n"
        "wall = time.perf_counter() - begin\n"
        "used = resource.getrusage(resource.RUSAGE_SELF)\n"
        "rows = release.table(release.plan.levels[-1]).num_rows\n"
        "print(json.dumps({'wall': wall, 'cpu': used.ru_utime + used.ru_stime,\n"
        "                  'gigabytes': used.ru_maxrss / 1e6, 'rows': rows}))\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(folder)], check=True, text=True,
                          stdout=subprocess.PIPE)  # fmt: skip
    return json.loads(done.stdout)


def show(name: str, pairs: int, found: dict) -> None:
    print(f"{name:>28} {pairs:>12,} {found['rows']:>12,} {found['wall']:>7.1f} "
          f"{found['cpu']:>7.1f} {1e6 * found['cpu'] / pairs:>15.2f} {found['gigabytes']:>6.2f}",
          flush=True)  # fmt: skip


def whole_releases(folder: Path) -> None:
    print(f"\nWhole releases, epsilon = 1, delta = 1e-8: read, measure, estimate, write\n{'':>28} "
          f"{'pairs':>12} {'published':>12} {'wall s':>7} {'CPU s':>7} {'CPU us per pair':>15} "
          f"{'GB':>6}")  # fmt: skip
    if US.is_file():
        table = pq.read_table(US)
        codes = np.unique(np.concatenate([table["home"].to_numpy(), table["work"].to_numpy()]))
        widths = {"state": 2, "county": 5, "tract": 11}
        order = np.random.default_rng(0).permutation(len(table))
        released(folder / "warm", table.slice(0, 1000), codes, widths)
        for part in (4, 2, 1):
            some = table.take(pa.array(np.sort(order[: len(table) // part])))
            found = released(folder / f"us{part}", some, codes, widths)
            show(f"US tracts, 1/{part} of the pairs", len(some), found)
    else:
        print(f"no {US.name} in ../shared/data: left out")
    begin = perf_counter()
    tree = balanced([20, 5, 75, 4, 10])
    flows = gravity_flows(tree, 10_000_000)
    codes = large_codes()
    columns = {"home": codes[flows.origin], "work": codes[flows.destination],
               "workers": flows.count}  # fmt: skip
    table, pairs = pa.table(columns), flows.count.size
    print(f"(300,000 areas made in {perf_counter() - begin:.0f} s)", flush=True)
    widths = {"region": 2, "province": 3, "town": 5, "district": 6, "section": 8}
    show("300,000 areas", pairs, released(folder / "large", table, codes, widths))


def large_codes() -> np.ndarray:
    """Codes of 20 x 5 x 75 x 4 x 10 areas as numbers: two digits, one, two, one, two."""
    parts = np.unravel_index(np.arange(300_000), (20, 5, 75, 4, 10))
    codes = np.zeros(300_000, dtype=np.int64)
    for part, width in zip(parts, (100, 10, 100, 10, 100), strict=True):
        codes = codes * width + part
    return codes


def main() -> None:
    projection()
    published()
    with tempfile.TemporaryDirectory() as folder:
        whole_releases(Path(folder))


if __name__ == "__main__":
    main()
