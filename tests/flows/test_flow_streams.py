"""Levels in runs and threads, sums between any levels, and errors against the truth."""

import json
from itertools import pairwise

import numpy as np
import pyarrow.parquet as pq
import pytest

from flow_worlds import PAIRS, TOWNS, ancestors, flows_plan, release_into, tree_of, write_flow_world
from seeded_bits import SeededBits
from trellis.confidential.flows import TrueFlows
from trellis.errors import RunFolderError, StructureError
from trellis.estimate.flows import levels as flow_levels
from trellis.estimate.flows import runs as flow_runs
from trellis.execution.threads import map_in_order
from trellis.measure.charged_noise import ChargedNoise
from trellis.model import Hierarchy
from trellis.model.plans.kinds.flows import FLOW_METHODS
from trellis.privacy.bits import OsRandom
from trellis.privacy.budget import Budget
from trellis.privacy.ledger import Claim
from trellis.storage.flows import MeasuredLevel
from trellis.verify import verify_run
from trellis.workflow.confidential.flow_descent import measure_flows
from trellis.workflow.evaluation.evaluate import evaluate_run

WIDE = Hierarchy.from_paths(
    [("r", f"s{i}", f"s{i}t{j}") for i in range(7) for j in range(1 + 3 * i)],
    ["nation", "state", "town"],
)


def some_flows(tree, seed=0):
    rng = np.random.default_rng(seed)
    towns = tree.origins.sizes[-1]
    keys = rng.choice(towns * towns, 300, replace=False)
    origin, destination = np.divmod(keys, towns)
    count = rng.integers(1, 60, keys.size)
    return TrueFlows(origin.astype(np.int32), destination.astype(np.int32), count)


def estimated(folder, plan, tree, seed):
    found = []
    for _, runs in flow_levels.estimate_flow_levels(folder, plan, tree, seed):
        parts = list(runs)
        found.append(
            [np.concatenate([getattr(p, name) for p in parts]) for name in ("counts", "centre")]
        )
    return found


@pytest.mark.parametrize("method", FLOW_METHODS)
def test_runs_of_any_size_give_the_same_flows(tmp_path, monkeypatch, method):
    tree = tree_of(WIDE)
    plan = flows_plan(tree, method=method, budget=Budget(rho=1))
    claim = Claim("run", "token", plan.privacy)
    monkeypatch.setattr(flow_runs, "MOST_CHILDREN", 5)
    measure_flows(
        tmp_path,
        plan,
        tree,
        some_flows(tree),
        ChargedNoise(plan, claim, SeededBits(1)),
        7,
        workers=1,
    )
    small = estimated(tmp_path, plan, tree, 7)
    monkeypatch.setattr(flow_runs, "MOST_CHILDREN", 10**6)
    large = estimated(tmp_path, plan, tree, 7)
    for a, b in zip(small, large, strict=True):
        assert all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))
    assert len(small[-1][0]) > 50


def test_threads_measure_all_children_once(tmp_path, monkeypatch):
    """With real randomness and two threads, families are complete and in order."""
    tree = tree_of(WIDE)
    plan = flows_plan(tree)
    monkeypatch.setattr(flow_runs, "MOST_CHILDREN", 20)
    claim = Claim("run", "token", plan.privacy)
    measure_flows(
        tmp_path, plan, tree, some_flows(tree), ChargedNoise(plan, claim, OsRandom()), 7, workers=2
    )
    for above, below in pairwise(range(1, len(plan.levels))):
        tables = [
            pq.ParquetFile(
                tmp_path / f"level={plan.levels[n]}" / f"query={plan.queries[n].query}.parquet"
            ).read()
            for n in (above, below)
        ]
        kept = tables[0].filter(tables[0]["expanded"])
        from trellis.model.trees.flows import Nodes

        nodes = Nodes(kept["origin"].to_numpy(), kept["destination"].to_numpy())
        _, children = tree.expand(above, nodes)
        assert children.origin.tolist() == tables[1]["origin"].to_pylist()
        assert children.destination.tolist() == tables[1]["destination"].to_pylist()


def test_noise_is_that_of_the_plan_on_zeros_too(tmp_path):
    """Children without any flow get noise of their own: their spread is that of the law."""
    many = Hierarchy.from_paths([("r", f"{i:04d}") for i in range(5000)], ["nation", "town"])
    tree = tree_of(many, TOWNS, "origin")
    plan = flows_plan(tree, budget=Budget(rho=1))
    flows = TrueFlows(np.zeros(1, np.int32), np.zeros(1, np.int32), np.array([10**6]))
    claim = Claim("run", "token", plan.privacy)
    measure_flows(
        tmp_path, plan, tree, flows, ChargedNoise(plan, claim, SeededBits(3)), 0, workers=1
    )
    path = tmp_path / f"level={plan.levels[1]}" / "query=pairs.parquet"
    values = pq.ParquetFile(path).read()["value"].to_numpy()[1:]
    assert abs(values.var() / plan.queries[1].variance - 1) < 0.1  # five sigma of 4,999 draws
    assert abs(values.mean()) < 5 * (plan.queries[1].variance / values.size) ** 0.5


