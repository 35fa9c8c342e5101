"""Tables in Markdown that compare estimators of flows: for a page, and printed by a benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from _flow_data import FlowData
from _flow_estimators import (
    compare,
    compare_large,
    compare_on_fewer_levels,
    coverage,
    us_tracts,
)
from _flow_mechanisms import Errors

US = Path(__file__).parents[2] / "shared" / "data" / "od_flows_tract_2000_us.parquet"
ESTIMATORS = ("chebyshev", "gls_chebyshev", "gls_l2")
FEWER_LEVELS = {"binary sparse": (0, 4, 8), "random sparse": (0, 3, 4)}
"""Levels of both hierarchies that are kept: the leaves, and one between them and the root."""
FEW_PENALTIES = ("2", "5/2", "3", "7/2", "4")
HALVING = "gls_sparse 7/2"
"""Halves the false discoveries of InfTDA on those levels, at no more than 1.25 times its error."""
RUNS, LARGE_RUNS = 10, 3
Found = dict[tuple[str, Fraction], dict[str, Errors]]

_HEAD = (
    "| set | ε | estimator | largest error by level | mean error by level "
    "| leaf false discovery % |"
)


def compare_all(sets: Sequence[FlowData], epsilons: Sequence[Fraction]) -> Found:
    return {(d.name, e): compare(d, e, ESTIMATORS, RUNS) for d in sets for e in epsilons}


def level_comparison(found: Found) -> str:
    """`chebyshev` in numbers, the others as ratios to it; levels below the root."""
    lines = [_HEAD, "|---|---|---|---|---|---|"]
    for (name, epsilon), errors in found.items():
        plain = errors[ESTIMATORS[0]]
        for estimator, e in errors.items():
            largest, mean = e.largest[1:], e.mean[1:]
            if estimator == ESTIMATORS[0]:
                cells = [", ".join(f"{x:.3g}" for x in column) for column in (largest, mean)]
            else:
                pairs = ((largest, plain.largest[1:]), (mean, plain.mean[1:]))
                cells = [", ".join(f"{a / b:.2f}" for a, b in zip(*p, strict=True)) for p in pairs]
            shown = f"| {name} | {float(epsilon):g} | `{estimator}` | {cells[0]} | {cells[1]} "
            lines.append(f"{shown}| {100 * e.false_discovery[-1]:.1f} |")
    return "\n".join(lines)


def us_comparison() -> tuple[str, str]:
    """The same on US commuters, and the names of their levels."""
    data = us_tracts(US)
    found = compare_large(data, Fraction(1), ESTIMATORS, LARGE_RUNS)
    return level_comparison({(data.name, Fraction(1)): found}), ", ".join(data.tree.shape.names[1:])


def summary(found: Found) -> str:
    """On how many levels below the root each has a smaller error than `chebyshev`."""
    lines = ["| set | ε | levels | `gls_chebyshev`: largest, mean | `gls_l2`: largest, mean |",
             "|---|---|---|---|---|"]  # fmt: skip
    for (name, epsilon), errors in found.items():
        plain = errors[ESTIMATORS[0]]
        cells = []
        for estimator in ESTIMATORS[1:]:
            e = errors[estimator]
            less = [(getattr(e, what)[1:] < getattr(plain, what)[1:]).sum()
                    for what in ("largest", "mean")]  # fmt: skip
            cells.append(f"{less[0]}, {less[1]}")
        levels = plain.largest.size - 1
        lines.append(f"| {name} | {float(epsilon):g} | {levels} | {' | '.join(cells)} |")
    return "\n".join(lines)


def coverage_table(sets: Sequence[FlowData]) -> str:
    head = (
        "| set | estimator | standard error, in those of the noise | large pairs covered % "
        "| listed pairs covered % |"
    )
    lines = [head, "|---|---|---|---|---|"]
    for data in sets:
        for name, c in coverage(data, Fraction(1), ESTIMATORS[:2], RUNS).items():
            lines.append(f"| {data.name} | `{name}` | {c.std_error:.2f} | {100 * c.named:.1f} "
                         f"| {100 * c.listed:.1f} |")  # fmt: skip
    return "\n".join(lines)


def fewer_levels(sets: Sequence[FlowData]) -> dict[str, dict[str, Errors]]:
    """Sparse sets on hierarchies with levels left out, at epsilon = 1."""
    names = ("chebyshev", "gls_chebyshev", *(f"gls_sparse {p}" for p in FEW_PENALTIES))
    return {
        d.name: compare_on_fewer_levels(d, FEWER_LEVELS[d.name], Fraction(1), names, RUNS)
        for d in sets
        if d.name in FEWER_LEVELS
    }


def frontier_rows(name: str, epsilon: Fraction, plain: Errors, found: dict[str, Errors]) -> str:
    """`plain` is InfTDA's projection with all of the budget; ratios are to it."""
    lines = []
    for method, e in found.items():
        halved = e.false_discovery[-1] <= plain.false_discovery[-1] / 2
        within = e.largest[-1] <= 1.25 * plain.largest[-1]
        lines.append(
            f"| {name} | {float(epsilon):g} | {method} | {e.largest[-1]:.4g} "
            f"| {e.largest[-1] / plain.largest[-1]:.2f} | {100 * e.false_discovery[-1]:.1f} "
            f"| {100 * e.false_negative[-1]:.1f} | {e.mean[-1]:.3f} | {e.largest.max():.4g} "
            f"| {'yes' if halved and within else 'no'} |"
        )
    return "\n".join(lines)
