"""The commands on a release of group sizes."""

from typer.testing import CliRunner

from size_worlds import write_size_world
from trellis.cli.app import app


def invoke(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


def test_the_two_halves_and_another_mechanism(tmp_path):
    spec = write_size_world(tmp_path / "w")
    run, other = tmp_path / "run", tmp_path / "other"
    assert invoke("check", spec).exit_code == 0
    assert invoke("measure", spec, "--out", run).exit_code == 0
    assert invoke("estimate", run).exit_code == 0
    assert invoke("verify", run).exit_code == 0
    done = invoke("estimate", run, "--method", "cumulative_exact", "--out", other)
    assert done.exit_code == 0
    assert invoke("verify", other).exit_code == 0
    refused = invoke("estimate", run, "--method", "histogram_exact", "--out", tmp_path / "no")
    assert refused.exit_code == 2
    assert "cumulative_joint" in refused.stderr


def test_the_plan_says_what_is_public_and_what_is_bounded_only(tmp_path):
    shown = invoke("plan", write_size_world(tmp_path / "w"))
    assert shown.exit_code == 0
    assert "Unprotected: the register" in shown.output
    privacy = {"unit": "person", "neighbours": "replace", "max_contribution": 2,
               "mechanism": "discrete_gaussian", "budget": {"rho": 1},
               "shares": {"town": 1}}  # fmt: skip
    spec = write_size_world(tmp_path / "x", estimate__method="histogram_exact", privacy=privacy)
    shown = invoke("plan", spec)
    assert "upper bound comes from zero-concentrated DP" in shown.output
    assert "not measured" in shown.output
    assert "certified by: zcdp" in invoke("account", spec).output


def test_the_ledger_adds_up_both_kinds(tmp_path):
    spec = write_size_world(tmp_path / "w")
    assert invoke("run", spec, "-q").exit_code == 0
    shown = invoke("ledger", "homes", "--ledger", spec.parent / "ledger.sqlite")
    assert "rho = 1/6, epsilon = 1" in shown.output


def test_the_report_is_about_groups(tmp_path):
    spec = write_size_world(tmp_path / "w")
    assert invoke("run", spec, "-q").exit_code == 0
    page = (spec.parent / "runs" / "homes" / "report" / "index.html").read_text()
    assert "Groups by size for 3 levels" in page
    assert "register of groups is public" in page


def test_a_relaxed_release_counts_its_violations(tmp_path):
    spec = write_size_world(tmp_path / "w", estimate__method="histogram_relaxed")
    assert invoke("run", spec, "-q").exit_code == 0
    run = spec.parent / "runs" / "homes"
    guide = (run / "release" / "README.md").read_text()
    assert "need not add up" in guide
    assert "places (an area and a size) they do not" in guide
    assert "so that they add up" not in (run / "report" / "index.html").read_text()
    assert invoke("verify", run).exit_code == 0
