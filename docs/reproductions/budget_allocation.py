"""Writes budget-allocation.md and its pictures: figures 2 to 6 of the paper, redone.

Run `python docs/reproductions/budget_allocation.py`; it takes about a minute. Laplace noise is
drawn again in every run, so simulated errors vary a little.

Paper: Ko, Ziani and Fioretto, "Optimal Allocation of Privacy Budget on Hierarchical Data Release".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trellis.evaluate.charts import Axis, Series, line_chart
from trellis.ingest.public.hierarchies import from_prefixes
from trellis.ingest.public.priors import Crosswalk, Prior, read_prior
from trellis.model import Hierarchy
from trellis.planning.budget import allocate, clipped_bias, clipped_mse, least_budget
from trellis.planning.budget.downstream import WEIGHT_FUNCTIONS, downstream_errors

HERE = Path(__file__).parent
DATA = HERE.parents[2] / "shared" / "data"
PAGE = HERE / "budget-allocation.md"
LEVELS = {"state": 2, "tract": 11, "block": 15}
DRAWS, DOWNSTREAM_DRAWS = 200, 400
EPSILONS = (0.5, 1.0, 2.0, 4.0)
TOTAL = 2.0

Floats = NDArray[np.float64]
Levels = list[NDArray[np.int64]]


@dataclass(frozen=True)
class State:
    """Areas of 2020, the truth of 2020, and public counts of 2010 by level."""

    name: str
    tree: Hierarchy
    truth: Levels
    prior: Levels
    about: str

    @property
    def slug(self) -> str:
        return self.name.lower()


def delaware() -> State:
    """Shares come from the 2010 blocks themselves: for a sum over areas no crosswalk is needed."""
    tree = from_prefixes(DATA / "census_blocks_2020_de.parquet", "geoid", LEVELS)
    old = from_prefixes(DATA / "census_blocks_2010_de.parquet", "geoid", LEVELS)
    truth = counts(DATA / "census_blocks_2020_de.parquet", tree)
    prior = counts(DATA / "census_blocks_2010_de.parquet", old)
    return State("Delaware", tree, truth, prior, "the 2010 census by block")


def wyoming() -> State:
    """Blocks of 2010 are not at hand: block groups are spread over blocks by land area."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    tree = from_prefixes(DATA / "census_blocks_2020_wy.parquet", "geoid", LEVELS)
    truth = counts(DATA / "census_blocks_2020_wy.parquet", tree)
    groups = pq.read_table(DATA / "census_bg_2010_us.parquet", columns=["geoid", "pop"])
    groups = groups.filter(pc.starts_with(groups["geoid"], "56"))
    walk = pq.read_table(DATA / "xwalk_blocks_2010_2020_wy.parquet")
    land = np.maximum(walk["area_land"].to_numpy(), 0) * walk["int_land"].to_numpy()
    parts = pa.table(
        {"old": pc.utf8_slice_codeunits(walk["geoid_2010"], 0, 12), "new": walk["geoid_2020"],
         "land": land}
    )  # fmt: skip
    crosswalk = Crosswalk(parts, "old", "new", "land")
    prior = Prior(groups, "geoid", [{"pop": 1}], crosswalk, missing_is_zero=True)
    leaves = read_prior(prior, tree, None)[:, 0]
    about = "the 2010 census by block group, spread over blocks by land area"
    return State("Wyoming", tree, truth, tree.sum_up(leaves), about)


def counts(path: Path, tree: Hierarchy) -> Levels:
    return tree.sum_up(read_prior(Prior(path, "geoid", [{"pop": 1}]), tree, None)[:, 0])


# -- the paper's release --------------------------------------------------------------------------


