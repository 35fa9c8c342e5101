"""Queries are partitions of the cells, named by their factors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.errors import StructureError
from trellis.model.tables.queries import is_finer, parse_query
from trellis.model.tables.schema import Recode, Schema

AGE = Recode("age", {"minor": ["0-9", "10-17"], "adult": ["18-64", "65+"]})
SCHEMA = Schema(
    {"sex": ["f", "m"], "age": ["0-9", "10-17", "18-64", "65+"], "home": ["yes", "no", "?"]},
    {"adult": AGE},
)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("total", ()),
        ("detailed", (2, 4, 3)),
        ("sex", (2,)),
        ("home*sex", (3, 2)),
        ("adult * home", (2, 3)),
    ],
)
def test_a_query_adds_up_each_cell_once(name: str, shape: tuple[int, ...]) -> None:
    query = parse_query(SCHEMA, name)
    assert query.shape == shape
    cells = np.arange(5 * SCHEMA.n_cells).reshape(5, -1)
    answer = query.answer(cells)
    assert answer.shape == (5, query.n_cells)
    assert (answer.sum(axis=1) == cells.sum(axis=1)).all()


def test_answers_are_sums_over_axes_in_the_order_written() -> None:
    cells = np.arange(24)
    cube = cells.reshape(2, 4, 3)
    assert (parse_query(SCHEMA, "home * sex").answer(cells) == cube.sum(1).T.ravel()).all()
    minors = cube[:, :2].sum((0, 1)), cube[:, 2:].sum((0, 1))
    assert (parse_query(SCHEMA, "adult * home").answer(cells) == np.concatenate(minors)).all()


def test_names_are_written_one_way() -> None:
    assert parse_query(SCHEMA, "sex*  age").name == "sex * age"


def test_finer_and_coarser() -> None:
    adult, age, sex = (parse_query(SCHEMA, n) for n in ("adult", "age", "sex"))
    assert is_finer(age, adult)
    assert not is_finer(adult, age)
    assert not is_finer(age, sex)
    assert is_finer(sex, parse_query(SCHEMA, "total"))


@pytest.mark.parametrize(
    ("name", "part"),
    [("race", "'race'"), ("sex * ", "''"), ("age * adult", "twice"), ("sex * sex", "twice")],
)
def test_bad_queries_are_refused(name: str, part: str) -> None:
    with pytest.raises(StructureError, match=part):
        parse_query(SCHEMA, name)


@pytest.mark.parametrize(
    ("groups", "part"),
    [
        ({"a": ["x", "y"], "b": ["y", "z"]}, "two groups: 'y'"),
        ({"a": ["x"], "b": ["z"]}, "leaves out categories: 'y'"),
        ({"a": ["x", "y", "z", "w"]}, "unknown categories: 'w'"),
        ({"a": ["x", "y", "z"], "b": []}, "group without"),
    ],
)
def test_recodes_must_be_partitions(groups: dict[str, list[str]], part: str) -> None:
    with pytest.raises(StructureError, match=part):
        Schema({"t": ["x", "y", "z"]}, {"r": Recode("t", groups)})


@pytest.mark.parametrize("name", ["total", "detailed", "a*b", " a", ""])
def test_names_of_queries_are_taken(name: str) -> None:
    with pytest.raises(StructureError, match="cannot name"):
        Schema({name: ["x"]})


def test_recodes_of_nothing_and_doubled_names() -> None:
    with pytest.raises(StructureError, match="unknown attribute"):
        Schema({"t": ["x"]}, {"r": Recode("u", {"a": ["x"]})})
    with pytest.raises(StructureError, match="Rename"):
        Schema({"t": ["x"]}, {"t": Recode("t", {"a": ["x"]})})


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_every_product_of_attributes_is_a_partition(sizes: list[int], data: st.DataObject) -> None:
    schema = Schema({f"a{i}": [f"{j}" for j in range(n)] for i, n in enumerate(sizes)})
    kept = data.draw(st.lists(st.sampled_from(schema.names), unique=True, min_size=1))
    query = parse_query(schema, " * ".join(kept))
    cube = np.arange(1, schema.n_cells + 1).reshape(schema.shape)
    axes = [schema.names.index(name) for name in kept]
    summed = tuple(i for i in range(len(sizes)) if i not in axes)
    order = [sorted(axes).index(a) for a in axes]
    expected = cube.sum(axis=summed).transpose(order)
    assert (query.answer(cube.ravel()) == expected.ravel()).all()


def test_a_query_is_parsed_once_and_cannot_be_changed():
    query = parse_query(SCHEMA, "home * sex")
    assert parse_query(SCHEMA, "home * sex") is query
    with pytest.raises(ValueError, match="read-only"):
        query.cell_of[0] = 1
