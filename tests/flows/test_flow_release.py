"""Releases of flows, end to end on small worlds."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flow_worlds import (
    PAIRS,
    TOWNS,
    TRIPS,
    ZONES,
    dense,
    flows_plan,
    release_into,
    spec_in,
    tree_of,
)
from measuring import reestimate
from seeded_bits import SeededBits
from strategies import hierarchies
from trellis.confidential.flows import TrueFlows
from trellis.errors import RunFolderError, SpecError
from trellis.estimate.flows.levels import estimate_flow_levels
from trellis.measure.charged_noise import ChargedNoise
from trellis.model.plans.kinds.flows import FLOW_METHODS
from trellis.privacy.budget import Budget
from trellis.privacy.ledger import Claim, Ledger
from trellis.privacy.neighbours import Neighbours
from trellis.verify import verify_run
from trellis.workflow.confidential.flow_descent import measure_flows
from trellis.workflow.ledger_runs import enter_run
from trellis.workflow.progress import Silent
from trellis.workflow.public.run_folder import RunFolder

NO_NOISE = {"privacy__budget": {"rho": 1000}}
"""A standard deviation of less than 0.05 on every level."""


def problems(path):
    return [p for finding in verify_run(path) for p in finding.problems]


def flows_of(table):
    rows = zip(*(table[name].to_pylist() for name in ("origin", "destination", "count")),
               strict=True)  # fmt: skip
    return {(o, d): n for o, d, n in rows}


@pytest.mark.parametrize("estimator", FLOW_METHODS)
@pytest.mark.parametrize("tree", ["destination", "origin"])
def test_without_noise_the_truth_comes_out(tmp_path, estimator, tree):
    release = release_into(tmp_path, **NO_NOISE, estimate__method=estimator, tree=tree)
    assert not problems(release.path)
    assert flows_of(release.table("town-to-town")) == {
        ("a1", "a1"): 43, ("a1", "b1"): 25, ("a2", "a1"): 30, ("b1", "c"): 50, ("c", "c"): 20,
    }  # fmt: skip
    assert flows_of(release.table("state-to-state")) == {
        ("a", "a"): 73, ("a", "b"): 25, ("b", "c"): 50, ("c", "c"): 20,
    }  # fmt: skip


@pytest.mark.parametrize("changes", [
    {"estimate__method": "chebyshev_descending"},
    {"estimate__method": "sparse", "estimate__penalty": 3},
    {"privacy__neighbours": "add_remove"},
    {"tree": "origin", "trips": {"number": "at_most"}},
    {"privacy__mechanism": "discrete_laplace", "privacy__budget": {"epsilon": 1}},
    {"privacy__budget": {"epsilon": 1, "delta": "1e-8"}},
    {"destinations": {"columns": ["city", "zone"]}},
    {"privacy__budget": {"rho": "1e-4"}, "privacy__neighbours": "add_remove"},
], ids=str)  # fmt: skip
def test_every_setting_keeps_all_promises(tmp_path, changes):
    data = PAIRS
    if "destinations" in changes:
        data = PAIRS.set_column(1, "work", pa.array(["x", "y", "x", "z", "z", "x"]))
    release = release_into(tmp_path, data, **changes)
    assert not problems(release.path)


def test_attributes_are_a_histogram_of_every_pair(tmp_path):
    release = release_into(
        tmp_path, TRIPS, **NO_NOISE, data={"origin": "home", "destination": "work"},
        attributes={"mode": ["car", "bus"]},
    )  # fmt: skip
    assert not problems(release.path)
    table = release.table("town-to-town-by-mode")
    rows = set(zip(*(table[n].to_pylist() for n in ("origin", "destination", "mode", "count")),
                   strict=True))  # fmt: skip
    assert ("a1", "b1", "bus", 1) in rows
    assert len(rows) == 5


def test_trips_of_units_are_capped_by_a_rule_of_each_unit(tmp_path):
    settings = {
        "data": {"origin": "home", "destination": "work", "unit": "person"},
        "trips": {"number": "at_most", "above": "cap"},
    }
    release = release_into(tmp_path, TRIPS, **NO_NOISE, **settings)
    assert not problems(release.path)
    total = release.table("nation-to-nation")["count"][0].as_py()
    assert total == 3  # p, q and r keep one trip each
    text = (release.path / "privacy.json").read_text()
    assert "published exactly" not in text
    ledger = Ledger(tmp_path / "ledger.sqlite")
    assert [entry.caps for entry in ledger.entries("commuting")] == [True]
    # Entered again from its folder, say into a ledger that lost it, it is known to cap as well.
    again = Ledger(tmp_path / "again.sqlite")
    assert enter_run(again, RunFolder(release.path))
    assert again.entries("commuting")[0].cost == ledger.entries("commuting")[0].cost


def test_trips_that_are_refused_do_not_count_as_capped(tmp_path):
    release_into(tmp_path, **NO_NOISE)
    ledger = Ledger(tmp_path / "ledger.sqlite")
    assert [entry.caps for entry in ledger.entries("commuting")] == [False]


def test_the_matrix_is_read_by_pandas(tmp_path):
    import pandas as pd

    release = release_into(tmp_path, **NO_NOISE)
    matrix = pd.read_parquet(release.path / "release" / "od_matrix.parquet")
    assert matrix.columns.tolist() == ["origin", "dest", "count"]
    assert matrix.pivot(index="origin", columns="dest", values="count").loc["b1", "c"] == 50


def test_the_report_shows_the_flows(tmp_path):
    release = release_into(tmp_path, **NO_NOISE)
    page = (release.path / "report" / "index.html").read_text()
    assert "<title>b to c: 50</title>" in page
    assert "<td>a1</td><td>a1</td><td>43</td>" in page
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_nothing_at_all_is_released_as_nothing(tmp_path):
    nobody = PAIRS.slice(0, 0)
    release = release_into(tmp_path, nobody)
    assert not problems(release.path)
    assert release.table("town-to-town").num_rows == 0
    assert "No flow is above zero" in (release.path / "report" / "index.html").read_text()


@pytest.mark.parametrize("method", list(FLOW_METHODS)[:3])
def test_estimates_can_be_made_again_from_the_measurements_alone(tmp_path, method):
    release = release_into(tmp_path, estimate__method="sparse", estimate__penalty=1)
    again = reestimate(RunFolder(release.path), method, tmp_path / "again", Silent())
    found = problems(again.path)
    assert not found
    assert again.plan.method.name == method


def test_a_method_that_does_not_exist_is_refused(tmp_path):
    release = release_into(tmp_path)
    with pytest.raises(RunFolderError, match="chebyshev"):
        reestimate(RunFolder(release.path), "gls", tmp_path / "again", Silent())


def test_the_same_measurements_give_the_descent_again(tmp_path):
    release = release_into(tmp_path, privacy__budget={"rho": "1/50"}, estimate__method="chebyshev")
    for level in release.plan.levels[1:]:
        (path,) = (release.path / "measurements" / f"level={level}").iterdir()
        measured = pq.ParquetFile(path).read().to_pandas()
        estimated = pq.ParquetFile(release.path / "estimates" / f"level={level}.parquet").read()
        kept = measured[measured.expanded]
        assert kept.origin.tolist() == estimated["origin"].to_pylist()
        assert kept.destination.tolist() == estimated["destination"].to_pylist()


@settings(max_examples=40)
@given(
    hierarchies(max_levels=3), hierarchies(max_levels=3), st.sampled_from(list(FLOW_METHODS)),
    st.sampled_from(list(Neighbours)), st.integers(0, 999),
)  # fmt: skip
def test_whole_flows_add_up_on_any_tree(tmp_path_factory, origins, destinations, method, rel, seed):
    if origins.n_levels + destinations.n_levels == 2:
        return
    rng = np.random.default_rng(seed)
    tree = tree_of(origins, destinations, rng.choice(["origin", "destination"]))
    keys = np.unique(rng.integers(0, origins.sizes[-1] * destinations.sizes[-1], rng.integers(9)))
    origin, destination = np.divmod(keys.astype(np.int32), destinations.sizes[-1])
    flows = TrueFlows(origin.astype(np.int32), destination.astype(np.int32),
                      rng.integers(1, 20, keys.size))  # fmt: skip
    plan = flows_plan(tree, method=method, neighbours=rel, budget=Budget(rho=1))
    folder = tmp_path_factory.mktemp("run")
    claim = Claim("run", "token", plan.privacy)
    measure_flows(
        folder, plan, tree, flows, ChargedNoise(plan, claim, SeededBits(seed)), seed, workers=1
    )
    above = None
    for level, runs in estimate_flow_levels(folder, plan, tree, seed):
        table = np.zeros_like(dense(flows, tree, level))
        for run in runs:
            table[run.nodes.origin, run.nodes.destination, 0] += run.counts
        if level == 0 and rel is Neighbours.REPLACE:
            assert table.sum() == flows.total
        if above is not None:
            lifted = TrueFlows(*(a.astype(np.int32) for a in np.nonzero(table[:, :, 0])),
                               table[table > 0])  # fmt: skip
            assert (lift(lifted, tree, level) == above).all()
        above = table


def lift(flows, tree, level):
    """Counts of a level added up to the level above."""
    origin, destination = tree.shape.depths(level)
    up_origin, up_destination = tree.shape.depths(level - 1)
    o, d = flows.origin, flows.destination
    if up_origin < origin:
        o = tree.origins.parents(origin)[o]
    if up_destination < destination:
        d = tree.destinations.parents(destination)[d]
    shape = (tree.origins.sizes[up_origin], tree.destinations.sizes[up_destination], 1)
    table = np.zeros(shape, dtype=np.int64)
    np.add.at(table, (o, d, np.zeros_like(o)), flows.count)
    return table


# -- specs ----------------------------------------------------------------------------------------

REFUSED = {
    "cap without unit": ({"trips": {"number": "at_most", "above": "cap"}}, "data.unit"),
    "cap with exact total": ({"trips": {"above": "cap"}, "data__unit": "p"}, "at_most"),
    "penalty alone": ({"estimate__penalty": 2}, "sparse"),
    "penalty too large": ({"estimate__method": "sparse", "estimate__penalty": 10**6}, "1000"),
    "one column": ({"data__destination": "home"}, "both 'home'"),
    "a column of tables": ({"attributes": {"count": ["a", "b"]}}, "'count' is the name"),
    "a column of areas": ({"attributes": {"home": ["a", "b"]}}, "holds an area"),
    "one category": ({"attributes": {"mode": ["car"]}}, "two or more"),
    "area": ({"data__area": "home"}, "data.area"),
    "method": ({"estimate__method": "gls"}, "estimate.method"),
    "totals": ({"unprotected": {"totals": ["nation"]}}, "`unprotected` is not a key"),
    "tree": ({"tree": "star"}, "tree"),
    "an old key": ({"estimator": "gls"}, "estimate.method: use"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_specs_that_make_no_sense_are_refused(tmp_path, case):
    changes, message = REFUSED[case]
    with pytest.raises(SpecError, match=message):
        spec_in(tmp_path, **changes)


@pytest.mark.parametrize("key", ["origin", "destination"])
def test_both_sides_must_be_named(tmp_path, key):
    data = {"origin": "home", "destination": "work"}
    data.pop(key)
    with pytest.raises(SpecError, match=rf"data\.{key}"):
        spec_in(tmp_path, data=data)


def test_shares_by_level(tmp_path):
    few = {"privacy__shares": {"nation-to-state": "1/2", "town-to-town": "1/2"}}
    with pytest.raises(SpecError, match="every level"):
        release_into(tmp_path, **few)
    weights = {"nation-to-state": 1, "state-to-state": 1, "state-to-town": 1, "town-to-town": 5}
    release = release_into(tmp_path, privacy__shares={"weights": weights})
    assert [str(q.share) for q in release.plan.queries] == ["0", "1/8", "1/8", "1/8", "5/8"]


def test_a_public_spec_names_no_place(tmp_path):
    spec = spec_in(tmp_path, data__source="x.csv", hierarchy__source="y.csv",
                   destinations={"columns": ["city", "zone"], "source": "z.csv"})  # fmt: skip
    assert "csv" not in str({k: v for k, v in spec.public().items() if k != "output"})
    assert ZONES.n_levels == 2
    assert TOWNS.n_levels == 3


def test_lists_of_areas_are_declared_public_one_by_one(tmp_path):
    """That of the destinations comes with the records, that of the origins does not."""
    changes = {"data__source": "trips.csv", "hierarchy__source": "areas.csv"}
    places = {"source": "trips.csv", "columns": ["work"], "root": {"all": "x"}}
    with pytest.raises(SpecError, match=r"say so with destinations: \{public: true\}"):
        spec_in(tmp_path, destinations=places, **changes)
    assert spec_in(tmp_path, destinations={**places, "public": True}, **changes)


@pytest.mark.parametrize("estimator", ["gls_l2", "gls_chebyshev"])
def test_a_release_with_almost_no_noise(tmp_path, estimator):
    changes = {"privacy__mechanism": "discrete_laplace", "privacy__budget": {"epsilon": 1000}}
    release = release_into(tmp_path, estimate__method=estimator, **changes)
    assert not [p for finding in verify_run(release.path) for p in finding.problems]
    assert release.table("nation-to-nation")["count"].to_pylist() == [168]
