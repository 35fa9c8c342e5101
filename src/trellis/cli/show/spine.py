"""What a spine does, as tables with bars."""

from __future__ import annotations

from collections.abc import Sequence

from trellis.cli.show.numbers import rounded, short
from trellis.cli.terminal import Terminal
from trellis.model.plans.plan import Plan
from trellis.model.trees.areas import Effect
from trellis.planning.spine.search import Candidate, in_yaml
from trellis.planning.spine.steps import Branch, GroupLevel, RegroupLeaves, Step

_BAR = 10
"""Characters of a bar for a ratio of one."""


def spine_rows(plan: Plan) -> list[list[str]]:
    """Level, nodes, share, noise and its standard deviation for every share of the spine."""
    rows = []
    spine = plan.spine
    assert spine is not None
    noise = {(q.level, q.share_class): q for q in plan.queries if q.noise is not None}
    for name, shares, nodes in zip(spine.levels, spine.shares, spine.nodes, strict=True):
        for number, (share, n) in enumerate(zip(shares, nodes, strict=True)):
            query = noise.get((name, number))
            if query is None or query.noise is None:
                what = "exact" if name in plan.unprotected_totals else "not measured"
                rows.append([name, f"{n:,}", "-", what, "-"])
                continue
            amount, sd = short(query.noise.parameter), rounded(query.variance**0.5)
            rows.append([name, f"{n:,}", short(share), amount, sd])
    return rows


def show_effects(terminal: Terminal, plan: Plan) -> None:
    """Distances and expected standard errors of areas and levels, before and after."""
    if plan.forecast.effects is None:
        return
    if plan.spine is None:
        rows = [_row(effect) for effect in plan.forecast.effects if not effect.is_level]
        plain = [[name, n, far.partition(" ")[0], error] for name, n, far, error, *_ in rows]
        terminal.table(
            "Areas of interest: means, errors in records",
            ["areas", "number", "distance", "std error"],
            plain,
        )
        return
    terminal.result("Spine: " + "; ".join(plan.spine.steps) + ".")
    columns = [
        "areas", "number", "distance", "std error before", "after", "ratio", "after / before"
    ]  # fmt: skip
    rows = [_row(effect) for effect in sorted(plan.forecast.effects, key=lambda e: e.is_level)]
    title = "Areas of interest and published levels: means, errors in records"
    terminal.table(title, columns, rows)
    worse = [e for e in plan.forecast.effects if e.ratio > 1.005]
    if worse:
        words = ", ".join(f"{e.name} ({e.ratio:.2f}x)" for e in worse)
        terminal.result(f"Worse than without the spine: {words}.")


def _row(effect: Effect) -> list[str]:
    far, near = effect.distance_before, effect.distance_after
    return [
        f"{effect.name} (level)" if effect.is_level else effect.name,
        f"{effect.entities:,}",
        f"{far:.1f} -> {near:.1f}",
        rounded(effect.error_before),
        rounded(effect.error_after),
        f"{effect.ratio:.2f}",
        "#" * max(1, min(4 * _BAR, round(_BAR * effect.ratio))),
    ]


def _short(steps: Sequence[Step]) -> str:
    """Settings in a few characters."""
    words = []
    for step in steps:
        if isinstance(step, RegroupLeaves):
            words.append(f"regroup {step.fanout_cutoff} by {'+'.join(step.areas)}")
        elif isinstance(step, GroupLevel):
            words.append(f"{step.group_name} {step.fanout_cutoff}")
        else:
            words.append(f"branch at {step.level}" if isinstance(step, Branch) else "bypass")
    return ", ".join(words) or "without a spine"


def show_suggestion(
    terminal: Terminal, names: Sequence[str], candidates: Sequence[Candidate], shown: int = 5
) -> None:
    """The best settings, the tree without a spine to compare with, and the best as YAML."""
    plain = next(c for c in candidates if not c.steps)
    best = list(candidates[:shown])
    if plain not in best:
        best.append(plain)
    rows = [
        [
            _short(c.steps),
            rounded(c.score),
            f"{c.score / plain.score:.2f}" if plain.score else "-",
            *map(rounded, c.errors),
        ]
        for c in best
    ]
    terminal.table(
        f"The best of {len(candidates)} settings, by weighted expected std error (records)",
        ["settings", "weighted", "ratio", *names],
        rows,
    )
    terminal.result("Suggested:")
    terminal.result(in_yaml(candidates[0].steps))
