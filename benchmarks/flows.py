"""Flows: the projection, the published experiments, US commuters, and a very large set.

`python -m benchmarks flows` prints tables, each number with its target beside it. Whole releases
are made in processes of their own, warm: kernels are compiled before. Memory is the most that a
process held.
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
from _flow_comparison import (
    FEWER_LEVELS,
    HALVING,
    RUNS,
    US,
    compare_all,
    level_comparison,
    us_comparison,
)
from _flow_data import (
    PUBLISHED,
    REFERENCE_SECONDS,
    FlowData,
    balanced,
    gravity_flows,
    published_sets,
)
from _flow_estimators import compare_on_fewer_levels, estimated
from _flow_mechanisms import (
    Errors,
    all_levels,
    descent,
    errors,
    exact_noise,
    mean_errors,
    published_noise,
    tables_of,
    written_out,
)

from trellis.estimate import project_chebyshev, project_chebyshev_families, project_l2_families

EPSILONS = (Fraction(1, 10), Fraction(1), Fraction(10))
DEFAULT = "gls_chebyshev"
FAMILIES = 5000


def met(holds: bool) -> str:
    return "met" if holds else "MISSED"


def optimality() -> None:
    """Against the least distance that leaves room for the total, found by trying 0, 1, 2, ..."""
    rng = np.random.default_rng(0)
    optimal, kinds = 0, {"total of zero": 0, "single child": 0, "all negative": 0}
    for number in range(FAMILIES):
        size = 1 if number % 10 == 0 else int(rng.integers(2, 12))
        x = rng.integers(-40, 0 if number % 7 == 0 else 60, size)
        total = 0 if number % 5 == 0 else int(rng.integers(0, 120))
        y = project_chebyshev(x, total, "ascending" if number % 2 else "descending")
        least = 0
        while not (
            (x + least >= 0).all() and np.maximum(x - least, 0).sum() <= total <= (x + least).sum()
        ):
            least += 1
        optimal += bool(y.sum() == total and (y >= 0).all() and np.abs(y - x).max() == least)
        kinds["total of zero"] += total == 0
        kinds["single child"] += size == 1
        kinds["all negative"] += bool((x < 0).all())
    print(f"Chebyshev projection: optimal in {optimal:,} of {FAMILIES:,} random families "
          f"({', '.join(f'{n} {name}' for name, n in kinds.items())}); target all: "
          f"{met(optimal == FAMILIES)}")  # fmt: skip


def projection() -> None:
    print("\nProjection of 4 million children, one thread, ns per child; O(b log b)")
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


def as_published(data: FlowData, epsilon: Fraction, *, exact: bool = False) -> Errors:
    """InfTDA with the noise of the published code, or with that of the exact accountant."""
    levels, flows = len(data.tree.shape.steps), data.flows
    noise = (exact_noise if exact else published_noise)(epsilon, levels)
    truth = all_levels(data, written_out(data, flows.origin, flows.destination, flows.count))
    found = [descent(data, noise, "chebyshev", seed=100 * i) for i in range(RUNS)]
    return mean_errors([errors(truth, tables_of(data, f)) for f in found])


def published() -> None:
    sets = published_sets()
    same = compare_all(sets, EPSILONS)
    print(f"\nSets of the paper, delta = 1e-8, `{DEFAULT}`, means of {RUNS} runs. Targets: leaf "
          "largest error at most 0.75 of\nthe published one; below InfTDA as published on every "
          "level of ten pairs or more; fewer false discoveries")  # fmt: skip
    print(f"{'set':>16} {'eps':>4} {'leaf error':>10} {'published':>9} {'ratio':>6} {'':>6} "
          f"{'worst level':>11} {'':>6} {'FDR %':>6} {'InfTDA':>6}")  # fmt: skip
    for data in sets:
        wide = np.array(data.tree.sizes) >= 10
        for place, epsilon in enumerate(EPSILONS):
            ours, theirs = same[data.name, epsilon][DEFAULT], as_published(data, epsilon)
            ratio = ours.largest[-1] / PUBLISHED[data.name][place]
            worst = (ours.largest[wide] / theirs.largest[wide]).max()
            rates = [100 * e.false_discovery[-1] for e in (ours, theirs)]
            fewer = "" if "complete" in data.name else met(rates[0] < rates[1])
            print(f"{data.name:>16} {float(epsilon):>4g} {ours.largest[-1]:>10.1f} "
                  f"{PUBLISHED[data.name][place]:>9g} {ratio:>6.2f} {met(ratio <= 0.75):>6} "
                  f"{worst:>11.2f} {met(worst < 1):>6} {rates[0]:>6.1f} {rates[1]:>6.1f} "
                  f"{fewer:>6}")  # fmt: skip
    print("\nEstimators on the same measurements: `chebyshev` in numbers, others as ratios to it")
    print(level_comparison(same))
    if US.is_file():
        table, names = us_comparison()
        print(f"\nUS tracts on the levels {names}\n{table}", flush=True)


def cpu_time() -> None:
    print("\nCPU seconds at epsilon = 1; target at least 100 times less than the published code")
    print(f"{'set':>16} {'published':>10} {'chebyshev, in memory':>21} {'times':>7} "
          f"{DEFAULT + ', with files':>26} {'times':>7}")  # fmt: skip
    one = Fraction(1)
    for data in published_sets():
        if data.name not in REFERENCE_SECONDS:
            continue
        noise, spent = exact_noise(one, len(data.tree.shape.steps)), []
        for once in (lambda d=data, n=noise: descent(d, n, "chebyshev"),
                     lambda d=data: next(estimated(d, one, [DEFAULT], 1))):  # fmt: skip
            once()
            begin = process_time()
            for _ in range(RUNS):
                once()
            spent.append((process_time() - begin) / RUNS)
        times = [REFERENCE_SECONDS[data.name] / s for s in spent]
        print(f"{data.name:>16} {REFERENCE_SECONDS[data.name]:>10} {spent[0]:>21.3f} "
              f"{times[0]:>7,.0f} {spent[1]:>26.3f} {times[1]:>7,.0f} "
              f"{met(min(times) >= 100)}")  # fmt: skip


def false_discoveries() -> None:
    print("\nSparse sets at epsilon = 1; target: half of the false discoveries of InfTDA (all of "
          "its\nbudget spent) at most 1.25 times its largest error on the leaves")  # fmt: skip
    print(f"{'set':>16} {'setting':>32} {'leaf error':>10} {'ratio':>6} {'FDR %':>6} {'half':>6}")
    for data in published_sets():
        if data.name not in FEWER_LEVELS:
            continue
        kept = FEWER_LEVELS[data.name]
        plain = as_published(data, Fraction(1), exact=True)
        ours = compare_on_fewer_levels(data, kept, Fraction(1), [HALVING], RUNS)[HALVING]
        half = 50 * plain.false_discovery[-1]
        ratio, rate = ours.largest[-1] / plain.largest[-1], 100 * ours.false_discovery[-1]
        print(
            f"{data.name:>16} {'InfTDA':>32} {plain.largest[-1]:>10.1f} {1:>6.2f} {2 * half:>6.1f}"
        )
        setting = f"levels {kept[1]} and {kept[2]}, {HALVING}"
        print(f"{data.name:>16} {setting:>32} {ours.largest[-1]:>10.1f} {ratio:>6.2f} {rate:>6.1f} "
              f"{half:>6.1f} {met(ratio <= 1.25 and rate <= half)}", flush=True)  # fmt: skip


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


def show(name: str, pairs: int, found: dict, target: str = "", holds: bool = True) -> None:
    print(f"{name:>28} {pairs:>12,} {found['rows']:>12,} {found['wall']:>7.1f} "
          f"{found['cpu']:>7.1f} {1e6 * found['cpu'] / pairs:>15.2f} {found['gigabytes']:>6.2f} "
          f"{target and f'{target}: {met(holds)}'}", flush=True)  # fmt: skip


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
        times = []
        for part in (4, 2, 1):
            some = table.take(pa.array(np.sort(order[: len(table) // part])))
            found = released(folder / f"us{part}", some, codes, widths)
            times.append(found["cpu"])
            if part > 1:
                show(f"US tracts, 1/{part} of the pairs", len(some), found)
            else:
                fits = found["wall"] <= 30 and found["gigabytes"] <= 4
                show("US tracts, all pairs", len(some), found, "30 s, 4 GB", fits)
        growth = times[2] / times[0]
        print(f"{'four times the pairs take':>28} {growth:.1f} times the CPU; near-linear, at most "
              f"4.8: {met(growth <= 4.8)}")  # fmt: skip
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
    found = released(folder / "large", table, codes, widths)
    show("300,000 areas", pairs, found, "8 GB", found["gigabytes"] <= 8)


def large_codes() -> np.ndarray:
    """Codes of 20 x 5 x 75 x 4 x 10 areas as numbers: two digits, one, two, one, two."""
    parts = np.unravel_index(np.arange(300_000), (20, 5, 75, 4, 10))
    codes = np.zeros(300_000, dtype=np.int64)
    for part, width in zip(parts, (100, 10, 100, 10, 100), strict=True):
        codes = codes * width + part
    return codes


def main() -> None:
    optimality()
    projection()
    published()
    cpu_time()
    false_discoveries()
    with tempfile.TemporaryDirectory() as folder:
        whole_releases(Path(folder))


if __name__ == "__main__":
    main()
