"""Privacy contract: noise is charged before it is drawn, and what a charge bought is used once.

Real processes are killed at random points before, during and after measuring (see `killed_runs`).
After every kill

- no noise exists, finished or half written, that the ledger was not charged for;
- on resume, measurements that were settled are the ones released, byte for byte; those that were
  not are never read, as the poison put into them shows, and are gone;
- there is one charge, for the noise that is released, and the release keeps every promise.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from contracts import killed_runs
from contracts.drivers import printed_by

KILLED = -9


def faults(trial: dict) -> list[str]:
    """The rules that a trial breaks."""
    seen, then = trial["seen"], trial["then"]
    drawn = seen["published"] or seen["unpublished"]
    kept = {seen["published"], *seen["settled"]} - {None}
    rules = {
        "the process was killed": trial["ended"] == KILLED,
        "noise is charged before it is drawn": not drawn or seen["charges"] == 1,
        "the run goes on and keeps its promises": trial["resumed"] == 0,
        "there is one charge": seen["charges"] <= 1 and (then["charges"], then["rho"]) == (1, "1"),
        "settled measurements are used": kept <= {then["published"]},
        "what was settled is not claimed again": not seen["settled"]
        or seen["tokens"] == then["tokens"],
        "what is released is what was settled": then["settled"] == [then["published"]],
        "unsettled measurements are not read": not trial["poisoned"],
        "nothing is left beside the run": not then["leftovers"],
    }  # fmt: skip
    return [rule for rule, holds in rules.items() if not holds]


def assert_kept(trials: list[dict], **numbers: int) -> None:
    assert Counter(trial["phase"] for trial in trials) == numbers
    broken = {f"{t['phase']} {t['call']}": found for t in trials if (found := faults(t))}
    assert not broken


def test_killed_at_a_few_points(tmp_path):
    trials = printed_by("killed_runs", "counts", tmp_path, 1, 1, 4, 1)
    assert_kept(trials, before=1, during=4, after=1)


def test_killed_in_a_descent_of_histograms(tmp_path):
    trials = printed_by("killed_runs", "used", tmp_path, 1, 0, 4, 0)
    assert_kept(trials, during=4)


@pytest.mark.slow
@pytest.mark.parametrize("world", killed_runs.WORLDS)
def test_killed_at_fifty_points(tmp_path, world):
    seed = int.from_bytes(os.urandom(4))  # other points every time; the message names them
    trials = printed_by("killed_runs", world, tmp_path, seed, 12, 26, 12)
    assert_kept(trials, before=12, during=26, after=12)
    # The points include the interesting ones: charged, half written, settled.
    assert {0, 1} == {trial["seen"]["charges"] for trial in trials}
    assert any(trial["seen"]["unpublished"] for trial in trials)
    assert any(trial["seen"]["settled"] for trial in trials)


CAUGHT = {
    "charge_after_drawing": "noise is charged before it is drawn",
    "reuse_what_lies_there": "unsettled measurements are not read",
    "forget_the_run": "there is one charge",
}


@pytest.mark.slow
@pytest.mark.parametrize("mutation", killed_runs.MUTATIONS)
def test_mutation_is_caught(tmp_path, mutation):
    trials = printed_by("killed_runs", "counts", tmp_path, 1, 0, 12, 0, mutation)
    assert any(CAUGHT[mutation] in faults(trial) for trial in trials)
