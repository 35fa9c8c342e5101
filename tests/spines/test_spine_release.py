"""A release on a spine: published levels as declared, areas beside them, every promise kept."""

import json
import shutil
from fractions import Fraction as F
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import trellis
from measuring import measure, reestimate
from seeded_bits import SeededBits
from spine_worlds import SPEC, blocks, release, spec
from trellis.confidential.counts import TrueCounts
from trellis.errors import InputError, RunFolderError, SpecError, StructureError
from trellis.estimate.best_linear import estimate_gls
from trellis.measure import measure_counts
from trellis.measure.charged_noise import ChargedNoise
from trellis.model.trees.areas import Category
from trellis.model.trees.spine import Spine
from trellis.numerics.trees.area_errors import AreaErrors
from trellis.privacy.ledger import Claim
from trellis.verify import verify_run
from trellis.workflow.progress import Silent
from trellis.workflow.public.facts import read_interests
from trellis.workflow.public.run_folder import RunFolder

TABLE = blocks(160)
N_DRAWS = 300
LEVELS = ["state", "county", "tract", "block_group", "block"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> trellis.Release:
    return release(tmp_path_factory.mktemp("spine"), TABLE)


def broken(path: Path) -> set[str]:
    return {finding.check for finding in verify_run(path) if not finding.holds}


def test_published_levels_are_the_declared_ones(finished):
    assert list(finished.plan.levels) == LEVELS
    codes = sorted(TABLE["geoid"].to_pylist())
    assert finished.table("block")["geocode"].to_pylist() == codes
    groups = sorted({code[:12] for code in codes})
    assert finished.table("block_group")["geocode"].to_pylist() == groups


def test_areas_are_sums_of_their_leaves_with_margins(finished):
    place = dict(zip(TABLE["geoid"].to_pylist(), TABLE["place"].to_pylist(), strict=True))
    sums: dict[str, int] = {}
    for row in finished.table("block").to_pylist():
        if place[row["geocode"]] is not None:
            sums[place[row["geocode"]]] = sums.get(place[row["geocode"]], 0) + row["count"]
    table = finished.table("place")
    assert dict(zip(table["geocode"].to_pylist(), table["count"].to_pylist(), strict=True)) == sums
    assert set(table["level"].to_pylist()) == {"place"}
    assert (np.array(table["std_error"]) > 0).all()
    assert (np.array(table["lower"]) <= np.array(table["count"])).all()


def test_every_promise_is_kept(finished):
    assert broken(finished.path) == set()
    checks = {finding.check for finding in verify_run(finished.path)}
    assert {"spine", "areas"} <= checks


def test_places_gain_and_block_groups_lose(finished):
    effects = {effect.name: effect for effect in finished.plan.forecast.effects}
    assert effects["place"].ratio < 0.9
    assert effects["block_group"].ratio > 1
    assert effects["place"].distance_after < effects["place"].distance_before
    assert effects["block_group"].distance_before == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"privacy": {"mechanism": "discrete_laplace", "budget": {"epsilon": 1}}},
        {"privacy": {"budget": {"epsilon": 2, "delta": "1e-6"}}},
        {"privacy": {"neighbours": "add_remove"}},
        {
            "data": {"cells": {"some": "some", "others": "pop - some"}},
            "privacy": {"mechanism": "discrete_laplace", "budget": {"epsilon": 1}},
        },
        {"unprotected": {"totals": ["county"]}},
        {"spine": [{"branch": {"level": "tract", "inside": ["place"]}}, "bypass"]},
        {"spine": [{"group_level": {"level": "tract", "areas": ["place"]}}]},
        {"spine": [{"regroup_leaves": {"areas": ["place", "block_group"], "cut": "even"}}]},
        {"spine": None, "estimate": {"method": "topdown"}},
    ],
    ids=str,
)
def test_all_kinds_of_spines_keep_all_promises(changes, tmp_path):
    made = release(tmp_path, TABLE, **changes)
    assert broken(made.path) == set()
    assert made.table("zone").num_rows == len(set(TABLE["zone"].to_pylist())) * len(
        made.plan.schema.cells()
    )