def project(values: Floats, start: NDArray[np.int64], totals: Floats) -> Floats:
    """Program (8) for all families at once: nearest numbers >= 0 that add up to the totals."""
    sizes = np.diff(start)
    family = np.repeat(np.arange(sizes.size), sizes)
    order = np.lexsort((-values, family))
    ranked = values[order]
    sums = np.cumsum(ranked)
    before = np.concatenate([[0.0], sums])[start[:-1]]
    kept = np.arange(values.size) - start[:-1][family] + 1
    threshold = (sums - before[family] - totals[family]) / kept
    last = np.maximum(np.add.reduceat((ranked > threshold).astype(np.int64), start[:-1]), 1)
    return np.maximum(values - threshold[start[:-1] + last - 1][family], 0.0)


def release(state: State, epsilons: Sequence[float], rng: np.random.Generator) -> list[Floats]:
    """Noisy counts of every level, clipped at zero."""
    return [
        np.maximum(level + rng.laplace(0, 1 / e, level.size), 0)
        for level, e in zip(state.truth, epsilons, strict=True)
    ]


def top_down(tree: Hierarchy, noisy: list[Floats]) -> list[Floats]:
    made = [noisy[0]]
    for level in range(1, tree.n_levels):
        made.append(project(noisy[level], tree.child_start[level - 1], made[-1]))
    return made


def bottom_up(tree: Hierarchy, noisy: list[Floats]) -> list[Floats]:
    return tree.sum_up(noisy[-1])


METHODS: dict[str, Callable[[Hierarchy, list[Floats]], list[Floats]]] = {
    "none": lambda _, noisy: noisy,
    "top-down": top_down,
    "bottom-up": bottom_up,
}


def simulated(state: State, epsilons: Sequence[float]) -> dict[str, tuple[float, float]]:
    """Squared bias and variance, summed over all areas, with each kind of consistency.

    The mean of n draws has a variance of its own, which is taken off the squared bias.
    """
    rng = np.random.default_rng()
    sums = {name: [np.zeros((2, level.size)) for level in state.truth] for name in METHODS}
    for _ in range(DRAWS):
        noisy = release(state, epsilons, rng)
        for name, method in METHODS.items():
            for total, made, true in zip(
                sums[name], method(state.tree, noisy), state.truth, strict=True
            ):
                total += np.array([made - true, (made - true) ** 2])
    found = {}
    for name, levels in sums.items():
        mean = [level[0] / DRAWS for level in levels]
        variance = sum(
            float((level[1] / DRAWS - m * m).sum()) * DRAWS / (DRAWS - 1)
            for level, m in zip(levels, mean, strict=True)
        )
        bias = sum(float((m * m).sum()) for m in mean) - variance / DRAWS
        found[name] = bias, variance
    return found


def expected(levels: Levels, epsilons: Sequence[float]) -> tuple[float, float]:
    """Squared bias and mean squared error in closed form, without consistency."""
    pairs = [(1 / e, level) for e, level in zip(epsilons, levels, strict=True)]
    bias = sum(float((clipped_bias("laplace", *pair) ** 2).sum()) for pair in pairs)
    return bias, sum(float(clipped_mse("laplace", *pair).sum()) for pair in pairs)


def uniform(total: float) -> Floats:
    return np.full(3, total / 3)


# -- figures --------------------------------------------------------------------------------------


def figure_2(state: State) -> str:
    taus = np.geomspace(1e3, 1e6, 25)
    found = np.array([least_budget(state.prior, tau) for tau in taus])
    lines = [Series(name, taus, found[:, i]) for i, name in enumerate(LEVELS)]
    lines.append(Series("total", taus, found.sum(axis=1)))
    title = f"{state.name}: least budget for an error, program (7)"
    axes = Axis("total squared error allowed", log=True), Axis("epsilon", log=True)
    return line_chart(title, *axes, lines)


