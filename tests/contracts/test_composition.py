"""Contract: what goes with what is known, stated in the docs, and refused in plain words."""

import re

import pytest

from kinds import composition
from kinds.composition import FEATURES, PAGE
from trellis.spec.kinds import SPECS


@pytest.fixture(scope="module")
def outcomes():
    """Every feature tried on every kind."""
    return {(f, k): (works, words) for f, k, works, words in composition.outcomes()}


def test_the_page_says_what_the_program_does(outcomes, monkeypatch):
    listed = [(*pair, *outcome) for pair, outcome in outcomes.items()]
    monkeypatch.setattr(composition, "outcomes", lambda: iter(listed))
    made = composition.page()
    assert PAGE.read_text() == made, "run tests/kinds/composition.py"


def test_every_pair_was_tried(outcomes):
    assert set(outcomes) == {(feature, kind) for feature in FEATURES for kind in SPECS}
    assert set(composition.WRITE) == set(SPECS)


def test_refusals_are_short_and_name_what_is_refused(outcomes):
    for (feature, kind), (works, words) in outcomes.items():
        if not works:
            assert len(words) < 200, (feature, kind, words)
            assert re.fullmatch(r"[^\n]+\.", words), (feature, kind, words)
            assert "/" not in words, (feature, kind, words)  # no path, so no folder of the owner
            assert words.count(". ") <= 1, (feature, kind, words)  # what is wrong, then what to do
            assert kind in words or kind.replace("_", " ") in words or named(feature) in words


def named(feature: str) -> str:
    """The key or option of a feature; of one that has none, its words in the report."""
    found = re.search(r"`(?:privacy\.|plan --)?([^` :]+)", feature)
    return found[1] if found else "report"


def test_every_feature_works_for_some_kind_and_every_kind_has_most(outcomes):
    for feature in FEATURES:
        assert any(outcomes[feature, kind][0] for kind in SPECS), feature
    for kind in SPECS:
        assert sum(outcomes[feature, kind][0] for feature in FEATURES) > len(FEATURES) / 3


def test_mutation_a_feature_that_stops_working_is_noticed(monkeypatch):
    monkeypatch.setitem(FEATURES, "discrete Gaussian noise", composition.planned(nonsense=1))
    works, words = composition.outcome("counts", "discrete Gaussian noise")
    assert not works
    assert "nonsense" in words
