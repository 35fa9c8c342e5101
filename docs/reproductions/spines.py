"""Writes spines.md and the pictures of the page on spines.

Run `python docs/reproductions/spines.py`; it takes about a minute. Expected errors follow from the
tree and the noise, so nothing here is random. The census files are those of `../shared/data`;
without them only the small trees are drawn.

Paper: Cumings-Menon et al., "Geographic Spines in the 2020 Census Disclosure Avoidance System",
arXiv:2203.16654.
"""

from __future__ import annotations

import sys
from fractions import Fraction
from html import escape
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "benchmarks"))  # before this folder: a file has the name

from spines import DATA, read_state, request_for  # noqa: E402
from trellis.evaluate.charts import before_after_chart  # noqa: E402
from trellis.model import Hierarchy, Schema  # noqa: E402
from trellis.model.trees.areas import Effect  # noqa: E402
from trellis.planning.spine import bypass, group_level, regroup_leaves  # noqa: E402
from trellis.planning.spine.counts import plan_counts_on_spine  # noqa: E402
from trellis.planning.spine.effects import entity_effects  # noqa: E402
from trellis.planning.spine.steps import Bypass, RegroupLeaves, Step  # noqa: E402
from trellis.privacy.budget import Budget  # noqa: E402
from trellis.storage.spines import spine_digest  # noqa: E402

PAGE, PICTURES = HERE / "spines.md", HERE.parent / "pictures"
STATES = {"ri": "Rhode Island", "nm": "New Mexico"}
GAUSSIAN, LAPLACE = Budget(rho=Fraction(1)), Budget(epsilon=Fraction(1))

ABOUT = """\
Written by `docs/reproductions/spines.py`. Totals of people, equal shares of the levels below the
state, block groups redrawn with `fanout_cutoff` 12, then parents bypassed. Means of expected
standard errors, without the spine and with it; no noise is drawn for them. Smaller ratios are
better. [Spines](../spines.md) explains the rest.
"""

COUNTY = Hierarchy.from_paths(
    [("county", "tract 1", "1a", f"1{i}") for i in range(2)]
    + [("county", "tract 1", "1b", f"1{i}") for i in range(2, 5)]
    + [("county", "tract 2", "2a", "20")]
    + [("county", "tract 3", "3a", f"3{i}") for i in range(4)],
    ["county", "tract", "block group", "block"],
)
PLACES = ["A", None, "A", "A", None, None, "B", "B", "B", "B"]
SHARES = [Fraction(1, 10), Fraction(0), Fraction(1, 5), Fraction(3, 10), Fraction(2, 5)]


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    draw_county()
    if not (DATA / "census_blocks_2020_ri.parquet").is_file():
        print(f"{DATA} has no census files: {PAGE.name} stays as it is.")
        return
    PAGE.write_text(page(), encoding="utf-8")
    print(f"Wrote {PAGE.name} and the pictures.")


# -- a county, before and after -------------------------------------------------------------------


def draw_county() -> None:
    before = [[share] * n for share, n in zip([SHARES[0], *SHARES[2:]], COUNTY.sizes, strict=True)]
    regrouped = regroup_leaves(COUNTY, PLACES)
    labels = [PLACES[i] for i in regrouped.leaf_order]
    grouped = regrouped.then(group_level(regrouped.hierarchy, "tract", labels))
    made = grouped.then(bypass(grouped.hierarchy, SHARES, "discrete_gaussian"))
    assert made.shares is not None
    (PICTURES / "spine-before.svg").write_text(
        tree("Before: the county as it is published", COUNTY, PLACES, before), encoding="utf-8"
    )
    places = [PLACES[i] for i in made.leaf_order]
    (PICTURES / "spine-after.svg").write_text(
        tree("After: block groups by place, only children bypassed", made.hierarchy, places,
             made.shares), encoding="utf-8"
    )  # fmt: skip