def test_measurements_of_another_length_are_refused(tmp_path):
    release = release_into(tmp_path)
    folder, plan = release.path / "measurements", release.plan
    rows = MeasuredLevel(folder, plan, 1)
    with pytest.raises(RunFolderError, match="fewer rows"):
        rows.take(10**6)
    rows = MeasuredLevel(folder, plan, 1)
    rows.take(1)
    with pytest.raises(RunFolderError, match="more rows"):
        rows.finish()


# -- threads --------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_results_come_in_order(workers):
    assert list(map_in_order(lambda x: x * x, range(40), workers)) == [x * x for x in range(40)]


def test_the_first_error_is_raised_and_little_is_begun_after_it():
    begun = []

    def work(x):
        begun.append(x)
        if x == 3:
            raise ValueError("three")
        return x

    with pytest.raises(ValueError, match="three"):
        list(map_in_order(work, range(1000), 2))
    assert len(begun) < 20


# -- sums between any levels ----------------------------------------------------------------------


def area_above(level, town):
    (area,) = ancestors(TOWNS, TOWNS.index(level), np.array([town]))
    return str(TOWNS.codes(level)[area])


@pytest.mark.parametrize("levels", [("nation", "town"), ("state", "state"), ("town", "nation")])
def test_flows_between_any_levels_are_sums(tmp_path, levels):
    release = release_into(tmp_path, privacy__budget={"rho": "1/10"})
    matrix = release.table("town-to-town").to_pylist()
    codes = {str(c): i for i, c in enumerate(TOWNS.codes("town"))}
    expected = {}
    for row in matrix:
        pair = tuple(
            str(
                TOWNS.codes(name)[
                    ancestors(TOWNS, TOWNS.index(name), np.array([codes[row[side]]]))[0]
                ]
            )
            for name, side in zip(levels, ("origin", "destination"), strict=True)
        )
        expected[pair] = expected.get(pair, 0) + row["count"]
    found = release.flows(*levels).to_pylist()
    assert {(r["origin"], r["destination"]): r["count"] for r in found} == expected


def test_flows_of_some_areas(tmp_path):
    release = release_into(tmp_path, privacy__budget={"rho": 1000})
    table = release.flows("state", "town", origins=["a"], destinations=["b1"])
    assert table.to_pylist() == [{"origin": "a", "destination": "b1", "count": 25}]
    with pytest.raises(StructureError, match="no area 'zz'"):
        release.flows("state", "town", origins=["zz"])
    with pytest.raises(StructureError, match=r"Give a list of areas, such as \['a'\]"):
        release.flows("state", "town", origins="a")
    with pytest.raises(StructureError, match="No level"):
        release.flows("planet", "town")


# -- errors against the truth ---------------------------------------------------------------------


def test_errors_against_the_truth(tmp_path):
    release = release_into(tmp_path, privacy__budget={"rho": "1/20"})
    found = evaluate_run(release.path, PAIRS, tmp_path / "confidential")
    truth = {("a1", "a1"): 43, ("a1", "b1"): 25, ("a2", "a1"): 30, ("b1", "c"): 50, ("c", "c"): 20}
    rows = release.table("town-to-town").to_pylist()
    listed = {(r["origin"], r["destination"]): r["count"] for r in rows}
    pairs = truth.keys() | listed.keys()
    gaps = [abs(listed.get(p, 0) - truth.get(p, 0)) for p in pairs]
    level = found.levels[-1]
    assert level.errors.largest_error == max(gaps)
    assert level.errors.mean_absolute_error == pytest.approx(sum(gaps) / len(pairs))
    assert level.false_discovery_rate == pytest.approx(
        len(listed.keys() - truth.keys()) / len(listed)
    )
    assert level.false_negatives == len(truth.keys() - listed.keys())
    inside = [
        r["lower"] <= truth.get((r["origin"], r["destination"]), 0) <= r["upper"] for r in rows
    ]
    assert level.errors.coverage == pytest.approx(sum(inside) / len(rows))
    assert level.errors.interval_width == pytest.approx(
        sum(r["upper"] - r["lower"] for r in rows) / len(rows)
    )
    assert found.levels[0].errors.largest_error == 0
    written = json.loads((tmp_path / "confidential" / "CONFIDENTIAL-evaluation.json").read_text())
    assert written["levels"][-1]["false_discovery_rate"] == level.false_discovery_rate


def test_the_command_evaluates_flows(tmp_path):
    from typer.testing import CliRunner

    from trellis.cli.app import app

    spec = write_flow_world(tmp_path)
    run = CliRunner()
    assert run.invoke(app, ["run", str(spec)]).exit_code == 0
    folder = str(tmp_path / "runs" / "commuting")
    out = str(tmp_path / "secret")
    done = run.invoke(app, ["evaluate", folder, "--truth", str(spec), "--confidential-out", out])
    assert done.exit_code == 0, done.output
    assert "CONFIDENTIAL" in done.output
    assert "max" in done.output
    assert (tmp_path / "secret" / "CONFIDENTIAL-evaluation.html").exists()
    assert not [p for f in verify_run(folder) for p in f.problems]


def test_other_records_are_no_truth(tmp_path):
    from trellis.errors import InputError

    release = release_into(tmp_path)
    with pytest.raises(InputError, match="another edition"):
        evaluate_run(release.path, PAIRS.slice(1), tmp_path / "confidential")