def figure_3(state: State) -> tuple[str, str]:
    rows = []
    for total in EPSILONS:
        splits = {"uniform": uniform(total), "optimal": allocate(state.prior, total)}
        for split, epsilons in splits.items():
            bias, mse = expected(state.truth, epsilons)
            found = simulated(state, epsilons)
            cells = [f"{b:,.0f} + {v:,.0f}" for b, v in found.values()]
            gap = sum(found["none"]) / mse - 1
            rows.append(
                [f"{total:g}", split, f"{bias:,.0f} + {mse - bias:,.0f}", *cells, percent(gap)]
            )
    header = ["ε", "shares", "closed form", "simulated", "top-down", "bottom-up", "gap"]
    points = np.geomspace(0.25, 8, 21)
    lines = []
    for name, split in (("uniform", uniform), ("optimal", lambda t: allocate(state.prior, t))):
        pairs = [expected(state.truth, split(t)) for t in points]
        lines.append(Series(f"{name}: bias²", points, [b for b, _ in pairs]))
        lines.append(Series(f"{name}: variance", points, [m - b for b, m in pairs]))
    title = f"{state.name}: bias² and variance against epsilon"
    chart = line_chart(title, Axis("epsilon", log=True), Axis("sum over areas", log=True), lines)
    return table(header, rows), chart


def figure_4(state: State) -> str:
    totals = np.geomspace(0.1, 10, 25)
    found = np.array([allocate(state.prior, t) / t for t in totals])
    lines = [Series(name, totals, 100 * found[:, i]) for i, name in enumerate(LEVELS)]
    title = f"{state.name}: shares of the budget, program (6)"
    return line_chart(title, Axis("epsilon", log=True), Axis("share in %"), lines)


def figure_5(state: State) -> tuple[str, str]:
    rows, thirds = [], np.linspace(0.05, 0.95, 19)
    errors = []
    for w in thirds:
        e = allocate(state.prior, TOTAL, [(1 - w) / 2, (1 - w) / 2, w])
        errors.append([expected([n], [x])[1] for n, x in zip(state.truth, e, strict=True)])
    total = np.array(errors).sum(axis=1)
    lines = [Series(n, thirds, [row[i] for row in errors]) for i, n in enumerate(LEVELS)]
    lines.append(Series("total", thirds, total))
    for w in (0.1, 1 / 3, 0.6, 0.9):
        e = allocate(state.prior, TOTAL, [(1 - w) / 2, (1 - w) / 2, w])
        level = [expected([n], [x])[1] for n, x in zip(state.truth, e, strict=True)]
        rows.append(
            [
                f"{w:.2f}",
                *(f"{x:.4f}" for x in e),
                *(f"{m:,.0f}" for m in level),
                f"{sum(level):,.0f}",
            ]
        )
    names = list(LEVELS)
    header = [
        "weight of blocks",
        *(f"ε {n}" for n in names),
        *(f"error {n}" for n in names),
        "in all",
    ]
    title = f"{state.name}: errors against the weight of blocks, epsilon {TOTAL:g}"
    chart = line_chart(title, Axis("weight of blocks"), Axis("squared error", log=True), lines)
    return table(header, rows), chart