def test_a_ragged_hierarchy(tmp_path):
    """Towns without blocks, and a county without towns, are leaves like others."""
    columns = ["region", "county", "town", "block"]
    paths = [
        ("r", "c", "a", "a1"), ("r", "c", "a", "a2"), ("r", "c", "a", "a3"), ("r", "c", "b", "b1"),
        ("r", "c", "e", None), ("r", "d", None, None),
    ]  # fmt: skip
    areas = pa.table(dict(zip(columns, zip(*paths, strict=True), strict=True)))
    content = {
        **SPEC,
        "hierarchy": {"columns": columns},
        "areas": {"place": {"area": "block", "entity": "place"}},
    }
    made = trellis.run(
        trellis.Spec.parse(content, tmp_path),
        tmp_path / "run",
        data=pa.table({"geoid": ["a1", "a2", "a3", "b1", "e", "d"], "pop": [3, 0, 7, 9, 4, 5]}),
        hierarchy=areas,
        areas={"place": pa.table({"block": ["a1", "b1", "d"], "place": ["x", "x", "y"]})},
    )
    assert broken(made.path) == set()
    assert made.table("place")["geocode"].to_pylist() == ["x", "y"]
    county_d = made.table("county").to_pylist()[1]
    assert made.table("place").to_pylist()[1]["count"] == county_d["count"]


def test_reestimating_keeps_the_spine(finished, tmp_path):
    made = reestimate(RunFolder(finished.path), "gls", tmp_path / "gls", Silent())
    assert broken(made.path) == set()
    assert made.plan.spine == finished.plan.spine
    with pytest.raises(RunFolderError, match="is not available"):
        reestimate(RunFolder(finished.path), "topdown", tmp_path / "td", Silent())


def test_errors_seen_are_those_expected(finished):
    """Over releases with repeatable noise, for every level that is not exact and category."""
    folder = RunFolder(finished.path)
    plan, hierarchy = folder.plan(), folder.hierarchy()
    interests = read_interests(folder, plan)
    spine = interests.spine
    assert spine is not None
    truth = np.arange(hierarchy.sizes[-1])[:, np.newaxis]
    claim, squares = Claim("run", "token", plan.privacy), 0.0
    categories = [Category.of_level(hierarchy, i) for i in range(2, 5)] + [*interests.categories]
    errors = AreaErrors.on(plan, hierarchy, spine)
    for seed in range(N_DRAWS):
        measured = measure_counts(
            plan, hierarchy, TrueCounts(truth), ChargedNoise(plan, claim, SeededBits(seed)), spine
        )
        made = estimate_gls(measured, 0).counts[-1][:, 0]
        leaves = np.empty_like(made)
        leaves[spine.leaf_order] = made
        leaves -= truth[:, 0]
        sums = [np.bincount(c.member[c.member >= 0], leaves[c.member >= 0]) for c in categories]
        squares = squares + np.array([float((s**2).mean()) for s in sums])
    expected = [float((errors.of(c.carried(spine.leaf_order)) ** 2).mean()) for c in categories]
    np.testing.assert_allclose(np.sqrt(squares / N_DRAWS / np.array(expected)), 1, atol=0.1)


# -- corruption -----------------------------------------------------------------------------------


@pytest.fixture
def run(finished, tmp_path) -> Path:
    return Path(shutil.copytree(finished.path, tmp_path / "run"))


def rehash(path: Path) -> None:
    """Make the hashes good, as someone who forges a run would."""
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["sha256"] = {
        name: sha256((path / name).read_bytes()).hexdigest() for name in manifest["sha256"]
    }
    (path / "manifest.json").write_text(json.dumps(manifest))


def change_column(path: Path, name: str, column: str, change) -> None:
    table = pq.read_table(path / name)
    place = table.column_names.index(column)
    values = change(table[column].to_pylist())
    table = table.set_column(place, column, pa.array(values, table.schema.field(column).type))
    pq.write_table(table, path / name)


def swap_leaves(values):
    values[-1], values[-2] = values[-2], values[-1]
    return values


def other_class(values):
    first = next(i for i in range(len(values) - 1, -1, -1) if values[i] != values[-1])
    values[first] = values[-1]
    return values


@pytest.mark.parametrize(
    ("name", "column", "change", "check"),
    [
        ("spine.parquet", "leaf", swap_leaves, "spine"),
        ("spine.parquet", "class", other_class, "spine"),
        ("spine.parquet", "code", lambda v: ["x", *v[1:]], "spine"),
        ("release/areas/place.parquet", "count", lambda v: [v[0] + 1, *v[1:]], "areas"),
        ("release/areas/place.parquet", "geocode", lambda v: v[::-1], "areas"),
        ("release/areas/place.parquet", "upper", lambda v: [-1] * len(v), "areas"),
        ("release/areas/place.parquet", "std_error", lambda v: [-1.0] * len(v), "areas"),
        ("release/areas/place.parquet", "level", lambda v: ["x"] * len(v), "areas"),
        ("estimates/areas/place.parquet", "std_error", lambda v: [0.5] * len(v), "areas"),
        ("estimates/areas/place.parquet", "centre", lambda v: [v[0] - 1e-3, *v[1:]], "areas"),
        ("release/areas/place.parquet", "upper", lambda v: [v[0] + 1, *v[1:]], "areas"),
        ("areas.parquet", "geocode", lambda v: v[::-1], "areas"),
    ],
)
def test_corruption_is_noticed(run, name, column, change, check):
    change_column(run, name, column, change)
    rehash(run)
    assert check in broken(run)


