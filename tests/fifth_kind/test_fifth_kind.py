"""A fifth kind goes the whole way: plan, run, resume, report, re-estimate, evaluate, commands."""

import numpy as np
import pytest
from typer.testing import CliRunner

import trellis as tr
from fifth_kind.design import MeansDesign
from fifth_kind.public import means_of
from fifth_kind.registered import PARTS, register
from fifth_kind.spec import MeansSpec
from fifth_kind.world import TRUE_LEAVES, write_means_world
from trellis.cli.app import app
from trellis.errors import InputError, SpecError
from trellis.privacy.ledger import Ledger
from trellis.verify import verify_run
from trellis.workflow.kinds import KINDS
from worlds import TREE, plan_for


@pytest.fixture(autouse=True)
def means(monkeypatch):
    register(monkeypatch)


@pytest.fixture
def spec(tmp_path):
    return write_means_world(tmp_path)


def values(release, level):
    return release.table(level)["count"].to_numpy().reshape(-1, 2)


def test_it_takes_three_registries_and_no_file_of_the_package(spec):
    parts = [PARTS.preparing, PARTS.public, PARTS.confidential, PARTS.comparison]
    modules = [MeansSpec.__module__, MeansDesign.__module__, *parts]
    assert all(name.startswith("fifth_kind.") for name in modules)
    assert isinstance(tr.load(spec), MeansSpec)
    assert KINDS["means"].outlook is None


def test_a_release_from_start_to_end(spec):
    release = tr.run(tr.load(spec))
    town, state = values(release, "town"), values(release, "state")
    np.testing.assert_allclose(town, TRUE_LEAVES, atol=2)
    assert (state[0] == town[:2].sum(axis=0)).all()  # they add up
    np.testing.assert_allclose(means_of(5, town), [4, 2, 2], atol=1)
    assert "a value of at most 5 in each record" in " ".join(release.guarantee)
    page = (release.path / "report" / "index.html").read_text()
    assert "<h2>Means</h2>" in page
    assert release.privacy.rho == 1000
    assert release.report().read_text() == page


def test_noise_is_made_for_the_bound(spec):
    plan = tr.load(spec).plan()
    counts = plan_for(TREE, budget=plan.budget, n_cells=2)
    for q in plan.queries:
        assert q.noise.sigma_squared == 25 * counts.query(q.level, q.query).noise.sigma_squared


def test_it_resumes_and_is_charged_once(spec, tmp_path):
    run = tr.load(spec).plan().measure()
    first = run.estimate()
    assert tr.run(tr.load(spec)).table("town").equals(first.table("town"))
    (entry,) = Ledger(tmp_path / "ledger.sqlite").entries("towns")
    assert entry.is_settled
    assert entry.guarantee == first.privacy  # what the ledger reads back is what was charged


@pytest.mark.parametrize("method", ["gls", "bottomup"])
def test_another_method(spec, tmp_path, method):
    release = tr.run(tr.load(spec))
    other = release.estimate(method, tmp_path / "other")
    assert other.plan.method.name == method
    assert other.plan.queries == release.plan.queries
    np.testing.assert_allclose(values(other, "town"), TRUE_LEAVES, atol=2)


def test_the_truth(spec, tmp_path):
    release = tr.run(tr.load(spec))
    found = tr.evaluate_run(release, spec, tmp_path / "CONFIDENTIAL-x")
    assert {e.level for e in found.levels} == {"nation", "state", "town"}
    assert all(e.errors.mean_absolute_error < 2 for e in found.levels)


def test_values_above_the_bound_are_refused(tmp_path):
    spec = write_means_world(tmp_path, people="town,hours\na1,6\n")
    with pytest.raises(InputError, match=r"data\.at_most") as refused:
        tr.run(tr.load(spec))
    assert "6" not in str(refused.value).replace(str(tmp_path), "")
    assert not (tmp_path / "runs").exists()


def test_it_converts_both_ways(spec, tmp_path):
    loaded = tr.load(spec)
    loaded.to_yaml(tmp_path / "again.yaml")
    assert tr.load(tmp_path / "again.yaml") == loaded
    assert tr.Spec(**loaded.to_dict()).kind == "means"


def test_what_it_does_not_have_is_refused_in_words(spec):
    with pytest.raises(SpecError, match="accuracy is not supported for kind: means yet"):
        tr.load(spec).model_copy(update={"accuracy": [{"level": "town", "within": 3}]})


def test_commands_know_it(spec):
    for command in ("check", "plan", "account", "run", "measure"):
        done = CliRunner().invoke(app, [command, str(spec)])
        assert done.exit_code == 0, done.output
    done = CliRunner().invoke(app, ["report", str(spec.parent / "runs" / "towns")])
    assert done.exit_code == 0, done.output
    done = CliRunner().invoke(app, ["plan", str(spec), "--simulate", "3"])
    assert done.exit_code == 2


def test_verification_never_vouches_for_a_price_that_it_does_not_know(spec):
    """It shares no code with the package: a real fifth kind enters its price in `verify` too."""
    release = tr.run(tr.load(spec))
    found = {finding.check: finding.problems for finding in verify_run(release.path)}
    assert any("'means' are not known here" in problem for problem in found["planned"])
    assert any("as a table of another kind" in problem for problem in found["budget"])
