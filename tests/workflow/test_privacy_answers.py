"""What a release says about its privacy is found before it is charged, not afterwards."""

import pytest

import spine_worlds
from measuring import measure
from trellis import run
from trellis.privacy.accounting import privacy_curve
from trellis.privacy.ledger import Ledger
from trellis.workflow.progress import Silent
from trellis.workflow.public import privacy_answers
from trellis.workflow.public.finishing import finish

TABLE = spine_worlds.blocks()
FRAMES = {
    "data": TABLE,
    "hierarchy": TABLE.select(["geoid"]),
    "areas": {name: TABLE.select(["geoid", name]) for name in ("place", "zone")},
}


@pytest.fixture
def curves(monkeypatch):
    """The names of all curves that are made; none is known when a test begins."""
    made = []
    for name in ("exact_curve", "bracket_curve"):
        was = getattr(privacy_curve, name)
        monkeypatch.setattr(
            privacy_curve, name, lambda *given, was=was: made.append(was.__name__) or was(*given)
        )
    privacy_curve.forget()
    privacy_answers._asked.cache_clear()
    return made


def test_no_curve_is_made_after_the_charge(tmp_path, curves, monkeypatch):
    charge = Ledger.charge

    def charged(*given, **options):
        assert curves
        charge(*given, **options)
        curves.clear()
        privacy_curve.curve_of.clear()  # so that nothing rests on curves that happen to be kept
        privacy_curve.coarse_curve.cache_clear()

    monkeypatch.setattr(Ledger, "charge", charged)
    run(spine_worlds.spec(tmp_path), tmp_path / "run", **FRAMES)
    assert curves == []


def test_a_resumed_run_begins_with_them(tmp_path, curves):
    folder = measure(spine_worlds.spec(tmp_path), tmp_path / "run", **FRAMES)
    privacy_curve.forget()  # as in another process
    privacy_answers._asked.cache_clear()
    stages = []

    class Listening(Silent):
        def stage(self, name, *, line=True):
            stages.append((name, len(curves)))
            return super().stage(name, line=line)

    curves.clear()
    finish(folder, Listening())
    names, before = zip(*stages, strict=True)
    assert names[0] == "privacy"
    assert before[1] > before[0] == 0
    assert before[1] == len(curves)
