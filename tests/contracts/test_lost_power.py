"""Privacy contract: one charge, one draw, also where loss of power undoes changes of folders.

After each step of a release every change of a folder that was not synchronised is forgotten (see
`lost_power`). What a step has done holds, and the run goes on to one release for one charge.
"""

from __future__ import annotations

import sys

import pytest

from contracts import lost_power
from contracts.drivers import printed_by

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="watches SQLite on Linux")

CUT = 7
CHARGED = ("charge", "claim", "draw", "settle", "publish")
SETTLED = ("settle", "publish")


def faults(trial: dict) -> list[str]:
    """The rules that a trial breaks."""
    step, held, seen, then = (trial[key] for key in ("step", "held", "seen", "then"))
    rules = {
        "the power was cut": trial["ended"] == CUT,
        "what was charged stays charged": seen["charges"] == (step in CHARGED),
        "what was settled stays settled": seen["settled"] == held["settled"]
        and len(seen["settled"]) == (step in SETTLED),
        "the run goes on and keeps its promises": trial["resumed"] == 0,
        "there is one charge": (then["charges"], then["rho"]) == (1, "1"),
        "nothing is drawn twice": not held["settled"] or then["settled"] == held["settled"],
        "what is released is what was settled": then["settled"] == [then["published"]],
    }  # fmt: skip
    return [rule for rule, holds in rules.items() if not holds]


def test_one_charge_one_draw_whatever_folders_forget(tmp_path):
    trials = printed_by("lost_power", "counts", tmp_path, ",".join(lost_power.STEPS))
    assert [trial["step"] for trial in trials] == list(lost_power.STEPS)
    assert not {trial["step"]: found for trial in trials if (found := faults(trial))}


@pytest.mark.parametrize(("mutation", "step", "rule"), [
    ("journals_come_back", "settle", "nothing is drawn twice"),
    pytest.param("folders_are_not_synchronised", "charge", "there is one charge",
                 marks=pytest.mark.slow),
])  # fmt: skip
def test_mutation_is_caught(tmp_path, mutation, step, rule):
    [trial] = printed_by("lost_power", "counts", tmp_path, step, mutation)
    assert rule in faults(trial)
