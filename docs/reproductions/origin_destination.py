"""Writes origin-destination.md and its pictures: the synthetic experiments of the paper, redone.

Run `python docs/reproductions/origin_destination.py`; it takes a few minutes. Data sets and
baselines are those of `benchmarks/`. Noise is fresh in every run, so errors vary a little.

Paper: Boninsegna and Silvestri, "Differentially Private Release of Hierarchical
Origin/Destination Data with a TopDown Approach", PoPETs 2025(3).
"""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path
from time import process_time

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "benchmarks"))

from _flow_comparison import (  # noqa: E402
    FEWER_LEVELS,
    LARGE_RUNS,
    US,
    Found,
    compare_all,
    coverage_table,
    fewer_levels,
    frontier_rows,
    level_comparison,
    summary,
    us_comparison,
)
from _flow_data import (  # noqa: E402
    PUBLISHED,
    PUBLISHED_DISCOVERY,
    REFERENCE_SECONDS,
    FlowData,
    published_sets,
)
from _flow_estimators import compare  # noqa: E402
from _flow_mechanisms import (  # noqa: E402
    Errors,
    all_levels,
    descent,
    errors,
    exact_noise,
    mean_errors,
    published_noise,
    stability_histogram,
    tables_of,
    vanilla_gauss,
    written_out,
)

from trellis.evaluate.charts import Axis, Series, line_chart  # noqa: E402

PAGE = HERE / "origin-destination.md"
RUNS, FEW = 10, 2
EPSILONS = (Fraction(1, 10), Fraction(1), Fraction(10))
PENALTIES = (0.5, 1, 1.5, 2, 3, 4, 5)


class Results:
    """Mean errors and CPU seconds of one mechanism, by set and budget."""

    def __init__(self) -> None:
        self.errors: dict[tuple[str, str, Fraction], Errors] = {}
        self.seconds: dict[tuple[str, str, Fraction], float] = {}
        self.same: Found = {}  # estimators on the same measurements

    def run(self, name: str, data: FlowData, epsilon: Fraction, times: int, once) -> None:
        truth = all_levels(data, written_out(
            data, data.flows.origin, data.flows.destination, data.flows.count
        ))  # fmt: skip
        runs, spent = [], 0.0
        for number in range(times):
            begin = process_time()
            found = once(number)
            spent += process_time() - begin
            if isinstance(found[0], tuple):
                found = tables_of(data, found)
            runs.append(errors(truth, found))
        self.errors[name, data.name, epsilon] = mean_errors(runs)
        self.seconds[name, data.name, epsilon] = spent / times


def measure() -> tuple[Results, list[FlowData]]:
    results, sets = Results(), published_sets()
    for data in sets:
        levels = len(data.tree.shape.steps)
        for epsilon in EPSILONS:
            ours, theirs = exact_noise(epsilon, levels), published_noise(epsilon, levels)
            descent(data, ours, "chebyshev")  # compiled before it is timed

            def down(noise, method, penalty=0.0, data=data):
                return lambda number: descent(data, noise, method, penalty, seed=100 * number)

            plain = {
                "InfTDA as published": down(theirs, "chebyshev"),
                "chebyshev": down(ours, "chebyshev"),
                "chebyshev_descending": down(ours, "chebyshev_descending"),
                "l2": down(ours, "l2"),
                "vanilla_gauss": lambda _, data=data, e=epsilon: vanilla_gauss(data, e),
                "stability_histogram": lambda _, data=data, e=epsilon: stability_histogram(data, e),
            }
            for name, once in plain.items():
                results.run(name, data, epsilon, RUNS, once)
            for penalty in PENALTIES:
                if "sparse" in data.name or penalty == 2:
                    results.run(f"sparse {penalty:g}", data, epsilon, RUNS,
                                down(ours, "sparse", penalty))  # fmt: skip
            if "sparse" in data.name and epsilon == 1:
                results.run("chebyshev_lp", data, epsilon, FEW, down(ours, "chebyshev_lp"))
        print(data.name, flush=True)
    results.same = compare_all(sets, EPSILONS)
    for (name, epsilon), found in results.same.items():
        for estimator, mean in found.items():
            if estimator != "chebyshev":
                results.errors[estimator, name, epsilon] = mean
    for data in sets:
        if "sparse" in data.name:
            names = tuple(f"gls_sparse {p:g}" for p in PENALTIES)
            for epsilon in EPSILONS[1:]:
                for estimator, mean in compare(data, epsilon, names, RUNS).items():
                    results.errors[estimator, data.name, epsilon] = mean
    return results, sets


# -- the page -------------------------------------------------------------------------------------


