"""From records to true histograms, and what is said about records that do not fit."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from histogram_release_worlds import PEOPLE, SCHEMA, TREE, write_histogram_world
from trellis.confidential.histograms import TrueHistograms
from trellis.errors import InputError, StructureError
from trellis.ingest.confidential_log import confidential_log
from trellis.ingest.records.histograms import tabulate_long, tabulate_wide
from trellis.spec import Spec
from trellis.workflow.confidential.check import check

COLUMNS = {"age": "years", "sex": "sex"}


def long_table(rows, number=None):
    town, age, sex = ([row[i] for row in rows] for i in range(3))
    columns = {"town": pa.array(town, pa.string()), "years": pa.array(age), "sex": pa.array(sex)}
    return pa.table(columns | ({} if number is None else {"n": pa.array(number)}))


ROWS = [("a1", 0, "m"), ("a1", 3, "f"), ("c", 2, "m"), ("a1", 0, "m")]


def test_records_and_counted_rows_give_the_same():
    counts = tabulate_long(long_table(ROWS), TREE, SCHEMA, "town", COLUMNS, None)
    expected = np.zeros((4, 8), dtype=np.int64)
    expected[0, 1], expected[0, 6], expected[3, 5] = 2, 1, 1
    np.testing.assert_array_equal(counts.leaves.dense(), expected)
    rows, number = [*ROWS[:3], ("b1", 1, "f")], [2, 1, 1, 0]
    again = tabulate_long(long_table(rows, number), TREE, SCHEMA, "town", COLUMNS, "n")
    np.testing.assert_array_equal(again.leaves.dense(), expected)
    assert "2" not in repr(counts)  # the text form shows no number


def test_no_records_at_all():
    empty = long_table([]).cast(
        pa.schema([("town", pa.string()), ("years", pa.int64()), ("sex", pa.string())])
    )
    counts = tabulate_long(empty, TREE, SCHEMA, "town", COLUMNS, None)
    assert counts.leaves.dense().sum() == 0
    assert [c.n_areas for c in counts.by_level(TREE)] == [1, 3, 4]


def test_wide_table():
    table = pa.table({"town": ["a1", "b1"], "all": [5, 1], "men": [2, 1]})
    cells = {0: ("0, f", {"all": 1, "men": -1}), 7: ("3, m", {"men": 1})}
    counts = tabulate_wide(table, TREE, SCHEMA, "town", cells)
    assert counts.leaves.dense()[:, [0, 7]].tolist() == [[3, 2], [0, 0], [0, 1], [0, 0]]


@pytest.mark.parametrize(
    "rows",
    [
        [("a1", 9, "f")],
        [("a1", None, "f"), ("a1", 1, "f")],
        [("a1", 1, "x-4711")],
        [("nowhere", 1, "f")],
    ],
)
def test_rows_outside_the_declared_categories_are_refused_without_quoting(rows):
    with pytest.raises(InputError) as caught:
        tabulate_long(long_table(rows), TREE, SCHEMA, "town", COLUMNS, None)
    assert "9" not in str(caught.value)
    assert "4711" not in str(caught.value)
    assert "nowhere" not in str(caught.value)


def test_columns_must_exist_and_hold_categories():
    with pytest.raises(InputError, match="no column 'height'"):
        tabulate_long(long_table(ROWS), TREE, SCHEMA, "town", {"age": "height", "sex": "sex"}, None)
    real = pa.table({"town": ["a1"], "years": [1.5], "sex": ["f"]})
    with pytest.raises(InputError, match="not categories"):
        tabulate_long(real, TREE, SCHEMA, "town", COLUMNS, None)
    with pytest.raises(InputError, match="one column for two"):
        tabulate_long(long_table(ROWS), TREE, SCHEMA, "town", {"age": "sex", "sex": "sex"}, None)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 7), st.integers(0, 5)), max_size=30))
def test_levels_add_up(entries):
    dense = np.zeros((4, 8), dtype=np.int64)
    for leaf, cell, n in entries:
        dense[leaf, cell] += n
    leaf, cell, n = np.array(entries, dtype=np.int64).reshape(-1, 3).T
    levels = TrueHistograms.of(4, 8, leaf, cell, n).by_level(TREE)
    for sparse, expected in zip(levels, TREE.sum_up(dense), strict=True):
        np.testing.assert_array_equal(sparse.dense(), expected)


def test_counts_of_another_hierarchy_are_refused():
    leaves = TrueHistograms.of(3, 8, *np.zeros((3, 0), dtype=np.int64))
    with pytest.raises(StructureError, match="another hierarchy"):
        leaves.by_level(TREE)


# -- rules and the confidential log ----------------------------------------------------------------

RULE = ["age = 0 and sex = f: impossible", "age >= 2 and sex = m"]


def test_records_against_a_structural_zero(tmp_path):
    spec = Spec.load(write_histogram_world(tmp_path, structural_zeros=RULE))
    with pytest.raises(InputError, match="contradict a structural zero") as caught:
        check(spec)
    assert "age" not in str(caught.value)
    log = tmp_path / "log.txt"
    with confidential_log(log), pytest.raises(InputError, match=r"log\.txt"):
        check(spec)
    assert "'age >= 2 and sex = m': 30 records" in log.read_text()
    assert "age = 0" not in log.read_text()  # that rule is kept
    assert log.stat().st_mode & 0o077 == 0  # its owner alone
    with confidential_log(tmp_path), pytest.raises(InputError, match="could not be written"):
        check(spec)


def test_records_against_a_constraint(tmp_path):
    bound = {"name": "homes", "source": "facilities.csv", "area": "town", "query": "age",
             "at_least": "homes"}  # fmt: skip
    spec = Spec.load(write_histogram_world(tmp_path, constraints=[bound]))
    check(spec)
    few = PEOPLE.replace("b1,3,m,25", "b1,3,m,2")
    spec = Spec.load(write_histogram_world(tmp_path, people=few, constraints=[bound]))
    log = tmp_path / "log.txt"
    with confidential_log(log), pytest.raises(InputError, match="contradict a constraint") as e:
        check(spec)
    assert "homes" not in str(e.value).replace("homes.csv", "")
    assert "'homes': broken in 1 places" in log.read_text()
