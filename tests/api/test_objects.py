"""Specs, plans, runs and releases as objects, and specs as YAML and back."""

import pickle

import polars as pl
import pyarrow as pa
import pytest
import yaml

import flow_worlds
import histogram_release_worlds
import size_worlds
import spine_worlds
import trellis as tr
import worlds
from trellis.errors import RunFolderError, SpecError

PEOPLE = pa.table({"town": ["ash"] * 30 + ["elm"] * 12 + ["oak"] * 7})
AREAS = pa.table({"region": ["north", "north", "south"], "town": ["ash", "elm", "oak"]})


def towns(**changes):
    given = {
        "name": "towns",
        "dataset": "people-2026",
        "records": tr.Records(PEOPLE, area="town"),
        "hierarchy": tr.Hierarchy.from_columns(AREAS, ["region", "town"], root=("country", "all")),
        "protects": tr.Unit("person", neighbours="add_remove", max_contribution=1),
        "noise": tr.Gaussian(rho="1/2"),
        "shares": tr.Optimal(),
    }
    return tr.Counts(**given | changes)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


# -- the whole way --------------------------------------------------------------------------------


def test_from_frames_to_tables(folder):
    plan = towns().plan()
    assert plan.privacy.rho == tr.load(_written(towns())).privacy.budget.rho
    assert [row["level"] for row in plan.errors.to_pylist()] == ["country", "region", "town"]
    run = plan.measure(out="runs/towns")
    assert not run.is_finished
    release = run.estimate()
    assert release.levels == ("country", "region", "town")
    assert list(release) == list(release.levels)
    assert "town" in release
    table = release["town"]
    assert table.to_arrow().equals(release.table("town"))
    assert table.to_polars()["count"].to_list() == table.to_pandas()["count"].tolist()
    assert pl.DataFrame(table).height == len(table) == 3
    assert release.verify()
    assert release.verify().problems == []
    assert release.report().exists()


def _written(spec):
    spec.to_yaml("spec.yaml")
    return "spec.yaml"


def test_a_release_that_was_tampered_with_does_not_verify(folder):
    release = towns().run("runs/towns")
    path = release.path / "release" / "town.parquet"
    path.write_bytes(path.read_bytes() + b" ")
    assert not release.verify()
    assert release.verify().problems


def test_another_method_goes_into_a_folder_of_its_own(folder):
    run = towns(estimate={"method": "gls"}).measure("runs/towns")
    run.estimate()
    other = run.estimate("topdown", "runs/other")
    assert other.plan.method.name == "topdown"
    with pytest.raises(RunFolderError, match="method and out go together"):
        run.estimate("gls")


def test_a_plan_is_measured_as_it_was_seen(folder):
    spec = worlds.write_world(folder / "w")
    plan = tr.load(spec).plan()
    (folder / "w" / "areas.csv").write_text(worlds.AREAS + "r,b,b2\n")
    with pytest.raises(SpecError, match="changed since the plan was made"):
        plan.measure(out="runs/x")
    assert not (folder / "runs").exists()


def test_the_frame_of_the_records_is_no_hierarchy(folder):
    spec = towns(hierarchy=tr.Hierarchy.from_columns(PEOPLE, ["town"]))
    with pytest.raises(SpecError, match="comes from the confidential file"):
        spec.plan()


def test_kinds_of_releases_have_their_own_methods(folder):
    assert flow_worlds.release_into(folder / "f").flows("state", "state").num_rows
    assert size_worlds.release_into(folder / "s").statistics("town").num_rows
    spec = histogram_release_worlds.write_histogram_world(folder / "h")
    release = tr.load(spec).run()
    assert release["town", "adult * sex"].to_arrow().num_rows
    assert release.queries("town") == ["total", "adult * sex"]
    assert release.microdata().num_rows
    assert not hasattr(release, "flows")


# -- YAML and Python ------------------------------------------------------------------------------

EVERY_KIND = {
    "counts": worlds.SPEC,
    "spine": spine_worlds.SPEC,
    "histograms": histogram_release_worlds.SPEC,
    "group sizes": size_worlds.SPEC,
    "flows": flow_worlds.SPEC,
    "targets": worlds.changed(
        worlds.SPEC,
        privacy__shares="optimal",
        privacy__budget={"delta": "1e-6"},
        accuracy=[{"level": "town", "within": 5}],
    ),
    "open strategy": worlds.changed(histogram_release_worlds.SPEC, strategy="optimal"),
    "sparse flows": worlds.changed(flow_worlds.SPEC, estimate={"method": "sparse"}),
}


@pytest.mark.parametrize("case", EVERY_KIND)
def test_yaml_and_python_say_the_same(folder, case):
    spec = tr.Spec.parse(EVERY_KIND[case], folder)
    assert type(spec).__mro__[1] in tr.api.specs.SPECS.values()
    spec.to_yaml("one.yaml")
    again = tr.load("one.yaml")
    assert again == spec
    assert again.public() == spec.public()
    assert type(spec)(**spec.to_dict()) == spec
    assert pickle.loads(pickle.dumps(spec)) == spec
    (folder / "elsewhere").mkdir()
    spec.to_yaml("elsewhere/two.yaml")
    moved = tr.load("elsewhere/two.yaml")
    assert moved == spec
    assert moved.ledger_path.resolve() == spec.ledger_path.resolve()


