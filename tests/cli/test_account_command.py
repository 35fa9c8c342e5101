"""`trellis account`, from options, specs, plans and run folders."""

import json
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from trellis.cli.app import app
from trellis.privacy import Accountant, DiscreteGaussian, DiscreteLaplace
from trellis.samples.demo import write_demo


def account(*arguments, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["account", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result.output if code == 0 else result.stderr


def test_options_give_the_exact_guarantee_as_json():
    said = account("--gaussian", "sigma2=5,count=10", "--gaussian", "sigma2=68.49,count=10",
                   "--delta", "1e-10", "--neighbours", "add_remove", "--json")  # fmt: skip
    exact = Accountant("add_remove").add(DiscreteGaussian(5), 10).add(DiscreteGaussian("68.49"), 10)
    lower, upper = exact.epsilon_bounds(1e-10)
    row = json.loads(said)
    assert row == {
        "delta": 1e-10,
        "epsilon": upper,
        "epsilon_lower": lower,
        "epsilon_zcdp": exact.epsilon_zcdp(1e-10),
    }
    assert row["epsilon_lower"] <= row["epsilon"] < row["epsilon_zcdp"]


def test_several_deltas_give_a_list_and_contributions_count():
    arguments = ["--laplace", "scale=7/2", "--neighbours", "replace", "--max-contribution", "2",
                 "--delta", "1e-3", "--delta", "1e-9", "--json"]  # fmt: skip
    rows = json.loads(account(*arguments))
    exact = Accountant("replace", 2).add(DiscreteLaplace("7/2"))
    assert [row["epsilon"] for row in rows] == [exact.epsilon(1e-3), exact.epsilon(1e-9)]


def test_spec_plan_and_run_folder_agree(tmp_path):
    write_demo(tmp_path, n_blocks=300)
    spec = tmp_path / "spec.yaml"
    assert CliRunner().invoke(app, ["run", str(spec), "-q"]).exit_code == 0
    folder = tmp_path / "runs" / "demo"
    said = {account(t, "--json") for t in (spec, folder, folder / "plan.json")}
    assert len(said) == 1
    record = json.loads((folder / "privacy.json").read_text())
    stated = {row["delta"]: row["epsilon"] for row in json.loads(said.pop())}
    assert stated[1e-10] == record["epsilon_at_delta"]["1e-10"]


def test_text_shows_table_tier_and_attacker(tmp_path):
    said = account("--gaussian", "sigma2=5", "--neighbours", "replace")
    assert "certified by: lattice" in said
    assert said.count("false alarms") == 3


def test_picture_is_drawn(tmp_path):
    account("--gaussian", "sigma2=5", "--neighbours", "replace", "--svg", tmp_path / "c.svg")
    assert ElementTree.parse(tmp_path / "c.svg").getroot().tag.endswith("svg")


@pytest.mark.parametrize(("arguments", "said"), [
    ([], "give --gaussian or --laplace"),
    (["--gaussian", "sigma2=5"], "--neighbours is missing"),
    (["--gaussian", "sigma2=5", "--neighbours", "swap"], "no relation 'swap'"),
    (["--gaussian", "sigma2=5,sigma2=6", "--neighbours", "replace"], "not of the form"),
    (["--gaussian", "scale=5", "--neighbours", "replace"], "not of the form"),
    (["--gaussian", "sigma2=5,count=0", "--neighbours", "replace"], "at least 1"),
    (["--gaussian", "sigma2=5,count=x", "--neighbours", "replace"], "not of the form"),
    (["--gaussian", "sigma2=0", "--neighbours", "replace"], "not positive"),
    (["--gaussian", "sigma2=nan", "--neighbours", "replace"], "not an exact number"),
    (["--laplace", "scale=-1", "--neighbours", "replace"], "not positive"),
    (["--laplace", "scale=1", "--neighbours", "replace", "--delta", "1"], "strictly between"),
    (["--laplace", "scale=1", "--neighbours", "replace", "--delta", "x"], "not a number"),
    (["spec.yaml", "--gaussian", "sigma2=5"], "not both"),
    (["nowhere.yaml"], "no spec at"),
    (["nowhere.json"], "missing"),
])  # fmt: skip
def test_bad_input_is_one_clear_line(arguments, said):
    line = account(*arguments, code=2)
    assert line.startswith("error: ")
    assert line.count("\n") == 1
    assert said in line
