"""The data set of measurements: complete, tidy, readable in runs, with the right noise."""

import numpy as np
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from histogram_release_worlds import TREE, histogram_plan
from seeded_bits import SeededBits
from trellis.confidential.histograms import TrueHistograms
from trellis.errors import LedgerError, RunFolderError, StructureError
from trellis.measure.charged_noise import ChargedNoise
from trellis.measure.histograms import measure_histograms
from trellis.model import Hierarchy
from trellis.model.plans.answers import histogram_answers
from trellis.model.tables.sparse_counts import SparseCounts
from trellis.privacy.bits import OsRandom
from trellis.privacy.ledger import Claim
from trellis.storage import histograms as storage
from trellis.storage.histograms import MeasuredHistograms

LEAVES = np.arange(32).reshape(4, 8) % 5


def truth(leaves=LEAVES):
    return TrueHistograms(SparseCounts.from_dense(np.asarray(leaves, dtype=np.int64)))


def measure(folder, plan, hierarchy=TREE, leaves=LEAVES, seed=0):
    claim = Claim("run", "token", plan.privacy)
    measure_histograms(
        folder,
        plan,
        hierarchy,
        truth(leaves),
        ChargedNoise(plan, claim, SeededBits(seed)),
        workers=1,
    )
    return MeasuredHistograms(folder, plan, hierarchy)


def test_every_run_of_areas_can_be_read(tmp_path, monkeypatch):
    """With row groups of two areas and parts of two row groups, reads cross every boundary."""
    monkeypatch.setattr(storage, "ROWS_PER_GROUP", 16)
    monkeypatch.setattr(storage, "GROUPS_PER_PART", 2)
    monkeypatch.setattr(storage, "_KEPT_GROUPS", 2)
    tree = Hierarchy.from_paths([("r", f"{i:02d}") for i in range(11)], ["nation", "town"])
    plan = histogram_plan(tree)
    leaves = np.random.default_rng(1).integers(0, 9, (11, 8))
    measured = measure(tmp_path, plan, tree, leaves)
    parts = sorted(p.name for p in (tmp_path / "level=town" / "query=detailed").iterdir())
    assert parts == ["part-0.parquet", "part-1.parquet", "part-2.parquet"]
    whole = measured.read("town", "detailed", 0, 11)
    assert whole.shape == (11, 8)
    for first in range(11):
        for last in range(first, 12):
            part = measured.read("town", "detailed", first, last)
            np.testing.assert_array_equal(part, whole[first:last])


def test_noise_is_added_to_the_true_answers(tmp_path):
    """Measuring twice the same records with the same bits, and other records, differs by truth."""
    plan = histogram_plan(unprotected_totals=("state",))
    one = measure(tmp_path / "one", plan)
    other = measure(tmp_path / "other", plan, leaves=2 * LEAVES)
    exact = histogram_answers(plan, TREE, truth().leaves)
    for query, answer in zip(plan.queries, exact, strict=True):
        folder = storage.query_folder(tmp_path / "one", query)
        there = pq.read_table(folder / "part-0.parquet")["value"].to_numpy()
        then = pq.read_table(storage.query_folder(tmp_path / "other", query) / "part-0.parquet")[
            "value"
        ].to_numpy()
        np.testing.assert_array_equal(then - there, answer.ravel())
        if query.noise is None:
            np.testing.assert_array_equal(there, answer.ravel())
        else:
            assert (there != answer.ravel()).any()
    # Where a total is exact and noisy, the exact one is read.
    np.testing.assert_array_equal(one.read("state", "total", 0, 3), exact[1])
    assert one.measured[1]["total"] == 0
    assert one.measured[2].keys() == {"sex", "detailed"}
    np.testing.assert_array_equal(other.read("nation", "total", 0, 1), 2 * exact[0])


def test_the_data_set_is_tidy(tmp_path):
    plan = histogram_plan()
    measure(tmp_path, plan)
    table = ds.dataset(tmp_path, partitioning="hive", format="parquet")
    rows = table.to_table(
        filter=(ds.field("level") == "state") & (ds.field("query") == "adult,sex")
    )
    assert {"geocode", "adult", "sex", "value", "variance"} <= set(rows.column_names)
    first = rows.select(["geocode", "adult", "sex"]).slice(0, 5).to_pylist()
    assert [tuple(row.values()) for row in first] == [
        ("a", "no", "f"), ("a", "no", "m"), ("a", "yes", "f"), ("a", "yes", "m"), ("b", "no", "f"),
    ]  # fmt: skip
    variance = plan.query("state", "adult * sex").variance
    assert set(rows["variance"].to_pylist()) == {variance}


def test_threads_give_complete_files_of_fresh_noise(tmp_path):
    plan = histogram_plan()
    claim = Claim("run", "token", plan.privacy)
    values = []
    for name in ("one", "two"):
        measure_histograms(
            tmp_path / name, plan, TREE, truth(), ChargedNoise(plan, claim, OsRandom()), workers=3
        )
        read = MeasuredHistograms(tmp_path / name, plan, TREE)
        values.append(read.read("town", "detailed", 0, 4))
    assert (values[0] != values[1]).any()


@pytest.mark.slow
def test_noise_has_the_planned_variance(tmp_path):
    """A chi-squared test at five standard errors: false alarms below 1e-6."""
    tree = Hierarchy.from_paths([("r", f"{i:05d}") for i in range(20_000)], ["nation", "town"])
    plan = histogram_plan(tree)
    leaves = np.zeros((20_000, 8), dtype=np.int64)
    claim = Claim("run", "token", plan.privacy)
    measure_histograms(tmp_path, plan, tree, truth(leaves), ChargedNoise(plan, claim, OsRandom()))
    noise = MeasuredHistograms(tmp_path, plan, tree).read("town", "detailed", 0, 20_000)
    variance = plan.query("town", "detailed").variance
    assert abs(noise.var() / variance - 1) < 5 * np.sqrt(2 / noise.size)


# -- guards ---------------------------------------------------------------------------------------


def test_noise_that_was_not_charged_is_not_drawn(tmp_path):
    plan, other = histogram_plan(), histogram_plan(max_contribution=2)
    claim = Claim("run", "token", other.privacy)
    with pytest.raises(LedgerError, match="another plan"):
        measure_histograms(tmp_path, plan, TREE, truth(), ChargedNoise(plan, claim, SeededBits(0)))
    assert not list(tmp_path.iterdir())


def test_counts_of_another_schema_are_refused(tmp_path):
    plan = histogram_plan()
    claim = Claim("run", "token", plan.privacy)
    with pytest.raises(StructureError, match="another schema"):
        measure_histograms(
            tmp_path, plan, TREE, truth(np.ones((4, 3))), ChargedNoise(plan, claim, SeededBits(0))
        )


def test_missing_and_damaged_parts_are_refused(tmp_path):
    plan = histogram_plan()
    measured = measure(tmp_path, plan)
    path = storage.part_file(tmp_path, plan.query("town", "detailed"), 0)
    table = pq.read_table(path)
    pq.write_table(table.slice(0, 7), path)
    with pytest.raises(RunFolderError, match="does not fit"):
        measured.read("town", "detailed", 0, 1)
    path.write_bytes(b"nothing")
    with pytest.raises(RunFolderError, match="damaged"):
        MeasuredHistograms(tmp_path, plan, TREE).read("town", "detailed", 0, 1)
    path.unlink()
    with pytest.raises(RunFolderError, match="missing"):
        MeasuredHistograms(tmp_path, plan, TREE)