def test_shares_that_do_not_sum_to_one_are_noticed(run):
    plan = json.loads((run / "plan.json").read_text())
    plan["spine"]["levels"][-1]["classes"][-1]["share"] = "1/3"
    (run / "plan.json").write_text(json.dumps(plan))
    rehash(run)
    assert "spine" in broken(run)


def test_a_cheaper_path_is_noticed(run):
    plan = json.loads((run / "plan.json").read_text())
    plan["spine"]["paths"] = plan["spine"]["paths"][:1]
    (run / "plan.json").write_text(json.dumps(plan))
    rehash(run)
    assert "spine" in broken(run)


def test_a_missing_table_of_areas_is_noticed(run):
    (run / "release/areas/place.parquet").unlink()
    assert {"hashes", "areas"} <= broken(run)


def test_a_damaged_spine_is_one_line(run):
    (run / "spine.parquet").write_bytes(b"no")
    with pytest.raises(RunFolderError, match=r"spine\.parquet is damaged"):
        read_interests(RunFolder(run), RunFolder(run).plan())


def test_a_spine_with_other_classes_is_not_measured(finished):
    """Classes decide on noise: those that were not priced are refused before noise is drawn."""
    folder = RunFolder(finished.path)
    plan = folder.plan()
    spine = read_interests(folder, plan).spine
    assert plan.spine is not None
    assert spine is not None
    plan.spine.require(spine)
    for level, other in (
        (-2, np.zeros_like(spine.classes[-2])),
        (-1, np.roll(spine.classes[-1], 1)),  # a leaf whose share went up measured once more
    ):
        classes = [*spine.classes]
        classes[level] = other
        with pytest.raises(StructureError, match=r"does not list|not the one"):
            plan.spine.require(Spine(spine.hierarchy, spine.leaf_order, tuple(classes)))


# -- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"spine": [{"branch": {"level": "state", "inside": ["place"]}}]}, "published exactly"),
        ({"spine": [{"branch": {"level": "parish", "inside": ["place"]}}]}, "names level"),
        ({"spine": [{"regroup_leaves": {"areas": ["parks"]}}]}, "names areas 'parks'"),
        ({"spine": ["bypass", {"regroup_leaves": {"areas": ["place"]}}]}, "comes last"),
        ({"spine": [{"group_level": {"level": "state", "areas": ["place"]}}]}, "published exactly"),
        (
            {"spine": [{"group_level": {"level": "tract", "areas": ["place"], "name": "block"}}]},
            "already",
        ),
        ({"spine": [{"regroup_leaves": {"areas": ["place"]}, "bypass": {}}]}, "one of branch"),
        ({"spine": [{"regroup": {"areas": ["place"]}}]}, "Unknown key"),
        ({"spine": [{"regroup_leaves": {"areas": []}}]}, "1 or more"),
        ({"spine": [{"regroup_leaves": {"areas": ["place"], "fanout_cutoff": -1}}]}, "0"),
        ({"estimate": {"method": "topdown"}}, "no use for a spine"),
        ({"privacy": {"shares": {"county": "1/2", "tract": "1/2"}}}, "must be measured"),
        ({"privacy": {"shares": {"tract_group": "1/2", "block": "1/2"}}}, "tract_group"),
        (
            {"unprotected": {"totals": ["block_group"]}},
            "level 'block_group' cannot be redrawn, because its totals are published exactly",
        ),
        ({"areas": {"county": {"area": "geoid", "entity": "place"}}}, "name of a level"),
        ({"areas": {"park": {}}}, "name the columns area and entity"),
        ({"areas": {"park": {"area": "geoid"}}}, "go together"),
        ({"areas": {"place": {"area": "geoid", "entity": "place", "weight": -1}}}, "at least 0"),
        ({"areas": {"place": {"area": "geoid", "entity": "place", "colour": 1}}}, "Unknown key"),
        (
            {
                "areas": {
                    "place": {"area": "geoid", "entity": "place", "level": "x", "public": True}
                }
            },
            "names level",
        ),
    ],
    ids=str,
)
def test_bad_specs_are_refused_before_anything_is_spent(changes, words, tmp_path):
    with pytest.raises((SpecError, StructureError), match=words):
        release(tmp_path, TABLE, **changes)
    assert not (tmp_path / "run").exists()