def test_other_specs_are_not_equal(folder):
    spec = towns()
    assert spec != towns(name="other")
    assert spec != "towns"
    moved = tr.Spec.parse(worlds.SPEC, folder / "elsewhere")
    assert moved != tr.Spec.parse(worlds.SPEC, folder)


def test_frames_take_the_place_of_files(folder):
    loaded = tr.load(_written(towns()))
    with pytest.raises(SpecError, match="pass a frame"):
        loaded.plan()
    bound = loaded.with_frames(records=PEOPLE, hierarchy=AREAS)
    assert bound.plan() == towns().plan()
    assert tr.run(loaded, "runs/x", data=PEOPLE, hierarchy=AREAS).verify()


@pytest.mark.parametrize(("changes", "message"), [
    ({"release": "x"}, "name and release mean the same"),
    ({"privacy": {}}, "protects and privacy mean the same"),
    ({"noise": tr.Gaussian()}, "Missing key 'privacy.budget'"),
    ({"noise": tr.Laplace(epsilon=1), "shares": "uneven"}, "privacy.shares: write uniform"),
    ({"protects": "person"}, "protects: give"),
    ({"sizes": {"cap": 3}}, "`sizes` is not a key of `kind: counts`, only of group_sizes"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused(folder, changes, message):
    with pytest.raises(SpecError, match=message):
        towns(**changes)


@pytest.mark.parametrize("rho", ["much", "1/0"])
def test_numbers_are_exact_or_refused(rho):
    with pytest.raises(SpecError, match="not a number"):
        towns(noise=tr.Gaussian(rho=rho))


# -- old spellings --------------------------------------------------------------------------------

OLD = {
    "histograms": (
        worlds.changed(histogram_release_worlds.SPEC, kind="counts"),
        worlds.changed(histogram_release_worlds.SPEC, kind="histograms"),
        "kind: counts with schema is now written kind: histograms.",
    ),
    "mechanism": (
        worlds.changed(size_worlds.SPEC, mechanism="histogram_exact"),
        worlds.changed(size_worlds.SPEC, estimate={"method": "histogram_exact"}),
        "mechanism is now written estimate.method.",
    ),
    "estimator": (
        worlds.changed(flow_worlds.SPEC, estimator="sparse", estimate={"penalty": 3}),
        worlds.changed(flow_worlds.SPEC, estimate={"method": "sparse", "penalty": 3}),
        "estimator is now written estimate.method.",
    ),
    "attributes": (
        worlds.changed(flow_worlds.SPEC, attributes={"mode": ["car", "bus"]}),
        worlds.changed(flow_worlds.SPEC, schema={"mode": ["car", "bus"]}),
        "attributes is now written schema.",
    ),
}


@pytest.mark.parametrize("case", OLD)
def test_old_spellings_are_read_with_a_line_that_says_what_to_write(folder, case):
    old, new, line = OLD[case]
    (folder / "old.yaml").write_text(yaml.safe_dump(old))
    spec = tr.load("old.yaml")
    assert spec == tr.Spec.parse(new, folder)
    assert spec.old_spellings == (line,)
    assert tr.Spec.parse(new, folder).old_spellings == ()


def test_both_spellings_at_once_are_refused(folder):
    both = worlds.changed(size_worlds.SPEC, mechanism="histogram_exact", estimate={"method": "x"})
    with pytest.raises(SpecError, match="`mechanism` is not a key"):
        tr.Spec.parse(both, folder)


# -- what is shown --------------------------------------------------------------------------------


def test_every_name_can_be_listed_and_loaded():
    assert set(tr.__all__) <= set(dir(tr))
    for name in tr.__all__:
        assert getattr(tr, name) is not None


def test_objects_show_themselves_in_notebooks(folder):
    release = towns().run("runs/towns")
    shown = [towns(), towns().plan(), release, release["town"], release.verify()]
    for thing in shown:
        html = thing._repr_html_()
        assert html.startswith("<")
        assert "<script" not in html
    assert "towns" in repr(towns())
    evil = tr.Table(pa.table({"<b>": ["<script>alert(1)</script>"]}))._repr_html_()
    assert "<script" not in evil
    assert "<b>" not in evil


def test_a_hierarchy_can_be_looked_at():
    tree = tr.Hierarchy.from_paths([("all", "n", "ash"), ("all", "s", "oak")], ["c", "r", "t"])
    assert tree.levels == ("c", "r", "t")
    assert tree.codes("t") == ["ash", "oak"]
    flat = tr.Hierarchy.from_parent_child(
        pa.table({"child": ["all", "a", "b"], "parent": [None, "all", "all"]}),
        levels=["country", "town"],
    )
    assert flat.codes("town") == ["a", "b"]
    codes = tr.Hierarchy.from_prefixes(
        pa.table({"code": ["011", "012", "021"]}), "code", {"county": 2, "tract": 3}, ("all", "x")
    )
    assert codes.levels[-1] == "tract"


def test_messages_name_arguments_in_python_and_options_on_the_command_line():
    error = SpecError("Name it with --confidential-out, or add --new-edition; not state-to-state.")
    assert str(error) == "Name it with confidential_out, or add new_edition; not state-to-state."
    assert "--confidential-out" in error.on_command_line