def leaf_table(results: Results, sets: list[FlowData]) -> str:
    head = (
        "| set | ε | published | InfTDA as published, here | `gls_chebyshev` | ratio to published "
        "| `chebyshev` | `gls_l2` | `l2` | `sparse` 2 |"
    )
    lines = [head, "|---|---|---|---|---|---|---|---|---|---|"]
    for data in sets:
        for place, epsilon in enumerate(EPSILONS):
            names = ("InfTDA as published", "gls_chebyshev", "chebyshev", "gls_l2", "l2",
                     "sparse 2")  # fmt: skip
            cells = [results.errors[name, data.name, epsilon].largest[-1] for name in names]
            published = PUBLISHED[data.name][place]
            lines.append(
                f"| {data.name} | {float(epsilon):g} | {published:g} | {cells[0]:.4g} "
                f"| **{cells[1]:.4g}** | {cells[1] / published:.2f} | "
                f"{' | '.join(f'{cell:.4g}' for cell in cells[2:])} |"
            )
    return "\n".join(lines)


def discovery_table(results: Results, sets: list[FlowData]) -> str:
    names = ("InfTDA as published", "gls_chebyshev", "chebyshev", "chebyshev_descending", "l2",
             "sparse 2", "vanilla_gauss", "stability_histogram")  # fmt: skip
    lines = [f"| set | published | {' | '.join(names)} |", "|---|---|" + "---|" * len(names)]
    for data in sets:
        if "complete" in data.name:
            continue
        found = [results.errors[name, data.name, Fraction(1)] for name in names]
        cells = " | ".join(
            f"{100 * e.false_discovery[-1]:.1f} / {100 * e.false_negative[-1]:.1f}" for e in found
        )
        published = PUBLISHED_DISCOVERY.get(data.name, "")
        lines.append(f"| {data.name} | {published} | {cells} |")
    return "\n".join(lines)


def level_table(results: Results, sets: list[FlowData]) -> str:
    lines = ["| set | ε | ratio of largest errors to InfTDA as published, by level |",
             "|---|---|---|"]  # fmt: skip
    for data in sets:
        for epsilon in EPSILONS:
            ours = results.errors["gls_chebyshev", data.name, epsilon].largest
            theirs = results.errors["InfTDA as published", data.name, epsilon].largest
            shown = [
                f"{a / b:.2f}"
                for a, b, size in zip(ours, theirs, data.tree.sizes, strict=True)
                if size >= 10
            ]
            lines.append(f"| {data.name} | {float(epsilon):g} | {', '.join(shown)} |")
    return "\n".join(lines)


def frontier_table(results: Results, sets: list[FlowData]) -> str:
    head = (
        "| set | ε | estimator | leaf largest error | ratio | false discovery % "
        "| false negative % | mean error | largest error of any level | halves InfTDA |"
    )
    lines = [head, "|---|---|---|---|---|---|---|---|---|---|"]
    few = fewer_levels(sets)
    for name, kept in FEWER_LEVELS.items():
        for epsilon in EPSILONS[1:]:
            priced = [f"{rule} {p:g}" for rule in ("sparse", "gls_sparse") for p in PENALTIES]
            methods = ("InfTDA as published", "chebyshev", "gls_chebyshev", "l2", *priced)
            found = {m: results.errors[m, name, epsilon] for m in methods}
            plain = found["chebyshev"]
            lines.append(frontier_rows(name, epsilon, plain, found))
            if epsilon == 1:
                levels = " and ".join(str(level) for level in kept[1:])
                fewer = {f"levels {levels}: {m}": e for m, e in few[name].items()}
                lines.append(frontier_rows(name, epsilon, plain, fewer))
    return "\n".join(lines)


def time_table(results: Results, sets: list[FlowData]) -> str:
    one = Fraction(1)
    head = (
        "| set | published code, CPU s | `chebyshev`, CPU s | ratio | `l2`, CPU s "
        "| `chebyshev_lp` (HiGHS), CPU s |"
    )
    lines = [head, "|---|---|---|---|---|---|"]
    for data in sets:
        ours, l2 = (results.seconds[n, data.name, one] for n in ("chebyshev", "l2"))
        theirs = REFERENCE_SECONDS.get(data.name)
        program = results.seconds.get(("chebyshev_lp", data.name, one))
        lines.append(
            f"| {data.name} | {theirs or ''} | {ours:.3f} "
            f"| {f'{theirs / ours:,.0f}' if theirs else ''} | {l2:.3f} "
            f"| {'' if program is None else f'{program:.1f}'} |"
        )
    return "\n".join(lines)


def pictures(results: Results, sets: list[FlowData]) -> str:
    """Figures 4 and 5 at epsilon = 1: largest errors and false discoveries by level."""
    links = []
    names = ("InfTDA as published", "chebyshev", "gls_chebyshev", "stability_histogram",
             "vanilla_gauss")  # fmt: skip
    for data in sets:
        levels = list(range(1, len(data.tree.shape.names)))
        lines = [
            Series(n, levels, np.maximum(
                results.errors[n, data.name, Fraction(1)].largest[1:], 1).tolist())
            for n in names
        ]  # fmt: skip
        links.append(_draw(data.name, "largest error", "max-error", Axis("largest error", log=True),
                           lines))  # fmt: skip
    for name in ("binary sparse", "random sparse"):
        data = next(d for d in sets if d.name == name)
        levels = list(range(1, len(data.tree.shape.names)))
        lines = [
            Series(n, levels,
                   (100 * results.errors[n, name, Fraction(1)].false_discovery[1:]).tolist())
            for n in ("InfTDA as published", "chebyshev", "gls_chebyshev", "gls_sparse 2")
        ]  # fmt: skip
        links.append(_draw(name, "false discoveries", "false-discoveries", Axis("%"), lines))
    return "\n".join(links)


