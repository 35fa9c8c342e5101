"""Pictures, tables and statements are the same from the command line and from Python."""

import json
from fractions import Fraction
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import spine_worlds
import trellis as tr
import worlds
from command_line import refused, succeed
from trellis.errors import LedgerError, PrivacyError, RunFolderError, SpecError
from trellis.privacy import DiscreteGaussian, DiscreteLaplace


@pytest.fixture(scope="module")
def towns(tmp_path_factory):
    """A spec without areas of interest, released."""
    spec = worlds.write_world(tmp_path_factory.mktemp("towns"))
    succeed("run", spec, "-q")
    return spec


@pytest.fixture(scope="module")
def spine(tmp_path_factory):
    """A spec with areas of interest and a spine."""
    folder = tmp_path_factory.mktemp("spine")
    pq.write_table(spine_worlds.blocks().select(["geoid", "place", "zone"]), folder / "b.parquet")
    content = {**spine_worlds.SPEC}
    content["hierarchy"] = {**content["hierarchy"], "source": "b.parquet"}
    content["areas"] = {k: {**area, "source": "b.parquet"} for k, area in content["areas"].items()}
    (folder / "spec.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    return folder / "spec.yaml"


def files_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# -- plan -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("world", "strategies"), [("towns", ["uniform", "optimal"]),
                                                   ("towns", []), ("spine", [])])  # fmt: skip
def test_pictures_of_a_plan(world, strategies, request, tmp_path):
    spec = request.getfixturevalue(world)
    compare = ["--compare", *strategies] if strategies else []
    succeed("plan", spec, *compare, "--pictures", tmp_path / "a")
    pictures = tr.load(spec).plan().pictures(*strategies)
    written = pictures.save(str(tmp_path / "b" / "c"))
    assert [path.name for path in written] == list(pictures)
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b" / "c")
    assert len(pictures) == 2 + len(strategies)


