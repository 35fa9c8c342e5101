"""Everything that a release will say about its privacy, found before anything is spent.

Guarantees of many kinds of path take a while. Answers are kept for the rest of the process, so that
what is slow is slow before the ledger is charged; a run that is resumed finds them first of all.
"""

from __future__ import annotations

from functools import lru_cache

from trellis.evaluate.privacy_pictures import ALPHAS, DELTAS
from trellis.execution.progress import tell_done
from trellis.model.plans.plan import Plan
from trellis.privacy.accounting.distributions.rounding import float_above, float_below
from trellis.privacy.attacker import FALSE_ALARMS
from trellis.privacy.guarantee import Guarantee
from trellis.release.documents.privacy_record import privacy_record, stated_deltas
from trellis.wording.privacy import MANY_CHARGES
from trellis.workflow.progress import Progress


def find_privacy_answers(plan: Plan, progress: Progress) -> None:
    """Ask all questions; silently if they were asked before."""
    if not (asked := _asked(plan.privacy)):
        with progress.stage("privacy"):
            _ask(plan)
        asked.append(True)


@lru_cache(maxsize=16)
def _asked(guarantee: Guarantee) -> list[bool]:  # noqa: ARG001
    return []


def _ask(plan: Plan) -> None:
    """All points of a kind at once: then each curve is made once, however many there are."""
    accountant = plan.privacy.accountant
    alarms = [end(alpha) for alpha in FALSE_ALARMS for end in (float_below, float_above)]
    accountant.epsilon_curve([*map(float, stated_deltas(plan)), *DELTAS])
    tell_done(0.4)
    accountant.tradeoff_curve([*alarms, *ALPHAS])
    tell_done(0.9)
    if len(plan.privacy.charges) <= MANY_CHARGES:  # else no more curves are made
        privacy_record(plan)