def _draw(set_name: str, what: str, stem: str, axis: Axis, lines: list[Series]) -> str:
    file = f"origin-destination-{stem}-{set_name.replace(' ', '-')}.svg"
    title = f"{set_name}, epsilon = 1: {what} by level"
    (HERE / file).write_text(line_chart(title, Axis("level"), axis, lines), encoding="utf-8")
    return f"![{title}]({file})"


def main() -> None:
    results, sets = measure()
    users = "\n".join(
        f"| {d.name} | {d.flows.total:,} | {d.flows.count.size:,} | {d.tree.sizes[-1]:,} |"
        for d in sets
    )
    PAGE.write_text(
        f"""# Flows between areas: the synthetic experiments of InfTDA, redone

Generated by [`origin_destination.py`](origin_destination.py); `make docs` writes it again.

Boninsegna and Silvestri, "Differentially Private Release of Hierarchical Origin/Destination Data
with a TopDown Approach", PoPETs 2025(3), test their mechanism InfTDA on six made-up data sets at
ε = 0.1, 1 and 10 with δ = 1e-8: figures 4 (largest error by level), 5 (false discoveries) and 6
(time). Here are the same experiments, means over {RUNS} runs.

| set | trips | pairs with trips | possible pairs |
|---|---|---|---|
{users}

The published files are not used. Trees and numbers of pairs are as published; flows are Pareto,
Pr(x) ~ x^-2.5, with the published number of trips. "InfTDA as published, here" is the same
projection with the noise of the published code on these data: that code splits its budget over
twice as many levels as there are, and converts ε by the usual bound. Trellis spends all of the
budget, by the exact accountant.

## Largest error on the leaves (figure 4, last level)

{leaf_table(results, sets)}

## By level

On levels with ten pairs or more, coarsest first: the default, `gls_chebyshev`.

{level_table(results, sets)}

## Which estimator wins where

Estimators on the same measurements. For `chebyshev` errors are numbers, for the others ratios to
it: below one, they win. Levels below the root, coarsest first; mean errors are over all possible
pairs. First, on how many levels their errors are smaller:

{summary(results.same)}

{level_comparison(results.same)}

{us_section()}

Measurements below a pair help more when the pair has few children: the sum of the children is then
nearly as precise as the measurement of the pair itself.

## Margins of error

Shares of 90 % intervals that hold the true number, over all levels and runs at ε = 1. "Large"
pairs have more than eight standard deviations of the noise in trips, so that all are listed, like
pairs that are named in advance. Listed pairs in general include more whose noise was high.

{coverage_table(sets)}

## False discoveries and false negatives on the leaves, %, ε = 1 (figure 5)

{discovery_table(results, sets)}

`stability_histogram` lists no false flow and misses most; its sums, on coarser levels, are far off.

## The frontier of false discoveries

A price on every positive flow trades false discoveries against missed flows and the largest error.
"ratio" is to `chebyshev`, which is InfTDA with all of its budget spent; "halves InfTDA" says
whether false discoveries are at most half of those of InfTDA, at no more than 1.25 times its error
on the leaves. With all levels that is out of reach at ε = 1: flows that cannot be told from noise
must be put somewhere. It is reached with levels left out of both hierarchies (binary: 4 and 8 of 8
are kept; random: 3 and 4 of 4), whose budget goes into the others. Sums over areas of the levels
left out are then worse, as the largest error of any level shows.

{frontier_table(results, sets)}

## CPU time (figure 6), ε = 1

{time_table(results, sets)}

The first column was measured once, for the published code, on a machine of two cores; the others
now, in memory, compiled. `chebyshev_lp` solves the same problem as an integer program, and takes
any of many optima: {_lp_errors(results)}.

## Pictures

{pictures(results, sets)}
""",
        encoding="utf-8",
    )
    print(f"Wrote {PAGE}.")


def us_section() -> str:
    if not US.is_file():
        return f"Commuters between US tracts are left out: there is no {US.name} in shared/data."
    table, names = us_comparison()
    return f"""Commuters between US tracts (1.7 million pairs, ε = 1, {LARGE_RUNS} runs), on the
levels {names}; mean errors are over pairs that are listed or have a trip:

{table}"""


def _lp_errors(results: Results) -> str:
    parts = []
    for name in ("binary sparse", "random sparse"):
        theirs, ours = (results.errors[m, name, Fraction(1)] for m in ("chebyshev_lp", "chebyshev"))
        rates = [f"{100 * e.false_discovery[-1]:.1f} %" for e in (theirs, ours)]
        parts.append(
            f"largest error {theirs.largest[-1]:.3g} against {ours.largest[-1]:.3g} on {name}, "
            f"false discoveries {rates[0]} against {rates[1]}"
        )
    return "; ".join(parts)


if __name__ == "__main__":
    main()
