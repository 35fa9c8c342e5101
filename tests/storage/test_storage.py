"""What is written comes back the same, appears whole or not at all, and is refused when damaged."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import hierarchies
from trellis.errors import RunFolderError
from trellis.estimate.methods import estimate
from trellis.model import Estimates, Hierarchy, Measurements, Plan
from trellis.model.plans.kinds.counts import CountsDesign
from trellis.model.plans.shares import Shares
from trellis.planning.forecast.expected_error import with_expected_errors
from trellis.privacy.budget import Budget
from trellis.privacy.neighbours import Neighbours
from trellis.storage import atomic, folder_lock
from trellis.storage.atomic import new_folder, read_json, remove_partials, write_json, write_text
from trellis.storage.estimates import read_estimates, write_estimates
from trellis.storage.hierarchies import hierarchy_digest, read_hierarchy, write_hierarchy
from trellis.storage.measurements import measurement_file, read_measurements, write_measurements
from trellis.storage.plans import plan_to_json, read_plan
from worlds import TREE, noisy, plan_for

LEAVES = np.arange(10).reshape(5, 2)

# -- write, then read -----------------------------------------------------------------------------


def equal_arrays(one, other) -> bool:
    pairs = list(zip(one, other, strict=True))
    return all(a.dtype == b.dtype and a.tolist() == b.tolist() for a, b in pairs)


def assert_same_tree(one: Hierarchy, other: Hierarchy) -> None:
    assert one.level_names == other.level_names
    assert equal_arrays(one.node_codes, other.node_codes)
    assert equal_arrays(one.child_start, other.child_start)
    assert equal_arrays(one.passes_through, other.passes_through)


ODD_TREE = Hierarchy.from_paths(
    [("r", "Ærø", "北京 1"), ("r", "Ærø", "a" * 300), ("r", 'b"\n\t', "0"), ("r", "🏝️")],
    ["nation\nor so", 'sta"te', "büro"],
)
TREES = st.one_of(hierarchies(), st.just(ODD_TREE))


@settings(max_examples=40)
@given(tree=TREES)
def test_hierarchies_come_back(tmp_path_factory, tree):
    path = tmp_path_factory.mktemp("tree") / "hierarchy.parquet"
    write_hierarchy(path, tree)
    back = read_hierarchy(path)
    assert_same_tree(back, tree)
    assert hierarchy_digest(back) == hierarchy_digest(tree)


def test_digests_tell_trees_apart():
    paths = [("r", "a", "a1"), ("r", "a", "a2"), ("r", "b", "b1"), ("r", "c")]
    variants = [
        Hierarchy.from_paths(paths),
        Hierarchy.from_paths(paths, ["level_0", "level_1", "town"]),  # names
        Hierarchy.from_paths([*paths[:3], ("r", "d")]),  # codes
        Hierarchy.from_paths([paths[0], ("r", "b", "a2"), *paths[2:]]),  # parents
        Hierarchy.from_paths([*paths[:3], ("r", "c", "c")]),  # passing through
        Hierarchy.from_paths([("r", "a", "a"), ("r", "a", "1a2"), *paths[2:]]),  # cut elsewhere
    ]
    assert len({hierarchy_digest(tree) for tree in variants}) == len(variants)


@st.composite
def plans(draw) -> Plan:
    tree = draw(hierarchies())
    weight = st.fractions(Fraction(1, 1000), 1000)
    method = draw(st.sampled_from(list(CountsDesign.methods)))
    measured = tree.level_names[-1:] if method == "bottomup" else tree.level_names
    plan = plan_for(
        tree,
        draw(st.integers(1, 3)),
        release=draw(st.sampled_from(["tiny", "Größe 北京"])),
        neighbours=Neighbours.ADD_REMOVE,
        max_contribution=draw(st.integers(1, 10**6)),
        budget=draw(
            st.sampled_from(
                [
                    Budget(rho=Fraction(1, 3)),
                    Budget(epsilon=Fraction(22, 7)),
                ]
            )
        ),
        shares=Shares({name: draw(weight) for name in measured}, are_weights=True),
        confidence=Fraction(draw(st.integers(1, 99)), 100),
        method=method,
    )
    return with_expected_errors(plan, tree) if draw(st.booleans()) else plan


@settings(max_examples=40)
@given(plan=plans())
def test_plans_come_back_to_the_last_digit(tmp_path_factory, plan):
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    write_json(path, plan_to_json(plan))
    assert read_plan(path) == plan


def test_other_plans_come_back(tmp_path):
    approximate = Budget(epsilon=Fraction(22, 7), delta=Fraction(1, 3 * 10**6))
    for plan in (
        plan_for(unprotected_totals=("state",)),
        plan_for(n_cells=3),
        plan_for(budget=approximate),
    ):
        write_json(tmp_path / "plan.json", plan_to_json(plan))
        assert read_plan(tmp_path / "plan.json") == plan


@pytest.fixture(params=[1, 2], ids=["one cell", "two cells"])
def measurements(request) -> Measurements:
    return noisy(plan_for(n_cells=request.param), TREE, LEAVES[:, : request.param])


def test_measurements_come_back_with_names_and_variances(tmp_path, measurements):
    plan = measurements.plan
    write_measurements(tmp_path, measurements)
    back = read_measurements(tmp_path, plan, TREE)
    assert equal_arrays(back.values, measurements.values)
    for query, values in zip(plan.queries, measurements.values, strict=True):
        table = pq.ParquetFile(measurement_file(tmp_path, query)).read()
        width = plan.width(query.query)
        codes = TREE.codes(query.level).tolist()
        assert table["geocode"].to_pylist() == [code for code in codes for _ in range(width)]
        assert set(table["variance"].to_pylist()) == {query.variance}
        assert ("cell" in table.column_names) == (width > 1)
        if width > 1:
            assert table["cell"].to_pylist() == ["c0", "c1"] * len(codes)
        assert table["value"].to_pylist() == values.ravel().tolist()


@pytest.mark.parametrize("method", CountsDesign.methods)
@pytest.mark.parametrize("n_cells", [1, 2])
def test_estimates_come_back(tmp_path, method, n_cells):
    plan = plan_for(n_cells=n_cells, method=method)
    estimates = estimate(noisy(plan, TREE, LEAVES[:, :n_cells]), tie_seed=1)
    write_estimates(tmp_path, estimates)
    back = read_estimates(tmp_path, TREE, plan.schema)
    assert equal_arrays(back.counts, estimates.counts)
    if method in ("topdown", "bottomup"):
        assert back.centre is None
        assert back.std_error is None
    else:
        assert equal_arrays(back.centre, estimates.centre)
        assert equal_arrays(back.std_error, estimates.std_error)


# -- whole or not at all --------------------------------------------------------------------------


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_folder_appears_when_all_is_written(tmp_path):
    with new_folder(tmp_path / "runs" / "x") as partial:
        (partial / "a.txt").write_text("a")
        assert not (tmp_path / "runs" / "x").exists()
    assert names_in(tmp_path / "runs") == ["x"]
    assert (tmp_path / "runs" / "x" / "a.txt").read_text() == "a"


def fill(path: Path, error: BaseException | None = None) -> None:
    with new_folder(path) as partial:
        (partial / "new.txt").write_text("new")
        if error is not None:
            raise error


@pytest.mark.parametrize("error", [ZeroDivisionError(), KeyboardInterrupt(), SystemExit()])
def test_an_exception_inside_leaves_nothing_and_passes_on(tmp_path, error):
    with pytest.raises(type(error)):
        fill(tmp_path / "x", error)
    assert names_in(tmp_path) == []


def test_a_failing_disk_leaves_nothing_and_says_so_in_one_line(tmp_path):
    with pytest.raises(RunFolderError, match=r"x could not be written \(No space left on device\)"):
        fill(tmp_path / "x", OSError(28, "No space left on device"))
    assert names_in(tmp_path) == []


def test_a_folder_is_not_written_over(tmp_path):
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "old.txt").write_text("old")
    with pytest.raises(RunFolderError, match="finished by another process in the meantime"):
        fill(tmp_path / "x")
    assert names_in(tmp_path) == ["x"]
    assert names_in(tmp_path / "x") == ["old.txt"]


def test_a_place_that_is_no_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFolderError, match="could not be written"):
        fill(tmp_path / "file" / "x")
    with pytest.raises(RunFolderError, match="could not be written"):
        write_text(tmp_path / "nowhere" / "a.txt", "a")


def test_text_replaces_text_at_once(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    write_json(path, {"a": "ü"})
    assert read_json(path) == {"a": "ü"}

    def fail(_path):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(atomic, "sync", fail)
    with pytest.raises(RunFolderError, match="Input/output error"):
        write_json(path, {"a": "new"})
    assert read_json(path) == {"a": "ü"}
    assert names_in(tmp_path) == ["a.json"]


def test_new_folders_above_a_run_are_on_disk_before_it_begins(tmp_path, monkeypatch):
    """Or a loss of power would take the run away, and leave its charge."""
    synced = []
    monkeypatch.setattr(folder_lock, "sync", synced.append)
    with folder_lock.held(tmp_path / "a" / "b" / "run"):
        assert set(synced) == {tmp_path, tmp_path / "a"}
        (tmp_path / "a" / "b" / "run").mkdir()
    synced.clear()
    with folder_lock.held(tmp_path / "a" / "b" / "run"):
        assert synced == []


def test_a_complete_folder_is_on_disk_before_it_is_settled(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(atomic, "sync", synced.append)
    (tmp_path / "x" / "y").mkdir(parents=True)
    (tmp_path / "x" / "y" / "file").touch()
    atomic.sync_tree(tmp_path / "x")
    x = tmp_path / "x"
    assert set(synced) == {tmp_path, x, x / "y", x / "y" / "file"}


def test_leftovers_of_this_folder_are_destroyed_and_no_others(tmp_path):
    for name in (".x.1.partial", ".xy.1.partial", ".[x].1.partial", "x", ".x.1"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text("a")
    (tmp_path / ".x.2.partial").write_text("a file")
    remove_partials(tmp_path / "x")
    assert names_in(tmp_path) == [".[x].1.partial", ".x.1", ".xy.1.partial", "x"]
    remove_partials(tmp_path / "*")  # a name, not a pattern
    remove_partials(tmp_path / "[x]")
    assert names_in(tmp_path) == [".x.1", ".xy.1.partial", "x"]


def test_leftovers_that_stay_are_an_error(tmp_path, monkeypatch):
    (tmp_path / ".x.1.partial").mkdir()

    def fail(_path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(atomic.shutil, "rmtree", fail)
    with pytest.raises(RunFolderError, match=r"could not be removed \(Permission denied\)"):
        remove_partials(tmp_path / "x")


# -- damage ---------------------------------------------------------------------------------------


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def garble(path: Path) -> None:
    path.write_bytes(b"no such format " * 20)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def remove(path: Path) -> None:
    path.unlink()


def rewrite(change):
    """Damage that leaves a readable Parquet file."""

    def damage(path: Path) -> None:
        table = pq.ParquetFile(path).read()
        pq.write_table(change(table), path)

    return damage


def without(column: str):
    return rewrite(lambda table: table.drop_columns([column]))


def with_column(column: str, values):
    def change(table: pa.Table) -> pa.Table:
        return table.set_column(
            table.column_names.index(column), column, pa.array(values(table[column].to_pylist()))
        )

    return rewrite(change)


ANY_FILE = {"cut": cut, "garbled": garble, "empty": empty, "missing": remove}
TREE_DAMAGE = ANY_FILE | {
    "no level names": rewrite(lambda table: table.replace_schema_metadata(None)),
    "names that are no list": rewrite(
        lambda table: table.replace_schema_metadata({b"trellis.levels": b"{"})
    ),
    "a name too few": rewrite(
        lambda table: table.replace_schema_metadata({b"trellis.levels": b'["nation", "state"]'})
    ),
    "no codes": without("code"),
    "a row too few": rewrite(lambda table: table.slice(0, len(table) - 1)),
    "codes missing": with_column("code", lambda codes: [None, *codes[1:]]),
    "siblings apart": with_column("parent", lambda p: [*p[:4], 0, 1, 0, 1, 2]),
    "parents that are not there": with_column("parent", lambda p: [*p[:-1], 9]),
    "parents as text": with_column("parent", lambda p: [str(v) for v in p]),
}


@pytest.mark.parametrize("case", TREE_DAMAGE)
def test_damaged_hierarchies_are_refused(tmp_path, case):
    path = tmp_path / "hierarchy.parquet"
    write_hierarchy(path, TREE)
    TREE_DAMAGE[case](path)
    with pytest.raises(RunFolderError, match=r"hierarchy\.parquet is (damaged|missing)"):
        read_hierarchy(path)


MEASUREMENT_DAMAGE = ANY_FILE | {
    "no values": without("value"),
    "a row too few": rewrite(lambda table: table.slice(1)),
    "a missing value": with_column("value", lambda v: [None, *v[1:]]),
    "fractions": with_column("value", lambda v: [0.5, *map(float, v[1:])]),
    "text": with_column("value", lambda v: list(map(str, v))),
}


@pytest.mark.parametrize("case", MEASUREMENT_DAMAGE)
def test_damaged_measurements_are_refused(tmp_path, measurements, case):
    write_measurements(tmp_path, measurements)
    MEASUREMENT_DAMAGE[case](measurement_file(tmp_path, measurements.plan.queries[-1]))
    with pytest.raises(RunFolderError, match=r"parquet (is damaged|is missing|does not fit)"):
        read_measurements(tmp_path, measurements.plan, TREE)


ESTIMATE_DAMAGE = ANY_FILE | {
    "no counts": without("count"),
    "no centre": without("centre"),
    "no standard error": without("std_error"),
    "a row too few": rewrite(lambda table: table.slice(1)),
    "rows that do not add up": with_column("count", lambda v: [v[0] + 1, *v[1:]]),
    "a missing count": with_column("count", lambda v: [None, *v[1:]]),
    "text": with_column("count", lambda v: list(map(str, v))),
}


@pytest.mark.parametrize("case", ESTIMATE_DAMAGE)
@pytest.mark.parametrize("level", TREE.level_names)
def test_damaged_estimates_are_refused(tmp_path, case, level):
    plan = plan_for(n_cells=2)
    write_estimates(tmp_path, estimate(noisy(plan, TREE, LEAVES), tie_seed=1))
    ESTIMATE_DAMAGE[case](tmp_path / f"level={level}.parquet")
    with pytest.raises(RunFolderError, match=r"is (damaged|missing)"):
        read_estimates(tmp_path, TREE, plan.schema)


def test_estimates_of_another_tree_are_refused(tmp_path):
    estimates = Estimates(TREE, plan_for().schema, tuple(TREE.sum_up(LEAVES[:, :1])))
    write_estimates(tmp_path, estimates)
    smaller = Hierarchy.from_paths([("r", "a", "a1")], TREE.level_names)
    with pytest.raises(RunFolderError, match="damaged"):
        read_estimates(tmp_path, smaller, estimates.schema)


def test_damaged_json_is_refused(tmp_path):
    with pytest.raises(RunFolderError, match=r"a\.json is missing"):
        read_json(tmp_path / "a.json")
    for content in (b"{", b"", b"\xff\xfe", b"[1,]"):
        (tmp_path / "a.json").write_bytes(content)
        with pytest.raises(RunFolderError, match=r"a\.json is damaged: it holds no readable JSON"):
            read_json(tmp_path / "a.json")


def json_change(**changes):
    def damage(path: Path) -> None:
        content = json.loads(path.read_text())
        path.write_text(json.dumps(content | changes))

    return damage


def without_key(key: str):
    def damage(path: Path) -> None:
        content = json.loads(path.read_text())
        del content[key]
        path.write_text(json.dumps(content))

    return damage


PLAN_DAMAGE = ANY_FILE | {
    "a list": lambda path: path.write_text("[]"),
    "a number": lambda path: path.write_text("5"),
    "no budget": without_key("budget"),
    "no queries": without_key("queries"),
    "an unknown unit of budget": json_change(budget={"joule": "1"}),
    "a budget of words": json_change(budget={"rho": "much"}),
    "a division by zero": json_change(confidence="1/0"),
    "an unknown law": json_change(
        queries=[{"level": "town", "query": "total", "share": "1",
                  "noise": {"law": "uniform", "parameter": "1", "variance": 1}}]
    ),
    "shares that do not add up": json_change(
        queries=[{"level": "town", "query": "total", "share": "1/2",
                  "noise": {"law": "discrete_gaussian", "parameter": "1", "variance": 1}}]
    ),
    "an unknown relation": json_change(
        protection={"unit": "person", "neighbours": "any", "max_contribution": 1, "within": None}
    ),
    "protection of another kind": json_change(protection="strong"),
    "no categories": json_change(schema={"cell": []}),
    "errors of another kind": json_change(expected_standard_errors=[{"level": "town"}]),
}  # fmt: skip


@pytest.mark.parametrize("case", PLAN_DAMAGE)
def test_damaged_plans_are_refused(tmp_path, case):
    path = tmp_path / "plan.json"
    write_json(path, plan_to_json(plan_for()))
    PLAN_DAMAGE[case](path)
    with pytest.raises(RunFolderError, match=r"plan\.json is (damaged|missing)"):
        read_plan(path)


def test_the_cut_of_a_file_is_damage_wherever_it_falls(tmp_path):
    path = tmp_path / "hierarchy.parquet"
    write_hierarchy(path, TREE)
    whole = path.read_bytes()
    for size in range(0, len(whole), 97):
        path.write_bytes(whole[:size])
        with pytest.raises(RunFolderError):
            read_hierarchy(path)
