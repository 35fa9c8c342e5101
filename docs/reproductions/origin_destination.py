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

from _flow_data import FlowData, published_sets  # noqa: E402
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
PUBLISHED = {  # mean largest error on the leaves at the three budgets, as published
    "binary complete": (874, 139, 19.3),
    "binary dense": (826, 142, 19.0),
    "binary sparse": (847, 132, 16.8),
    "random complete": (991, 130, 17.1),
    "random dense": (898, 122, 16.3),
    "random sparse": (690, 117, 15.2),
}
PUBLISHED_DISCOVERY = {"binary sparse": 89.7, "random dense": 36.2, "random sparse": 83.8}
REFERENCE_SECONDS = {  # CPU seconds of the published code at epsilon = 1, on a machine of two cores
    "binary complete": 196,
    "binary sparse": 28,
    "random complete": 234,
    "random dense": 162,
    "random sparse": 19,
}


class Results:
    """Mean errors and CPU seconds of one mechanism, by set and budget."""

    def __init__(self) -> None:
        self.errors: dict[tuple[str, str, Fraction], Errors] = {}
        self.seconds: dict[tuple[str, str, Fraction], float] = {}

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
                    results.run(f"sparse {penalty}", data, epsilon, RUNS,
                                down(ours, "sparse", penalty))  # fmt: skip
            if "sparse" in data.name and epsilon == 1:
                results.run("chebyshev_lp", data, epsilon, FEW, down(ours, "chebyshev_lp"))
        print(data.name, flush=True)
    return results, sets


# -- the page -------------------------------------------------------------------------------------


def leaf_table(results: Results, sets: list[FlowData]) -> str:
    head = (
        "| set | ε | published | InfTDA as published, here | `chebyshev` | ratio to published "
        "| `l2` | `sparse` 2 |"
    )
    lines = [head, "|---|---|---|---|---|---|---|---|"]
    for data in sets:
        for place, epsilon in enumerate(EPSILONS):
            names = ("InfTDA as published", "chebyshev", "l2", "sparse 2")
            cells = [results.errors[name, data.name, epsilon].largest[-1] for name in names]
            published = PUBLISHED[data.name][place]
            lines.append(
                f"| {data.name} | {float(epsilon):g} | {published:g} | {cells[0]:.4g} "
                f"| **{cells[1]:.4g}** | {cells[1] / published:.2f} | {cells[2]:.4g} "
                f"| {cells[3]:.4g} |"
            )
    return "\n".join(lines)


def discovery_table(results: Results, sets: list[FlowData]) -> str:
    names = ("InfTDA as published", "chebyshev", "chebyshev_descending", "l2", "sparse 2",
             "vanilla_gauss", "stability_histogram")  # fmt: skip
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
            ours = results.errors["chebyshev", data.name, epsilon].largest
            theirs = results.errors["InfTDA as published", data.name, epsilon].largest
            shown = [
                f"{a / b:.2f}"
                for a, b, size in zip(ours, theirs, data.tree.sizes, strict=True)
                if size >= 10
            ]
            lines.append(f"| {data.name} | {float(epsilon):g} | {', '.join(shown)} |")
    return "\n".join(lines)


def frontier_table(results: Results) -> str:
    head = (
        "| set | ε | estimator | leaf largest error | ratio | false discovery % "
        "| false negative % | mean error |"
    )
    lines = [head, "|---|---|---|---|---|---|---|---|"]
    for name in ("binary sparse", "random sparse"):
        for epsilon in (Fraction(1), Fraction(10)):
            plain = results.errors["chebyshev", name, epsilon].largest[-1]
            methods = ("InfTDA as published", "chebyshev", "l2",
                       *(f"sparse {p}" for p in PENALTIES))  # fmt: skip
            for method in methods:
                e = results.errors[method, name, epsilon]
                lines.append(
                    f"| {name} | {float(epsilon):g} | {method} | {e.largest[-1]:.4g} "
                    f"| {e.largest[-1] / plain:.2f} | {100 * e.false_discovery[-1]:.1f} "
                    f"| {100 * e.false_negative[-1]:.1f} | {e.mean[-1]:.3f} |"
                )
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
    names = ("InfTDA as published", "chebyshev", "stability_histogram", "vanilla_gauss")
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
            for n in ("InfTDA as published", "chebyshev", "l2", "sparse 2")
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

Generated by [`origin_destination.py`](origin_destination.py); `make docs` writes it anew.

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

On levels with ten pairs or more, coarsest first. All ratios are below one.

{level_table(results, sets)}

## False discoveries and false negatives on the leaves, %, ε = 1 (figure 5)

{discovery_table(results, sets)}

`stability_histogram` lists no false flow and misses most; its sums, on coarser levels, are far off.

## The frontier of `sparse`

A price on every positive flow trades false discoveries against missed flows and the largest error.
"ratio" is to `chebyshev`, all of the budget spent.

{frontier_table(results)}

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
