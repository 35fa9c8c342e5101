"""Defects that are put back on purpose: each must be found by the attacks that it names.

P1, P2, .. are defects that releases of this program once had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from redteam.attack import Attack, Outcome
from redteam.attacks import ATTACKS, kills
from trellis.errors import TrellisError
from trellis.measure.charged_noise import ChargedNoise
from trellis.model.plans import agreement
from trellis.model.plans.plan import Plan
from trellis.privacy.accounting import PrivacyCurve
from trellis.privacy.changes import Change, Partition
from trellis.privacy.flow_changes import FlowQuery
from trellis.privacy.group_size_changes import SizeQuery
from trellis.privacy.guarantee import Charge, Guarantee
from trellis.privacy.ledger.account import Account
from trellis.privacy.neighbours import Neighbours
from trellis.privacy.tables import read_table
from trellis.release.documents import privacy_record
from trellis.spec.flows import FlowsSpec
from trellis.spec.group_sizes import GroupSizesSpec
from trellis.spec.histograms import HistogramsSpec
from trellis.verify import verify
from trellis.workflow.confidential import measuring

Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Mutation:
    """`attacks` names what should find it: pairs of an attack and a kind."""

    name: str
    attacks: tuple[tuple[str, str], ...]
    change: Callable[[Patch], None]

    def applied(self) -> AbstractContextManager[None]:
        return _applied(self.change)

    def attack(self, name: str) -> Attack:
        return ATTACKS[name]


@contextmanager
def _applied(change: Callable[[Patch], None]) -> Iterator[None]:
    with Patch.context() as patch:
        change(patch)
        yield


# -- prices ---------------------------------------------------------------------------------------


def price_by_name(patch: Patch) -> None:
    """P1: what a query is called decides what it costs, and no one compares with the budget."""
    names = {*map(str, FlowQuery), *map(str, SizeQuery)}

    def privacy(plan: Plan) -> Guarantee:
        honest = _privacy(plan)
        tables = [q for q in plan.queries if q.noise is not None]
        charges = [
            Charge(c.label, c.mechanism, read_table(q.query) if q.query in names else c.table)
            for c, q in zip(honest.charges, tables, strict=True)
        ]
        return replace(honest, charges=tuple(charges))

    _privacy = Plan.privacy.fget  # type: ignore[attr-defined]
    patch.setattr(Plan, "privacy", property(privacy))
    patch.setattr(agreement, "_fits", lambda *_: True)


def one_side_of_a_replacement(patch: Patch) -> None:
    patch.setattr(Neighbours, "cells_moved", property(lambda _: 1))


def one_record_of_each_unit(patch: Patch) -> None:
    def change(table: Partition, neighbours: Neighbours, _: int) -> Change:
        return Change(((table.bound, neighbours.cells_moved),), merged=table.bound)

    patch.setattr(Partition, "change", change)


def half_of_delta(patch: Patch) -> None:
    honest = PrivacyCurve.delta_bounds
    patch.setattr(PrivacyCurve, "delta_bounds", lambda *given: tuple(d / 2 for d in honest(*given)))


def halved_noise(patch: Patch) -> None:
    """Half of the standard deviation."""
    honest = ChargedNoise.sample

    def sample(noise: ChargedNoise, query: Any, size: int) -> Any:
        honest(noise, query, size)
        less = type(query.noise)(query.noise.parameter / 4)
        return less.sample(size, noise._bits)

    patch.setattr(ChargedNoise, "sample", sample)


# -- statements -----------------------------------------------------------------------------------


def requirements_unsaid(patch: Patch) -> None:
    """P2."""
    for spec in (HistogramsSpec, GroupSizesSpec, FlowsSpec):
        patch.setattr(spec, "required_of_records", property(lambda _: ()))


def smaller_changes_ignore_exact_totals(patch: Patch) -> None:
    """P3."""
    honest = privacy_record.smaller_changes

    def careless(plan: Plan) -> Any:
        return honest(replace(plan, protection=replace(plan.protection, within=None)))

    patch.setattr(privacy_record, "smaller_changes", careless)


def sums_leave_out_other_units(patch: Patch) -> None:
    """P4: and do not say so."""

    def total(account: Account, unit: str) -> Any:
        own = tuple(cost for cost in account.costs if cost.unit == unit)
        return honest(replace(account, costs=own), unit)

    honest = Account.total
    patch.setattr(Account, "total", total)


def bounds_contradict_each_other(patch: Patch) -> None:
    """P12: every charge counts with its own bound on records."""
    patch.setattr(Account, "_records", lambda _, cost: cost.max_contribution)


# -- verification, input, kills -------------------------------------------------------------------


def unchecked(*modules: str) -> Callable[[Patch], None]:
    """Verification without the checks of some modules."""

    def change(patch: Patch) -> None:
        honest = verify.checks_of

        def fewer(run: Any) -> Any:
            return tuple(
                check for check in honest(run)
                if not check.__module__.startswith(tuple(f"trellis.verify.{m}" for m in modules))
            )  # fmt: skip

        patch.setattr(verify, "checks_of", fewer)

    return change


def refusals_leave_something(patch: Patch) -> None:
    honest = measuring.tabulate

    def tabulate(prepared: Any, *rest: Any) -> Any:
        try:
            return honest(prepared, *rest)
        except TrellisError:
            (Path(prepared.spec.ledger_path).parent / "half-written").touch()
            raise

    patch.setattr(measuring, "tabulate", tabulate)


def charged_after_drawing(patch: Patch) -> None:
    """In processes of their own, which are told to."""

    def trial(kind: str, seed: int, folder: Path) -> Outcome:
        del kind
        return kills.trial("counts", seed, folder, ("charge_after_drawing",))

    patch.setitem(ATTACKS, "kills", replace(kills.ATTACK, trial=trial))


EVERY = ("counts", "histograms", "group_sizes", "flows")


def on(attack: str, *kinds: str) -> tuple[tuple[str, str], ...]:
    return tuple((attack, kind) for kind in kinds)


FORGED = on("forgery", "counts", "spines", "histograms", "group_sizes", "flows")
NUMBERS = ("counts", "histograms", "group_sizes", "flows")

MUTATIONS: tuple[Mutation, ...] = (
    Mutation("P1: a name decides the price", on("price", "histograms"), price_by_name),
    Mutation("P2: requirements are not stated", on("statement", *EVERY[1:]), requirements_unsaid),
    Mutation(
        "P3: smaller changes ignore exact totals",
        on("statement", "counts", "histograms"),
        smaller_changes_ignore_exact_totals,
    ),
    Mutation("P4: other units are left out", on("ledger", "units"), sums_leave_out_other_units),
    Mutation("P12: bounds contradict", on("ledger", "persons"), bounds_contradict_each_other),
    Mutation("half of the noise", on("noise", *EVERY), halved_noise),
    Mutation(
        "one side of a replacement", on("sensitivity", "counts", "spines"),
        one_side_of_a_replacement,
    ),
    Mutation(
        "one record of each unit", on("sensitivity", "counts", "histograms"),
        one_record_of_each_unit,
    ),
    Mutation("half of delta", on("sensitivity", "counts", "group_sizes"), half_of_delta),
    Mutation("verify: no inventory", FORGED, unchecked("files.integrity")),
    Mutation("verify: plan not derived", FORGED, unchecked("plan")),
    Mutation("verify: documents not compared", FORGED, unchecked("documents")),
    Mutation("verify: numbers not recomputed", FORGED, unchecked(*NUMBERS)),
    Mutation("refusals leave something", on("hostile", *EVERY), refusals_leave_something),
    Mutation("charged after drawing", on("kills", "any"), charged_after_drawing),
)  # fmt: skip
