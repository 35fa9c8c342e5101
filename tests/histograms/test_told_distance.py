"""What a release says about families that were not solved to the tolerance."""

import json

import pytest
from typer.testing import CliRunner

import trellis
from histogram_release_worlds import problems, write_histogram_world
from trellis.cli.app import app
from trellis.estimate.histograms.family import chain
from trellis.estimate.histograms.family.least_squares import LeastSquares
from trellis.model.results.histogram_estimates import FIT_TOLERANCE

SAID = "away from the best fit: the solver stopped early"


def released(tmp_path, **changes):
    spec = write_histogram_world(tmp_path, **changes)
    result = CliRunner().invoke(app, ["run", str(spec), "--out", str(tmp_path / "run")])
    assert result.exit_code == 0, result.output
    return tmp_path / "run", " ".join(result.output.split())


@pytest.mark.parametrize("method", ["gls_topdown", "topdown"])
def test_a_solver_that_stops_early_is_told(tmp_path, monkeypatch, method):
    monkeypatch.setattr(chain, "LeastSquares", lambda tolerance: LeastSquares(tolerance, 0))
    run, said = released(tmp_path, estimate__method=method, privacy__neighbours="add_remove")
    fit = json.loads((run / "estimates" / "fit.json").read_text())
    assert fit["distance"] > fit["tolerance"] == FIT_TOLERANCE
    assert SAID in said
    assert f"Some counts may be {fit['distance']:.2g} " in said
    guide = (run / "release" / "README.md").read_text()
    assert f"may be up to {fit['distance']:.2g} (root" in guide
    assert ("Standard errors\nand intervals do not depend" in guide) == (method != "topdown")
    assert trellis.Release(run).loose_fit == fit["distance"]
    assert problems(run) == {}
    again = tmp_path / "again"
    arguments = ["estimate", str(run), "--method", "topdown", "--out", str(again)]
    assert SAID in " ".join(CliRunner().invoke(app, arguments).output.split())


def test_nothing_is_said_of_a_solved_release(tmp_path):
    run, said = released(tmp_path)
    assert json.loads((run / "estimates" / "fit.json").read_text())["distance"] <= FIT_TOLERANCE
    assert SAID not in said
    assert "fit" not in (run / "release" / "README.md").read_text()
    assert trellis.Release(run).loose_fit is None


def test_linear_estimates_have_no_distance(tmp_path):
    run, said = released(
        tmp_path, estimate__method="gls", output={"tables": {"default": ["total"]}}
    )
    assert SAID not in said
    assert not (run / "estimates" / "fit.json").exists()
    assert trellis.Release(run).loose_fit is None
