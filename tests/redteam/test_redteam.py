"""The red team itself, in a few seconds: every attack holds on one seed, and finds what it must."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest

from redteam.attack import Attack, Outcome, attempt
from redteam.attacks import ATTACKS
from redteam.mutations import MUTATIONS
from redteam.report import Report
from redteam.session import attack_until, try_mutations
from redteam.unnoticed import UNNOTICED
from redteam.worlds import DRAW

QUICK = {
    "sensitivity": "flows", "price": "counts", "statement": "group_sizes", "ledger": "units",
    "noise": "counts", "forgery": "counts", "hostile": "spines",
}  # fmt: skip
"""Kills take longer, and have a test of their own: `contracts/test_spent_once.py`."""

SEED = 1
PAGE = Path(__file__).parents[2] / "docs" / "redteam.md"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("attack", "kind"), QUICK.items())
def test_one_trial_finds_nothing(attack, kind):
    outcome = attempt(ATTACKS[attack], kind, SEED)
    assert outcome.findings == ()
    assert outcome.tried > 0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["P4", "P12", "one side of a replacement"])
def test_a_defect_is_found(name):
    [mutation] = [m for m in MUTATIONS if m.name.startswith(name)]
    report = Report()
    try_mutations(0, Random(SEED), report, lambda _: None, (mutation,))
    assert "found" in report.mutations[0]
    assert report.is_clean


def test_every_defect_names_attacks_that_exist():
    for mutation in MUTATIONS:
        for name, kind in mutation.attacks:
            assert kind in ATTACKS[name].kinds
    assert {"P1", "P2", "P3", "P4", "P12"} <= {m.name.partition(":")[0] for m in MUTATIONS}
    assert {name for m in MUTATIONS for name, _ in m.attacks} == set(ATTACKS)


@pytest.mark.parametrize("kind", DRAW)
def test_a_seed_draws_the_same_world(kind):
    first, again = (DRAW[kind](Random(SEED)) for _ in range(2))
    assert (first.spec, first.files, first.others) == (again.spec, again.files, again.others)


def found(kind: str, seed: int, folder: Path) -> Outcome:
    del folder
    return Outcome(1, (f"{kind} is broken",), 2.0, "spec: of the finding")


def raised(kind: str, seed: int, folder: Path) -> Outcome:
    raise ValueError("no such thing")


def test_a_finding_is_reported_with_seed_and_spec():
    report = Report()
    attack = Attack("toy", "finds something", ("counts",), found)
    attack_until(0, SEED, report, [attack], lambda _: None)
    assert not report.is_clean
    assert re.search(r"toy:counts:\d+\n    counts is broken\n      spec: of", report.text())


def test_whatever_a_trial_raises_is_a_finding():
    outcome = attempt(Attack("toy", "", ("counts",), raised), "counts", SEED)
    assert "raised ValueError: no such thing" in outcome.findings[0]


def test_a_defect_that_no_attack_finds_is_missed():
    report = Report()
    [mutation] = [m for m in MUTATIONS if m.name.startswith("P4")]
    harmless = type(mutation)("harmless", mutation.attacks, lambda _: None)
    try_mutations(0, Random(SEED), report, lambda _: None, (harmless,))
    assert "MISSED" in report.mutations[0]
    assert not report.is_clean


def test_what_is_not_noticed_is_named_in_the_documentation():
    words = " ".join(PAGE.read_text().split())
    assert [entry.why for entry in UNNOTICED if entry.why not in words] == []