def test_the_picture_of_a_spine(spine, tmp_path):
    succeed("plan", spine, "--picture", tmp_path / "a.svg")
    tr.load(spine).plan().picture().save(tmp_path / "b.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_errors_of_areas(spine, tmp_path):
    succeed("plan", spine, "--areas", tmp_path / "a.csv")
    table = tr.load(spine).plan().area_errors
    table.to_csv(tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    assert set(table.to_pandas()["category"]) == {"place", "zone"}
    assert len(table) == len((tmp_path / "a.csv").read_text().splitlines()) - 1


def test_the_json_of_a_plan(towns):
    said = json.loads(succeed("plan", towns, "--json", "--compare", "uniform"))
    report = tr.load(towns).plan().report(compare=["uniform"])
    assert json.loads(json.dumps(report.to_json())) == said
    assert said["comparison"]


def test_a_prior_with_other_columns(towns, tmp_path):
    old = tmp_path / "old.csv"
    old.write_text("place,n\na1,5\na2,0\nb1,1\n")
    options = ("--simulate", 2, "--prior", old, "--prior-area", "place", "--prior-count", "n")
    said = json.loads(succeed("plan", towns, "--json", *options))["simulation"]
    prior = {"source": str(old), "area": "place", "count": "n"}
    plan = tr.load(towns).plan()
    assert plan.simulate(2, prior).releases == said["releases"]
    with pytest.raises(SpecError, match=r"^prior: give a file, or keys as in a spec: source"):
        plan.simulate(2, prior | {"column": "n"})


@pytest.mark.parametrize("case", ["areas", "picture"])
def test_refusals_name_arguments_in_python_and_options_on_the_command_line(towns, tmp_path, case):
    plan = tr.load(towns).plan()
    with pytest.raises(SpecError) as error:
        plan.area_errors if case == "areas" else plan.picture()
    said = refused("plan", towns, f"--{case}", tmp_path / "x")
    assert said == f"error: {error.value.on_command_line}"
    assert said.removeprefix("error: --") == str(error.value)


def test_pictures_are_refused_where_no_folder_can_be(towns, tmp_path):
    (tmp_path / "taken").write_text("")
    pictures = tr.load(towns).plan().pictures()
    with pytest.raises(RunFolderError, match="could not be written"):
        pictures.save(tmp_path / "taken")
    with pytest.raises(RunFolderError, match="could not be written"):
        pictures["shares.svg"].save(tmp_path / "nowhere" / "x.svg")


def test_pictures_and_statements_show_themselves(towns):
    plan = tr.load(towns).plan()
    pictures, stated = plan.pictures(), plan.account()
    assert ElementTree.fromstring(pictures["shares.svg"]._repr_svg_()).tag.endswith("svg")
    assert pictures._repr_html_().count("<svg") == len(pictures) == 2
    assert "is protected" in stated._repr_html_()
    assert "epsilon_lower" in stated._repr_html_()
    for thing in (pictures, pictures["shares.svg"], stated):
        assert type(thing).__name__ in repr(thing)
    assert {"pictures", "picture", "area_errors", "account", "levels"} <= set(dir(plan))


def test_csv_is_safe_for_spreadsheets(tmp_path):
    codes = pa.array(["=1+1", "a,b", None]).dictionary_encode()
    table = tr.Table(pa.table({"code": codes, "count": [1, None, 3]}))
    assert table.to_csv(tmp_path / "x.csv").read_text() == 'code,count\n\'=1+1,1\n"a,b",\n,3\n'


# -- account --------------------------------------------------------------------------------------


def test_account_of_anything(towns, tmp_path):
    folder = towns.parent / "runs" / "towns"
    spec, release = tr.load(towns), tr.Release(folder)
    held = [spec, spec.plan(), spec.plan().model, tr.Run(folder), release, release.plan]
    paths = [towns, str(folder), folder / "plan.json"]
    for target in held + paths:
        said = tr.account(target).to_json()
        assert said == json.loads(succeed("account", towns, "--json"))
    assert release.account().to_json() == tr.Run(folder).account().to_json() == said
    for target in paths:
        succeed("account", target, "--svg", tmp_path / "a.svg")
        tr.account(target).picture().save(tmp_path / "b.svg")
        assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


@pytest.mark.parametrize("delta", ["1e-7", 1e-7, Fraction(1, 10**7)])
def test_account_at_a_delta(towns, delta):
    said = json.loads(succeed("account", towns, "--delta", "1e-7", "--json"))
    assert tr.load(towns).plan().account(delta).to_json() == said
    several = tr.account(towns, [delta, "1e-9"])
    assert several.to_json()[0] == said
    assert several.table.to_pylist() == several.to_json()


def test_account_says_what_the_command_says(towns):
    shown = succeed("account", towns)
    for sentence in tr.account(towns).sentences:
        assert sentence in shown
    assert "is protected" in shown


def test_account_of_mechanisms(tmp_path):
    options = ("--gaussian", "sigma2=5,count=10", "--laplace", "scale=7/2", "--neighbours",
               "replace", "--max-contribution", 2)  # fmt: skip
    noise = tr.Accountant("replace", 2).add(DiscreteGaussian(5), 10).add(DiscreteLaplace("7/2"))
    assert tr.account(noise).to_json() == json.loads(succeed("account", *options, "--json"))
    assert tr.account(noise).plan is None
    succeed("account", *options, "--svg", tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text() == tr.account(noise).picture().svg


def test_account_refuses_what_the_command_refuses(towns, tmp_path):
    for arguments, options in (
        ((towns, "x"), (towns, "--delta", "x")),
        ((towns, 1), (towns, "--delta", "1")),
        ((tmp_path / "no.json",), (tmp_path / "no.json",)),
        ((tmp_path / "no.yaml",), (tmp_path / "no.yaml",)),
        ((tmp_path,), (tmp_path,)),
    ):
        with pytest.raises(tr.errors.TrellisError) as error:
            tr.account(*arguments).to_json()
        assert refused("account", *options) == f"error: {error.value.on_command_line}"
    with pytest.raises(PrivacyError, match="give an accountant"):
        tr.account(3)


# -- ledger and estimate --------------------------------------------------------------------------


def test_the_json_of_a_ledger(towns):
    path = towns.parent / "ledger.sqlite"
    ledger = tr.Ledger(path)
    [dataset] = ledger.datasets()
    assert ledger.to_json() == json.loads(succeed("ledger", "--ledger", path, "--json"))
    said = json.loads(succeed("ledger", dataset, "--ledger", path, "--json"))
    assert ledger.to_json(dataset) == said
    assert said["units"]["person"]["charges"]
    with pytest.raises(LedgerError) as error:
        ledger.to_json("other")
    assert refused("ledger", "other", "--ledger", path) == f"error: {error.value}"


def test_a_ledger_refuses_in_python_what_it_refuses_there(tmp_path):
    ledger = tr.Ledger(tmp_path / "l.sqlite")
    for call in (
        lambda: ledger.limit("x", "person", rho="much"),
        lambda: ledger.limit("x", "person"),
        lambda: ledger.made_of("x", "household", {"person": 0}),
        lambda: ledger.made_of("x", "household", {"person": True}),
        lambda: ledger.part_of("x", "person", {"household": "1"}),
        lambda: ledger.part_of("x", "person", {"person": 2}),
        lambda: ledger.restore(tmp_path / "no.sqlite"),
        lambda: ledger.backup(tmp_path / "copy.sqlite"),
    ):
        with pytest.raises(PrivacyError):
            call()
    assert not ledger.path.exists()


def test_a_penalty_goes_with_a_method(towns, tmp_path):
    run = tr.Run(towns.parent / "runs" / "towns")
    with pytest.raises(RunFolderError, match=r"^penalty goes with method sparse or gls_sparse"):
        run.estimate(penalty=2)
    with pytest.raises(RunFolderError, match=r"^penalty: 'x' is not a number"):
        run.estimate("gls", tmp_path / "x", penalty="x")
    with pytest.raises(RunFolderError, match="Only flows have"):
        tr.Release(run.path).estimate("gls", tmp_path / "x", penalty="1/2")
