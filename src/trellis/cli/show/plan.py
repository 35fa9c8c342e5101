"""Plans and guarantees as text."""

from __future__ import annotations

from trellis.cli.show.numbers import rounded, short
from trellis.cli.show.queries import show_queries
from trellis.cli.show.spine import show_effects, spine_rows
from trellis.cli.terminal import Terminal
from trellis.model.plans.counted import counted_for, counted_in
from trellis.model.plans.flow_estimators import looks_below
from trellis.model.plans.plan import Plan
from trellis.model.plans.size_mechanisms import GROUP_SIZES
from trellis.model.plans.statement import protected_in_words
from trellis.model.trees.flows import FLOWS
from trellis.privacy.accounting.zcdp import zcdp_rho
from trellis.privacy.guarantee import round_up


def show_plan(terminal: Terminal, plan: Plan) -> None:
    """Levels with shares, noise and expected errors, then what it costs."""
    law = next(q.noise.name for q in plan.queries if q.noise is not None)
    unit = counted_in(plan.kind)
    title = f"{plan.release}: {law} noise, {plan.method}; errors in {unit}"
    if plan.histogram is not None:
        show_queries(terminal, plan, title)
    else:
        rows = [_row(plan, level) for level in plan.levels] if not plan.spine else spine_rows(plan)
        symbol = "sigma^2" if law == "discrete_gaussian" else "scale"
        columns = ["level", counted_for(plan.kind), "share", symbol, "noise sd", "std error"]
        columns = columns if not plan.spine else ["spine", "nodes", *columns[2:5]]
        terminal.table(title, columns, rows)
    if plan.kind == FLOWS and looks_below(plan.method):
        terminal.result("Standard errors are at most these: what lies below a pair lowers them.")
    show_effects(terminal, plan)
    terminal.result(protected_in_words(plan))
    if plan.kind == GROUP_SIZES:
        terminal.result("Unprotected: the register; numbers of groups are exact on every level.")
    else:
        for level in plan.unprotected_totals:
            terminal.result(f"Unprotected: totals of level {level!r} are published exactly.")
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
    asked = plan.flow_query(level) if plan.kind == FLOWS else plan.cell_query
    query = plan.query(level, asked)
    if query is None or query.noise is None:
        return [level, areas, "-", _unmeasured(plan, level), "-", _expected(plan, level)]
    noise, sd = short(query.noise.parameter), rounded(query.variance**0.5)
    return [level, areas, short(query.share), noise, sd, _expected(plan, level)]


def _unmeasured(plan: Plan, level: str) -> str:
    is_exact = level in plan.unprotected_totals and plan.kind != GROUP_SIZES
    return "exact" if is_exact else "not measured"


def _expected(plan: Plan, level: str) -> str:
    for error in plan.expected_errors or ():
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