def figure_6(state: State) -> str:
    """A tract of median size among those with at least ten blocks where people live."""
    tree, rng = state.tree, np.random.default_rng()
    start, blocks = tree.child_start[-1], state.truth[-1]
    lived = np.add.reduceat(blocks > 0, start[:-1])
    usable = np.flatnonzero(lived >= 10)
    tract = usable[np.argsort(state.truth[1][usable])[usable.size // 2]]
    inside = slice(start[tract], start[tract + 1])
    rows = []
    for split, epsilons in (("uniform", uniform(TOTAL)), ("optimal", allocate(state.prior, TOTAL))):
        made = []
        for _ in range(DOWNSTREAM_DRAWS):
            total = max(state.truth[1][tract] + rng.laplace(0, 1 / epsilons[1]), 0)
            noisy = np.maximum(
                blocks[inside] + rng.laplace(0, 1 / epsilons[2], inside.stop - inside.start), 0
            )
            made.append(project(noisy, np.array([0, noisy.size]), np.array([total])))
        for name in WEIGHT_FUNCTIONS:
            e = downstream_errors(blocks[inside], made, name)
            rows.append(
                [name, split, f"{e.bias_squared:.2e}", f"{e.variance:.2e}", percent(e.misallocated)]
            )
    rows.sort(key=lambda row: list(WEIGHT_FUNCTIONS).index(row[0]))
    n_blocks = inside.stop - inside.start
    about = f"Tract {tree.codes(1)[tract]}, {n_blocks} blocks, {DOWNSTREAM_DRAWS} draws."
    return about + "\n\n" + table(["weights", "shares", "bias²", "variance", "misallocated"], rows)


# -- page -----------------------------------------------------------------------------------------


def percent(value: float) -> str:
    return f"{100 * value:.2f} %"


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(header), *map(list, rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def headline(state: State) -> str:
    found = allocate(state.prior, TOTAL)
    (bias, mse), (bias_0, mse_0) = (expected(state.truth, e) for e in (found, uniform(TOTAL)))
    shares = ", ".join(f"{e:.4f}" for e in found)
    return (
        f"With ε = {TOTAL:g} the optimal budgets of state, tract and block are ({shares}). The "
        f"expected squared error of all areas is {mse / mse_0:.4f} of that of uniform shares, and "
        f"the squared bias {bias / bias_0:.4f}, both before consistency."
    )


def section(state: State) -> str:
    three, chart_3 = figure_3(state)
    five, chart_5 = figure_5(state)
    charts = {2: figure_2(state), 3: chart_3, 4: figure_4(state), 5: chart_5}
    for number, chart in charts.items():
        picture(state, number).write_text(chart + "\n", encoding="utf-8")
    sizes = ", ".join(f"{n:,}" for n in state.tree.sizes)
    return f"""## {state.name}

State, tracts and blocks of 2020: {sizes} areas, {int(state.truth[0][0]):,} people. The prior is
{state.about}.

{headline(state)}

### Least budget for an error (figure 2)

![Least budget]({picture(state, 2).name})

### Bias and variance (figure 3)

Squared bias + variance, summed over all areas; {DRAWS} simulated releases each. The gap is between
the simulated error and the closed form, without consistency.

{three}

![Bias and variance]({picture(state, 3).name})

### Shares against epsilon (figure 4)

![Shares]({picture(state, 4).name})

### Weights (figure 5)

The weight of blocks varies; the rest is split between state and tracts.

{five}

![Weights]({picture(state, 5).name})

### Sharing out money (figure 6)

Money goes to the blocks of one tract, by counts released top-down with ε = {TOTAL:g} for the whole
hierarchy.

{figure_6(state)}
"""


def picture(state: State, number: int) -> Path:
    return HERE / f"budget-allocation-{state.slug}-{number}.svg"


def page(states: Sequence[State]) -> str:
    sections = "\n".join(map(section, states))
    return f"""# Optimal allocation of a budget, redone

Generated by `python docs/reproductions/budget_allocation.py`. Ko, Ziani and Fioretto add Laplace
noise of scale 1/ε_l to every count of level l, clip at zero, and choose the ε_l that minimise the
mean squared error on an earlier release. These are their figures 2 to 6, with
`trellis.planning.budget`.

What differs from the paper: the counts are the published census tables of 2010 and 2020, not the
privacy-protected microdata files, and blocks where nobody lives are included. Consistency is their
program (8), applied from the state down, in real numbers; bottom-up sums the clipped blocks.

{sections}
## Reading it

- Shares grow with depth, as their Theorem 3 says, and most of the budget goes to blocks.
- Top-down consistency lowers the error, most where many blocks are empty: what clipping raised must
  fit its tract again.
- Bottom-up sums add up the bias of thousands of blocks, so that errors of tracts and of the state
  grow far beyond everything else. It pays only where blocks alone count.
- The smaller the share of an area, the more its money depends on noise: quadratic weights favour
  large blocks and misallocate least, logarithmic and linear ones more.
"""


def main() -> None:
    if not (DATA / "census_blocks_2010_de.parquet").exists():
        raise SystemExit("This page needs ../shared/data; it was left as it is.")
    PAGE.write_text(page([delaware(), wyoming()]), encoding="utf-8")


if __name__ == "__main__":
    main()