CODES = TABLE["geoid"].to_pylist()


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([("999999999999999", "P")], "not in level 'block'"),
        ([(CODES[0], "P"), (None, "Q")], "'Q' of areas.place has no leaves"),
        ([(CODES[0], "P"), (CODES[0], "Q")], "belongs to two entities"),
        ([(CODES[0], None)], "has no entities"),
    ],
)
def test_bad_areas_are_refused(rows, words, tmp_path):
    listed = pa.table(
        {"geoid": pa.array([r[0] for r in rows], pa.string()),
         "place": pa.array([r[1] for r in rows], pa.string())}
    )  # fmt: skip
    with pytest.raises(InputError, match=words):
        trellis.plan(
            spec(tmp_path),
            hierarchy=TABLE.select(["geoid"]),
            areas={"place": listed, "zone": TABLE},
        )


def test_unknown_areas_may_be_skipped_and_codes_joined(tmp_path):
    listed = pa.table({"geoid": [*CODES, "9" * 15], "place": ["1"] * len(CODES) + ["2"]})
    changes = {"place": {"area": "geoid", "entity": "place", "skip_unknown": True,
                         "within": "county", "outside": ["0"]}}  # fmt: skip
    plan = trellis.plan(
        spec(tmp_path, areas=changes),
        hierarchy=TABLE.select(["geoid"]),
        areas={"place": listed, "zone": TABLE},
    )
    counties = {code[:5] for code in CODES}
    assert plan.interests[0].entities == len(counties)


def test_areas_of_a_level_bring_in_their_leaves(tmp_path):
    groups = sorted({code[:12] for code in CODES})
    listed = pa.table({"geoid": groups[:3], "place": ["P", "P", "Q"]})
    made = trellis.run(
        spec(tmp_path, areas={"place": {"area": "geoid", "entity": "place",
                                        "level": "block_group"}}),
        tmp_path / "run", data=TABLE, hierarchy=TABLE.select(["geoid"]),
        areas={"place": listed, "zone": TABLE},
    )  # fmt: skip
    by_group = dict(zip(*(made.table("block_group")[c].to_pylist() for c in ("geocode", "count")),
                        strict=True))  # fmt: skip
    counts = made.table("place")["count"].to_pylist()
    assert counts == [by_group[groups[0]] + by_group[groups[1]], by_group[groups[2]]]


def test_areas_of_the_records_file_must_be_declared_public(tmp_path):
    path = tmp_path / "blocks.parquet"
    pq.write_table(TABLE, path)
    place = {"area": "geoid", "entity": "place", "source": "blocks.parquet"}
    with pytest.raises(SpecError, match="public: true"):
        spec(tmp_path, data={"source": "blocks.parquet"}, areas={"place": place})


def test_errors_of_the_records_file_quote_what_is_declared_public_and_nothing_else(tmp_path):
    counts = TABLE.set_column(1, "pop", pa.array([76_543_210] * TABLE.num_rows))
    other = counts.slice(0, 1).set_column(3, "place", pa.array(["P99"]))
    twice = pa.concat_tables([counts, other])
    pq.write_table(twice, tmp_path / "blocks.parquet")
    place = {"area": "geoid", "entity": "place", "source": "blocks.parquet", "public": True}
    with pytest.raises(InputError) as error:
        trellis.plan(
            spec(tmp_path, data={"source": "blocks.parquet"}, areas={"place": place}),
            hierarchy=TABLE.select(["geoid"]), areas={"zone": TABLE},
        )  # fmt: skip
    assert "'P99'" in str(error.value)
    assert CODES[0] in str(error.value)
    assert "7654" not in str(error.value)


def test_a_changed_file_of_areas_is_noticed_on_resume(tmp_path):
    place = TABLE.select(["geoid", "place"])
    areas = {"place": place, "zone": TABLE}
    frames = {"data": TABLE, "hierarchy": TABLE.select(["geoid"])}
    measure(spec(tmp_path), tmp_path / "run", **frames, areas=areas)
    shutil.rmtree(tmp_path / "run" / "measurements")
    with pytest.raises(RunFolderError, match="has changed"):
        measure(spec(tmp_path), tmp_path / "run", **frames, areas=areas | {"place": place.slice(9)})


def test_plan_without_shares_of_one_fails():
    from dataclasses import replace as changed

    plan = trellis.plan(
        spec(Path()), hierarchy=TABLE.select(["geoid"]), areas={"place": TABLE, "zone": TABLE}
    )
    assert plan.spine is not None
    shares = (*plan.spine.shares[:-1], tuple(s / 2 for s in plan.spine.shares[-1]))
    with pytest.raises(StructureError, match="sum to exactly one"):
        changed(plan.spine, shares=shares)
    assert plan.privacy.rho == F(1)
