"""Plans and guarantees as text."""

from __future__ import annotations

from trellis.cli.show.numbers import rounded, short
from trellis.cli.show.queries import show_queries
from trellis.cli.show.spine import show_effects, spine_rows
from trellis.cli.terminal import Terminal
from trellis.model.plans.plan import Plan
from trellis.model.plans.statement import protected_in_words
from trellis.privacy.accounting.zcdp import zcdp_rho
from trellis.privacy.guarantee import round_up


def show_plan(terminal: Terminal, plan: Plan) -> None:
    """Levels with shares, noise and expected errors, then what it costs."""
    law = next(q.noise.name for q in plan.queries if q.noise is not None)
    unit = plan.design.counted_in
    title = f"{plan.release}: {law} noise, {plan.method}; errors in {unit}"
    if plan.design.by_query:
        show_queries(terminal, plan, title)
    else:
        rows = [_row(plan, level) for level in plan.levels] if not plan.spine else spine_rows(plan)
        symbol = "sigma^2" if law == "discrete_gaussian" else "scale"
        columns = ["level", plan.design.counted_for, "share", symbol, "noise sd", "std error"]
        columns = columns if not plan.spine else ["spine", "nodes", *columns[2:5]]
        terminal.table(title, columns, rows)
    if note := plan.design.about_forecast(plan):
        terminal.result(note)
    show_effects(terminal, plan)
    terminal.result(protected_in_words(plan))
    for line in plan.design.exact_in_short(plan):
        terminal.result(line)
    guarantee, pure = plan.privacy, plan.privacy.pure_epsilon
    rho = str(guarantee.rho)
    if guarantee.rho.denominator > 1000:
        rho += f" (about {float(guarantee.rho):.4g})"
    terminal.result(f"Budget: {plan.budget.in_words()}.  Cost: rho = {rho}.")
    if plan.budget.delta is not None:
        terminal.result(_saving(plan))
    if pure is not None:
        terminal.result(f"Pure differential privacy: epsilon = {pure}.")
    for note in guarantee.accountant.notes:
        terminal.result(note)
    for delta in ("1e-6", "1e-10"):
        terminal.result(
            f"  delta = {delta}: epsilon <= {round_up(guarantee.epsilon(float(delta)))}"
        )


def _row(plan: Plan, level: str) -> list[str]:
    areas = f"{plan.areas[plan.levels.index(level)]:,}"
    query = plan.query(level, plan.design.level_query(plan, level))
    if query is None or query.noise is None:
        unmeasured = "exact" if plan.design.is_exact(plan, level) else "not measured"
        return [level, areas, "-", unmeasured, "-", _expected(plan, level)]
    noise, sd = short(query.noise.parameter), rounded(query.variance**0.5)
    return [level, areas, short(query.share), noise, sd, _expected(plan, level)]


def _expected(plan: Plan, level: str) -> str:
    for error in plan.forecast.errors or ():
        if error.level == level:
            least, middle, most = map(rounded, (error.least, error.median, error.most))
            return middle if least == most else f"{middle} ({least}-{most})"
    return "-"


def _saving(plan: Plan) -> str:
    """How much noise exact accounting saves against the usual bound for rho-zCDP."""
    epsilon, delta = plan.budget.epsilon, plan.budget.delta
    assert epsilon is not None
    assert delta is not None
    saved = 1 - zcdp_rho(float(epsilon), float(delta)) / float(plan.privacy.rho)
    return f"Exact accounting saves {100 * saved:.1f} % of the noise variance that zCDP would need."
