"""Plans and guarantees as text."""

from __future__ import annotations

from trellis.cli.terminal import Terminal
from trellis.model.plan import Plan, PlannedQuery
from trellis.privacy.guarantee import round_up


def show_plan(terminal: Terminal, plan: Plan) -> None:
    """Levels with shares, noise and expected errors, then what it costs."""
    rows = [_row(plan, level) for level in plan.levels]
    columns = ["level", "areas", "share", "noise", "noise sd", "expected std error"]
    law = next(q.noise.name for q in plan.queries if q.noise is not None)
    terminal.table(f"{plan.release}: {law} noise, {plan.method}", columns, rows)
    terminal.result(plan.protection.in_words())
    for level in plan.unprotected_totals:
        terminal.result(f"Unprotected: totals of level {level!r} are published exactly.")
    guarantee, pure = plan.privacy, plan.privacy.pure_epsilon
    terminal.result(f"Budget: {plan.budget.in_words()}.  Cost: rho = {guarantee.rho}.")
    if pure is not None:
        terminal.result(f"Pure differential privacy: epsilon = {pure}.")
    for delta in ("1e-6", "1e-10"):
        terminal.result(
            f"  delta = {delta}: epsilon <= {round_up(guarantee.epsilon(float(delta)))}"
        )


def _row(plan: Plan, level: str) -> list[str]:
    size = plan.sizes[plan.levels.index(level)]
    query = plan.query(level, plan.cell_query)
    share = "-" if query is None or query.noise is None else str(query.share)
    sd = "-" if query is None or query.noise is None else f"{query.variance**0.5:.3g}"
    return [level, f"{size:,}", share, _noise(query), sd, _expected(plan, level)]


def _noise(query: PlannedQuery | None) -> str:
    if query is None:
        return "not measured"
    if query.noise is None:
        return "exact"
    symbol = "sigma^2" if query.noise.name == "discrete_gaussian" else "scale"
    return f"{symbol} = {query.noise.parameter}"


def _expected(plan: Plan, level: str) -> str:
    for error in plan.expected_errors or ():
        if error.level == level:
            spread = "" if error.least == error.most else f" ({error.least:.3g} - {error.most:.3g})"
            return f"{error.median:.3g}{spread}"
    return "-"