def tree(title: str, nodes: Hierarchy, places: list, shares: list) -> str:
    """Boxes by level with their shares; leaves in the colour of their place."""
    width, row, top = 640, 62, 40
    step = (width - 110) / nodes.sizes[-1]
    colours = {"A": "#56B4E9", "B": "#E69F00", None: "#eeeeee"}
    leaf_x = [110 + step * (i + 0.5) for i in range(nodes.sizes[-1])]
    centres = [leaf_x]
    for level in reversed(range(nodes.n_levels - 1)):
        start, below = nodes.child_start[level], centres[0]
        centres.insert(0, [(below[start[i]] + below[start[i + 1] - 1]) / 2
                           for i in range(nodes.size(level))])  # fmt: skip
    parts = []
    for level in range(1, nodes.n_levels):
        parents = nodes.parents(level).tolist()
        for x, parent in zip(centres[level], parents, strict=True):
            y = top + row * level
            parts.append(f'<line x1="{centres[level - 1][parent]:.1f}" y1="{y - row + 30}" '
                         f'x2="{x:.1f}" y2="{y}" stroke="#999"/>')  # fmt: skip
    for level, name in enumerate(nodes.level_names):
        y = top + row * level
        parts.append(f'<text x="4" y="{y + 19}">{escape(name)}</text>')
        for node, x in enumerate(centres[level]):
            share = shares[level][node]
            is_leaf = level == nodes.leaf_level
            colour = colours[places[node]] if is_leaf else ("#fff" if share else "#ddd")
            dash = "" if share else ' stroke-dasharray="3 3"'
            parts.append(f'<rect x="{x - 22:.1f}" y="{y}" width="44" height="30" fill="{colour}" '
                         f'stroke="#333"{dash}/>')  # fmt: skip
            parts.append(f'<text x="{x:.1f}" y="{y + 19}" text-anchor="middle">'
                         f'{share if share else "0"}</text>')  # fmt: skip
    height = top + row * nodes.n_levels
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(title)}" font-family="sans-serif" font-size="12">'
        '<rect width="100%" height="100%" fill="#fff"/>'
        f'<text x="{width / 2}" y="18" text-anchor="middle" font-weight="bold">{escape(title)}'
        "</text>" + "".join(parts) + "</svg>\n"
    )


# -- two states -----------------------------------------------------------------------------------


def effects_of(state: str, steps: list[Step], names: list[str], budget: Budget) -> list[Effect]:
    _, hierarchy, categories = read_state(state, names)
    request = request_for(state, budget)
    made = plan_counts_on_spine(
        request, hierarchy, Schema({"cell": ["total"]}), "", steps, categories, spine_digest
    )
    found = entity_effects(
        made.plan, hierarchy, made.spine, list(categories.values()), made.conventional
    )
    return [effect.means() for effect in found]


def table(effects: list[Effect]) -> str:
    lines = [
        "| areas | number | distance before | after | std error before | after | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    for e in sorted(effects, key=lambda effect: effect.is_level):
        name = f"{e.name} (level)" if e.is_level else e.name
        lines.append(
            f"| {name} | {e.entities:,} | {e.distance_before:.1f} | {e.distance_after:.1f} | "
            f"{e.error_before:.2f} | {e.error_after:.2f} | {e.ratio:.2f} |"
        )
    return "\n".join(lines)


def page() -> str:
    areas = {"ri": ["place", "cousub", "sduni"], "nm": ["place", "vtd"]}
    parts = ["# Spines on census data\n", ABOUT]
    for state, names in areas.items():
        steps: list[Step] = [RegroupLeaves(tuple(names)), Bypass()]
        for budget, words in ((GAUSSIAN, "zCDP, rho = 1"), (LAPLACE, "pure DP, epsilon = 1")):
            effects = effects_of(state, steps, names, budget)
            redrawn = f"redrawn by {', '.join(names)}"
            parts.append(f"## {STATES[state]}, {words}, {redrawn}\n\n{table(effects)}\n")
            if state == "ri" and budget is GAUSSIAN:
                rows = [
                    (f"{e.name} (level)" if e.is_level else e.name, e.error_before, e.error_after)
                    for e in sorted(effects, key=lambda effect: effect.is_level)
                ]
                chart = before_after_chart("Rhode Island: mean expected standard error", rows)
                (PICTURES / "spine-effects.svg").write_text(chart + "\n", encoding="utf-8")
        spared: list[Step] = [RegroupLeaves((*names, "block_group")), Bypass()]
        effects = effects_of(state, spared, names, GAUSSIAN)
        parts.append(
            f"## {STATES[state]}, zCDP, redrawn by {', '.join(names)} and block group\n\n"
            "The published block groups as one more category: they lose less, the others gain "
            f"less.\n\n{table(effects)}\n"
        )
    return "\n".join(parts)


if __name__ == "__main__":
    main()
